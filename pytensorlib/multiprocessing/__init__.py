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

# Processes share files without names, whichever is chosen.
_STRATEGIES = ("file_descriptor", "file_system")
_chosen = "file_descriptor"
init_reductions()


def get_all_sharing_strategies() -> set[str]:
    """Return the names of PyTorch's ways to share memory; here all are by a file's descriptor.

    Returns
    -------
    set of str
        Those that `set_sharing_strategy` takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> sorted(torch.multiprocessing.get_all_sharing_strategies())
    ['file_descriptor', 'file_system']
    """
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """Return the name of the way to share memory that was chosen.

    Returns
    -------
    str
        "file_descriptor", if none was.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return _chosen


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose the way in which memory is shared; programs that do run, and nothing changes.

    Parameters
    ----------
    new_strategy : str
        "file_descriptor" or "file_system"; where there are too few descriptors, ``ulimit -n``
        allows more.

    Raises
    ------
    ValueError
        It is another one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    global _chosen
    if new_strategy not in _STRATEGIES:
        raise ValueError(
            f"set_sharing_strategy: expected one of {_STRATEGIES}, got {new_strategy!r}"
        )
    _chosen = new_strategy


def __getattr__(name: str) -> Any:
    return getattr(multiprocessing, name)


def _set_thread_name(name: str) -> None:
    """Name this thread, as Python knows it."""
    threading.current_thread().name = name


def _get_thread_name() -> str:
    """Return the name of this thread."""
    return threading.current_thread().name
