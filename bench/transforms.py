"""Time PyTorch's documented uses of `torch.func` here and in PyTorch, and write their page.

``python bench/transforms.py`` needs a Python with PyTorch in `TORCH_PYTHON`. Each library has a
process of its own with one thread; they take turns, each turn some calls, timed by the thread's own
processor time, so that other programs disturb little. A figure is the median of the turns.
"""

import argparse
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
PAGE = ROOT / "bench" / "pages" / "transforms.md"
TURN = 0.15  # seconds of one turn at least
COMPILED = "torch.compile"


def cnn(t: ModuleType) -> Any:
    """Return a small network of images."""
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def mlp(t: ModuleType, inputs: int = 256, outputs: int = 10) -> Any:
    """Return a network of three layers."""
    nn = t.nn
    return nn.Sequential(
        nn.Linear(inputs, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, outputs)
    )


def per_sample(t: ModuleType, net: Any, x: Any, y: Any) -> Callable[[], Any]:
    """Return the gradients of a loss for each sample."""
    func, loss = t.func, t.nn.functional.cross_entropy
    state = {k: v.detach() for k, v in net.named_parameters()}

    def one(state: Any, x: Any, y: Any) -> Any:
        out = func.functional_call(net, state, (x[None],))
        return loss(out.reshape(-1, out.shape[-1]), y.reshape(-1))

    each = t.vmap(func.grad(one), in_dims=(None, 0, 0))
    return lambda: each(state, x, y)


class Uses:
    """The uses, each a function that returns a call without arguments."""

    def __init__(self, t: ModuleType) -> None:
        self.t = t

    def gradients_of_each_sample_cnn(self) -> Any:
        """Gradients for each of 64 images."""
        t = self.t
        return per_sample(t, cnn(t), t.randn(64, 1, 28, 28), t.randint(0, 10, (64,)))

    def gradients_of_each_sample_mlp(self) -> Any:
        """Gradients for each of 256 rows."""
        t = self.t
        return per_sample(t, mlp(t), t.randn(256, 256), t.randint(0, 10, (256,)))

    def gradients_of_each_sample_transformer(self) -> Any:
        """Gradients for each of 32 texts."""
        t, nn = self.t, self.t.nn
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        net = nn.Sequential(nn.Embedding(100, 64), layer, nn.Linear(64, 100))
        return per_sample(t, net, t.randint(0, 100, (32, 32)), t.randint(0, 100, (32, 32)))

    def ensemble_of_10_mlps(self) -> Any:
        """Outputs of ten networks for one batch of 256."""
        t, func = self.t, self.t.func
        nets = [mlp(t) for _ in range(10)]
        state, buffers = func.stack_module_state(nets)
        state = {k: v.detach() for k, v in state.items()}
        x = t.randn(256, 256)
        run = t.vmap(
            lambda p, b, x: func.functional_call(nets[0], (p, b), (x,)), in_dims=(0, 0, None)
        )
        return lambda: run(state, buffers, x)

    def jacobian_in_reverse(self) -> Any:
        """The Jacobian of 64 outputs by `jacrev`."""
        t = self.t
        net, x = mlp(t, 256, 64), t.randn(256)
        each = t.func.jacrev(net)
        return lambda: each(x)

    def jacobian_forward(self) -> Any:
        """The Jacobian of 256 outputs with respect to 64 inputs by `jacfwd`."""
        t = self.t
        net, x = mlp(t, 64, 256), t.randn(64)
        each = t.func.jacfwd(net)
        return lambda: each(x)

    def jacobians_of_a_batch(self) -> Any:
        """Jacobians for each of 64 rows by `vmap(jacrev)`."""
        t = self.t
        net, x = mlp(t, 64, 16), t.randn(64, 64)
        each = t.vmap(t.func.jacrev(net))
        return lambda: each(x)

    def hessian(self) -> Any:
        """The Hessian of a sum of 64 inputs."""
        t = self.t
        net, x = mlp(t, 64, 8), t.randn(64)
        each = t.func.hessian(lambda x: net(x).sum())
        return lambda: each(x)

    def hessian_vector_product(self) -> Any:
        """Forward over reverse for a batch of 256."""
        t, func = self.t, self.t.func
        net, x = mlp(t), t.randn(256, 256)
        v = t.randn(256, 256)
        gradient = func.grad(lambda x: net(x).square().sum())
        return lambda: func.jvp(gradient, (x,), (v,))[1]

    def tangent_kernel(self) -> Any:
        """The neural tangent kernel of 32 rows with 8 others, by contractions of Jacobians."""
        t, func = self.t, self.t.func
        net = mlp(t, 32, 4)
        state = {k: v.detach() for k, v in net.named_parameters()}
        a, b = t.randn(32, 32), t.randn(8, 32)
        rows = t.vmap(
            func.jacrev(lambda s, x: func.functional_call(net, s, (x,))), in_dims=(None, 0)
        )

        def kernel() -> Any:
            left, right = rows(state, a), rows(state, b)
            parts = [
                t.einsum("Naf,Maf->NMa", left[k].flatten(2), right[k].flatten(2)) for k in state
            ]
            return sum(parts)

        return kernel


NAMES = [name for name in vars(Uses) if not name.startswith("_")]


def serve(name: str) -> None:
    """Answer rows that are asked for by name with seconds a call."""
    t = importlib.import_module(name)
    for part in ("nn", "func"):
        importlib.import_module(f"{name}.{part}")
    t.set_num_threads(1)
    ready: dict[str, Any] = {}
    for line in sys.stdin:
        row, _, compiled = line.strip().partition(" ")
        try:
            if line not in ready:
                t.manual_seed(0)
                call = getattr(Uses(t), row)()
                ready[line] = t.compile(call) if compiled else call
                for _ in range(2):
                    ready[line]()
            call, n = ready[line], 0
            began = time.thread_time()
            while (taken := time.thread_time() - began) < TURN or n < 2:
                call()
                n += 1
            answer: Any = taken / n
        except Exception as e:
            answer = f"{type(e).__name__}: {e}".splitlines()[0][:120]
        print(json.dumps(answer), flush=True)


class Library:
    """A process that times calls in one library."""

    def __init__(self, python: str, name: str) -> None:
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [python, __file__, "--serve", name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
        )  # fmt: skip

    def turn(self, row: str) -> Any:
        """Return the seconds of one call, or what stood in the way."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(row + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or '"the process ended"')


def shown(seconds: Any) -> str:
    """Return a time as text."""
    if isinstance(seconds, str):
        return ""
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def measure(rounds: int, only: str, compiled: bool) -> dict[str, list[Any]]:
    """Return for each row our time, PyTorch's and its compiler's, which may not be asked."""
    ours = Library(sys.executable, "pytensorlib")
    theirs = Library(os.environ["TORCH_PYTHON"], "torch")
    found = {}
    for row in (n for n in NAMES if only in n):
        asked = [(ours, row), (theirs, row), (theirs, f"{row} compiled")]
        turns: list[list[Any]] = [[], [], []]
        for _ in range(rounds):
            for column, (library, line) in zip(turns, asked, strict=True):
                if line.endswith("compiled") and not compiled:
                    column.append("not asked")
                if not column or not isinstance(column[-1], str):
                    column.append(library.turn(line))
        found[row] = [c[-1] if isinstance(c[-1], str) else median(c) for c in turns]
        print(row, *found[row], flush=True)
    return found


def said() -> str:
    """Return what the page says of the machine."""
    machine = this_machine()
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    return f"{machine['name']} ({machine['family']}), caches {caches}"


def page(found: dict[str, list[Any]]) -> str:
    """Return the page of figures."""
    lines = [
        "# Uses of `torch.func`", "", "`python bench/transforms.py` writes this page.", "",
        f"{said()}; one thread; medians of processor time, in turns.", "",
        f"| use | what | ours | PyTorch | {COMPILED} | ours over the best of PyTorch's |",
        "|---|---|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row, times in found.items():
        best = min((t for t in times[1:] if not isinstance(t, str)), default=None)
        ratio = "" if best is None or isinstance(times[0], str) else f"{times[0] / best:.2f}"
        what = str(getattr(Uses, row).__doc__).rstrip(".")
        cells = [row.replace("_", " "), what, *map(shown, times), ratio]
        lines.append(f"| {' | '.join(cells)} |")
    missing = {n: t[2] for n, t in found.items() if isinstance(t[2], str) and t[2] != "not asked"}
    if missing:
        lines += ["", "Where the compiler's column is empty, it raised:", ""]
        lines += [f"- {row.replace('_', ' ')}: `{why}`" for row, why in missing.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--compiled", action="store_true", help="torch.compile too: minutes a row")
    parser.add_argument("-k", default="", help="only uses whose name has this")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    found = measure(options.rounds, options.k, options.compiled)
    text = page(found)
    print(text)
    if not options.k:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
