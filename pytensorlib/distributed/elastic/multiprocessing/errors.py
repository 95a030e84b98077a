"""How a process that the launcher started reports its errors: `run` sees to it by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["ChildFailedError", "ProcessFailure", "record"]

T = TypeVar("T")


class ChildFailedError(Exception):
    """What PyTorch's launcher raises for processes that failed; here it prints the first error."""


class ProcessFailure:
    """What a launcher would know about a process that failed.

    Parameters
    ----------
    local_rank, pid, exitcode : int
        Which process, and how it ended.
    error_file : str
        Where it wrote its error.
    """

    def __init__(self, local_rank: int, pid: int, exitcode: int, error_file: str) -> None:
        self.local_rank, self.pid = local_rank, pid
        self.exitcode, self.error_file = exitcode, error_file


def record(fn: Callable[..., T], error_handler: Any = None) -> Callable[..., T]:
    """Return the function as it is: the launcher gets every error that ends a process.

    Parameters
    ----------
    fn : callable
        The program's main function.
    error_handler : object, optional
        Not used.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> from pytensorlib.distributed.elastic.multiprocessing.errors import record
    >>> record(len)([1, 2])
    2
    """
    return fn
