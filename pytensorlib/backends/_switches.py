"""Switches of a backend that is not here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["Switches", "switched"]


class Switches:
    """Values by name, which programs may set."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


@contextlib.contextmanager
def switched(space: dict[str, Any], **values: Any) -> Iterator[None]:
    """Set names of a module for a block; None leaves one as it is."""
    values = {name: value for name, value in values.items() if value is not None}
    old = {name: space[name] for name in values}
    space.update(values)
    try:
        yield
    finally:
        space.update(old)
