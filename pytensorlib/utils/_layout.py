"""Nodes and arrows in layers, as an SVG picture."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Hashable

__all__ = ["Layout"]

STEP, HEIGHT, GAP, LETTER = 58, 26, 16, 7.2
STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1c2733}"
    "rect{fill:#e9eef5;stroke:#8494a8}.leaf rect{fill:#d9f0df;stroke:#5f9c70}"
    "path{stroke:#8494a8;fill:none}"
)


class Layout:
    """A directed graph without cycles, that is drawn from its sources down.

    Examples
    --------
    >>> from pytensorlib.utils._layout import Layout
    >>> layout = Layout()
    >>> layout.add("a", "first")
    >>> layout.add("b", "second")
    >>> layout.join("a", "b")
    >>> layout.rows()
    [['a'], ['b']]
    """

    def __init__(self) -> None:
        self.labels: dict[Hashable, tuple[str, str]] = {}
        self.after: dict[Hashable, list[Hashable]] = defaultdict(list)

    @property
    def texts(self) -> list[str]:
        """The labels of the nodes, in the order in which they were added."""
        return [text for text, _ in self.labels.values()]

    def add(self, key: Hashable, text: str, kind: str = "") -> None:
        """Add a node, once."""
        self.labels.setdefault(key, (text, kind))

    def join(self, above: Hashable, below: Hashable) -> None:
        """Add an arrow."""
        self.after[above].append(below)

    def rows(self) -> list[list[Hashable]]:
        """Return the nodes row by row: each below all that point to it, near the middle of them."""
        before: dict[Hashable, list[Hashable]] = defaultdict(list)
        for above, belows in self.after.items():
            for below in belows:
                before[below].append(above)
        waits = {key: len(before[key]) for key in self.labels}
        level = dict.fromkeys(self.labels, 0)
        ready = [key for key, count in waits.items() if count == 0]
        while ready:
            key = ready.pop()
            for below in self.after[key]:
                level[below] = max(level[below], level[key] + 1)
                waits[below] -= 1
                if waits[below] == 0:
                    ready.append(below)
        # A source stands right above the first that it points to.
        for key in self.labels:
            if not before[key] and self.after[key]:
                level[key] = min(level[below] for below in self.after[key]) - 1
        found: list[list[Hashable]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
        for key in self.labels:
            found[level[key]].append(key)
        place: dict[Hashable, float] = {}
        for row in found:
            known = {
                key: sum(place.get(k, 0.0) for k in before[key]) / max(len(before[key]), 1)
                for key in row
            }
            row.sort(key=lambda key: known[key])
            for k, key in enumerate(row):
                place[key] = k - (len(row) - 1) / 2
        return found

    def svg(self) -> str:
        """Return the picture."""
        widths = {key: LETTER * len(text) + 20 for key, (text, _) in self.labels.items()}
        rows = self.rows()
        sums = [sum(widths[key] + GAP for key in row) for row in rows]
        whole = max(sums, default=0) + GAP
        at: dict[Hashable, tuple[float, float]] = {}
        for number, row in enumerate(rows):
            x = (whole - sums[number] + GAP) / 2
            for key in row:
                at[key] = (x + widths[key] / 2, 10 + number * STEP)
                x += widths[key] + GAP
        parts = []
        for above, belows in self.after.items():
            for below in belows:
                (x1, y1), (x2, y2) = at[above], at[below]
                y1 += HEIGHT
                middle = (y1 + y2) / 2
                parts.append(
                    f'<path d="M{x1:.1f} {y1}C{x1:.1f} {middle} {x2:.1f} {middle} {x2:.1f} {y2}" '
                    'marker-end="url(#tip)"/>'
                )
        for key, (text, kind) in self.labels.items():
            x, y = at[key]
            w = widths[key]
            parts.append(
                f'<g class="{kind}"><rect x="{x - w / 2:.1f}" y="{y}" width="{w:.1f}" '
                f'height="{HEIGHT}" rx="5"/><text x="{x:.1f}" y="{y + 17}" text-anchor="middle">'
                f"{html.escape(text)}</text></g>"
            )
        height = 20 + STEP * (len(rows) - 1) + HEIGHT if rows else 20
        tip = (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8" fill="none"/></marker></defs>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole:.0f}" height="{height}" '
            f'viewBox="0 0 {whole:.0f} {height}" style="background:#fff"><style>{STYLE}</style>'
            f"{tip}{''.join(parts)}</svg>"
        )
