"""Time the recorded calls of PyTorch's own tests in either library, and show where ours is slowest.

The rows of `cases.py` are chosen, and what is chosen is tuned. These calls are not: some thousands,
as small as they were recorded or enlarged, forward and with their gradients, each library in turn.
Ratios are rough; the worst of them say what to look at next.

    TORCH_PYTHON=/path/to/python make sweep ARGS="--large --ops 'fft|norm' --threads 1"
"""

from __future__ import annotations

import argparse
import json
import math
import re
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from compare import torch_site

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from fuzz.calls import Call, arrays_in, resized  # noqa: E402
from fuzz.corpus import Corpus  # noqa: E402
from fuzz.libraries import Arguments, Library  # noqa: E402

SAMPLES = 4  # of one operator, each with other types, ranks or keywords
FACTORS = {0: 1, 1: 4000, 2: 60, 3: 16, 4: 8, 5: 4}  # of each size above one, by the highest rank
LARGEST = 3_000_000  # elements of an enlarged tensor
MEMORY = 9 << 30  # bytes that a library may take
# Cubic in the sizes, or results that are products of them.
STEEP = re.compile(
    "linalg|svd|eig|lstsq|pinv|kron|cdist|pdist|outer|meshgrid|cartesian|lobpcg|diag"
)


class Timed(NamedTuple):
    """A call that was timed: what it is, and the seconds that each library took."""

    what: str
    ours: float
    peer: float

    @property
    def ratio(self) -> float:
        return self.ours / self.peer


def chosen(corpus: Corpus, pattern: str, large: bool) -> Iterator[tuple[str, int, bool]]:
    """Yield operator, sample, and whether with gradients, of calls that differ in kind."""
    for name in filter(re.compile(pattern).search, corpus.names):
        if large and STEEP.search(name):
            continue
        kinds: set[tuple[Any, ...]] = set()
        for which in range(len(corpus.samples(name))):
            call = corpus.call(name, which)
            arrays = list(arrays_in((call.args, call.kwargs)))
            kind = (*((a.dtype, a.values.ndim) for a in arrays), len(call.kwargs))
            if kind not in kinds and len(kinds) < SAMPLES:
                kinds.add(kind)
                yield name, which, False
                yield name, which, True


def enlarged(call: Call) -> bool:
    """Multiply all sizes of a call; return whether that is worth timing."""
    arrays = list(arrays_in((call.args, call.kwargs)))
    factor = FACTORS.get(max((a.values.ndim for a in arrays), default=0), 3)
    for a in arrays:
        shape = tuple(n * factor if n > 1 else n for n in a.values.shape)
        if math.prod(shape) > LARGEST:
            return False
        a.values, a.layout = resized(a.values, shape), None
    return factor > 1


def prepared(library: Library, call: Call, grad: bool) -> Callable[[], Any] | None:
    """Return what runs a call, or None where there is nothing to time."""
    function = library.function(call)
    if function is None:
        return None
    for a in arrays_in((call.args, call.kwargs)):
        a.grad = grad and a.dtype in ("float32", "float64")
    given = Arguments(library)
    args, kwargs = given.made(call.args), given.made(call.kwargs)
    if not grad:
        return lambda: function(*args, **kwargs)
    t = library.module
    leaves = [x for x in given.tensors if x.requires_grad]

    def ends() -> list[Any]:
        found = library.flat(function(*args, **kwargs))
        return [x for x in found if library.is_tensor(x) and x.requires_grad]

    first = ends() if leaves else []
    ones = [t.ones_like(x) for x in first]
    return (lambda: t.autograd.grad(ends(), leaves, ones, allow_unused=True)) if first else None


def seconds(run: Callable[[], Any]) -> float:
    """Return the best time of some runs."""
    run()
    best, spent = math.inf, 0.0
    while spent < 0.01:
        begin = time.perf_counter()
        run()
        took = time.perf_counter() - begin
        best, spent = min(best, took), spent + took
    return best


def serve(name: str, site: str | None, threads: int, large: bool) -> None:
    """Answer with the seconds of each call that is asked for, or with null."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if name == "torch" and site:
        sys.path.append(site)
    module = __import__(name)
    module.set_num_threads(threads)
    library, corpus = Library(module), Corpus()
    for line in sys.stdin:
        op, which, grad = json.loads(line)
        found = None
        try:
            call = corpus.call(op, which)
            if not large or enlarged(call):
                run = prepared(library, call, grad)
                found = run and (seconds(run), str(call)[:150])
        except Exception:  # Noted as a call that cannot be timed.
            pass
        print(json.dumps(found), flush=True)


class Child:
    """A library in a process of its own, which is started again where a call ends it."""

    def __init__(self, *args: str) -> None:
        self.args = args
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, *self.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, what: tuple[str, int, bool]) -> tuple[float, str] | None:
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(what), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.start()
        return json.loads(line) if line else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ops", default="", help="a regular expression on the operator's name")
    parser.add_argument("--large", action="store_true", help="each size above one multiplied")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--show", type=int, default=50, help="how many of the worst are shown")
    parser.add_argument("--serve", choices=["pytensorlib", "torch"], help=argparse.SUPPRESS)
    parser.add_argument("--site", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.serve:
        serve(a.serve, a.site, a.threads, a.large)
        return
    site = torch_site()
    if site is None:
        sys.exit("sweep: TORCH_PYTHON must name a Python that has PyTorch")
    given = ["--site", site, "--threads", str(a.threads), *(["--large"] if a.large else [])]
    ours, peer = (Child("--serve", name, *given) for name in ("pytensorlib", "torch"))
    found = []
    for what in chosen(Corpus(), a.ops, a.large):
        if (mine := ours.ask(what)) and (theirs := peer.ask(what)):
            text = f"{what[0]}{' and gradient' if what[2] else ''}  {mine[1]}"
            found.append(Timed(text, mine[0], theirs[0]))
    found.sort(key=lambda timed: -timed.ratio)
    for timed in found[: a.show]:
        each = f"{timed.ours * 1e6:10.1f} us {timed.peer * 1e6:10.1f} us"
        print(f"{timed.ratio:7.2f} {each}  {timed.what}")
    if found:
        mean = np.exp(np.mean([math.log(timed.ratio) for timed in found]))
        slower = sum(timed.ratio > 1 for timed in found)
        print(f"{len(found)} calls: geometric mean {mean:.2f}, {slower} slower than PyTorch's")


if __name__ == "__main__":
    main()
