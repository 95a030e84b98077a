"""Every row of cases.py, timed inside a compiled loop (timeit's).

The harness adds about 10 ns to a call and not the 100 ns of a Python function. A figure is the
median over rounds of the time per statement.
"""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cases import CASES, Case
from turns import ROUND, calibrated, namespace

Benchmark = Any  # pytest-benchmark's fixture ships no types
TOTAL = 0.4  # seconds of all runs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(
    benchmark: Benchmark, request: pytest.FixtureRequest, lib: ModuleType, case: Case
) -> None:
    """One statement: calibrated, warmed, measured."""
    names, statement = namespace(lib, case), case.run
    if request.config.getoption("--lib") == "numpy":
        statement = case.numpy or pytest.skip("NumPy has no such function")
        arrays = {k: v.numpy() for k, v in names.items() if isinstance(v, lib.Tensor)}
        names |= {**arrays, "np": np}
    timer, calls, seconds = calibrated(statement, names)
    rounds = min(max(int(TOTAL / max(seconds, ROUND)), 4), 25)
    benchmark.extra_info |= {"label": case.id, "calls": calls}
    benchmark.pedantic(timer.timeit, args=(calls,), rounds=rounds, warmup_rounds=1)
