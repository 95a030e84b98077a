"""Time whole steps as they are, by `torch.graph` and by `torch.compile`, in turns in one process.

With one thread a figure is processor time, which other programs on the machine do not change much;
with more it is time on the wall. Each figure is the median of the turns.

    python bench/recorded.py --threads 1 --turns 15 -k gpt
"""

import argparse
import os
import time
from collections.abc import Callable
from statistics import median
from types import ModuleType
from typing import Any

import models
import steps

Step = Callable[[], object]

STEPS: dict[str, Callable[[ModuleType], Step]] = {
    "gpt": lambda t: models.gpt(t, batch=4, length=64),
    "resnet": steps.resnet,
    "unet": steps.unet,
    "mlp": steps.mlp,
    "decode": steps.decoding,
}


def kinds(t: ModuleType, make: Callable[[ModuleType], Step]) -> dict[str, Step]:
    """Return the step of one kind, made anew for each way to run it."""
    made: dict[str, Step] = {}
    for name, wrap in {"eager": lambda f: f, "graph": t.graph, "compile": t.compile}.items():
        t.manual_seed(0)
        step = make(t)
        wrapped = getattr(step, "with_step", None)
        made[name] = wrapped(wrap) if wrapped else wrap(step)
    return made


def turns(made: dict[str, Step], count: int, clock: Callable[[], float]) -> dict[str, float]:
    """Return the median seconds of each, which take turns."""
    found: dict[str, list[float]] = {name: [] for name in made}
    for turn in range(count + 4):
        for name, step in made.items():
            start = clock()
            step()
            seconds = clock() - start
            if turn >= 4:
                found[name].append(seconds)
    return {name: median(times) for name, times in found.items()}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("-k", default="")
    options = parser.parse_args()
    os.environ["PYTENSORLIB_NUM_THREADS"] = f"{options.threads}"
    import pytensorlib as t

    t.set_num_threads(options.threads)
    clock: Any = time.thread_time if options.threads == 1 else time.perf_counter
    print("| step | as it is, ms | `graph` | `compile` | gain of `graph` | gain of `compile` |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, make in STEPS.items():
        if options.k not in name:
            continue
        ms = {k: s * 1e3 for k, s in turns(kinds(t, make), options.turns, clock).items()}
        gains = [ms["eager"] / ms[way] for way in ("graph", "compile")]
        cells = [*(f"{v:.2f}" for v in ms.values()), *(f"{g:.2f}" for g in gains)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
