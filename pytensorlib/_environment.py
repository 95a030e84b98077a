"""Facts of a build of PyTorch, as `torch._environment` reports them."""

from __future__ import annotations

__all__ = ["is_fbcode"]


def is_fbcode() -> bool:
    """Return False: this is no build of one company's.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> from pytensorlib._environment import is_fbcode
    >>> is_fbcode()
    False
    """
    return False
