"""A call as plain data: no library is needed to make, change, print or store one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int64", "int32", "uint8", "int8", "int16")
COMPLEX = ("complex64", "complex128")
# NumPy lacks bfloat16: its numbers are kept as float32 and rounded when a tensor is made.
STORED = {"bfloat16": "float32"}
WIDE = {
    "float32": "float64",
    "float16": "float64",
    "bfloat16": "float64",
    "complex64": "complex128",
}


@dataclass
class Layout:
    """Where the elements of a view lie in the memory of its base."""

    memory: np.ndarray
    strides: tuple[int, ...]
    offset: int


@dataclass
class Array:
    """A tensor: its values, its type, and how it lies in memory."""

    values: np.ndarray
    dtype: str
    grad: bool = False
    layout: Layout | None = None
    alias: int | None = None  # the same tensor as this one of the call

    def __repr__(self) -> str:
        text = f"{self.dtype}{list(self.values.shape)}"
        if self.layout is not None:
            text += f" stride={list(self.layout.strides)} offset={self.layout.offset}"
        if self.alias is not None:
            text += f" same as {self.alias}"
        return f"<{text}{' grad' if self.grad else ''}>"


@dataclass(frozen=True)
class Named:
    """A constant of the library, such as `float32` or `channels_last`."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass
class Call:
    """One call of an operator, in one of its forms."""

    op: str
    path: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    form: str = "function"  # or "method", "inplace", "out"
    out: str = "exact"  # how the result of the form `out` lies in memory
    out_dtype: str = "float32"  # for out = "dtype"
    grad: bool = False
    seed: int = 0
    notes: list[str] = field(default_factory=list)

    def arrays(self) -> list[Array]:
        """Return the tensors in the order in which they are made."""
        return list(arrays_in((self.args, self.kwargs)))

    def __str__(self) -> str:
        form = self.form if self.form != "out" else f"out={self.out}"
        if self.form == "out" and self.out == "dtype":
            form += f":{self.out_dtype}"
        given = [repr(a) for a in self.args] + [f"{k}={v!r}" for k, v in self.kwargs.items()]
        text = f"{self.path}[{form}{', grad' if self.grad else ''}]({', '.join(given)})"
        return f"{text[:900]} {self.notes}"


def arrays_in(value: Any) -> Iterator[Array]:
    """Yield the tensors in nested arguments."""
    if isinstance(value, Array):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from arrays_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from arrays_in(item)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested arguments with each leaf changed."""
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return change(value)


def resized(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of another shape that repeats the values."""
    return np.resize(values, shape) if values.size else np.ones(shape, values.dtype)
