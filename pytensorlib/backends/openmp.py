"""OpenMP, whose place a thread pool has,: not used here."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.openmp.is_available()
    False
    """
    return False
