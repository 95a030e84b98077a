"""The directive ``drawing``: boxes and arrows, as an SVG picture in the page's own colours.

Each line is one of::

    box NAME X Y WIDTH HEIGHT [soft|strong] TEXT     lines of the text are parted by "/"
    arrow FROM TO [TEXT]                             from the side of one box to that of another
    note X Y TEXT
"""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives

Box = tuple[float, float, float, float]


def _text(x: float, y: float, text: str, kind: str) -> str:
    lines = text.split("/")
    top = y - 9 * (len(lines) - 1)
    spans = [
        f'<tspan x="{x:g}" y="{top + 18 * k:g}"{_weight(k, lines)}>'
        f"{html.escape(line.strip())}</tspan>"
        for k, line in enumerate(lines)
    ]
    inside = "".join(spans)
    return f'<text class="{kind}" text-anchor="middle" dominant-baseline="middle">{inside}</text>'


def _weight(k: int, lines: list[str]) -> str:
    return ' class="first"' if k == 0 and len(lines) > 1 else ""


def _ends(a: Box, b: Box) -> tuple[float, float, float, float]:
    """Return where an arrow leaves a box and where it meets the other."""
    ax, ay, bx, by = a[0] + a[2] / 2, a[1] + a[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2
    if a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1]:  # one above the other
        left, right = max(a[0], b[0]), min(a[0] + a[2], b[0] + b[2])
        if right - left > 20:
            ax = bx = (left + right) / 2
        return (ax, a[1] + a[3], bx, b[1]) if ay < by else (ax, a[1], bx, b[1] + b[3])
    top, bottom = max(a[1], b[1]), min(a[1] + a[3], b[1] + b[3])
    if bottom - top > 10:
        ay = by = (top + bottom) / 2
    return (a[0] + a[2], ay, b[0], by) if ax < bx else (a[0], ay, b[0] + b[2], by)


def drawn(lines: list[str], title: str) -> str:
    """Return the picture."""
    boxes: dict[str, Box] = {}
    out: list[str] = []
    right = bottom = 0.0
    for line in lines:
        words = line.split()
        if not words:
            continue
        if words[0] == "box":
            name, x, y, w, h = words[1], *map(float, words[2:6])
            rest, kind = words[6:], "plain"
            if rest and rest[0] in {"soft", "strong"}:
                kind, rest = rest[0], rest[1:]
            boxes[name] = (x, y, w, h)
            out.append(
                f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6"/>'
            )
            text = " ".join(rest)
            middle = y + h / 2
            if text.startswith("^"):  # the title of a box that holds others
                text, middle = text[1:], y + 16
            out.append(_text(x + w / 2, middle, text, kind))
            right, bottom = max(right, x + w), max(bottom, y + h)
        elif words[0] == "arrow":
            x1, y1, x2, y2 = _ends(boxes[words[1]], boxes[words[2]])
            out.append(
                f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="arrow" marker-end="url(#head)"/>'
            )
            if len(words) > 3:
                beside = 8 if abs(x1 - x2) < abs(y1 - y2) else 0
                x, y = (x1 + x2) / 2 + beside, (y1 + y2) / 2 - (0 if beside else 9)
                anchor = "start" if beside else "middle"
                label = html.escape(" ".join(words[3:]))
                out.append(
                    f'<text class="label" x="{x:g}" y="{y:g}" text-anchor="{anchor}" '
                    f'dominant-baseline="middle">{label}</text>'
                )
        elif words[0] == "note":
            x, y = float(words[1]), float(words[2])
            label = html.escape(" ".join(words[3:]))
            out.append(f'<text class="label" x="{x:g}" y="{y:g}">{label}</text>')
            bottom = max(bottom, y + 6)
        else:
            raise ValueError(f"drawing: {line!r} is no box, arrow or note")
    head = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>'
    )
    return (
        f'<svg class="drawing" viewBox="-4 -4 {right + 8:g} {bottom + 8:g}" '
        f'style="max-width:{right + 8:g}px" role="img" aria-label="{html.escape(title)}">'
        f"{head}{''.join(out)}</svg>"
    )


class Drawing(Directive):
    """A drawing; its argument says in words what it shows."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"name": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Return the picture as it is."""
        try:
            picture = drawn(list(self.content), self.arguments[0])
        except (ValueError, KeyError, IndexError) as e:
            raise self.error(f"drawing: {e}") from None
        return [nodes.raw("", f'<div class="drawn">{picture}</div>', format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("drawing", Drawing)
    return {"parallel_read_safe": True}
