"""The default generator of random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _C
from ._C import default_generator, manual_seed

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def get_rng_state() -> Any:
    """Return the state of the default generator: uint8, 5056 bytes, in PyTorch's format.

    Returns
    -------
    Tensor
        uint8, in host memory.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> state = torch.get_rng_state()
    >>> first = torch.rand(2)
    >>> torch.set_rng_state(state)
    >>> torch.equal(torch.rand(2), first)
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Put the default generator into a state that `get_rng_state` returned.

    Parameters
    ----------
    new_state : Tensor
        uint8, as `get_rng_state` returns it.

    Raises
    ------
    TypeError
        It is not a tensor of bytes.
    RuntimeError
        It has another size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> state = torch.get_rng_state()
    >>> first = torch.rand(2)
    >>> torch.set_rng_state(state)
    >>> torch.equal(torch.rand(2), first)
    True
    """
    default_generator.set_state(new_state)


def seed() -> int:
    """Seed the default generator with a number nobody can foresee, and return it.

    Returns
    -------
    int
        The seed, of 64 bits.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.seed() == torch.initial_seed()
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed that the default generator started from.

    Returns
    -------
    int
        As `manual_seed` was given it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> generator = torch.manual_seed(5)
    >>> torch.initial_seed()
    5
    """
    return default_generator.initial_seed()


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """Give the block random numbers of its own: afterwards the generator is as before.

    Parameters
    ----------
    devices : sequence, optional
        Accepted; only the default generator has a state.
    enabled : bool, default True
        False does nothing.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> generator = torch.manual_seed(0)
    >>> with torch.random.fork_rng():
    ...     aside = torch.rand(2)
    >>> torch.equal(torch.rand(2), aside)
    True
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


assert _C.default_generator is default_generator


def thread_safe_generator() -> None:
    """Return None: workers of a DataLoader are processes, each with a generator of its own.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.thread_safe_generator()
    """
