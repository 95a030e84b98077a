"""`start` and `stop` of an external profiler; here `torch.profiler` measures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ._kind import GPU

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Do nothing: there is no profiler beside this process.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.profiler.start()
    """
    GPU.need("profiler.start")


def stop() -> None:
    """Do nothing: there is no profiler beside this process.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.profiler.stop()
    """
    GPU.need("profiler.stop")


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Make a block that a profiler beside this process would see.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     with torch.cuda.profiler.profile():
    ...         x = torch.ones(1)
    """
    start()
    try:
        yield
    finally:
        stop()
