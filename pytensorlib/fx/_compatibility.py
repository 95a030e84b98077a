"""How stable PyTorch promises a name of its graphs to be; kept as an attribute."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["compatibility"]

T = TypeVar("T")


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """Return a decorator that notes whether PyTorch keeps a name as it is between releases.

    Parameters
    ----------
    is_backward_compatible : bool
        Whether it does.

    Returns
    -------
    callable
        Takes a function or a class and returns it.

    Examples
    --------
    >>> from pytensorlib.fx._compatibility import compatibility
    >>> @compatibility(is_backward_compatible=True)
    ... def double(x):
    ...     return 2 * x
    >>> double._backwards_compatible
    True
    """

    def mark(fn: T) -> T:
        fn._backwards_compatible = is_backward_compatible  # type: ignore[attr-defined]
        return fn

    return mark
