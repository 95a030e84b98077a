"""Flattens nested state dictionaries to one level of names, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytensorlib as pt

__all__ = ["flat", "put"]

Path = tuple[Any, ...]


def _opens(value: Any) -> bool:
    """Return whether a container's items have names of their own: lists of numbers do not."""
    if isinstance(value, dict):
        return True
    return isinstance(value, (list, tuple)) and any(
        isinstance(v, (dict, list, tuple, pt.Tensor)) for v in value
    )


def walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield what a nested state holds, with the keys that lead there."""
    if path and not _opens(value):
        yield path, value
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield from walk(item, (*path, str(key) if isinstance(value, dict) else key))


def flat(state: dict[str, Any]) -> dict[str, tuple[Path, Any]]:
    """Return what a state holds by dotted names, with the keys that lead there.

    Raises
    ------
    ValueError
        Two come to the same name.
    """
    found: dict[str, tuple[Path, Any]] = {}
    for path, value in walk(state, ()):
        name = ".".join(map(str, path))
        if name in found:
            raise ValueError(f"duplicated flatten key {name}")
        found[name] = (path, value)
    return found


def put(state: Any, path: Path, value: Any) -> None:
    """Put a value where the keys lead."""
    for key in path[:-1]:
        state = state[_own(state, key)]
    last = _own(state, path[-1])
    if isinstance(state, tuple):
        raise ValueError(f"{'.'.join(map(str, path))}: a tuple's items cannot be replaced")
    state[last] = value


def _own(state: Any, key: Any) -> Any:
    """Return a container's key: names are texts, and its keys may be numbers."""
    if isinstance(state, dict) and key not in state:
        return next((k for k in state if str(k) == key), key)
    return key
