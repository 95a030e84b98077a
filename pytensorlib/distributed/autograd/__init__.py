"""Gradients through other processes: not here; `is_available` says so."""

from __future__ import annotations

from ..._absent.modules import tell_missing
from ..._absent.table import BY_MPI

__all__ = ["is_available"]


def is_available() -> bool:
    """Return False: processes communicate by the functions of `torch.distributed`.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> import pytensorlib.distributed.autograd
    >>> torch.distributed.autograd.is_available()
    False
    """
    return False


tell_missing(globals(), BY_MPI)
