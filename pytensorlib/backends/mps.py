"""Apple's Metal shaders, as PyTorch's device "mps": not used here."""

from __future__ import annotations

from .._named import fill
from .._named_modules import NO_MPS

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]

fill(globals(), NO_MPS, "get_core_count get_name")


def is_available() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.mps.is_available()
    False
    """
    return False


def is_built() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.mps.is_built()
    False
    """
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Return False: "mps" is not here on any system.

    Parameters
    ----------
    major, minor : int
        A version of macOS.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.mps.is_macos_or_newer(14, 0)
    False
    """
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Return False: "mps" is not here on any system.

    Parameters
    ----------
    minor : int, default 0
        A version after 13.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.mps.is_macos13_or_newer()
    False
    """
    return False
