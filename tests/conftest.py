"""Options of the test run."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# Nothing is kept in the user's folders.
os.environ.setdefault("PYTENSORLIB_CACHE_DIR", "")
# NumPy is what results are compared with: threads of its own would only wait busily beside ours.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every",
        type=int,
        default=1,
        metavar="N",
        help="run every N-th test, and all that are marked `whole`",
    )
    parser.addoption(
        "--part",
        default="1/1",
        metavar="K/N",
        help="run the K-th of N parts, each of whole files and of about as many bytes",
    )


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("PYTENSORLIB_WGPU_WITHOUT"):
        config.addinivalue_line("filterwarnings", "ignore:.*its adapter has no float64")


# What a file costs beside what its bytes do: its import, and what it makes once.
FILE = 3000


def parted(files: dict[Path, int], n: int) -> dict[Path, int]:
    """Return the part of each file: the largest first, each to the part with the fewest bytes."""
    parts, loads = {}, [0] * n
    for path in sorted(files, key=lambda path: (-files[path], path)):
        parts[path] = loads.index(min(loads))
        loads[parts[path]] += files[path] + FILE
    return parts


@functools.cache
def all_parted(n: int) -> dict[Path, int]:
    files = Path(__file__).parent.rglob("test_*.py")
    return parted({path: path.stat().st_size for path in files}, n)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the files of other parts alone: importing them takes longer than a part's tests may."""
    k, n = map(int, config.getoption("--part").split("/"))
    return (n > 1 and all_parted(n).get(collection_path, k - 1) != k - 1) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Tens of thousands of tests are no garbage: no collection of it looks at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    every = config.getoption("--every")
    left = [x for i, x in enumerate(items) if i % every and x.get_closest_marker("whole") is None]
    config.hook.pytest_deselected(items=left)
    dropped = set(left)
    # After the GPU's tests, whose pipelines are gigabytes, a copy takes a third of a second.
    kept = [x for x in items if x not in dropped]
    items[:] = sorted(kept, key=lambda x: x.get_closest_marker("forks") is None)


def switches() -> dict[str, object]:
    """What code may have set for the whole thread or process."""
    import pytensorlib as torch

    return {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "anomaly mode": torch.is_anomaly_enabled(),
        "interpreters": torch._C._is_interpreted(),
        "autocast": [torch.is_autocast_enabled(device) for device in ("cpu", "wgpu")],
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "threads": torch.get_num_threads(),
    }


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip what computes in float64 on an adapter that a variable keeps from it."""
    try:
        return (yield)
    except NotImplementedError as e:
        if os.environ.get("PYTENSORLIB_WGPU_WITHOUT") and "has no float64" in str(e):
            pytest.skip("the adapter has no float64")
        raise


@pytest.fixture(autouse=True)
def _nothing_stays_switched() -> Iterator[None]:
    """A test that leaves a mode on would decide what the tests after it see."""
    before = switches()
    yield
    assert switches() == before


@pytest.fixture
def no_fallback() -> Iterator[None]:
    """An op without a kernel raises instead of running on the CPU."""
    from pytensorlib import wgpu

    wgpu.set_fallback("error")
    yield
    wgpu.set_fallback(None)
