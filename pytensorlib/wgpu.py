"""The GPU, reached through wgpu: Vulkan, Metal or DX12.

Tensors live there after ``x.to("wgpu")`` or ``device="wgpu"``. Ops without a GPU kernel run on the
CPU, with one warning each; `fallbacks` counts them.
"""

from __future__ import annotations

from typing import Any

from . import _C

__all__ = [
    "empty_cache",
    "fallbacks",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "memory_allocated",
    "memory_stats",
    "set_fallback_error",
    "set_memory_cap",
    "synchronize",
]


def is_available() -> bool:
    """Return whether a GPU adapter is there."""
    return _C._wgpu_available()


def get_device_properties() -> dict[str, Any]:
    """Return the adapter's name, backend and features.

    Raises
    ------
    RuntimeError
        If there is no adapter.
    """
    return _C._wgpu_info()


def get_device_name() -> str:
    """Return the adapter's name."""
    return get_device_properties()["name"]


def synchronize() -> None:
    """Wait until everything submitted to the GPU is done."""
    _C._wgpu_synchronize()


def memory_stats() -> dict[str, int]:
    """Return bytes allocated and reserved, now and at most, and counts of dispatches."""
    return _C._wgpu_memory_stats()


def memory_allocated() -> int:
    """Return the bytes that live tensors hold."""
    return memory_stats()["allocated"]


def empty_cache() -> None:
    """Give unused memory back to the driver."""
    _C._wgpu_empty_cache()


def set_memory_cap(size: int | None) -> None:
    """Limit the bytes taken from the driver; None removes the limit."""
    _C._wgpu_set_memory_cap(size)


def fallbacks() -> dict[str, int]:
    """Return how often each op ran on the CPU for want of a GPU kernel."""
    return dict(_C._wgpu_fallbacks())


def set_fallback_error(on: bool) -> None:
    """Make an op without a GPU kernel raise NotImplementedError instead of running on the CPU."""
    _C._wgpu_set_fallback_error(on)
