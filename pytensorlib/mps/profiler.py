"""Apple's profiler beside the process: not used; `torch.profiler` is here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .._absent.modules import refusal
from ._kind import GPU

__all__ = [
    "is_capturing_metal",
    "is_metal_capture_enabled",
    "metal_capture",
    "profile",
    "start",
    "stop",
]

metal_capture = refusal(
    "metal_capture",
    __name__,
    "Metal's captures are not made here; torch.profiler.profile tells what kernels take.",
)


def is_capturing_metal() -> bool:
    """Return False: Metal's captures are not made."""
    return False


def is_metal_capture_enabled() -> bool:
    """Return False: Metal's captures are not made."""
    return False


def start(mode: str = "interval", wait_until_completed: bool = False) -> None:
    """Do nothing: no signposts are made.

    Parameters
    ----------
    mode : str
        Not used.
    wait_until_completed : bool, default False
        Not used.
    """
    GPU.need("profiler.start")


def stop() -> None:
    """Do nothing: no signposts are made."""
    GPU.need("profiler.stop")


@contextlib.contextmanager
def profile(mode: str = "interval", wait_until_completed: bool = False) -> Iterator[None]:
    """Make a block that a profiler beside this process would see.

    Parameters
    ----------
    mode : str
        Not used.
    wait_until_completed : bool, default False
        Not used.
    """
    start(mode, wait_until_completed)
    try:
        yield
    finally:
        stop()
