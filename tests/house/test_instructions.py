"""What kernels cost in instructions and bytes, against what was recorded.

`python bench/instructions.py --record` records anew.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEVELS = ["avx2", "portable"]


@pytest.fixture
def instructions(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module of bench/ that counts."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("instructions")


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_kernels_execute_as_many_instructions_as_recorded(instructions: Any, level: str) -> None:
    if why := instructions.missing():
        pytest.skip(why)
    recorded = instructions.recorded()
    found = instructions.count(level)
    wrong = instructions.differences(found, recorded[level], recorded["python"])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("level", LEVELS)
def test_recorded_counts_are_of_every_case(instructions: Any, level: str) -> None:
    assert list(instructions.recorded()[level]) == [case.label for case in instructions.CASES]


def test_a_tenth_more_instructions_is_a_difference(instructions: Any) -> None:
    """And a kernel of another instruction set is one everywhere that vectors matter."""
    recorded = instructions.recorded()
    avx2 = recorded["avx2"]
    python = instructions.PYTHON
    assert instructions.differences(avx2, avx2, python) == []
    more = {label: [1.1 * count, *size] for label, (count, *size) in avx2.items()}
    assert len(instructions.differences(more, avx2, python)) == len(avx2)
    fewer = {label: [0.9 * count, *size] for label, (count, *size) in avx2.items()}
    assert len(instructions.differences(fewer, avx2, python)) == len(avx2)
    other = instructions.differences(recorded["portable"], avx2, python)
    vectors = {"add", "exp", "gelu", "softmax", "attention, causal"}
    assert vectors <= {d.split(":")[0] for d in other}


def test_files_of_the_counter_are_read(instructions: Any) -> None:
    """The format is that of callgrind's documentation: a name for each count, one total of each."""
    dump = (
        "version: 1\ncreator: callgrind\ndesc: I1 cache: 32768 B\n"
        "desc: Trigger: Client Request: matmul 256, float32\n\npositions: line\n"
        "events: Ir Dr Dw DLmr DLmw\nsummary: 12 5 4 3 2\n\nfn=(1) f\n0 12 5 4 3 2\n\n"
        "totals: 12 5 4 3 2\n"
    )
    counts = {"Ir": 12, "Dr": 5, "Dw": 4, "DLmr": 3, "DLmw": 2}
    assert instructions.parsed(dump) == ("matmul 256, float32", counts)
    assert instructions.parsed(dump.replace("Client Request: ", "Program termination")) is None
