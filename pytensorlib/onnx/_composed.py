"""Rows of operators that are written with other operators that have rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytensorlib as pt

from .._ops import ops
from ..export import _aten
from ._graph import Value
from ._rows import ROWS

__all__ = ["Writing", "composed", "is_tensor"]

# Lengths that stand for an open size: what they disagree about is open in a result too.
_LENGTHS = 97, 101


class _Tensor:
    """A tensor while a composed operator is written: its value, and examples without elements."""

    def __init__(self, value: Value, examples: tuple[Any, ...]) -> None:
        self.value, self.examples = value, examples

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def rank(self) -> int:
        return self.value.rank


class Writing:
    """Calls rows as functions of tensors: ``t.add(x, y)`` is the row of ``add``.

    Parameters
    ----------
    c : Converter
        Gets the nodes.
    """

    def __init__(self, c: Any) -> None:
        self.c = c

    def tensor(self, value: Any) -> Any:
        """Return a value, or values in lists, as tensors."""
        if isinstance(value, (list, tuple)):
            return [self.tensor(v) for v in value]
        if not isinstance(value, Value):
            return value
        shapes = (tuple(s if type(s) is int else n for s in value.shape) for n in _LENGTHS)
        return _Tensor(value, tuple(pt.empty(s, dtype=value.dtype, device="meta") for s in shapes))

    def constant(self, values: Any, dtype: Any) -> _Tensor:
        """Return a tensor of numbers."""
        shape = tuple(pt.tensor(values).shape)
        return self.tensor(Value(self.c.constant(values, dtype), dtype, shape))

    def size(self, x: _Tensor, dim: int) -> int:
        """Return a size, which must be known."""
        known = x.value.known(dim)
        if known is None:
            raise self.c.error(self.c.at, f"the size of its dimension {dim} is open")
        return known

    def sizes(self, x: _Tensor) -> list[int]:
        """Return all sizes, which must be known."""
        return [self.size(x, d) for d in range(x.rank)]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return functools.partial(self._call, name)

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        function = getattr(ops.aten, name)
        results = [function(*_mapped(args, n), **_mapped(kwargs, n)) for n in range(2)]
        at = self.c.at
        bound = _aten.bind(name, _mapped(args, 0), _mapped(kwargs, 0))
        if bound is not None:
            places = {id(t.examples[0]): t for t in _tensors((args, kwargs))}
            schema, args, kwargs = bound
            args, kwargs = _found(args, places), _found(kwargs, places)
            name = schema.name
        row = ROWS.get(name)
        if row is None:
            raise self.c.error(at)
        described = results[0] if isinstance(results[0], pt.Tensor) else list(results[0])
        self.c.at = SimpleNamespace(
            target=f"aten.{name}", name=at.name, stack_trace=at.stack_trace,
            meta={"val": described}, users=at.users,
        )  # fmt: skip
        try:
            made = row(self.c, *_values(args), **_values(kwargs))
        finally:
            self.c.at = at
        if isinstance(made, (list, tuple)):
            pairs = zip(made, *results, strict=True)
            return [self._made(value, both) for value, *both in pairs]
        return self._made(made, results)

    def _made(self, made: Any, examples: Any) -> _Tensor:
        if not isinstance(made, Value):
            shape = [a if a == b else None for a, b in zip(*(e.shape for e in examples))]
            made = Value(str(made), examples[0].dtype, shape)
        return _Tensor(made, tuple(examples))


def _tensors(values: Any) -> list[_Tensor]:
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        return [t for v in values for t in _tensors(v)]
    return [values] if isinstance(values, _Tensor) else []


def _replaced(values: Any, f: Callable[[Any], Any]) -> Any:
    if isinstance(values, dict):
        return {k: _replaced(v, f) for k, v in values.items()}
    if isinstance(values, (list, tuple)):
        return type(values)(_replaced(v, f) for v in values)
    return f(values)


def _mapped(values: Any, n: int) -> Any:
    return _replaced(values, lambda v: v.examples[n] if isinstance(v, _Tensor) else v)


def _found(values: Any, places: dict[int, _Tensor]) -> Any:
    return _replaced(values, lambda v: places.get(id(v), v))


def _values(values: Any) -> Any:
    return _replaced(values, lambda v: v.value if isinstance(v, _Tensor) else v)


def composed(*names: str) -> Callable[[Any], Any]:
    """Keep a function of tensors as the row of operators that have none."""

    def keep(f: Any) -> Any:
        def write(c: Any, *args: Any, **kwargs: Any) -> Any:
            t = Writing(c)
            named = {k: t.tensor(v) for k, v in kwargs.items() if not (k == "out" and v is None)}
            made = f(t, *t.tensor(args), **named)
            return _values(made)

        for name in names:
            ROWS.setdefault(name, write)
        return f

    return keep


def is_tensor(value: Any) -> bool:
    """Return whether an argument of a composed operator is a tensor."""
    return isinstance(value, _Tensor)
