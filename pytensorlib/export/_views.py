"""Views of tensors, and what a tensor is once a view of it has a new value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["INVERSE", "VIEWS"]

VIEWS = frozenset(
    """alias chunk detach diagonal expand expand_as flatten movedim narrow numpy_T permute reshape
    select slice split split_with_sizes squeeze t transpose mT unbind unflatten unsqueeze view
    view_as swapaxes""".split()
)


def _reshaped(r: Any, base: Any, new: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
    return r("view", r("clone", new), list(r.__self__.sizes(base)))


def _slice(r: Any, base: Any, new: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
    return r("slice_scatter", base, new, *args, **kwargs)


def _select(r: Any, base: Any, new: Any, index: Any, dim: int, place: Any) -> Any:
    return r("select_scatter", base, new, dim, place)


def _permute(r: Any, base: Any, new: Any, index: Any, dims: Any) -> Any:
    order = [d % base.dim() for d in dims]
    return r("permute", new, [order.index(d) for d in range(base.dim())])


def _transpose(r: Any, base: Any, new: Any, index: Any, a: int = -1, b: int = -2) -> Any:
    return r("transpose", new, a, b)


def _unbind(r: Any, base: Any, new: Any, index: Any, dim: int = 0) -> Any:
    return r("select_scatter", base, new, dim, index)


def _split(r: Any, base: Any, new: Any, index: Any, size: Any, dim: int = 0) -> Any:
    step = size if isinstance(size, int) else None
    start = index * step if step is not None else sum(size[:index])
    stop = start + new.size(dim)
    return r("slice_scatter", base, new, dim, start, stop)


def _chunk(r: Any, base: Any, new: Any, index: Any, chunks: int, dim: int = 0) -> Any:
    return _split(r, base, new, index, -(-base.size(dim) // chunks), dim)


def _whole(r: Any, base: Any, new: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
    return new


def _narrow(r: Any, base: Any, new: Any, index: Any, dim: int, start: Any, length: Any) -> Any:
    return r("slice_scatter", base, new, dim, start, start + length)


INVERSE: dict[str, Callable[..., Any]] = {
    "alias": _whole, "chunk": _chunk, "detach": _whole, "flatten": _reshaped, "mT": _transpose,
    "narrow": _narrow, "permute": _permute, "reshape": _reshaped, "select": _select,
    "slice": _slice, "split": _split, "split_with_sizes": _split, "squeeze": _reshaped,
    "t": _transpose, "transpose": _transpose, "unbind": _unbind, "unflatten": _reshaped,
    "unsqueeze": _reshaped, "view": _reshaped,
}  # fmt: skip
