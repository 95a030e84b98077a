"""Options of the test run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

# Nothing is kept in the user's folders.
os.environ.setdefault("PYTENSORLIB_CACHE_DIR", "")


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
        help="run the K-th of N parts, each of whole files and of about as many tests",
    )


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("PYTENSORLIB_WGPU_WITHOUT"):
        config.addinivalue_line("filterwarnings", "ignore:.*its adapter has no float64")


# What a file costs beside its tests, in tests: its import, and what it makes once.
FILE = 30


def parted(tests: dict[Path, int], n: int) -> dict[Path, int]:
    """Return the part of each file: the largest first, each to the part with the fewest tests."""
    parts, loads = {}, [0] * n
    for path in sorted(tests, key=lambda path: (-tests[path], path)):
        parts[path] = loads.index(min(loads))
        loads[parts[path]] += tests[path] + FILE
    return parts


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    every = config.getoption("--every")
    k, n = map(int, config.getoption("--part").split("/"))
    parts = parted(Counter(x.path for x in items), n)
    left = [
        x
        for i, x in enumerate(items)
        if parts[x.path] != k - 1 or (i % every and x.get_closest_marker("whole") is None)
    ]
    config.hook.pytest_deselected(items=left)
    dropped = set(left)
    items[:] = [x for x in items if x not in dropped]


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
