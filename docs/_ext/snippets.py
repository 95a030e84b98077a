"""Runs what stands after ``>>>`` in a page, and compares what it prints with what the page says.

The examples of a page share their names, from top to bottom. ``python docs/_ext/snippets.py``
runs those of all pages, without Sphinx; when the site is built a difference is a warning, which is
an error there.
"""

from __future__ import annotations

import doctest
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(text: str) -> str:
    """Return the Python examples of a Markdown page."""
    found = re.findall(
        r"^```(?:python|pycon|\{code-block\} pycon)\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )
    return "\n".join(block for block in found if ">>>" in block)


def failures(text: str, name: str) -> str:
    """Run the examples of a page; return what went wrong."""
    return run(blocks(text), name)


def run(text: str, name: str) -> str:
    """Run the examples in a text; return what went wrong."""
    examples = doctest.DocTestParser().get_examples(text)
    for example in examples:
        # An error may be shown by its last line alone.
        if re.match(r"\w+(Error|Warning): ", example.want):
            example.exc_msg = example.want
    report: list[str] = []
    test = doctest.DocTest(examples, {"__name__": "page"}, name, None, None, text)
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(test, out=report.append)
        finally:
            os.chdir(before)
            _forget()
    return "".join(report)


def _forget() -> None:
    """Undo what a page may have switched."""
    import pytensorlib as torch

    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.use_deterministic_algorithms(False)
    torch.autograd.set_detect_anomaly(False)


def pages() -> Iterator[Path]:
    """Yield the pages that people wrote."""
    for path in sorted(DOCS.rglob("*.md")):
        if not any(part.startswith("_") for part in path.relative_to(DOCS).parts):
            yield path


def _check(app: Any, name: str, source: list[str]) -> None:
    from sphinx.util import logging

    path = Path(app.env.doc2path(name))
    if path.suffix == ".md" and ">>>" in source[0] and (wrong := failures(source[0], name)):
        logging.getLogger(__name__).warning("examples of %s:\n%s", name, wrong)


def setup(app: Any) -> dict[str, bool]:
    """Run the examples when a page is read."""
    app.connect("source-read", _check)
    return {"parallel_read_safe": True}


def main() -> int:
    """Run all pages; returns how many are wrong."""
    wrong = 0
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if ">>>" not in text:
            continue
        found = failures(text, str(path.relative_to(DOCS)))
        wrong += bool(found)
        print(f"{path.relative_to(DOCS)}: {'FAILED' if found else 'ok'}\n{found}", end="")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
