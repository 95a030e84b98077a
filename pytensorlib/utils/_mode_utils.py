"""Helpers of modes that answer for functions of tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _C

__all__ = ["all_same_mode"]

no_dispatch = _C._DisableTorchDispatch


def all_same_mode(modes: Iterable[Any]) -> bool:
    """Return whether all modes are one.

    Parameters
    ----------
    modes : iterable
        At least one.

    Returns
    -------
    bool
        Whether each equals the first.

    Examples
    --------
    >>> from pytensorlib.utils._mode_utils import all_same_mode
    >>> all_same_mode((None, None))
    True
    """
    modes = list(modes)
    return all(mode == modes[0] for mode in modes)
