"""``torch._foreach_*``: one operator over lists of tensors.

Each name takes lists in the place of tensors; a number, or a tensor that is no list, stands for a
list of it. Forms that end in an underscore write to the first list and return None.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import repeat
from typing import Any

import pytensorlib as pt

from .. import _C

Tensor = _C.Tensor

UNARY = """
    abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg
    reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc
""".split()


def _lists(name: str, first: Any, *others: Any) -> tuple[Any, ...]:
    """Return the arguments, of which lists are as long as the first."""
    if not isinstance(first, (list, tuple)):
        raise TypeError(
            f"_foreach_{name}: the first argument must be a list or tuple of tensors, got "
            f"{type(first).__name__}"
        )
    if not first:
        raise RuntimeError(f"_foreach_{name}: Tensor list must have at least one tensor.")
    for other in others:
        if isinstance(other, (list, tuple)) and len(other) != len(first):
            kind = "Tensor" if other and isinstance(other[0], Tensor) else "Scalar"
            raise RuntimeError(
                f"_foreach_{name}: {kind} lists must have the same number of elements as the "
                f"first, got {len(first)} and {len(other)}"
            )
    return (first, *others)


def _spread(lists: tuple[Any, ...]) -> list[Iterable[Any]]:
    """Return an iterable for each argument; what is no list stands for one."""
    return [each if isinstance(each, (list, tuple)) else repeat(each) for each in lists]


def _map(function: Callable[..., Any], lists: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what a function gives at each place of lists."""
    found = _C._each(function, lists, False)
    return tuple(map(function, *_spread(lists)) if found is NotImplemented else found)


def _write(function: Callable[..., Any], lists: tuple[Any, ...]) -> None:
    """Call a function that writes to its first argument at each place of lists."""
    if _C._each(function, lists, True) is NotImplemented:
        deque(map(function, *_spread(lists)), maxlen=0)


def _name(function: Callable[..., Any], name: str, doc: str) -> None:
    function.__name__ = function.__qualname__ = f"_foreach_{name}"
    function.__doc__ = doc
    globals()[function.__name__] = function


def _unary(name: str) -> None:
    method, write = getattr(Tensor, name, None), getattr(Tensor, name + "_")

    def apply(self: Any) -> tuple[Any, ...]:
        return _map(method, _lists(name, self))  # type: ignore[arg-type]

    def apply_(self: Any) -> None:
        _write(write, _lists(name, self))

    _name(apply, name, f"Return `{name}` of each tensor.")
    _name(apply_, name + "_", f"Replace each tensor by its `{name}`.")


def _call(function: Callable[..., Any], option: Any, default: Any) -> Callable[..., Any]:
    """Return a function with an option by name, unless that is the default."""
    name, value = option
    return function if value is default else partial(function, **{name: value})


def _binary(name: str, number: str | None = None, alpha: bool = False) -> None:
    """Make the two forms of an operator; `number` is what takes numbers in its place."""
    function, write = getattr(pt, name), getattr(Tensor, name + "_", None)
    for_numbers = getattr(pt, number) if number else function
    write_numbers = getattr(Tensor, number + "_") if number else write

    def chosen(other: Any, a: Any, tensors: Any, numbers: Any) -> Any:
        first = other[0] if isinstance(other, (list, tuple)) and other else other
        return _call(tensors if isinstance(first, Tensor) else numbers, ("alpha", a), 1)

    if alpha:

        def apply(self: Any, other: Any, *, alpha: Any = 1) -> tuple[Any, ...]:
            lists = _lists(name, self, other)
            return _map(chosen(other, alpha, function, for_numbers), lists)

        def apply_(self: Any, other: Any, *, alpha: Any = 1) -> None:
            lists = _lists(name, self, other)
            _write(chosen(other, alpha, write, write_numbers), lists)
    else:

        def apply(self: Any, other: Any) -> tuple[Any, ...]:  # type: ignore[misc]
            return _map(chosen(other, 1, function, for_numbers), _lists(name, self, other))

        def apply_(self: Any, other: Any) -> None:  # type: ignore[misc]
            _write(chosen(other, 1, write, write_numbers), _lists(name, self, other))

    _name(apply, name, f"Return `{name}` of each pair.")
    _name(apply_, name + "_", f"Replace each tensor of the first list by `{name}` of the pair.")


def _extreme_(of: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: a.copy_(of(a, b))


def _ternary(name: str) -> None:
    function, write = getattr(pt, name), getattr(Tensor, name + "_")

    def each(values: Any) -> Any:
        return values.tolist() if isinstance(values, Tensor) and values.dim() == 1 else values

    def call(op: Any, lists: tuple[Any, ...], value: Any) -> tuple[Any, tuple[Any, ...]]:
        """Return what to call and on which lists; numbers are given by name."""
        if isinstance(value, (list, tuple)):
            return (lambda x, y, z, number: op(x, y, z, value=number)), (*lists, value)
        return _call(op, ("value", value), 1), lists

    def apply(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, scalars: Any = None) -> Any:
        scale = each(value if scalars is None else scalars)
        lists = _lists(name, self, tensor1, tensor2, scale)
        return _map(*call(function, lists[:3], scale))

    def apply_(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, scalars: Any = None) -> None:
        scale = each(value if scalars is None else scalars)
        lists = _lists(name, self, tensor1, tensor2, scale)
        _write(*call(write, lists[:3], scale))

    _name(apply, name, f"Return `{name}` of each three tensors; a number for each may scale it.")
    _name(apply_, name + "_", f"Replace each tensor of the first list by `{name}` of the three.")


for _op in UNARY:
    _unary(_op)
for _op in ("add", "sub"):
    _binary(_op, alpha=True)
for _op in ("mul", "div"):
    _binary(_op)
for _op, _other in (("clamp_max", "clamp_max"), ("clamp_min", "clamp_min")):
    _binary(_op, _other)
for _op in ("addcmul", "addcdiv"):
    _ternary(_op)


def _largest(name: str, function: Callable[..., Any], number: Callable[..., Any]) -> None:
    def one(a: Any, b: Any) -> Any:
        return (function if isinstance(b, Tensor) else number)(a, b)

    def apply(self: Any, other: Any) -> tuple[Any, ...]:
        return _map(one, _lists(name, self, other))

    def apply_(self: Any, other: Any) -> None:
        _write(_extreme_(one), _lists(name, self, other))

    _name(apply, name, f"Return `{name}` of each pair.")
    _name(apply_, name + "_", f"Replace each tensor of the first list by `{name}` of the pair.")


_largest("maximum", pt.maximum, pt.clamp_min)
_largest("minimum", pt.minimum, pt.clamp_max)


def _foreach_zero_(self: Any) -> None:
    """Set each tensor to zero."""
    lists = _lists("zero_", self)
    if not _C._each_zero(self):
        _write(Tensor.zero_, lists)


def _foreach_pow(self: Any, exponent: Any) -> tuple[Any, ...]:
    """Return the power of each pair; the base may be one number."""
    if isinstance(self, (list, tuple)):
        return _map(pt.pow, _lists("pow", self, exponent))
    exponents, _ = _lists("pow", exponent, self)
    return tuple(pt.pow(self, exponent) for exponent in exponents)


def _foreach_pow_(self: Any, exponent: Any) -> None:
    """Replace each tensor by its power."""
    _write(Tensor.pow_, _lists("pow_", self, exponent))


def _foreach_lerp(self: Any, tensors1: Any, weight: Any) -> tuple[Any, ...]:
    """Return the points between each pair."""
    return _map(pt.lerp, _lists("lerp", self, tensors1, weight))


def _foreach_lerp_(self: Any, tensors1: Any, weight: Any) -> None:
    """Move each tensor of the first list towards the other of its pair."""
    _write(Tensor.lerp_, _lists("lerp_", self, tensors1, weight))


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> None:
    """Copy each tensor of the second list into the one of the first."""
    _write(Tensor.copy_, _lists("copy_", self, src))


def _foreach_clone(self: Any, *, memory_format: Any = None) -> tuple[Any, ...]:
    """Return a copy of each tensor."""
    (tensors,) = _lists("clone", self)
    return tuple(t.clone(memory_format=memory_format or pt.preserve_format) for t in tensors)


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Any, ...]:
    """Return the norm of all elements of each tensor."""
    lists = _lists("norm", self, ord)
    if dtype is None and len(self) > 1 and all(t._is_gpu for t in self):
        return tuple(norms(self, ord).unbind())
    norm = _call(pt.linalg.vector_norm, ("dtype", dtype), None)
    return _map(norm, lists)


def norms(tensors: Any, ord: float) -> Any:
    """Return the norm of each tensor as one tensor; on a GPU a kernel takes several."""
    return _C._list_norms(list(tensors), float(ord))


def scale_(tensors: Any, factor: Any) -> None:
    """Multiply tensors by one number in place; on a GPU a kernel takes several."""
    _C._list_scale_(list(tensors), factor)


def _foreach_powsum(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Any, ...]:
    """Return the sum of the magnitudes of each tensor's elements, each raised to a power."""
    (tensors,) = _lists("powsum", self)
    return tuple(t.abs().pow(ord).sum(dtype=dtype) for t in tensors)


def _foreach_max(self: Any) -> tuple[Any, ...]:
    """Return the largest element of each tensor."""
    return _map(pt.max, _lists("max", self))


def _foreach_mm(self: Any, mat2: Any) -> tuple[Any, ...]:
    """Return the matrix product of each pair."""
    return _map(pt.mm, _lists("mm", self, mat2))
