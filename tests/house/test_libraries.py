"""What is said of libraries above PyTorch is what tests/programs recorded."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def programs() -> ModuleType:
    """Return tests/programs/run.py."""
    path = ROOT / "tests/programs/run.py"
    spec = importlib.util.spec_from_file_location("libraries_run", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def normal(name: str) -> str:
    """Return a distribution's name as packages are compared by."""
    return name.lower().replace("-", "_")


def test_the_table_lists_what_agrees_and_its_versions(programs: ModuleType) -> None:
    """The site has the table that `python tests/programs/run.py --table` prints."""
    rows = [line for line in programs.table().splitlines() if line.startswith("| ")]
    cells = [cell.strip() for row in rows[1:] for cell in row.strip("|").split("|")]
    listed = {name: version for name, version in zip(cells[::2], cells[1::2]) if name}
    assert len(listed) >= 18
    assert listed == programs.libraries()


def test_recorded_versions_are_those_installed(programs: ModuleType) -> None:
    expected = json.loads(programs.EXPECTED.read_text())
    assert expected.keys() == programs.PROGRAMS.keys()
    lines = programs.LOCK.read_text().splitlines()
    lock = dict(line.split("==") for line in lines if "==" in line)
    for name, needed in programs.PROGRAMS.items():
        assert (ROOT / f"tests/programs/{name}.py").exists()
        recorded = {normal(k): v for k, v in expected[name]["versions"].items()}
        assert recorded == {normal(k): lock[normal(k)] for k in needed}, name


def test_each_program_was_measured_on_the_cpu_and_the_gpu(programs: ModuleType) -> None:
    bounds = {"CPU": programs.TOLERANCE, "GPU": programs.TOLERANCE_GPU}
    bounds |= {f"GPU {dtype}": bound for dtype, bound in programs.TOLERANCE_HALF.items()}
    measured = json.loads(programs.MEASURED.read_text())
    assert measured.keys() == programs.PROGRAMS.keys() - programs.NOT_YET.keys()
    for name, found in measured.items():
        halves = {f"GPU {dtype}" for dtype, known in programs.HALVES.items() if name in known}
        assert found.keys() == {"CPU", "GPU"} | halves, name
        assert all(gap <= bounds[kind] for kind, (gap, _) in found.items()), name
        assert f"`{name}`" in programs.measured()


def test_the_few_programs_name_what_can_be_installed(programs: ModuleType) -> None:
    wanted = {package for needed in programs.FEW.values() for package in needed}
    assert {line.partition("==")[0] for line in programs.lock(list(programs.FEW))} == wanted
    assert programs.FEW.keys() <= programs.PROGRAMS.keys() >= programs.NOT_YET.keys()


def test_difference_is_the_largest_over_the_largest_magnitude(programs: ModuleType) -> None:
    nan, inf = float("nan"), float("inf")
    assert programs.difference([1.0, 2.5], [1.0, 2.0]) == 0.25
    assert programs.difference([nan, inf], [nan, inf]) == 0.0
    assert programs.difference([1.0], [nan]) == inf == programs.difference([], [1.0])


def test_programs_choose_their_device_as_people_write_it(programs: ModuleType) -> None:
    for name in programs.PROGRAMS:
        text = (ROOT / f"tests/programs/{name}.py").read_text()
        assert "wgpu" not in text and "pytensorlib" not in text, name
        assert 'device="cpu"' not in text and 'accelerator="cpu"' not in text, name
    halves = {name for table in programs.HALVES.values() for name in table}
    for table in (programs.FALLS_BACK, programs.NOT_COMPARED, halves, programs.SLOW_IN_SOFTWARE):
        assert programs.PROGRAMS.keys() >= set(table)


def test_what_runs_on_the_cpu_is_known_both_ways(
    programs: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "FALLS_BACK", {"einops_layers": {"eig": "it has no kernel"}})
    for name, fallbacks, wrong in (
        ("einops_layers", {"eig": 2}, ""),
        ("einops_layers", {}, "eig did not run on the CPU, as FALLS_BACK says"),
        ("einops_layers", {"eig": 1, "qr": 1}, "qr ran on the CPU, which FALLS_BACK does not say"),
        ("lion_ema", {"eig": 1}, "eig ran on the CPU, which FALLS_BACK does not say"),
        ("lion_ema", {}, ""),
    ):
        assert programs.on_the_gpu(name, {"bytes": 1, "fallbacks": fallbacks}) == wrong
    nothing = {"bytes": 0, "fallbacks": {}}
    assert programs.on_the_gpu("lion_ema", nothing) == "it computed nothing on the GPU"
