"""Sizes that a tracer leaves open: each holds its value in several examples at once.

A number that is the same in all examples is plain; one that differs is a `SymInt`. What is computed
of it is computed in each example, so no algebra is needed to know which sizes depend on which.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

__all__ = ["SymBool", "SymFloat", "SymInt"]


class SymNode:
    """What stands behind an open number.

    Parameters
    ----------
    tracer : object
        Is told where a program needs a plain number.
    values : tuple
        The number in each example.
    text : str
        How it is written.
    make : callable
        Makes the node of the graph that gives it.
    """

    __slots__ = ("_make", "_made", "text", "tracer", "values")

    def __init__(
        self, tracer: Any, values: tuple[Any, ...], text: Any, make: Callable[[], Any]
    ) -> None:
        self.tracer, self.values, self.text, self._make, self._made = (
            tracer,
            values,
            text,
            make,
            None,
        )

    @property
    def hint(self) -> Any:
        """The number in the first example, which the program was given."""
        return self.values[0]

    @property
    def expr(self) -> Any:
        """How it is written."""
        return self.text

    def graph_node(self) -> Any:
        """Return the node of the graph that gives the number."""
        if self._made is None:
            self._made = self._make()
        return self._made


class _Sym:
    """An open number; arithmetic gives others, and what needs a plain one says so to the tracer."""

    __slots__ = ("node",)

    def __init__(self, node: Any) -> None:
        if not isinstance(node, SymNode):
            raise NotImplementedError(
                f"torch.{type(self).__name__}: open numbers are made by torch.export alone; sizes "
                "are plain numbers elsewhere"
            )
        self.node = node

    def __repr__(self) -> str:
        return str(self.node.text)

    __str__ = __repr__

    def __hash__(self) -> int:
        return hash((type(self), self.node.values))

    def _plain(self) -> Any:
        return self.node.tracer.specialize(self.node)

    def __bool__(self) -> bool:
        return bool(self.node.tracer.truth(self.node))

    def __float__(self) -> float:
        return float(self._plain())

    def __int__(self) -> int:
        return int(self._plain())

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class SymInt(_Sym):
    """An integer that a tracer leaves open, such as a size of a batch.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> isinstance(torch.ones(2).shape[0], torch.SymInt)
    False
    """

    __slots__ = ()

    def __index__(self) -> int:
        return int(self._plain())

    def __trunc__(self) -> Any:
        return self

    __floor__ = __ceil__ = __trunc__

    def __round__(self, digits: Any = None) -> Any:
        return self

    def is_integer(self) -> bool:
        """Return True."""
        return True

    def as_integer_ratio(self) -> tuple[Any, int]:
        """Return the number and one."""
        return self, 1

    def __sym_float__(self) -> Any:
        return _binary(operator.truediv, self, 1)


class SymFloat(_Sym):
    """A number that a tracer leaves open.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> isinstance(1.0, torch.SymFloat)
    False
    """

    __slots__ = ()

    def is_integer(self) -> bool:
        """Return whether it is whole, where it is so in all examples or in none."""
        return bool(computed(float.is_integer, self))

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return it as a fraction; needs a plain number."""
        return float(self).as_integer_ratio()

    def conjugate(self) -> SymFloat:
        """Return the number."""
        return self

    def hex(self) -> str:
        """Return it in hexadecimal; needs a plain number."""
        return float(self).hex()

    def __floor__(self) -> Any:
        return _unary(math.floor, self)

    def __ceil__(self) -> Any:
        return _unary(math.ceil, self)

    def __trunc__(self) -> Any:
        return _unary(math.trunc, self)


class SymBool(_Sym):
    """A condition that a tracer leaves open.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> isinstance(True, torch.SymBool)
    False
    """

    __slots__ = ()

    def __sym_check__(self) -> None:
        self.node.tracer.check(self.node)

    def __and__(self, other: Any) -> Any:
        return _binary(operator.and_, self, other)

    def __or__(self, other: Any) -> Any:
        return _binary(operator.or_, self, other)


def _of(values: tuple[Any, ...]) -> type[_Sym]:
    first = values[0]
    if isinstance(first, bool):
        return SymBool
    return SymInt if isinstance(first, int) else SymFloat


def _values(x: Any, n: int) -> tuple[Any, ...]:
    return x.node.values if isinstance(x, _Sym) else (x,) * n


def computed(function: Callable[..., Any], *args: Any) -> Any:
    """Return what a function gives of numbers of which some are open."""
    first = next(a for a in args if isinstance(a, _Sym))
    tracer, n = first.node.tracer, len(first.node.values)
    columns = [_values(a, n) for a in args]
    values = tuple(function(*row) for row in zip(*columns, strict=True))
    data = any(isinstance(a, _Sym) and tracer.is_data(a.node) for a in args)
    if all(v == values[0] for v in values) and not data:
        return values[0]
    text = tracer.text_of(function, args, values)

    def make() -> Any:
        nodes = tuple(a.node.graph_node() if isinstance(a, _Sym) else a for a in args)
        return tracer.number_node(function, nodes, sym)

    sym: Any = _of(values)(SymNode(tracer, values, text, make))
    return sym


def _binary(function: Callable[..., Any], a: Any, b: Any) -> Any:
    if not isinstance(b, (int, float, _Sym)):
        return NotImplemented
    return computed(function, a, b)


def _unary(function: Callable[..., Any], a: Any) -> Any:
    return computed(function, a)


def _install() -> None:
    numbers: tuple[Any, ...] = (SymInt, SymFloat)
    kind: Any
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        function = getattr(operator, name)

        def forward(self: Any, other: Any, f: Any = function) -> Any:
            return _binary(f, self, other)

        def backward(self: Any, other: Any, f: Any = function) -> Any:
            if not isinstance(other, (int, float, _Sym)):
                return NotImplemented
            return computed(f, other, self)

        for kind in numbers:
            setattr(kind, f"__{name}__", forward)
            setattr(kind, f"__r{name}__", backward)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        function = getattr(operator, name)

        def compare(self: Any, other: Any, f: Any = function) -> Any:
            return _binary(f, self, other)

        for kind in (*numbers, SymBool):
            setattr(kind, f"__{name}__", compare)
    for kind in numbers:
        kind.__neg__ = lambda self: _unary(operator.neg, self)
        kind.__abs__ = lambda self: _unary(abs, self)
        kind.__pos__ = lambda self: self
        kind.__divmod__ = lambda self, n: (self // n, self % n)
    for kind in (*numbers, SymBool):
        kind.__hash__ = _Sym.__hash__


_install()
