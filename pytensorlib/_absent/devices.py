"""Functions that the modules of absent devices share.

Programs ask them whether there is a device, and may seed and empty what there is not.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from .modules import fill, tell_missing

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


def stand_in(space: dict[str, Any], why: str, names: str) -> None:
    """Fill the module of a device: functions of its own like those below, and names that raise.

    Parameters
    ----------
    space : dict
        The namespace of the module.
    why : str
        Why there is no such device, and what is nearest.
    names : str
        What the module has besides, as `modules.fill` takes it.
    """
    module = space["__name__"]
    made: dict[FunctionType, FunctionType] = {}
    for name in __all__:
        shared = globals()[name]
        code, defaults = shared.__code__, shared.__defaults__
        own = made.setdefault(
            shared, FunctionType(code, globals(), shared.__name__, defaults, shared.__closure__)
        )
        own.__module__, own.__annotations__ = module, shared.__annotations__
        own.__doc__ = shared.__doc__.replace("torch.xpu", "torch" + module[module.index(".") :])
        space[name] = own
    fill(space, why, names)
    tell_missing(space, why)


def is_available() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.xpu.is_available()
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
    >>> torch.xpu.device_count()
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
    >>> torch.xpu.manual_seed(0)
    """


def empty_cache() -> None:
    """Do nothing: no memory is kept.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.xpu.empty_cache()
    """


manual_seed_all = manual_seed


def seed() -> None:
    """Do nothing: there is no device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.xpu.seed()
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
    >>> torch.xpu.is_initialized()
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
    >>> torch.xpu.is_bf16_supported()
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
    >>> torch.xpu.memory_allocated()
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
    >>> torch.xpu.get_rng_state_all()
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
    >>> torch.xpu.set_rng_state_all([])
    """
