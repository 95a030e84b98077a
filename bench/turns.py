"""Time single rows of cases.py in a process of their own, so that two libraries can take turns.

The process reads the names of rows, one a line, and answers each with the nanoseconds of its
statement, or with what stood in the way.
"""

import importlib
import json
import os
import subprocess
import sys
import timeit
from pathlib import Path
from statistics import median
from types import ModuleType

from cases import CASES, Case
from errors import base

ROOT = Path(__file__).resolve().parent.parent
ROUND = 0.02  # seconds of one run
WARM = 4  # runs of a long statement before it is timed


def loaded(name: str) -> ModuleType:
    """Return a library, seeded, with as many threads as it may use."""
    module = importlib.import_module(name)
    for part in ("nn", "optim", "utils.data"):
        importlib.import_module(f"{name}.{part}")
    module.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    module.manual_seed(0)
    return module


def namespace(t: ModuleType, case: Case) -> dict[str, object]:
    """Return what the statement sees."""
    names = base(t)
    for name, expression in case.names.items():
        names[name] = eval(expression, names)
    return names


def calibrated(statement: str, names: dict[str, object]) -> tuple[timeit.Timer, int, float]:
    """Return a statement's timer, and how many calls one run has, for how many seconds."""
    timer = timeit.Timer(statement, globals=names)
    calls, seconds = 1, timer.timeit(1)
    seconds = timer.timeit(1)
    while seconds < ROUND / 4:
        calls *= 4
        seconds = timer.timeit(calls)
    if calls == 1:  # short ones are warm by now; these may fill files and much memory
        seconds = min(timer.repeat(WARM, 1))
    call = seconds / calls
    calls = max(1, int(ROUND / call))
    return timer, calls, calls * call


def serve(name: str, site: str) -> None:
    """Answer for one library; a row asked for again is not made again."""
    sys.path.append(site)
    library, cases = loaded(name), {case.id: case for case in CASES}
    label, timer, calls, runs = "", timeit.Timer(), 1, 1
    for asked in map(json.loads, sys.stdin):
        try:
            if asked != label:
                timer = timeit.Timer()  # what it holds is freed before more is made
                label, case = asked, cases[asked]
                timer, calls, seconds = calibrated(case.run, namespace(library, case))
                runs = 3 if seconds < 2 * ROUND else 1
            found: object = median(timer.repeat(runs, calls)) / calls * 1e9
        except Exception as e:
            label, found = "", repr(e)
        print(json.dumps(found), flush=True)


class Library:
    """One library in its process."""

    def __init__(self, name: str, site: str, threads: int) -> None:
        self.name = name
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        env = {**os.environ, **dict.fromkeys(names, f"{threads}"), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, __file__, name, site]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> "Library":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def time(self, label: str) -> float:
        """Return the nanoseconds of a row's statement."""
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(label), file=self.process.stdin, flush=True)
        found = json.loads(self.process.stdout.readline() or '"the process ended"')
        if isinstance(found, str):
            raise RuntimeError(f"{self.name}, {label}: {found}")
        return found


if __name__ == "__main__":
    serve(*sys.argv[1:])
