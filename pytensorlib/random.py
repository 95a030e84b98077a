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
]


def get_rng_state() -> Any:
    """Return the state of the default generator: uint8, 5056 bytes, in PyTorch's format."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Put the default generator into a state that `get_rng_state` returned."""
    default_generator.set_state(new_state)


def seed() -> int:
    """Seed the default generator with a number nobody can foresee, and return it."""
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed that the default generator started from."""
    return default_generator.initial_seed()


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """Give the block random numbers of its own: afterwards the generator is as before."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


assert _C.default_generator is default_generator
