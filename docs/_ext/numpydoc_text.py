"""Docstrings in NumPy's style, as reStructuredText that Sphinx reads without a warning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

# What a name in backticks links to, or None.
Resolve = Callable[[str], "str | None"]

ITEMS = {"Parameters", "Returns", "Raises", "Yields", "Attributes", "Warns", "Other Parameters"}


def parts(doc: str) -> list[tuple[str, str]]:
    """Return the sections of a docstring: headings and texts; the first has no heading."""
    found = re.split(r"^(\w[\w ]*)\n-{3,}[ ]*\n", "\n" + doc, flags=re.MULTILINE)
    return [("", found[0]), *zip(found[1::2], found[2::2], strict=True)]


def inline(text: str, resolve: Resolve) -> str:
    """Return a line of prose: code stays as it is, names become links, the rest is escaped."""
    pieces = re.split(r"(``[^`]+``|:math:`[^`]+`|`[^`\n]+`)", text)
    return "".join(_piece(piece, resolve) for piece in pieces)


def _piece(piece: str, resolve: Resolve) -> str:
    if piece.startswith((":math:", "``")) and piece.endswith("`"):
        return _spaced(piece)
    if len(piece) > 2 and piece[0] == piece[-1] == "`":
        code = piece[1:-1]
        target = resolve(code)
        if target:
            return _spaced(f":py:obj:`{code} <{target}>`")
        return _spaced(f"``{code}``")
    return re.sub(r"([\\*_|])", r"\\\1", piece.replace("`", "\\`"))


def _spaced(role: str) -> str:
    """Return inline markup that may stand beside letters."""
    return f"\\ {role}\\ "


def tidy(text: str) -> str:
    """Drop the escaped spaces where there is a real one, or an end of line, anyway."""
    text = re.sub(r"(?m)(^|(?<=[ \n(\[,]))\\ (?=[:`])", r"\1", text)
    return re.sub(r"\\ (?=[ \n.,;:)\]?!]|$)", "", text)


def indent(text: str, by: str = "    ") -> str:
    """Return a text moved to the right."""
    return "\n".join(by + line if line.strip() else "" for line in text.split("\n"))


def prose(text: str, resolve: Resolve) -> str:
    """Return paragraphs, lists and examples."""
    blocks, out = re.split(r"\n[ ]*\n", text.strip("\n")), []
    for block in blocks:
        if not block.strip():
            continue
        margin = min(len(line) - len(line.lstrip()) for line in block.split("\n") if line.strip())
        lines = [line[margin:] for line in block.split("\n")]
        if lines[0].startswith(">>>"):
            out.append(".. code-block:: pycon\n\n" + indent("\n".join(lines)))
        elif lines[0].startswith("```"):
            inside = "\n".join(line for line in lines if not line.startswith("```"))
            out.append(".. code-block:: text\n\n" + indent(inside))
        elif margin >= 4 and out and out[-1].endswith("::"):
            out.append(indent("\n".join(lines)))
        elif lines[0].startswith("|") or any(re.fullmatch(r"[-=+| :]{3,}", li) for li in lines):
            out.append(".. code-block:: text\n\n" + indent("\n".join(lines)))
        else:
            out.append(_listed(lines, resolve))
    return "\n\n".join(out)


def _listed(lines: list[str], resolve: Resolve) -> str:
    """Return a paragraph, or a list with each item on lines of its own."""
    items: list[str] = []
    for line in lines:
        if re.match(r"([-*]|\d+\.) ", line):
            items.append("\n" + line)
        else:
            items.append(line.strip() if not items or items[-1][:1] != "\n" else " " + line.strip())
    text = "\n".join(lines) if not any(i[:1] == "\n" for i in items) else ""
    if text:
        text = "\n".join(line.strip() for line in lines)
        return tidy(inline(text, resolve))
    found: list[str] = []
    for line in lines:
        mark = re.match(r"([-*]|\d+\.) ", line)
        if mark:
            found.append("")
            found.append("- " + inline(line[mark.end() :], resolve))
        elif found:
            found.append("  " + inline(line.strip(), resolve))
        else:
            found.append(inline(line.strip(), resolve))
    return tidy("\n".join(found).strip("\n"))


def items(text: str, resolve: Resolve, plain: bool) -> Iterator[str]:
    """Yield the entries of a list such as that of parameters.

    `plain` says that an entry is a type or an error alone, with no name before it.
    """
    head: str | None = None
    body: list[str] = []

    def entry() -> Iterator[str]:
        if head is None:
            return
        name, colon, kind = head.partition(" : ")
        name = name.strip()
        shown = f"*{_escaped(name)}*" if plain and not colon else f"**{_escaped(name)}**"
        kind = f" : {tidy(inline(kind, resolve))}" if colon else ""
        margin = min((len(b) - len(b.lstrip()) for b in body if b.strip()), default=0)
        inside = prose("\n".join(b[margin:] for b in body), resolve) or "\\ "
        yield f"{shown}{kind}\n{indent(inside)}"

    for line in text.strip("\n").split("\n"):
        if line.strip() and not line.startswith(" "):
            yield from entry()
            head, body = line.strip(), []
        else:
            body.append(line)
    yield from entry()


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_|`])", r"\\\1", text)


def converted(doc: str, resolve: Resolve) -> str:
    """Return a whole docstring."""
    out = []
    for heading, text in parts(doc):
        if not text.strip():
            continue
        if heading in ITEMS:
            plain = heading in {"Returns", "Raises", "Yields", "Warns"}
            out.append(f".. rubric:: {heading}")
            out += list(items(text, resolve, plain))
            continue
        if heading:
            out.append(f".. rubric:: {heading}")
        margin = min(
            (len(line) - len(line.lstrip()) for line in text.split("\n") if line.strip()), default=0
        )
        out.append(prose("\n".join(line[margin:] for line in text.split("\n")), resolve))
    return "\n\n".join(out)
