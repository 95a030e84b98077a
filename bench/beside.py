"""Time calls here and in PyTorch in turns, each library in a process of its own with one thread.

Each turn makes some calls, timed by the thread's own processor time, so that other programs disturb
little; a figure is the median of the turns. `TORCH_PYTHON` names a Python with PyTorch.
"""

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

from machine import this_machine

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "bench" / "pages"
TURN = 0.15  # seconds of one turn at least

#: Seconds of a call, or the words of the exception that it raised.
Time = float | str


def serve(library: str, make: Callable[[ModuleType, str, str], Callable[[], object]]) -> None:
    """Answer each line, "ROW WAY", with the seconds of a call of what `make` returns for it."""
    t = importlib.import_module(library)
    for part in ("nn", "optim", "func"):
        importlib.import_module(f"{library}.{part}")
    t.set_num_threads(1)
    ready: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        try:
            if line not in ready:
                t.manual_seed(0)
                ready[line] = make(t, *line.split())
                for _ in range(4):
                    ready[line]()
            call, n = ready[line], 0
            began = time.thread_time()
            while (taken := time.thread_time() - began) < TURN or n < 2:
                call()
                n += 1
            answer: Time = taken / n
        except Exception as e:
            answer = f"{type(e).__name__}: {e}".splitlines()[0][:120]
        print(json.dumps(answer), flush=True)


class Library:
    """A process that times calls in one library: `script` calls `serve` when it gets `--serve`."""

    def __init__(self, script: str, python: str, name: str) -> None:
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [python, script, "--serve", name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
        )  # fmt: skip

    def turn(self, line: str) -> Time:
        """Return the seconds of one call."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or '"the process ended"')


def measure(
    script: str, rows: list[str], ours: tuple[str, ...], theirs: tuple[str, ...], rounds: int
) -> dict[str, list[Time]]:
    """Return for each row the times of each of our ways, then of each of PyTorch's."""
    here = Library(script, sys.executable, "pytensorlib")
    there = Library(script, os.environ["TORCH_PYTHON"], "torch")
    asked = [*((here, way) for way in ours), *((there, way) for way in theirs)]
    found = {}
    for row in rows:
        turns: list[list[Any]] = [[] for _ in asked]
        for _ in range(rounds):
            for times, (library, way) in zip(turns, asked, strict=True):
                if not times or not isinstance(times[-1], str):
                    times.append(library.turn(f"{row} {way}"))
        found[row] = [c[-1] if isinstance(c[-1], str) else median(c) for c in turns]
        print(row, *found[row], flush=True)
    return found


def said() -> str:
    """Return what a page says of the machine and the method."""
    machine = this_machine()
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    of = f"{machine['name']} ({machine['family']}), caches {caches}"
    return f"{of}; one thread; medians of processor time, in turns."


def shown(seconds: Time) -> str:
    """Return a time as text."""
    if isinstance(seconds, str):
        return ""
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def ratio(ours: list[Time], theirs: list[Time]) -> str:
    """Return the best of ours over the best of theirs."""
    best = [
        min((t for t in times if not isinstance(t, str)), default=0) for times in (ours, theirs)
    ]
    return f"{best[0] / best[1]:.2f}" if all(best) else ""


def raised(found: dict[str, list[Time]]) -> list[str]:
    """Return the lines of a page that say which calls raised."""
    missing = {row: t for row, times in found.items() for t in times if isinstance(t, str)}
    if not missing:
        return []
    return [
        "", "Where a column is empty, the call raised:", "",
        *(f"- {row.replace('_', ' ')}: `{why}`" for row, why in missing.items()),
    ]  # fmt: skip
