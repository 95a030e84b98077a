"""The script that type checkers read is a program that runs (`make lint` checks its types)."""

import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]


def test_typed_script_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(HERE / "typing/train.py"), run_name="__main__")
    assert "Linear(in_features=2, out_features=16, bias=True)" in capsys.readouterr().out
