"""Numbers of the host that a recorded call computes anew: arithmetic that remembers what it did."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


class Number:
    """A number with what it is computed from, in floats, as if nobody looked on."""

    __slots__ = ("parts", "read", "value")

    def __init__(self, value: float, read: Callable[..., float], *parts: Any) -> None:
        self.value, self.read, self.parts = value, read, parts

    def now(self) -> float:
        """Return what it is by now."""
        return self.read(*(p.now() if type(p) is Number else p for p in self.parts))


def apply(function: Callable[..., float], *parts: Any) -> Any:
    """Return a function of numbers, as a number that is followed where one of them is."""
    if not any(type(p) is Number for p in parts):
        return function(*parts)
    values = (p.value if type(p) is Number else p for p in parts)
    return Number(function(*values), function, *parts)


def _operators(name: str) -> None:
    function = getattr(operator, name)
    setattr(Number, f"__{name}__", lambda self, other: apply(function, self, other))
    setattr(Number, f"__r{name}__", lambda self, other: apply(function, other, self))


for _name in ("add", "sub", "mul", "truediv", "pow"):
    _operators(_name)
