"""Marks and ranges, which the profiler here (`torch.profiler`) shows."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from typing import Any

from ._kind import GPU

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_count = itertools.count(1)
_open: dict[int, Any] = {}


class _Here(threading.local):
    """The ranges of a thread, the latest last."""

    def __init__(self) -> None:
        self.ranges: list[Any] = []


_here = _Here()


def _began(msg: Any, what: str) -> Any:
    from ..profiler import record_function

    GPU.need_name(f"nvtx.{what}")
    found = record_function(str(msg))
    found.__enter__()
    return found


def range_push(msg: str) -> int:
    """Begin a range within those that this thread began.

    Parameters
    ----------
    msg : str
        Its name.

    Returns
    -------
    int
        How many ranges it is within.

    Raises
    ------
    NotImplementedError
        GPUs do not answer as "cuda"; `torch.profiler.record_function` needs none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     depth = torch.cuda.nvtx.range_push("step")
    ...     depth = torch.cuda.nvtx.range_pop()
    """
    _here.ranges.append(_began(msg, "range_push"))
    return len(_here.ranges) - 1


def range_pop() -> int:
    """End the latest range of this thread.

    Returns
    -------
    int
        How many ranges it was within; -1 where there was none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     depth = torch.cuda.nvtx.range_pop()
    """
    GPU.need_name("nvtx.range_pop")
    if not _here.ranges:
        return -1
    _here.ranges.pop().__exit__(None, None, None)
    return len(_here.ranges)


def range_start(msg: str) -> int:
    """Begin a range that may end anywhere.

    Parameters
    ----------
    msg : str
        Its name.

    Returns
    -------
    int
        What `range_end` takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.nvtx.range_end(torch.cuda.nvtx.range_start("load"))
    """
    number = next(_count)
    _open[number] = _began(msg, "range_start")
    return number


def range_end(range_id: int) -> None:
    """End a range that `range_start` began.

    Parameters
    ----------
    range_id : int
        As it was returned.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.nvtx.range_end(torch.cuda.nvtx.range_start("load"))
    """
    found = _open.pop(range_id, None)
    if found is not None:
        found.__exit__(None, None, None)


def mark(msg: str) -> None:
    """Note a moment.

    Parameters
    ----------
    msg : str
        Its name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.nvtx.mark("here")
    """
    _began(msg, "mark").__exit__(None, None, None)


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Make a range of a block, or of each call of a function.

    Parameters
    ----------
    msg : str
        Its name, a format for the other arguments.
    *args, **kwargs
        What the format takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     with torch.cuda.nvtx.range("step {}", 3):
    ...         x = torch.ones(1)
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
