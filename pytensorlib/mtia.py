"""Device "mtia": there is none; GPUs are reached as device "wgpu"."""

from __future__ import annotations

from typing import Any

from ._named import fill, tell_missing
from ._named_modules import NO_MTIA

__all__ = [
    "device_count",
    "empty_cache",
    "get_rng_state_all",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "seed",
    "seed_all",
    "set_rng_state_all",
]

fill(
    globals(),
    NO_MTIA,
    """
    MTIAGraph Event Stream attach_out_of_memory_observer current_device current_stream
    default_stream device get_device_capability get_device_properties get_rng_state graph
    graph_pool_handle init initial_seed memory_stats record_memory_history
    reset_peak_memory_stats set_device set_rng_state set_stream snapshot stream synchronize
    """,
)


def is_available() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mtia.is_available()
    False
    """
    return False


def device_count() -> int:
    """Return 0.

    Returns
    -------
    int
        0.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mtia.device_count()
    0
    """
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing: there is no device; `torch.manual_seed` seeds those that there are.

    Parameters
    ----------
    seed : int
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mtia.manual_seed(0)
    """


def empty_cache() -> None:
    """Do nothing: no memory is kept.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mtia.empty_cache()
    """


manual_seed_all = manual_seed


def seed() -> None:
    """Do nothing: there is no device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mtia.seed()
    """


seed_all = seed


def is_initialized() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mtia.is_initialized()
    False
    """
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False: there is no device that could.

    Parameters
    ----------
    including_emulation : bool, default True
        Not used.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mtia.is_bf16_supported()
    False
    """
    return False


def memory_allocated(device: Any = None) -> int:
    """Return 0: nothing is allocated.

    Parameters
    ----------
    device : device or int, optional
        Not used.

    Returns
    -------
    int
        0.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mtia.memory_allocated()
    0
    """
    return 0


max_memory_allocated = max_memory_reserved = memory_reserved = memory_allocated


def get_rng_state_all() -> list[Any]:
    """Return the state of each device: an empty list.

    Returns
    -------
    list
        Empty.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mtia.get_rng_state_all()
    []
    """
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Do nothing: there are no devices to set.

    Parameters
    ----------
    new_states : iterable of Tensor
        As of `get_rng_state_all`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mtia.set_rng_state_all([])
    """


tell_missing(globals(), NO_MTIA)
