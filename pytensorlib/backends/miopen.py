"""MIOpen: not used here."""

from __future__ import annotations

from typing import Any

from ._switches import switched

__all__ = ["flags", "is_available"]

immediate = False


def is_available() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.miopen.is_available()
    False
    """
    return False


def flags(immediate: bool = False) -> Any:
    """Return a context with these switches, which change nothing.

    Parameters
    ----------
    immediate : bool
        As PyTorch's.

    Returns
    -------
    context manager
        Restores what was.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.backends.miopen.flags():
    ...     torch.ones(1)
    tensor([1.])
    """
    return switched(globals(), immediate=immediate)
