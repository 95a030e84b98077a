"""Memory of GPUs that answer as "cuda"; where none does, nothing is allocated."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from .. import _C, _gpu, wgpu
from .._absent.modules import refusal, refusing
from ._kind import GPU

__all__ = [
    "CUDAPluggableAllocator",
    "MemPool",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "change_current_allocator",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]

_NO_ADDRESSES = (
    "memory of GPUs has no addresses that a program could use here; torch.empty(n, "
    "dtype=torch.uint8, device=...) takes memory."
)
_NO_ALLOCATORS = (
    "allocators are libraries of C++, which cannot give memory of wgpu; torch.cuda."
    "set_per_process_memory_fraction limits what is taken."
)
CUDAPluggableAllocator = refusing(
    "CUDAPluggableAllocator", __name__, _NO_ALLOCATORS, members="allocator"
)
change_current_allocator = refusal("change_current_allocator", __name__, _NO_ALLOCATORS)
caching_allocator_alloc = refusal("caching_allocator_alloc", __name__, _NO_ADDRESSES)
caching_allocator_delete = refusal("caching_allocator_delete", __name__, _NO_ADDRESSES)

_fractions: dict[int, float] = {}
_pools = itertools.count(1)


def empty_cache() -> None:
    """Give unused memory of all GPUs back to the driver; nothing is done where there is none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.empty_cache()
    """
    for index in range(GPU.count()):
        wgpu.empty_cache(index)


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Return what is known of the memory, by PyTorch's names.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Returns
    -------
    OrderedDict
        Such as ``allocated_bytes.all.current``, ``.peak``, ``.allocated`` and ``.freed``; what is
        allocated counts as of the large pool, since there is one. Empty where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> isinstance(torch.cuda.memory_stats(), dict)
    True
    """
    found: OrderedDict[str, Any] = OrderedDict()
    if not GPU.is_available():
        return found
    now = _C._wgpu_memory_stats(GPU.index(device, "memory_stats"))
    since = now["since"]
    taken, given = since["reserved"], since["reserved_freed"]
    rows: dict[str, tuple[int, int, int, int]] = {}
    for name in ("allocated_bytes", "active_bytes", "requested_bytes"):
        peak = now["peak_allocated"]
        rows[name] = (now["allocated"], peak, since["allocated"], since["freed"])
    rows["reserved_bytes"] = (now["reserved"], now["peak_reserved"], taken, given)
    rows["inactive_split_bytes"] = (now["reserved"] - now["allocated"], 0, 0, 0)
    for name in ("allocation", "active"):
        rows[name] = (now["live"], now["peak_live"], since["buffers"], since["buffers_freed"])
    rows["segment"] = rows["inactive_split"] = (0, 0, 0, 0)
    for name in sorted(rows):
        for pool in ("all", "large_pool", "small_pool"):
            values = rows[name] if pool != "small_pool" else (0, 0, 0, 0)
            for what, value in zip(("current", "peak", "allocated", "freed"), values, strict=True):
                found[f"{name}.{pool}.{what}"] = value
    found["max_split_size"] = -1
    found["num_alloc_retries"] = now["retries"]
    found["num_ooms"] = now["refused"]
    found["num_device_alloc"], found["num_device_free"] = now["allocations"], 0
    found["num_sync_all_streams"] = 0
    return found


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    """Return numbers by names with dots as dictionaries within each other."""
    found: dict[str, Any] = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        space = found
        for part in path:
            space = space.setdefault(part, {})
        space[last] = value
    return found


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return `memory_stats` as dictionaries within each other.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Returns
    -------
    dict
        ``["allocated_bytes"]["all"]["current"]`` and so on.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> isinstance(torch.cuda.memory_stats_as_nested_dict(), dict)
    True
    """
    return _nested(memory_stats(device))


def host_memory_stats() -> dict[str, Any]:
    """Return what is known of pinned memory of the host: nothing, since none has to be pinned.

    Returns
    -------
    OrderedDict
        Empty.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> len(torch.cuda.host_memory_stats())
    0
    """
    return OrderedDict()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Return `host_memory_stats` as dictionaries within each other.

    Returns
    -------
    dict
        Empty.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.host_memory_stats_as_nested_dict()
    {}
    """
    return {}


def reset_peak_host_memory_stats() -> None:
    """Do nothing: no memory of the host is pinned.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.reset_peak_host_memory_stats()
    """


def reset_accumulated_host_memory_stats() -> None:
    """Do nothing: no memory of the host is pinned.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.reset_accumulated_host_memory_stats()
    """


def _count(name: str, device: Any) -> int:
    if not GPU.is_available():
        return 0
    return int(_C._wgpu_memory_stats(GPU.index(device, "memory_stats"))[name])


def memory_allocated(device: Any = None) -> int:
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
    >>> torch.cuda.memory_allocated() >= 0
    True
    """
    return _count("allocated", device)


def max_memory_allocated(device: Any = None) -> int:
    """Return the most bytes that live tensors held, since the start or `reset_peak_memory_stats`.

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
    >>> torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
    True
    """
    return _count("peak_allocated", device)


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that are taken from the driver.

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
    >>> torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    True
    """
    return _count("reserved", device)


def max_memory_reserved(device: Any = None) -> int:
    """Return the most bytes that were taken from the driver.

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
    >>> torch.cuda.max_memory_reserved() >= torch.cuda.memory_reserved()
    True
    """
    return _count("peak_reserved", device)


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let peaks begin anew, at what is held now.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.reset_peak_memory_stats()
    >>> torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()
    True
    """
    if GPU.is_available():
        _C._wgpu_reset_peaks(GPU.index(device, "reset_peak_memory_stats"))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Let the sums of what was allocated and freed begin anew.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.reset_accumulated_memory_stats()
    """
    if GPU.is_available():
        _C._wgpu_reset_sums(GPU.index(device, "reset_accumulated_memory_stats"))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the bytes of a GPU that this process has not taken, and all of them.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Returns
    -------
    tuple of int
        What other processes have is not known, and counts as free. Of a GPU whose memory the
        driver does not tell, the host's.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     free, total = torch.cuda.mem_get_info()
    """
    index = GPU.index(device, "mem_get_info")
    stats, whole = _C._wgpu_memory_stats(index), _gpu.memory(index)
    cap = whole if stats["cap"] is None else min(stats["cap"], whole)
    return max(cap - stats["reserved"], 0), whole


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return a table of `memory_stats`, and what the largest tensors are.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.
    abbreviated : bool, default False
        Whether to leave the tensors out.

    Returns
    -------
    str
        For people to read.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> text = torch.cuda.memory_summary()
    """
    if not GPU.is_available():
        return f"torch.{GPU.name}: no device, no memory allocated"
    index = GPU.index(device, "memory_summary")
    stats, width = memory_stats(index), 75
    lines = [
        "=" * (width + 2),
        f"|{f'PyTensorLib {GPU.name} memory summary, device ID {index}':^75}|",
    ]
    told = f"OOMs: {stats['num_ooms']}"
    retries = f"Retries of allocations: {stats['num_alloc_retries']}"
    lines += ["|" + "-" * width + "|", f"|{told:^37}|{retries:^37}|", "|" + "=" * width + "|"]
    heads = ("Metric", "Cur Usage", "Peak Usage", "Tot Alloc", "Tot Freed")
    lines.append("|" + "|".join(f" {head:<13}" for head in heads) + "|")
    names = {
        "allocated_bytes": "Allocated",
        "active_bytes": "Active",
        "reserved_bytes": "GPU reserved",
        "allocation": "Allocations",
    }
    for key, name in names.items():
        cells = [stats[f"{key}.all.{what}"] for what in ("current", "peak", "allocated", "freed")]
        shown = [f"{c >> 10} KiB" if key.endswith("bytes") else str(c) for c in cells]
        lines.append("|" + "|".join(f" {cell:<13}" for cell in (name, *shown)) + "|")
    lines += ["=" * (width + 2), ""]
    return "\n".join(lines) + ("" if abbreviated else wgpu.memory_summary(index))


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[Any]:
    """Return the blocks of memory that are in use.

    Parameters
    ----------
    mempool_id : optional
        Not used: there is one pool.
    include_traces : bool, default True
        Not used: which operator made a block is always told.

    Returns
    -------
    list of dict
        One for each tensor of a MiB and more, with its ``device``, ``total_size``, ``stream`` and
        ``blocks``; empty where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> isinstance(torch.cuda.memory_snapshot(), list)
    True
    """
    found = []
    for index in range(GPU.count()):
        for size, tensor, node, modules in _C._wgpu_living(index, 1 << 20)[0]:
            block = {
                "size": size,
                "requested_size": size,
                "address": 0,
                "state": "active_allocated",
                "frames": [],
                "tensor": tensor,
                "operator": node,
                "modules": modules,
            }
            found.append(
                {
                    "device": index,
                    "address": 0,
                    "total_size": size,
                    "allocated_size": size,
                    "active_size": size,
                    "requested_size": size,
                    "stream": 0,
                    "segment_type": "large",
                    "segment_pool_id": (0, 0),
                    "is_expandable": False,
                    "blocks": [block],
                }
            )
    return found


def _record_memory_history(enabled: Any = "all", *args: Any, **kwargs: Any) -> None:
    """Accept the call: which operator made a block is always known, older blocks are not kept."""


def _snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Return what `_dump_snapshot` writes."""
    traces: list[list[Any]] = [[] for _ in range(GPU.count())]
    return {"segments": memory_snapshot(), "device_traces": traces, "allocator_settings": {}}


def _dump_snapshot(filename: str = "dump_snapshot.pickle", *args: Any, **kwargs: Any) -> None:
    """Write the blocks of memory that are in use to a file."""
    import pickle

    with open(filename, "wb") as f:
        pickle.dump(_snapshot(), f)


def list_gpu_processes(device: Any = None) -> str:
    """Return a text with the memory of processes on a GPU: of this one, others are not known.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Returns
    -------
    str
        For people to read.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     text = torch.cuda.list_gpu_processes()
    """
    index = GPU.index(device, "list_gpu_processes")
    used = memory_reserved(index) / (1 << 20)
    return f"GPU:{index}\nprocess {os.getpid():>10d} uses {used:>12.3f} MB GPU memory"


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limit what this process takes of a GPU's memory.

    Parameters
    ----------
    fraction : float
        From 0 to 1: beyond that part of all memory `OutOfMemoryError` is raised.
    device : device, str or int, optional
        The current GPU where it is left out.

    Raises
    ------
    TypeError
        The fraction is no float.
    ValueError
        It is out of range.
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.set_per_process_memory_fraction(0.5)
    ...     torch.cuda.set_per_process_memory_fraction(1.0)
    """
    index = GPU.index(device, "set_per_process_memory_fraction")
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    wgpu.set_memory_cap(
        None if fraction == 1 else max(int(_gpu.memory(index) * fraction), 1), index
    )
    _fractions[index] = fraction


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Return what `set_per_process_memory_fraction` set.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.

    Returns
    -------
    float
        1.0 at first.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     part = torch.cuda.get_per_process_memory_fraction()
    """
    return _fractions.get(GPU.index(device, "get_per_process_memory_fraction"), 1.0)


def get_allocator_backend() -> str:
    """Return the name of the allocator.

    Returns
    -------
    str
        "native", PyTorch's word for one that keeps what was freed.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.get_allocator_backend()
    'native'
    """
    return "native"


def caching_allocator_enable(value: bool = True) -> None:
    """Accept whether freed memory is kept; it is, until `empty_cache`.

    Parameters
    ----------
    value : bool, default True
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.caching_allocator_enable(True)
    """


@contextlib.contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """Give what the block freed back to the driver at its end.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.cuda.memory.caching_allocator_disabled():
    ...     x = torch.ones(1)
    """
    try:
        yield
    finally:
        empty_cache()


class MemPool:
    """A pool of memory: all memory of a GPU is of one pool here, so it says nothing.

    Parameters
    ----------
    allocator : optional
        Not used: there is one allocator.
    use_on_oom, no_split : bool, default False
        Not used.

    Attributes
    ----------
    id : tuple of int
        A number of its own.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> pool = torch.cuda.MemPool()
    >>> with torch.cuda.use_mem_pool(pool):
    ...     x = torch.ones(1)
    """

    allocator: Any = None

    def __init__(
        self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        self.id, self._used = (0, next(_pools)), 1

    def use_count(self) -> int:
        """Return how many hold the pool."""
        return self._used

    def snapshot(self, include_traces: bool = True) -> list[Any]:
        """Return the blocks in use, as `memory_snapshot`."""
        return memory_snapshot()


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Take memory of a pool in the block: it comes from the one pool there is.

    Parameters
    ----------
    pool : MemPool
        Any.
    device : device, str or int, optional
        The current GPU where it is left out.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
    ...     x = torch.ones(1)
    """
    pool._used += 1
    try:
        yield
    finally:
        pool._used -= 1
