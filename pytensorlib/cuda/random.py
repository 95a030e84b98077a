"""Random numbers on GPUs that answer as "cuda": each draws from a generator of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _C
from ._kind import GPU

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


def get_rng_state(device: Any = GPU.name) -> Any:
    """Return the state of the generator that a GPU draws from.

    Parameters
    ----------
    device : device, str or int
        One of those there are.

    Returns
    -------
    Tensor
        uint8, as of `torch.get_rng_state`.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     state = torch.cuda.get_rng_state()
    """
    return _generator(device, "get_rng_state").get_state()


def get_rng_state_all() -> list[Any]:
    """Return the state of each GPU's generator.

    Returns
    -------
    list of Tensor
        Empty where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()
    True
    """
    return [_C._generator_of(index).get_state() for index in range(GPU.count())]


def set_rng_state(new_state: Any, device: Any = GPU.name) -> None:
    """Put the generator that a GPU draws from into a state; nothing is done where there is none.

    Parameters
    ----------
    new_state : Tensor
        As `get_rng_state` returns it.
    device : device, str or int
        One of those there are.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.set_rng_state(torch.get_rng_state())
    """
    if GPU.is_available():
        _generator(device, "set_rng_state").set_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Put the generators of GPUs into states.

    Parameters
    ----------
    new_states : iterable of Tensor
        As of `get_rng_state_all`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seed the generator that the current GPU draws from; nothing is done where there is none.

    Parameters
    ----------
    seed : int
        Any integer of 64 bits.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.manual_seed(0)
    """
    if GPU.is_available():
        _generator(GPU.name, "manual_seed").manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs; nothing is done where there is none.

    Parameters
    ----------
    seed : int
        Any integer of 64 bits.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.manual_seed_all(0)
    """
    _C._seed_gpus(int(seed) & (2**64 - 1))


def seed() -> None:
    """Seed the generator of the current GPU with a number nobody can foresee.

    Nothing is done where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.seed()
    """
    if GPU.is_available():
        _generator(GPU.name, "seed").seed()


def seed_all() -> None:
    """Seed the generators of all GPUs with a number nobody can foresee.

    Nothing is done where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.seed_all()
    """
    if GPU.is_available():
        _C._seed_gpus(_generator(GPU.name, "seed_all").seed())


def initial_seed() -> int:
    """Return the seed that the generator of the current GPU started from.

    Returns
    -------
    int
        As `manual_seed` was given it.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     number = torch.cuda.initial_seed()
    """
    return _generator(GPU.name, "initial_seed").initial_seed()


def _generator(device: Any, what: str) -> Any:
    """Return the generator of a GPU; the name of the kind is the current one."""
    return _C._generator_of(GPU.index(None if device == GPU.name else device, what))
