"""Sets the module that a function reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["exposed_in"]

T = TypeVar("T", bound=Callable[..., Any])


def exposed_in(module: str) -> Callable[[T], T]:
    """Let a function say that it is of another module.

    Parameters
    ----------
    module : str
        Its name.

    Returns
    -------
    callable
        A decorator, which returns the function itself.

    Examples
    --------
    >>> from pytensorlib.utils._exposed_in import exposed_in
    >>> @exposed_in("mine")
    ... def f(): ...
    >>> f.__module__
    'mine'
    """

    def decorated(fn: T) -> T:
        fn.__module__ = module
        return fn

    return decorated
