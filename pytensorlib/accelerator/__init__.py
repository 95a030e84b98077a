"""The accelerator of this machine: a GPU, reached as device "wgpu", where there is one."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from typing import Any

import pytensorlib as pt

from .. import _C, wgpu
from .._absent.modules import fill
from .._gpu import streams as _streams

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]

fill(
    globals(),
    "streams are not recorded here; torch.graph records kernels and runs them again.",
    "Graph",
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


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """Return what a GPU can compute in.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    dict
        ``supported_dtypes``: a set.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.accelerator.is_available():
    ...     can = torch.accelerator.get_device_capability()["supported_dtypes"]
    """
    found = wgpu.get_device_properties(device)
    names = "float32 float16 bfloat16 complex64 int32 int16 int8 uint8 bool".split()
    names += ["float64", "complex128"] * found["float64"] + ["int64"] * found["int64"]
    return {"supported_dtypes": {getattr(pt, name) for name in names}}


def get_memory_info(device: Any = None, /) -> tuple[int, int]:
    """Return the bytes of a GPU's own memory that this process has not taken, and all of them.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    tuple of int
        What other processes have is not known, and counts as free.

    Raises
    ------
    RuntimeError
        There is no such GPU, or its driver does not tell.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.accelerator.is_available():
    ...     free, total = torch.accelerator.get_memory_info()
    """
    found = wgpu.get_device_properties(device)
    total = found["memory"]
    if total is None:
        raise RuntimeError(
            f"torch.accelerator.get_memory_info: {found['backend']} does not tell how much memory "
            f"{found['name']} has; torch.accelerator.memory_stats() has what is allocated and "
            "reserved"
        )
    return max(total - wgpu.memory_stats(device)["reserved"], 0), total


def current_stream(device: Any = None, /) -> Any:
    """Return the stream that is current on a GPU.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    Stream
        All streams of a GPU are its one queue.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.accelerator.is_available():
    ...     torch.accelerator.current_stream().synchronize()
    """
    return _streams.current(device, "torch.accelerator.current_stream")


def set_stream(stream: Any) -> None:
    """Make a stream, and its GPU, the current one on this thread.

    Parameters
    ----------
    stream : Stream
        Of a GPU.

    Raises
    ------
    ValueError
        It is one of the CPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.accelerator.is_available():
    ...     torch.accelerator.set_stream(torch.accelerator.current_stream())
    """
    _streams.set_current(stream)


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """Let `max_memory_allocated` and `max_memory_reserved` begin anew, at what is held now.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.accelerator.reset_peak_memory_stats()
    >>> torch.accelerator.max_memory_allocated() == torch.accelerator.memory_allocated()
    True
    """
    if is_available():
        _C._wgpu_reset_peaks(wgpu._index(device))


def reset_accumulated_memory_stats(device: Any = None, /) -> None:
    """Let the sums in `memory_stats` begin anew: of what was allocated and freed.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.accelerator.reset_accumulated_memory_stats()
    """
    if is_available():
        _C._wgpu_reset_sums(wgpu._index(device))


def memory_stats(device: Any = None, /) -> OrderedDict[str, int]:
    """Return bytes allocated and reserved, now and at most, and counts of dispatches.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    OrderedDict
        By PyTorch's names, such as ``allocated_bytes.all.current``, ``.peak``, ``.allocated`` and
        ``.freed`` (sums since the start, or since `reset_accumulated_memory_stats`), the same of
        ``reserved_bytes``, and ``allocation.all.current`` buffers; then what
        `torch.wgpu.memory_stats` has. Empty where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> isinstance(torch.accelerator.memory_stats(), dict)
    True
    """
    if not is_available():
        return OrderedDict()
    now = _C._wgpu_memory_stats(wgpu._index(device))
    since = now.pop("since")
    found: OrderedDict[str, int] = OrderedDict()
    for name, ours in (
        ("allocated", "allocated"),
        ("active", "allocated"),
        ("reserved", "reserved"),
    ):
        freed = "freed" if ours == "allocated" else "reserved_freed"
        found[f"{name}_bytes.all.current"] = now[ours]
        found[f"{name}_bytes.all.peak"] = now[f"peak_{ours}"]
        found[f"{name}_bytes.all.allocated"] = since[ours]
        found[f"{name}_bytes.all.freed"] = since[freed]
    found["allocation.all.current"] = now["live"]
    found["allocation.all.allocated"] = since["buffers"]
    found["allocation.all.freed"] = since["buffers_freed"]
    found.update(wgpu.memory_stats(device))
    return found


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
