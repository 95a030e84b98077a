"""Holds the built site to what it promises: ``python docs/check.py docs/_build/html``.

Every public name is in its index, and so is every name of PyTorch's that was recorded and is here;
every link inside the site leads somewhere; every tutorial has its notebook, which is whole.
"""

from __future__ import annotations

import html.parser
import json
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent), str(DOCS.parent / "tests")]


class Links(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what is a link or an anchor."""
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if value and name in {"href", "src"}:
                self.links.append(value)


def names(folder: Path) -> set[str]:
    """Return the names in the site's index."""
    from sphinx.util.inventory import InventoryFile

    with (folder / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: path)
    return {name for kind, found in inventory.items() if kind.startswith("py:") for name in found}


def lacking(folder: Path) -> list[str]:
    """Return the public names that the site's index does not have."""
    import public_names
    import reference

    known = names(folder)
    wanted = set(reference.entries())
    # PyTorch's own list, which was recorded, of what is here.
    for module in public_names.read(public_names.NAMES):
        place, owner = module, public_names.owner(module)
        if owner is None or module.endswith(public_names.INTERNAL):
            continue
        if any(part.startswith("_") for part in module.split(".")):
            continue
        for name in public_names.read(public_names.NAMES)[module]:
            if hasattr(owner, name) and f"{place}.{name}" not in known:
                value = getattr(owner, name)
                if type(value).__name__ != "module":
                    wanted.add(f"{place}.{name}")
    return sorted(wanted - known)


def dead(folder: Path) -> list[str]:
    """Return the links of pages that lead nowhere in the site."""
    pages: dict[Path, Links] = {}
    for path in folder.rglob("*.html"):
        pages[path] = Links()
        pages[path].feed(path.read_text(encoding="utf-8"))
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith(("//", "data:", "mailto:")):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = pages.get(target)
            missing = known is not None and anchor and anchor not in known.anchors
            if not target.exists() or missing:
                wrong.append(f"{path.relative_to(folder)}: {link}")
    return sorted(set(wrong))


def outside(folder: Path) -> list[str]:
    """Return what pages load from elsewhere: there must be nothing."""
    marks = ('<script src="http', '<link rel="stylesheet" href="http', '<img src="http')
    return [
        f"{path.relative_to(folder)}: {mark}"
        for path in folder.rglob("*.html")
        for mark in marks
        if mark in path.read_text(encoding="utf-8")
    ]


def notebooks(folder: Path) -> list[str]:
    """Return the tutorials whose notebook is missing, or no notebook."""
    wrong = []
    for path in sorted((folder / "tutorials").glob("*/*.html")):
        if path.stem in {"index", "sg_execution_times"}:
            continue
        found = list((folder / "_downloads").rglob(f"{path.stem}.ipynb"))
        if not found or not json.loads(found[0].read_text())["cells"]:
            wrong.append(str(path.relative_to(folder)))
    return wrong


def main(argv: list[str]) -> int:
    """Print what is wrong; returns 1 where something is."""
    folder = Path(argv[0]).resolve()
    found = {
        "names without a place": lacking(folder),
        "dead links": dead(folder),
        "pages that need a network": outside(folder),
        "tutorials without a notebook": notebooks(folder),
    }
    for what, lines in found.items():
        if lines:
            print(f"{len(lines)} {what}:", *lines[:40], sep="\n  ")
    count = len(names(folder))
    print(f"site: {count} names, {len(list(folder.rglob('*.html')))} pages")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
