"""Moves the parts of a batch to pinned memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytensorlib as pt

from .collate import _like_mapping, _like_sequence

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: Any = None) -> Any:
    """Call ``pin_memory()`` of all parts of a batch that have it; tensors are what they were.

    Parameters
    ----------
    data : object
        Containers are gone through.
    device : device, optional
        Not used.

    Returns
    -------
    object
        In containers of the same kinds.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.data._utils.pin_memory import pin_memory
    >>> pin_memory({"x": torch.ones(1), "name": "a"})
    {'x': tensor([1.]), 'name': 'a'}
    """
    if isinstance(data, (pt.Tensor, str, bytes)):
        return data.pin_memory() if isinstance(data, pt.Tensor) else data
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return _like_mapping(data, {k: pin_memory(v) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(pin_memory, data))
    if isinstance(data, tuple):
        return [pin_memory(part) for part in data]
    return _like_sequence(data, [*map(pin_memory, data)]) if isinstance(data, Sequence) else data
