"""Switches of PyTorch's backends."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

__all__ = ["Switches", "heard", "switched"]


class Switches:
    """Values by name, which programs may set."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def heard(name: str, **hears: Callable[[Any], None]) -> None:
    """Let functions hear what names of a module are set to.

    Parameters
    ----------
    name : str
        The module.
    **hears : callable
        By name, what takes the value.
    """

    class Heard(ModuleType):
        def __setattr__(self, key: str, value: Any) -> None:
            if key in hears:
                hears[key](value)
            super().__setattr__(key, value)

    sys.modules[name].__class__ = Heard


@contextlib.contextmanager
def switched(space: dict[str, Any], **values: Any) -> Iterator[None]:
    """Set names of a module for a block; None leaves one as it is."""
    module = sys.modules[space["__name__"]]
    values = {name: value for name, value in values.items() if value is not None}
    old = {name: space[name] for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in old.items():
            setattr(module, name, value)
