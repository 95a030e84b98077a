"""KleidiAI: not used here."""

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
    >>> torch.backends.kleidiai.is_available()
    False
    """
    return False
