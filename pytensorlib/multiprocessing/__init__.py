"""Python's ``multiprocessing``, whose queues, pipes and processes share the memory of tensors.

A tensor that is sent moves to shared memory first, and the other process maps it: what one writes
the others see. Memory that NumPy or another library knows stays, and a copy is sent.
"""

from __future__ import annotations

import multiprocessing
import threading
from multiprocessing import *  # noqa: F403
from typing import Any

from . import reductions
from .reductions import init_reductions
from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
__all__ += multiprocessing.__all__

_STRATEGY = "file_descriptor"
init_reductions()


def get_all_sharing_strategies() -> set[str]:
    """Return the ways in which memory is shared: by the descriptor of a file.

    Returns
    -------
    set of str
        One.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.multiprocessing.get_all_sharing_strategies()
    {'file_descriptor'}
    """
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """Return the way in which memory is shared.

    Returns
    -------
    str
        The only one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose the way in which memory is shared.

    Parameters
    ----------
    new_strategy : str
        "file_descriptor"; where there are too few descriptors, ``ulimit -n`` allows more.

    Raises
    ------
    ValueError
        It is another one: files with names, which would have to be removed, are not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    if new_strategy != _STRATEGY:
        raise ValueError(
            f"set_sharing_strategy: memory is shared by {_STRATEGY!r} here, got {new_strategy!r}; "
            "where there are too few descriptors, `ulimit -n` allows more"
        )


def __getattr__(name: str) -> Any:
    return getattr(multiprocessing, name)


def _set_thread_name(name: str) -> None:
    """Name this thread, as Python knows it."""
    threading.current_thread().name = name


def _get_thread_name() -> str:
    """Return the name of this thread."""
    return threading.current_thread().name
