"""Whether there is a GPU that answers as "mps", which need not be Apple's."""

from __future__ import annotations

import os

from .. import _C
from ..mps._kind import GPU

__all__ = [
    "get_core_count",
    "get_name",
    "is_available",
    "is_built",
    "is_macos13_or_newer",
    "is_macos_or_newer",
]


def is_available() -> bool:
    """Return whether there is a GPU that answers as "mps".

    Returns
    -------
    bool
        As `torch.mps.is_available`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.mps.is_available() == torch.mps.is_available()
    True
    """
    return GPU.is_available()


def get_name() -> str:
    """Return the adapter's name.

    Returns
    -------
    str
        As the driver tells it.

    Raises
    ------
    RuntimeError
        There is no GPU that answers as "mps".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.backends.mps.is_available():
    ...     name = torch.backends.mps.get_name()
    """
    return str(_C._wgpu_info(GPU.index(None, "get_name"))["name"])


def get_core_count() -> int:
    """Return the number of processors: the host's for software, 1 of a card, which does not tell.

    Returns
    -------
    int
        1 or more.

    Raises
    ------
    RuntimeError
        There is no GPU that answers as "mps".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.backends.mps.is_available():
    ...     count = torch.backends.mps.get_core_count()
    """
    info = _C._wgpu_info(GPU.index(None, "get_core_count"))
    return (os.cpu_count() or 1) if info["software"] else 1


def is_built() -> bool:
    """Return whether GPUs answer as "mps", if there are any.

    Returns
    -------
    bool
        False unless a program says so.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.mps.is_built()
    False
    """
    return GPU.is_named()


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Return whether the GPU does what PyTorch's does on a version of macOS.

    Parameters
    ----------
    major, minor : int
        A version of macOS.

    Returns
    -------
    bool
        As `is_available`, on any system: programs ask it about bfloat16, which works.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.mps.is_macos_or_newer(14, 0)
    False
    """
    return GPU.is_available()


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Return whether the GPU does what PyTorch's does on macOS 13 and later.

    Parameters
    ----------
    minor : int, default 0
        A version after 13.

    Returns
    -------
    bool
        As `is_available`, on any system.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.mps.is_macos13_or_newer()
    False
    """
    return GPU.is_available()
