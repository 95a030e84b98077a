"""Private helpers of transforms."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._C import _functorch
from ..utils._exposed_in import exposed_in

__all__ = ["argnums_t", "enable_single_level_autograd_function", "exposed_in"]

argnums_t = int | tuple[int, ...]


@contextlib.contextmanager
def enable_single_level_autograd_function() -> Iterator[None]:
    """Allow, for a block, what PyTorch asks of a Function inside its transforms.

    A Function is called here as it is in any case.

    Examples
    --------
    >>> from pytensorlib._functorch.utils import enable_single_level_autograd_function
    >>> with enable_single_level_autograd_function():
    ...     pass
    """
    before = _functorch.get_single_level_autograd_function_allowed()
    _functorch.set_single_level_autograd_function_allowed(True)
    try:
        yield
    finally:
        _functorch.set_single_level_autograd_function_allowed(before)


def unwrap_dead_wrappers(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments: there are no wrappers."""
    return tuple(args)
