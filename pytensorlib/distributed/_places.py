"""Shards: which rows of a tensor this process has."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..utils.weak import WeakIdKeyDictionary
from ._process_group import ProcessGroup

__all__ = ["Place", "mark", "place_of"]


class Place(NamedTuple):
    """Which rows of which tensor a shard has."""

    shape: tuple[int, ...]
    first: int
    group: ProcessGroup


_known: Any = WeakIdKeyDictionary()


def mark(tensor: Any, place: Place | None) -> Any:
    """Note which rows a tensor has; returns the tensor."""
    if place is not None:
        _known[tensor] = place
    return tensor


def place_of(tensor: Any) -> Place | None:
    """Return which rows a tensor has, or None for one that is whole."""
    return _known.get(tensor)
