"""What a row of the operator table is, and the ways to write one.

A row names the operator, how to make arguments for it, and an independent reference in float64.
Arguments are NumPy arrays: the laws cast float64 arrays to the dtype under test and leave
integer and bool arrays, which are indices and masks, as they are.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
INTS = ("int64", "int32", "uint8")
ALL = (*FLOATS, *HALVES)

# Relative and absolute error that rounding alone may cause in one operation of a few steps.
TOLERANCE = {
    "float64": (1e-9, 1e-9),
    "float32": (3e-5, 3e-5),
    "float16": (4e-3, 4e-3),
    "bfloat16": (3e-2, 3e-2),
}


@dataclass(frozen=True)
class Sample:
    """One call: positional and keyword arguments."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def elements(self) -> int:
        """Return how many floating elements the arguments have."""
        arrays = [a for a in _flat((self.args, self.kwargs)) if a.dtype == np.float64]
        return sum(a.size for a in arrays)


def _flat(value: Any) -> Iterable[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _flat(item)
    elif isinstance(value, dict):
        yield from _flat(list(value.values()))


@dataclass(frozen=True)
class Op:
    """One row."""

    name: str
    ref: Callable[..., Any]
    make: Callable[[np.random.Generator], Iterable[Sample]]
    dtypes: tuple[str, ...] = FLOATS
    result: str = "same"  # or a type, "complex", or "float": floating even for integers
    differentiable: bool = True
    inplace: bool = False
    out: bool = True
    method: bool = True
    twice: bool = True  # whether PyTorch has a second derivative
    fixed: tuple[int | str, ...] = ()  # floating arguments that have no derivative
    scale: float = 1.0  # the tolerance times this
    regular: bool = False  # of matrices that must have an inverse
    why: str = ""  # the reason for a scale other than 1
    call: Callable[[Any], Callable[..., Any]] | None = None

    def __str__(self) -> str:
        return self.name

    def samples(self) -> list[Sample]:
        """Return the same arguments in every run."""
        return list(self.make(np.random.default_rng(zlib.crc32(self.name.encode()))))

    def function(self, torch: Any) -> Callable[..., Any]:
        """Look the operator up in the package."""
        if self.call is not None:
            return self.call(torch)
        found = torch
        for part in self.name.split("."):
            found = getattr(found, part)
        return found

    def in_place(self, torch: Any) -> Callable[..., Any]:
        """Look up the form that writes to its first argument."""
        if self.name.startswith("nn."):
            return partial(self.function(torch), inplace=True)
        return getattr(torch.Tensor, self.name + "_")


def uniform(rng: np.random.Generator, *shape: int, low: float = -2, high: float = 2) -> np.ndarray:
    return np.asarray(rng.uniform(low, high, shape))


def distinct(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return values at least 1/8 apart, exact in every dtype: no ties for sort and max."""
    size = int(np.prod(shape))
    return (rng.permutation(size) / 8 - size / 16).reshape(shape)


# Sizes on both sides of vector widths and of the blocks of unrolled loops.
UNARY = [(), (1,), (0,), (5,), (2, 0, 3), (3, 4), (17,), (3, 33), (1025,)]
BINARY = [
    ((), ()),
    ((3,), ()),
    ((), (3,)),
    ((0,), (1,)),
    ((3, 4), (3, 4)),
    ((3, 1), (4,)),
    ((2, 1, 3), (4, 1)),
    ((65,), (65,)),
    ((5, 33), (33,)),
    ((1025,), (1025,)),
]


def unary(name: str, ref: Any, low: float = -2, high: float = 2, **row: Any) -> Op:
    def make(rng: np.random.Generator) -> Iterable[Sample]:
        for shape in UNARY:
            yield Sample((uniform(rng, *shape, low=low, high=high),))

    return Op(name, ref, make, **{"dtypes": ALL, "inplace": True, **row})


def activation(name: str, ref: Any, *options: dict[str, Any], **row: Any) -> Op:
    def make(rng: np.random.Generator) -> Iterable[Sample]:
        for kwargs in options or ({},):
            for shape in [(), (0,), (3, 4), (3, 33)]:
                yield Sample((uniform(rng, *shape, low=-4, high=4),), kwargs)

    row = {"dtypes": ALL, "out": False, "method": False, **row}
    return Op("nn.functional." + name, ref, make, **row)


def binary(
    name: str, ref: Any, low: float = -2, high: float = 2, scalar: float | None = 1.5, **row: Any
) -> Op:
    def make(rng: np.random.Generator) -> Iterable[Sample]:
        for a, b in BINARY:
            yield Sample(tuple(uniform(rng, *s, low=low, high=high) for s in (a, b)))
        if scalar is not None:
            yield Sample((uniform(rng, 3, 4, low=low, high=high), scalar))

    return Op(name, ref, make, **{"dtypes": ALL, "inplace": True, **row})


def compare(name: str, ref: Any) -> Op:
    def make(rng: np.random.Generator) -> Iterable[Sample]:
        for a, b in BINARY:
            yield Sample(tuple(np.asarray(np.round(uniform(rng, *s))) for s in (a, b)))
        yield Sample((np.round(uniform(rng, 3, 4)), 1))

    return Op(name, ref, make, (*ALL, *INTS), "bool", differentiable=False, inplace=True)


def reduction(name: str, ref: Any, *, whole: bool = True, many: bool = True, **row: Any) -> Op:
    """Return a row whose samples reduce all, one or several dimensions."""
    low, high = row.pop("low", -2), row.pop("high", 2)
    values = row.pop("values", None)

    def make(rng: np.random.Generator) -> Iterable[Sample]:
        def x(*shape: int) -> np.ndarray:
            return values(rng, *shape) if values else uniform(rng, *shape, low=low, high=high)

        if whole:
            yield from (Sample((x(*shape),)) for shape in [(), (1,), (3, 4), (2, 33)])
        for shape, dim in [((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((2, 33), 1), ((33, 2), 0)]:
            yield Sample((x(*shape), dim))
            yield Sample((x(*shape), dim), {"keepdim": True})
        if many:
            yield Sample((x(2, 3, 4), (0, 2)))
            yield Sample((x(2, 3, 4), (-1, 1)), {"keepdim": True})

    return Op(name, ref, make, **row)


def cases(name: str, ref: Any, *calls: Any, **row: Any) -> Op:
    """Return a row from calls: shapes (lists) become random arrays, functions get the rng."""
    fill = row.pop("fill", uniform)

    def argument(rng: np.random.Generator, value: Any) -> Any:
        if isinstance(value, list):
            return fill(rng, *value)
        if callable(value):
            return value(rng)
        return [argument(rng, v) for v in value.items] if isinstance(value, Many) else value

    def make(rng: np.random.Generator) -> Iterable[Sample]:
        for call in calls:
            *args, kwargs = call if isinstance(call[-1], dict) else (*call, {})
            yield Sample(
                tuple(argument(rng, a) for a in args),
                {k: argument(rng, v) for k, v in kwargs.items()},
            )

    return Op(name, ref, make, **row)


@dataclass(frozen=True)
class Many:
    """A list of tensors as one argument."""

    items: tuple[Any, ...]


def view(name: str, ref: Any, *calls: Any, **row: Any) -> Op:
    row = {"dtypes": (*ALL, "int64", "uint8"), "out": False, **row}
    return cases(name, ref, *calls, **row)


def functional(name: str, ref: Any, *calls: Any, **row: Any) -> Op:
    row = {"out": False, "method": False, **row}
    return cases("nn.functional." + name, ref, *calls, **row)


def index(high: int, *shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: rng.integers(0, high, shape)


def array(*values: Any) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: np.array(values)


def steps(*values: float) -> Callable[[np.random.Generator], np.ndarray]:
    """Return numbers that stay float32 whatever the type under test."""
    return lambda rng: np.array(values, np.float32)


def ints(*values: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: np.array(values, np.int32)


def once(high: int, count: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Return positions without repeats, for operators that leave repeats undefined."""
    return lambda rng: rng.permutation(high)[:count]


def mask(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: rng.random(shape) < 0.5


def positive(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: uniform(rng, *shape, low=0.2, high=2)


def probability(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: uniform(rng, *shape, low=0.1, high=0.9)


def well_posed(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: uniform(rng, *shape) + 4 * np.eye(shape[-1])


def definite(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    def make(rng: np.random.Generator) -> np.ndarray:
        a = uniform(rng, *shape)
        return a @ np.swapaxes(a, -1, -2) + 2 * np.eye(shape[-1])

    return make


def quiet(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call what is deprecated and says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


STEP = {"differentiable": True}  # derivative zero almost everywhere
NO_GRAD = {"differentiable": False}
WITH_INTS = {"dtypes": (*ALL, "int64", "int32")}
TO_FLOAT = {"dtypes": (*ALL, "int64"), "result": "float"}
LONG_SUM = {"scale": 4.0, "why": "error grows with the number of terms"}
MATRIX = {**LONG_SUM, "dtypes": ALL}
NN_SUM = {**LONG_SUM, "dtypes": FLOATS}
