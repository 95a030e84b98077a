"""cuSPARSELt: not used here."""

from __future__ import annotations

__all__ = ["is_available", "version"]


def is_available() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.cusparselt.is_available()
    False
    """
    return False


def version() -> None:
    """Return None: there is no version of what is not there.

    Returns
    -------
    None
        Always.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.cusparselt.version() is None
    True
    """
