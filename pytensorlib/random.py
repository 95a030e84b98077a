"""The default generators of random numbers: one for the CPU, and one for each GPU."""

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
    """Return the state of the CPU's default generator: uint8, 5056 bytes, in PyTorch's format.

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
    """Put the CPU's default generator into a state that `get_rng_state` returned.

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
    """Seed the default generators of all devices with a number nobody can foresee, and return it.

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
    seed = default_generator.seed()
    _C._seed_gpus(seed)
    return seed


def initial_seed() -> int:
    """Return the seed that the CPU's default generator started from.

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


def _states(numbers: Any = None) -> list[tuple[Any, Any]]:
    """Return the default generators, of the GPUs in use or of those given, with their states."""
    gpus = _C._generators_in_use() if numbers is None else map(_C._generator_of, numbers)
    return [(g, g.get_state()) for g in (default_generator, *gpus)]


def _restore(states: Any) -> None:
    """Put generators back into the states of `_states`."""
    for generator, state in states:
        generator.set_state(state)


@contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """Give the block random numbers of its own: afterwards the generators are as before.

    Parameters
    ----------
    devices : sequence, optional
        The GPUs, by number, whose generators are put back beside that of the CPU: by default all
        that are in use.
    enabled : bool, default True
        False does nothing.
    device_type : str
        Accepted; all GPUs here are of one kind.

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
    if devices is not None:
        devices = [d if isinstance(d, int) else _C.device(d).index or 0 for d in devices]
    states = _states(devices)
    try:
        yield
    finally:
        _restore(states)


assert _C.default_generator is default_generator


def thread_safe_generator() -> None:
    """Return None: workers of a DataLoader are processes, each with a generator of its own.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.thread_safe_generator()
    """
