"""Every row of cases.py, timed inside a compiled loop (timeit's).

The harness adds about 10 ns to a call and not the 100 ns of a Python function. A figure is the
median over rounds of the time per statement.
"""

import importlib
import timeit
from types import ModuleType
from typing import Any

import models
import numpy as np
import pytest
from cases import CASES, Case

Benchmark = Any  # pytest-benchmark's fixture ships no types
ROUND, TOTAL = 0.02, 0.4  # seconds of one round, and of all of them


def namespace(t: ModuleType, case: Case) -> dict[str, object]:
    """Return what the statement sees."""
    names: dict[str, object] = {"t": t, "F": importlib.import_module(f"{t.__name__}.nn.functional")}
    names["models"] = models
    for name, expression in case.names.items():
        names[name] = eval(expression, names)
    return names


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
    timer = timeit.Timer(statement, globals=names)
    calls, seconds = 1, timer.timeit(1)
    seconds = timer.timeit(1)
    while seconds < ROUND / 4:
        calls *= 4
        seconds = timer.timeit(calls)
    calls = max(1, int(calls * ROUND / seconds))
    rounds = min(max(int(TOTAL / (seconds * max(1.0, ROUND / seconds))), 4), 25)
    benchmark.extra_info |= {"label": case.id, "calls": calls}
    benchmark.pedantic(timer.timeit, args=(calls,), rounds=rounds, warmup_rounds=1)
