"""The CPU: its memory, as the caching allocator sees it, and what code asks of any device."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import amp

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "memory_stats",
    "synchronize",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    facts = import_module(f"{_C.__name__}._cpu")
    if name.startswith("__") or not hasattr(facts, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(facts, name)


def is_available() -> bool:
    """Return True.

    Returns
    -------
    bool
        True.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cpu.is_available()
    True
    """
    return True


def device_count() -> int:
    """Return 1: all cores together are one device.

    Returns
    -------
    int
        1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cpu.device_count()
    1
    """
    return 1


def current_device() -> str:
    """Return ``"cpu"``.

    Returns
    -------
    str
        ``"cpu"``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cpu.current_device()
    'cpu'
    """
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Do nothing: operators on the CPU are done when they return.

    Parameters
    ----------
    device : device, optional
        Accepted for scripts.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cpu.synchronize()
    """


def empty_cache() -> None:
    """Give the memory that the allocator keeps for reuse back to the system.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cpu.empty_cache()
    """
    _C._empty_cache()


def memory_stats() -> dict[str, int]:
    """Return what the allocator holds.

    Returns
    -------
    dict
        ``reserved_bytes`` obtained from the system and not given back, ``cached_bytes`` of them
        free for reuse, ``allocated_bytes`` the others (free blocks of other threads count here),
        ``system_calls`` how often the system was asked. The cache keeps at most a quarter of
        memory, or ``PYTENSORLIB_CACHE_MB``; with 0 nothing.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> sorted(torch.cpu.memory_stats())
    ['allocated_bytes', 'cached_bytes', 'reserved_bytes', 'system_calls']
    """
    reserved, cached, calls = _C._memory_stats()
    return {
        "reserved_bytes": reserved,
        "cached_bytes": cached,
        "allocated_bytes": reserved - cached,
        "system_calls": calls,
    }
