"""The GPU, reached through wgpu: Vulkan, Metal or DX12.

Tensors live there after ``x.to("wgpu")`` or ``device="wgpu"``, which is the first adapter; others
are ``"wgpu:1"`` and so on. Ops without a GPU kernel run on the CPU, with one warning each;
`fallbacks` counts them.
"""

from __future__ import annotations

import atexit
from typing import Any

from . import _C

atexit.register(_C._wgpu_close)

__all__ = [
    "device_count",
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


def _index(device: Any) -> int:
    """Return the number of the adapter that a device, its name, its number or None means."""
    if device is None or isinstance(device, int):
        return device or 0
    device = _C.device(device)
    if device.type != "wgpu":
        raise ValueError(f"Expected a wgpu device, but got: {device}")
    return device.index or 0


def device_count() -> int:
    """Return the number of adapters.

    Returns
    -------
    int
        The last device is ``wgpu:n`` with n one less.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.wgpu.device_count() >= torch.wgpu.is_available()
    True
    """
    return _C._wgpu_count()


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


def get_device_properties(device: Any = None) -> dict[str, Any]:
    """Return the adapter's name, backend, driver, features and limits.

    Parameters
    ----------
    device : device, str or int, optional
        The first one where it is left out.

    Returns
    -------
    dict
        By name: ``name``, ``backend``, ``driver``; ``software``, ``int64`` and ``float64``, which
        are bools; ``features``, a list; ``limits``, a dict of numbers by their names in WebGPU; and
        ``cooperative_matrices``, the products of small matrices that subgroups compute together, as
        sizes m, n and k and the types of factors and sum.

    Raises
    ------
    RuntimeError
        There is no such adapter.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     properties = torch.wgpu.get_device_properties()
    """
    return _C._wgpu_info(_index(device))


def get_device_name(device: Any = None) -> str:
    """Return the adapter's name.

    Parameters
    ----------
    device : device, str or int, optional
        The first one where it is left out.

    Returns
    -------
    str
        As the driver tells it.

    Raises
    ------
    RuntimeError
        There is no such adapter.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     name = torch.wgpu.get_device_name()
    """
    return get_device_properties(device)["name"]


def synchronize(device: Any = None) -> None:
    """Wait until everything submitted to the GPU is done.

    Parameters
    ----------
    device : device, str or int, optional
        The first one where it is left out.

    Raises
    ------
    RuntimeError
        There is no such adapter.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     torch.wgpu.synchronize()
    """
    _C._wgpu_synchronize(_index(device))


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return bytes allocated and reserved, now and at most, and counts of what was recorded.

    Parameters
    ----------
    device : device, str or int, optional
        The first one where it is left out.

    Returns
    -------
    dict
        By name: bytes ``allocated`` by live tensors and ``reserved`` from the driver, their peaks
        ``peak_allocated`` and ``peak_reserved``; how many buffers are ``live``; and counts since
        the start: ``allocations``, ``dispatches``, ``submissions``, ``pipelines``, ``bind_groups``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     stats = torch.wgpu.memory_stats()
    """
    return _C._wgpu_memory_stats(_index(device))


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that live tensors hold.

    Parameters
    ----------
    device : device, str or int, optional
        The first one where it is left out.

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
    return memory_stats(device)["allocated"]


def empty_cache(device: Any = None) -> None:
    """Give unused memory back to the driver.

    Parameters
    ----------
    device : device, str or int, optional
        The first one where it is left out.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     torch.wgpu.empty_cache()
    """
    _C._wgpu_empty_cache(_index(device))


def set_memory_cap(size: int | None, device: Any = None) -> None:
    """Limit the bytes taken from the driver; None removes the limit.

    Parameters
    ----------
    size : int or None
        Bytes; beyond them `OutOfMemoryError` is raised.
    device : device, str or int, optional
        The first one where it is left out.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     torch.wgpu.set_memory_cap(2**30)
    ...     torch.wgpu.set_memory_cap(None)
    """
    _C._wgpu_set_memory_cap(_index(device), size)


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
