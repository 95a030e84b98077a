"""Functions of numbers that `torch.export` may leave open; elsewhere numbers are numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from .ints import SymBool, SymFloat, SymInt, _Sym, computed

__all__ = [
    "SymBool",
    "SymFloat",
    "SymInt",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]

for _kind in (SymBool, SymFloat, SymInt):
    _kind.__module__ = __name__.rpartition(".")[0]


def sym_float(a: Any) -> float:
    """Return a number as a float.

    Parameters
    ----------
    a : number
        Any.

    Returns
    -------
    float
        ``float(a)``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.sym_float(2)
    2.0
    """
    if isinstance(a, _Sym):
        return a.__sym_float__() if isinstance(a, SymInt) else a  # type: ignore[return-value]
    return float(a)


def sym_int(a: Any) -> int:
    """Return a number as an integer, towards zero.

    Parameters
    ----------
    a : number
        Finite.

    Returns
    -------
    int
        ``math.trunc(a)``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.sym_int(-2.5)
    -2
    """
    return math.trunc(a)


def sym_not(a: Any) -> bool:
    """Return whether a condition does not hold.

    Parameters
    ----------
    a : bool
        The condition.

    Returns
    -------
    bool
        ``not a``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.sym_not(True)
    False
    """
    if isinstance(a, _Sym):
        return computed(operator.not_, a)
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Return one of two values.

    Parameters
    ----------
    b : bool
        The condition.
    t, f : number
        What it gives where it holds, and where not; of one class.

    Returns
    -------
    number
        ``t if b else f``.

    Raises
    ------
    TypeError
        The classes differ.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.sym_ite(True, 1, 2)
    1
    """
    if type(t) is not type(f):
        raise TypeError(f"sym_ite: both values are of one class, got {t!r} and {f!r}")
    return t if b else f


def sym_max(a: Any, b: Any) -> Any:
    """Return the larger of two numbers, as a float where one of them is.

    Parameters
    ----------
    a, b : number
        Integers or floats.

    Returns
    -------
    number
        The larger.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.sym_max(1, 2), torch.sym_max(3, 2.0)
    (2, 3.0)
    """
    if isinstance(a, _Sym) or isinstance(b, _Sym):
        return computed(max, a, b)
    larger = max(a, b)
    return float(larger) if isinstance(a, float) or isinstance(b, float) else larger


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers, as a float where one of them is.

    Parameters
    ----------
    a, b : number
        Integers or floats.

    Returns
    -------
    number
        The smaller.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.sym_min(1, 2), torch.sym_min(1, 2.0)
    (1, 1.0)
    """
    if isinstance(a, _Sym) or isinstance(b, _Sym):
        return computed(min, a, b)
    smaller = min(a, b)
    return float(smaller) if isinstance(a, float) or isinstance(b, float) else smaller


def sym_sum(args: Iterable[Any]) -> Any:
    """Return the sum of numbers.

    Parameters
    ----------
    args : iterable of number
        What to add.

    Returns
    -------
    number
        ``sum(args)``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.sym_sum([1, 2, 3])
    6
    """
    return sum(args)


def sym_sqrt(a: Any) -> float:
    """Return the square root of a number.

    Parameters
    ----------
    a : number
        At least 0.

    Returns
    -------
    float
        ``math.sqrt(a)``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.sym_sqrt(4)
    2.0
    """
    if isinstance(a, _Sym):
        return computed(math.sqrt, a)
    return math.sqrt(a)
