"""Questions about sizes that may be unknown in a graph: outside of `torch.export` none is."""

from __future__ import annotations

from typing import Any

from ..._symbolic.ints import _Sym

__all__ = [
    "GuardOnDataDependentSymNode",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_or_false",
    "guard_or_true",
    "guard_size_oblivious",
    "has_free_symbols",
    "is_concrete_bool",
    "is_concrete_int",
    "statically_known_true",
    "sym_eq",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """What asking for an unknown size would raise; none is unknown here.

    Examples
    --------
    >>> import pytensorlib.fx.experimental.symbolic_shapes as shapes
    >>> issubclass(shapes.GuardOnDataDependentSymNode, RuntimeError)
    True
    """


def guard_or_false(a: Any) -> bool:
    """Return the truth of `a`, or False where `torch.export` does not know it."""
    return False if _is_data(a) else bool(a)


def guard_or_true(a: Any) -> bool:
    """Return the truth of `a`, or True where `torch.export` does not know it."""
    return True if _is_data(a) else bool(a)


def statically_known_true(a: Any) -> bool:
    """Return whether `a` holds whatever the open sizes are."""
    return not _is_data(a) and all(a.node.values) if isinstance(a, _Sym) else bool(a)


guard_size_oblivious = guard_or_false


def _is_data(a: Any) -> bool:
    return isinstance(a, _Sym) and a.node.tracer.is_data(a.node)


def sym_eq(x: Any, y: Any) -> bool:
    """Return whether two numbers, or two sequences of them, are equal."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    return bool(x == y)


def free_symbols(val: Any) -> set[Any]:
    """Return the unknowns in `val`: none."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val: Any) -> bool:
    """Return whether there are unknowns in `val`: no."""
    return False


def is_concrete_int(a: Any) -> bool:
    """Return whether `a` is a known whole number."""
    return isinstance(a, int)


def is_concrete_bool(a: Any) -> bool:
    """Return whether `a` is a known truth value."""
    return isinstance(a, bool)
