"""Pages for contributors stay short, and name files and methods that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = ROOT / "docs/decisions"
PAGES = sorted(
    [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/contributing/*.md")]
    + [*DECISIONS.glob("*.md")]
)
FILE = re.compile(r"`((?:rust|pytensorlib|tests|shaders|bench|docs)/[\w./-]+|\.ci/\w+\.py)`")


@pytest.mark.parametrize(
    ("page", "most"),
    [
        ("ARCHITECTURE.md", 200),
        ("CONTRIBUTING.md", 90),
        ("CHANGELOG.md", 120),
        ("bench/README.md", 150),
        *(
            (str(page.relative_to(ROOT)), 40)
            for page in DECISIONS.glob("*.md")
            if page.stem != "index"
        ),
    ],
)
def test_page_is_at_most_as_long_as_it_may_be(page: str, most: int) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= most


def test_glossary_has_at_most_twelve_words() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    words = text.split("\n## Words\n")[1].split("\n## ")[0]
    rows = [line for line in words.splitlines() if line.startswith("|")][2:]
    assert 0 < len(rows) <= 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_and_methods_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [name for name in FILE.findall(text) if not (ROOT / name).exists()]
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    missing += [name for name in links if not (page.parent / name).exists()]
    sources = {"Op": "core/src/op.rs", "Launch": "gpu/src/launch.rs"}
    for owner, source in sources.items():
        code = (ROOT / "rust" / source).read_text(encoding="utf-8")
        for name in re.findall(rf"`{owner}::(\w+)`", text):
            if not re.search(rf"\bfn {name}\b", code):
                missing.append(f"{owner}::{name}")
    assert not missing


def test_every_test_file_lies_in_the_folder_of_its_subject() -> None:
    assert not list((ROOT / "tests").glob("test_*.py"))
    names = [path.name for path in (ROOT / "tests").glob("*/test_*.py")]
    # Their names are those of modules, and what .ci/parts.py finds them by.
    assert len(names) == len(set(names))


def test_modules_that_the_life_of_a_launch_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    names = re.findall(r"\*\*(\w+)\*\*", text.split("## A GPU launch")[1].split("\n## ")[0])
    assert len(names) > 15
    folder = ROOT / "rust/gpu/src"
    assert not [n for n in names if not (folder / n).exists() and not (folder / f"{n}.rs").exists()]


def test_every_decision_has_its_parts_and_is_in_the_index() -> None:
    index = (DECISIONS / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^[a-z0-9-]+$", index, flags=re.MULTILINE)
    pages = [page for page in DECISIONS.glob("*.md") if page.stem != "index"]
    assert sorted(listed) == sorted(page.stem for page in pages)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        parts = re.findall(r"^\*\*(Question|Choice|Measurement|Code)\.\*\*", text, re.MULTILINE)
        assert parts == ["Question", "Choice", "Measurement", "Code"], page.stem
