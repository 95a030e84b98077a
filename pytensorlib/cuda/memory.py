"""Memory of CUDA devices: there are none, so nothing is allocated."""

from __future__ import annotations

from typing import Any

from .._named import fill
from .._named_modules import NO_CUDA

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
]

fill(
    globals(),
    NO_CUDA,
    "CUDAPluggableAllocator MemPool caching_allocator_alloc caching_allocator_delete "
    "change_current_allocator get_per_process_memory_fraction list_gpu_processes mem_get_info "
    "set_per_process_memory_fraction use_mem_pool _record_memory_history _dump_snapshot _snapshot",
)


def empty_cache() -> None:
    """Do nothing: PyTorch ignores this call where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.empty_cache()
    """


def memory_allocated(device: Any = None) -> int:
    """Return 0: nothing is allocated.

    Parameters
    ----------
    device : device or int, optional
        Not used.

    Returns
    -------
    int
        0. See `torch.wgpu.memory_allocated` for GPUs.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.memory_allocated()
    0
    """
    return 0


max_memory_allocated = max_memory_cached = max_memory_reserved = memory_allocated
memory_cached = memory_reserved = memory_allocated


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Return what is known of the memory: nothing.

    Parameters
    ----------
    device : device or int, optional
        Not used.

    Returns
    -------
    dict
        Empty.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.memory_stats()
    {}
    """
    return {}


memory_stats_as_nested_dict = host_memory_stats = memory_stats


def memory_snapshot(device: Any = None) -> list[Any]:
    """Return the blocks of the allocator: none."""
    return []


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return a table of nothing."""
    return "torch.cuda: no device, no memory allocated"


def reset_peak_memory_stats(device: Any = None) -> None:
    """Do nothing: the most that was ever allocated is 0.

    Parameters
    ----------
    device : device or int, optional
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.reset_peak_memory_stats()
    """


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
reset_accumulated_memory_stats = reset_peak_memory_stats
