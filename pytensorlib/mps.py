"""Device "mps": there is none; GPUs are reached as device "wgpu"."""

from __future__ import annotations

from ._named import fill, tell_missing
from ._named_modules import NO_MPS

__all__ = [
    "device_count",
    "empty_cache",
    "is_available",
    "manual_seed",
]

fill(
    globals(),
    NO_MPS,
    """
    Event compile_shader current_allocated_memory driver_allocated_memory get_rng_state
    load_metallib recommended_max_memory seed set_per_process_memory_fraction set_rng_state
    synchronize clear_graph_cache
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
    >>> torch.mps.is_available()
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
    >>> torch.mps.device_count()
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
    >>> torch.mps.manual_seed(0)
    """


def empty_cache() -> None:
    """Do nothing: no memory is kept.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mps.empty_cache()
    """


tell_missing(globals(), NO_MPS)
