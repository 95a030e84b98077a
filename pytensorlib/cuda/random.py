"""Random numbers on CUDA devices: there are none, and so no states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._named import refusal
from .._named_modules import NO_CUDA

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]

get_rng_state = refusal("get_rng_state", __name__, NO_CUDA)
initial_seed = refusal("initial_seed", __name__, NO_CUDA)


def manual_seed(seed: int) -> None:
    """Do nothing: PyTorch ignores this call where there is no GPU.

    Parameters
    ----------
    seed : int
        Not used; `torch.manual_seed` seeds every device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.manual_seed(0)
    """


def manual_seed_all(seed: int) -> None:
    """Do nothing: PyTorch ignores this call where there is no GPU.

    Parameters
    ----------
    seed : int
        Not used; `torch.manual_seed` seeds every device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.manual_seed_all(0)
    """


def seed() -> None:
    """Do nothing: PyTorch ignores this call where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.seed()
    """


seed_all = seed


def get_rng_state_all() -> list[Any]:
    """Return the state of each device: an empty list.

    Returns
    -------
    list
        Empty.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.get_rng_state_all()
    []
    """
    return []


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Do nothing: PyTorch ignores this call where there is no GPU.

    Parameters
    ----------
    new_state : Tensor
        Not used.
    device : device or int
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.set_rng_state(torch.get_rng_state())
    """


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Do nothing: there are no devices to set.

    Parameters
    ----------
    new_states : iterable of Tensor
        As of `get_rng_state_all`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
