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
    """Return whether a GPU adapter is there.

    Returns
    -------
    bool
        False too where the driver does not start.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> device = "wgpu" if torch.wgpu.is_available() else "cpu"
    """
    return _C._wgpu_available()


def get_device_properties() -> dict[str, Any]:
    """Return the adapter's name, backend and features.

    Returns
    -------
    dict
        By name.

    Raises
    ------
    RuntimeError
        If there is no adapter.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     properties = torch.wgpu.get_device_properties()
    """
    return _C._wgpu_info()


def get_device_name() -> str:
    """Return the adapter's name.

    Returns
    -------
    str
        As the driver tells it.

    Raises
    ------
    RuntimeError
        There is no adapter.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     name = torch.wgpu.get_device_name()
    """
    return get_device_properties()["name"]


def synchronize() -> None:
    """Wait until everything submitted to the GPU is done.

    Raises
    ------
    RuntimeError
        There is no adapter.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     torch.wgpu.synchronize()
    """
    _C._wgpu_synchronize()


def memory_stats() -> dict[str, int]:
    """Return bytes allocated and reserved, now and at most, and counts of dispatches.

    Returns
    -------
    dict
        By name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     stats = torch.wgpu.memory_stats()
    """
    return _C._wgpu_memory_stats()


def memory_allocated() -> int:
    """Return the bytes that live tensors hold.

    Returns
    -------
    int
        A part of what `memory_stats` tells.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     held = torch.wgpu.memory_allocated()
    """
    return memory_stats()["allocated"]


def empty_cache() -> None:
    """Give unused memory back to the driver.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     torch.wgpu.empty_cache()
    """
    _C._wgpu_empty_cache()


def set_memory_cap(size: int | None) -> None:
    """Limit the bytes taken from the driver; None removes the limit.

    Parameters
    ----------
    size : int or None
        Bytes; beyond them `OutOfMemoryError` is raised.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     torch.wgpu.set_memory_cap(2**30)
    ...     torch.wgpu.set_memory_cap(None)
    """
    _C._wgpu_set_memory_cap(size)


def fallbacks() -> dict[str, int]:
    """Return how often each op ran on the CPU for want of a GPU kernel.

    Returns
    -------
    dict
        Counts by name of the operator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> counts = torch.wgpu.fallbacks()
    """
    return dict(_C._wgpu_fallbacks())


def set_fallback_error(on: bool) -> None:
    """Make an op without a GPU kernel raise NotImplementedError instead of running on the CPU.

    Parameters
    ----------
    on : bool
        False again gives a warning once for each operator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.wgpu.set_fallback_error(True)
    >>> torch.wgpu.set_fallback_error(False)
    """
    _C._wgpu_set_fallback_error(on)
