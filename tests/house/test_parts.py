"""Which parts of the test suite run, as `.ci/parts.py` decides."""

import importlib.util
import time
from pathlib import Path
from types import ModuleType

import pytest
from conftest import parted

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def parts() -> ModuleType:
    spec = importlib.util.spec_from_file_location("parts", ROOT / ".ci/parts.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_part_is_left_out_only_while_its_files_are_those_that_passed(
    parts: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("rust/base/a.rs", "rust/core/b.rs", "rust/py/c.rs", "Cargo.lock", "Cargo.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(parts, "ROOT", tmp_path)
    monkeypatch.setattr(parts, "PASSED", tmp_path / "passed.json")
    ran: list[str] = []
    monkeypatch.setattr(parts, "run", lambda name, aside: (ran.append(name) or "ok", 0.0, 0.0))
    monkeypatch.setattr(parts, "PARTS", {"races": ["x"], "macos-check": ["y"], "ruff": ["z"]})
    assert parts.main([]) == 0 and sorted(ran) == ["macos-check", "races", "ruff"]
    ran.clear()
    # Python's compiled files differ from run to run.
    (tmp_path / "rust/base/__pycache__").mkdir()
    (tmp_path / "rust/base/__pycache__/gen.pyc").write_text("1")
    assert parts.main([]) == 0 and ran == ["ruff"]
    (tmp_path / "rust/py/c.rs").write_text("2")
    ran.clear()
    assert parts.main([]) == 0 and sorted(ran) == ["macos-check", "ruff"]
    (tmp_path / "rust/core/b.rs").write_text("2")
    ran.clear()
    assert parts.main([]) == 0 and sorted(ran) == ["macos-check", "races", "ruff"]
    ran.clear()
    assert parts.main(["races"]) == 0 and ran == ["races"]


def test_parts_of_the_tests_have_each_file_once_and_about_as_many_bytes() -> None:
    sizes = {Path(f"{i}.py"): 1000 + i * i for i in range(40)}
    parts = parted(sizes, 4)
    assert parts.keys() == sizes.keys() and set(parts.values()) == set(range(4))
    loads = [sum(sizes[p] for p in sizes if parts[p] == k) for k in range(4)]
    assert max(loads) - min(loads) < max(sizes.values()) // 10
    assert parted(dict(reversed(sizes.items())), 4) == parts


def test_parts_depend_on_files_that_are_there_and_force_what_is_in_their_names(
    parts: ModuleType,
) -> None:
    named = {name for names in parts.SOURCES.values() for name in names}
    assert not [name for name in named if not (ROOT / name).exists()]
    assert parts.SOURCES.keys() <= parts.PARTS.keys() and parts.ASKED <= parts.PARTS.keys()
    names = ("webgpu", "webgpu-replay", "webgpu-quarter")
    assert [parts.forced(name) for name in names] == ["webgpu"] * 3
    assert parts.forced("wgpu-replay") not in parts.VARIABLES


def test_what_failed_runs_again(
    parts: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PASSED", tmp_path / "passed.json")
    monkeypatch.setattr(parts, "PARTS", {"races": ["x"]})
    monkeypatch.setattr(parts, "run", lambda name, aside: ("FAILED (1)", 0.0, 0.0))
    assert parts.main([]) == 1 and parts.main([]) == 1
    assert not parts.passed()


def test_parts_that_cannot_run_beside_each_other_do_not(
    parts: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PASSED", tmp_path / "passed.json")
    names = "clippy build cargo windows timed mypy programs programs-gpu pytest-1 wheels".split()
    monkeypatch.setattr(parts, "PARTS", {name: [name] for name in names})
    running: list[str] = []
    beside: set[frozenset[str]] = set()
    ended: list[str] = []

    def run(name: str, aside: bool) -> tuple[str, float, float]:
        assert aside
        running.append(name)
        beside.update(frozenset((name, other)) for other in running if other != name)
        time.sleep(0.02 if name in {"build", "cargo"} else 0.005)
        running.remove(name)
        ended.append(name)
        return ("FAILED (1)" if name == "mypy" else "ok"), 0.0, 0.0

    monkeypatch.setattr(parts, "run", run)
    assert parts.main([]) == 1 and sorted(ended) == sorted(names)
    assert ended[-1] == "timed" and not any("timed" in pair for pair in beside)
    assert ended.index("build") < min(map(ended.index, ("pytest-1", "programs", "wheels")))
    for names in parts.SHARED.values():
        assert not any(pair <= set(names) for pair in beside)
    assert len(beside) >= 4


def test_a_part_that_does_not_start_fails_and_the_others_run(
    parts: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(parts, "PASSED", tmp_path / "passed.json")
    commands = {
        "build": ["no-such-program"],
        "ruff": ["echo", "it ran"],
        "timed": ["echo", "never"],
    }
    monkeypatch.setattr(parts, "PARTS", commands)
    assert parts.main([]) == 1
    printed = capfd.readouterr().out
    assert "\nit ran" in printed and "\nnever" not in printed
    assert "1 passed, 2 failed build timed" in printed


def test_a_part_does_not_see_the_arguments_of_the_run(
    parts: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("ARGS", "MAKEFLAGS", "MAKEOVERRIDES"):
        monkeypatch.setenv(name, "of-the-run")
    monkeypatch.setattr(
        parts, "PARTS", {"ruff": ["sh", "-c", "echo it ran; env | grep of-the-run"]}
    )
    assert parts.run("ruff", True)[0] == "FAILED (1)"  # grep finds nothing
    assert "\nit ran\n" in capfd.readouterr().out
