"""The CPU: its memory, as the caching allocator sees it, and what code asks of any device."""

from __future__ import annotations

from typing import Any

from . import _C

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "memory_stats",
    "synchronize",
]


def is_available() -> bool:
    """Return True."""
    return True


def device_count() -> int:
    """Return 1: all cores together are one device."""
    return 1


def current_device() -> str:
    """Return ``"cpu"``."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Do nothing: operators on the CPU are done when they return."""


def empty_cache() -> None:
    """Give the memory that the allocator keeps for reuse back to the system."""
    _C._empty_cache()


def memory_stats() -> dict[str, int]:
    """Return what the allocator holds.

    Returns
    -------
    dict
        ``reserved_bytes`` obtained from the system and not given back, ``cached_bytes`` of them
        free for reuse, ``allocated_bytes`` the others (free blocks of other threads count here),
        ``system_calls`` how often the system was asked. The cache keeps at most a quarter of
        memory, or ``PYTENSORLIB_CACHE_MB``.
    """
    reserved, cached, calls = _C._memory_stats()
    return {
        "reserved_bytes": reserved,
        "cached_bytes": cached,
        "allocated_bytes": reserved - cached,
        "system_calls": calls,
    }
