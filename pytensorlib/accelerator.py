"""The accelerator of this machine: a GPU, reached as device "wgpu", where there is one."""

from __future__ import annotations

import contextlib
from typing import Any

import pytensorlib as pt

from . import _C, wgpu
from ._named import fill

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "set_device_idx",
    "set_device_index",
    "synchronize",
]

fill(
    globals(),
    "a device has one stream here, which needs no handle.",
    "Graph current_stream set_stream",
)
fill(
    globals(),
    "wgpu does not tell; torch.accelerator.memory_stats() has what is allocated and reserved.",
    "get_device_capability get_memory_info reset_accumulated_memory_stats reset_peak_memory_stats",
)


def is_available() -> bool:
    """Return whether there is a GPU.

    Returns
    -------
    bool
        As `torch.wgpu.is_available`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.accelerator.is_available() == torch.wgpu.is_available()
    True
    """
    return wgpu.is_available()


def device_count() -> int:
    """Return the number of GPUs.

    Returns
    -------
    int
        0 where there is none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.accelerator.device_count() == torch.wgpu.device_count()
    True
    """
    return wgpu.device_count() if is_available() else 0


def current_accelerator(check_available: bool = False) -> Any:
    """Return the device that computations are accelerated on.

    Parameters
    ----------
    check_available : bool, default False
        Not used: there is an answer only where there is a GPU.

    Returns
    -------
    device or None
        ``torch.device("wgpu")``, or None where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> device = torch.accelerator.current_accelerator() or torch.device("cpu")
    >>> torch.ones(2, device=device).sum().item()
    2.0
    """
    return pt.device("wgpu") if is_available() else None


def current_device_index() -> int:
    """Return the number of the GPU that is meant where none is named.

    Returns
    -------
    int
        What `set_device_index` set on this thread, at first 0.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.accelerator.current_device_index()
    0
    """
    return _C._wgpu_current()


def set_device_index(device: Any) -> None:
    """Choose the GPU that is meant on this thread where none is named.

    It is ``device="wgpu"`` without a number, what `current_accelerator` names, and what functions
    of this module and of `torch.wgpu` take.

    Parameters
    ----------
    device : device, str or int
        One of those there are.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.accelerator.is_available():
    ...     torch.accelerator.set_device_index(0)
    """
    index = wgpu._index(device)
    if not 0 <= index < device_count():
        raise RuntimeError(
            f"torch.accelerator.set_device_index: there are {device_count()} GPUs, got {device!r}"
        )
    _C._wgpu_set_current(index)


current_device_idx, set_device_idx = current_device_index, set_device_index


class device_index(contextlib.ContextDecorator):
    """A block with another current GPU.

    Parameters
    ----------
    device : int or None
        Its number; None changes nothing.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.accelerator.device_index(None):
    ...     torch.accelerator.current_device_index()
    0
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx, self.prev_idx = device, -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exc: Any) -> None:
        if self.idx is not None:
            set_device_index(self.prev_idx)


def synchronize(device: Any = None, /) -> None:
    """Wait until everything submitted to a GPU is done.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.accelerator.is_available():
    ...     torch.accelerator.synchronize()
    """
    wgpu.synchronize(device)


def empty_cache() -> None:
    """Give unused memory of the current GPU back to the driver, where there is one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.accelerator.empty_cache()
    """
    if is_available():
        wgpu.empty_cache()


def empty_host_cache() -> None:
    """Do nothing: no memory of the host is kept for copies to GPUs.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.accelerator.empty_host_cache()
    """


def memory_stats(device: Any = None, /) -> dict[str, int]:
    """Return bytes allocated and reserved, now and at most, and counts of dispatches.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    dict
        As `torch.wgpu.memory_stats`; empty where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> isinstance(torch.accelerator.memory_stats(), dict)
    True
    """
    return wgpu.memory_stats(device) if is_available() else {}


def memory_allocated(device: Any = None, /) -> int:
    """Return the bytes that live tensors hold.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Returns
    -------
    int
        0 where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.accelerator.memory_allocated() >= 0
    True
    """
    return memory_stats(device).get("allocated", 0)


def max_memory_allocated(device: Any = None, /) -> int:
    """Return the most bytes that live tensors ever held.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Returns
    -------
    int
        0 where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.accelerator.max_memory_allocated() >= 0
    True
    """
    return memory_stats(device).get("peak_allocated", 0)


def memory_reserved(device: Any = None, /) -> int:
    """Return the bytes taken from the driver.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Returns
    -------
    int
        0 where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.accelerator.memory_reserved() >= 0
    True
    """
    return memory_stats(device).get("reserved", 0)


def max_memory_reserved(device: Any = None, /) -> int:
    """Return the most bytes ever taken from the driver.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Returns
    -------
    int
        0 where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.accelerator.max_memory_reserved() >= 0
    True
    """
    return memory_stats(device).get("peak_reserved", 0)
