"""What one call costs from Python, and what a small training step costs.

A statement is repeated inside a compiled loop (timeit's), so that the harness adds about 10 ns
to a call and not the 100 ns of a Python function. The figures are per statement.
"""

import subprocess
import sys
import timeit
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile

import pytest

Benchmark = Any  # pytest-benchmark's fixture ships no types
ROOT = Path(__file__).resolve().parent.parent


def measure(benchmark: Benchmark, statement: str, calls: int, **names: object) -> None:
    """Time `statement`, `calls` times in one go, with `names` as its globals."""
    timer = timeit.Timer(statement, globals=names)
    timer.timeit(max(calls // 10, 1))
    benchmark.extra_info["calls"] = calls
    benchmark.pedantic(timer.timeit, args=(calls,), rounds=30, warmup_rounds=3)


@pytest.mark.parametrize(
    ("label", "statement"),
    [
        ("a + b", "a + b"),
        ("a + 1.0", "a + 1.0"),
        ("x[0]", "x[0]"),
        ("x.view", "x.view(8, 2)"),
        ("x.sum()", "x.sum()"),
        ("a + b, with a graph node", "g + b"),
        ("empty statement", "pass"),
    ],
)
def test_call(benchmark: Benchmark, lib: ModuleType, label: str, statement: str) -> None:
    """One operator on a tensor too small for its work to matter."""
    benchmark.extra_info["label"] = label
    names = {
        "a": lib.ones(1),
        "b": lib.ones(1),
        "x": lib.ones(4, 4),
        "g": lib.ones(1, requires_grad=True),
    }
    measure(benchmark, statement, 2000, **names)


def test_small_backward(benchmark: Benchmark, lib: ModuleType) -> None:
    """Forward and backward through three nodes and a leaf."""
    benchmark.extra_info["label"] = "(a * b + a).sum().backward()"
    names = {"a": lib.ones(1, requires_grad=True), "b": lib.ones(1)}
    measure(benchmark, "(a * b + a).sum().backward()", 200, **names)


def make_step(lib: ModuleType) -> Callable[[], object]:
    """Return one step of training a 784-128-64-10 network on a batch of 64."""
    nn = lib.nn
    model = nn.Sequential(
        nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )
    loss_of = nn.CrossEntropyLoss()
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = lib.randn(64, 784), lib.randint(0, 10, (64,))

    def step() -> object:
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def test_mlp_step(benchmark: Benchmark, lib: ModuleType) -> None:
    """Zero the gradients, forward, backward, SGD with momentum."""
    benchmark.extra_info["label"] = "MLP 784-128-64-10, batch 64, training step"
    measure(benchmark, "step()", 50, step=make_step(lib))


def test_import(benchmark: Benchmark, request: pytest.FixtureRequest) -> None:
    """The import statement in a fresh interpreter, NumPy's own import included."""
    name, site = request.config.getoption("--lib"), request.config.getoption("--site")
    program = (
        f"import sys, time; sys.path += [p for p in [{site!r}] if p]; s = time.perf_counter(); "
        f"import {name}; print(time.perf_counter() - s)"
    )

    def seconds() -> float:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"{name} is not installed")
        return float(done.stdout)

    seconds()  # the first one fills the file cache
    times = sorted(seconds() for _ in range(7))
    benchmark.extra_info |= {"label": f"import {name}", "value": times[3], "unit": "s"}
    benchmark.extra_info["label"] = "import"
    benchmark.pedantic(lambda: None, rounds=1)


def installed_bytes(name: str) -> int:
    """Return the size on disk of what the distribution installed."""
    return sum(path.locate().stat().st_size for path in files(name) or () if path.locate().exists())


def test_size(benchmark: Benchmark, request: pytest.FixtureRequest) -> None:
    """The wheel (ours only: PyTorch's is not kept once installed) and its files unpacked."""
    name = request.config.getoption("--lib")
    benchmark.extra_info |= {"label": "installed size", "unit": "MB"}
    wheels = sorted((ROOT / "target/wheels").glob(f"{name}-*.whl"), key=lambda p: p.stat().st_mtime)
    if wheels:  # an editable install has no files of its own
        with ZipFile(wheels[-1]) as z:
            size = sum(entry.file_size for entry in z.infolist())
        benchmark.extra_info["wheel"] = wheels[-1].stat().st_size / 1e6
    else:
        try:
            size = installed_bytes(name)
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed")
    benchmark.extra_info["value"] = size / 1e6
    benchmark.pedantic(lambda: None, rounds=1)
