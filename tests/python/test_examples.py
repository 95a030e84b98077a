"""The programs of `python -m pytensorlib.examples` run small, and go on where they stopped."""

from __future__ import annotations

import importlib
import importlib.util
import json
import runpy
import sys
from pathlib import Path

import child
import pytest

import pytensorlib as torch
from pytensorlib.examples.__main__ import examples

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(examples())
# They train by steps, and keep all that the next one depends on.
STEPPED = [n for n in NAMES if n not in {"digits", "gpu_benchmark", "data_parallel", "lora"}]
HAS_MPI = importlib.util.find_spec("mpi4py") is not None

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:wgpu. .* runs on")


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


def needs_digits(name: str) -> None:
    text = (ROOT / f"pytensorlib/examples/{name}.py").read_text()
    if "digits()" in text:
        pytest.importorskip("sklearn")


def run(name: str, *args: str) -> None:
    importlib.import_module(f"pytensorlib.examples.{name}").main(list(args))


def losses(folder: Path) -> list[float]:
    return torch.load(folder / "checkpoint.pt")["losses"]


def test_the_list_names_every_program_and_its_title():
    done = child.python("-m", "pytensorlib.examples")
    assert done.returncode == 0, done.stderr
    for name, title in examples().items():
        assert f"{name:<16} {title}" in done.stdout
    assert len(examples()) >= 9


def test_an_unknown_name_is_refused():
    done = child.python("-m", "pytensorlib.examples", "nosuch")
    assert done.returncode == 2
    assert "no example nosuch" in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_help_tells_what_it_does(name, capsys):
    with pytest.raises(SystemExit) as caught:
        run(name, "--help")
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert {"--device", "--small", "--resume", "--out", "--seed"} <= set(text.split())


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_small(name, tmp_path, capsys):
    needs_digits(name)
    if name == "data_parallel" and not HAS_MPI:
        pytest.skip("needs MPI")
    run(name, "--small", "--out", str(tmp_path))
    text = capsys.readouterr().out
    if name == "gpu_benchmark":
        assert "GFLOP/s" in text or "no GPU here" in text
        return
    assert "loss" in text
    assert list(tmp_path.glob("*.pt"))
    if importlib.util.find_spec("matplotlib"):
        (picture,) = tmp_path.glob("*.png")
        assert picture.stat().st_size > 2000


@pytest.mark.parametrize("name", STEPPED)
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not(name, tmp_path, capsys):
    needs_digits(name)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run(name, "--steps", "4", "--small", "--out", str(whole))
    run(name, "--steps", "2", "--small", "--out", str(parts))
    assert losses(parts) == losses(whole)[:2]
    run(name, "--steps", "4", "--small", "--resume", "--out", str(parts))
    assert "resumed" in capsys.readouterr().out
    assert losses(parts) == losses(whole)
    assert len(losses(whole)) == 4


@pytest.mark.parametrize("name", ["vae", "lstm_series"])
def test_it_trains_on_a_gpu_as_on_the_cpu(name, tmp_path):
    if not torch.wgpu.is_available():
        pytest.skip("no GPU")
    needs_digits(name)
    for device in ("cpu", "wgpu"):
        run(name, "--steps", "2", "--small", "--device", device, "--out", str(tmp_path / device))
    here, there = losses(tmp_path / "cpu"), losses(tmp_path / "wgpu")
    assert there[0] == pytest.approx(here[0], rel=0.2)  # the noise of the model is the GPU's own
    assert len(there) == 2


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("docs/tutorials/code/*.py")), ids=lambda p: p.stem
)
def test_tutorials_of_cells_run(path):
    pytest.importorskip("matplotlib")
    runpy.run_path(str(path), run_name="__main__")


def test_the_benchmarks_table_is_that_of_the_results():
    cards = importlib.import_module("pytensorlib.examples.gpu_benchmark").CARDS
    files = {"H100": "nvidia-h100-80gb-hbm3", "H200": "nvidia-h200"}
    assert cards.keys() == files.keys()
    for card, file in files.items():
        measured = json.loads((ROOT / f"bench/results/gpu/{file}.json").read_text())["ours"]
        for name, seconds in cards[card].items():
            assert seconds == pytest.approx(measured[name], rel=6e-3), name


@pytest.mark.parametrize("words", [["--steps", "0"], ["--device", "nosuch"]])
def test_wrong_arguments_are_refused(words, capsys, tmp_path):
    with pytest.raises(SystemExit) as caught:
        run("lstm_series", *words, "--out", str(tmp_path))
    assert caught.value.code == 2
    assert words[0] in capsys.readouterr().err
