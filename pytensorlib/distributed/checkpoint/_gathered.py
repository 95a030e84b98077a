"""Exchanges the metadata of a checkpoint between processes."""

from __future__ import annotations

from typing import Any

from .._objects import all_gather_object
from .._process_group import member
from .._ranks import is_initialized
from .api import CheckpointException

__all__ = ["alike", "among", "tell"]


def among(process_group: Any, no_dist: bool) -> Any:
    """Return the group that saves or loads, or None for this process alone."""
    return None if no_dist or not is_initialized() else member("checkpoint", process_group)


def tell(group: Any, value: Any) -> list[Any]:
    """Return what all processes say."""
    if group is None:
        return [value]
    found: list[Any] = [None] * group.size()
    all_gather_object(found, value, group)
    return found


def alike(group: Any, what: str, error: Exception | None) -> None:
    """Raise on all processes where there was an error on one."""
    errors = tell(group, None if error is None else f"{type(error).__name__}: {error}")
    failures = {rank: e for rank, e in enumerate(errors) if e is not None}
    if failures:
        raise CheckpointException(what, failures) from error
