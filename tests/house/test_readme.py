"""What the README says in numbers is what the repository holds."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()


def program(path: str, monkeypatch) -> ModuleType:
    file = ROOT / path
    monkeypatch.syspath_prepend(str(file.parent))
    spec = importlib.util.spec_from_file_location(f"readme_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_the_number_of_libraries_is_that_of_the_programs(monkeypatch):
    found = re.search(r"whose results agree .*\| (\d+), with a program", TEXT)
    assert found and int(found[1]) == len(program("tests/programs/run.py", monkeypatch).libraries())


def test_times_are_those_of_the_results(monkeypatch):
    results = program("bench/results.py", monkeypatch)
    runs = [found["runs"]["2"] for found in results.load()]
    means = [f"{results.means(run)['all']:.2f}" for run in runs]
    (count,) = {len(results.ratios(run)) for run in runs}
    kinds = {3: "three", 4: "four"}[len(runs)]
    said = f"{min(means)} to {max(means)} over {count} cases with two threads, on {kinds} kinds"
    assert said in TEXT


def test_links_lead_to_files():
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert len(links) > 5
    assert not [link for link in links if not (ROOT / link).exists()]


def test_every_variable_of_the_environment_is_on_its_page():
    pattern = re.compile(r"PYTENSORLIB_[A-Z0-9_]*[A-Z0-9]")
    files = [*ROOT.glob("rust/*/src/**/*.rs"), *ROOT.glob("pytensorlib/**/*.py")]
    used = {name for file in files for name in pattern.findall(file.read_text(errors="replace"))}
    told = set(pattern.findall((ROOT / "docs/reference/environment.md").read_text()))
    assert used == told


def test_differences_name_tests_that_there_are():
    page = (ROOT / "docs/reference/differences.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 40
    assert not {name for name in named if not list(ROOT.glob(f"tests/*/{name}.py"))}
    lines = re.split(r"\n(?=- |\n)", page)
    bare = [x for x in lines if x.startswith("- ") and not re.search(r"`test_\w+`$", x.strip())]
    assert len(bare) <= 2, bare
