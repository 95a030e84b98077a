"""Rows of operators that put elements in places: diagonals, masks, groups."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ._composed import composed
from ._graph import TYPES
from ._layout import wide
from ._rows import row


def _rows_of(t: Any, values: Any, n: int, start: int, mask: Any) -> Any:
    """Return values as a column each of whose rows is where the mask has it."""
    length = t.size(values, -1)
    padded = t.constant_pad_nd(values, [start, n - start - length], 0)
    return t.unsqueeze(padded, -1)


def _mask(t: Any, rows: int, columns: int, offset: int) -> Any:
    return t.constant([[j - i == offset for j in range(columns)] for i in range(rows)], pt.bool)


def _placed(t: Any, x: Any, dim1: int, dim2: int) -> Any:
    """Return the last two dimensions in their places."""
    a, b = dim1 % x.rank, dim2 % x.rank
    order = list(range(x.rank - 2))
    for place, d in sorted(((a, x.rank - 2), (b, x.rank - 1))):
        order.insert(place, d)
    return t.permute(x, order)


@composed("diag_embed")
def _diag_embed(t: Any, x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    n = t.size(x, -1) + abs(offset)
    mask = _mask(t, n, n, offset)
    column = _rows_of(t, x, n, max(0, -offset), mask)
    made = t.where(mask, column, t.zeros_like(column))
    return _placed(t, made, dim1, dim2)


@composed("diag")
def _diag(t: Any, x: Any, diagonal: int = 0) -> Any:
    return _diag_embed(t, x, diagonal) if x.rank == 1 else t.diagonal(x, diagonal)


@composed("diagflat")
def _diagflat(t: Any, x: Any, offset: int = 0) -> Any:
    return _diag_embed(t, t.reshape(x, [-1]), offset)


@composed("diagonal_scatter")
def _diagonal_scatter(
    t: Any, x: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Any:
    a, b = dim1 % x.rank, dim2 % x.rank
    rest = [d for d in range(x.rank) if d not in (a, b)]
    moved = t.permute(x, [*rest, a, b])
    rows, columns = t.size(x, a), t.size(x, b)
    mask = _mask(t, rows, columns, offset)
    column = _rows_of(t, src, rows, max(0, -offset), mask)
    return _placed(t, t.where(mask, column, moved), dim1, dim2)


@composed("fill_diagonal")
def _fill_diagonal(t: Any, x: Any, value: Any, wrap: bool = False) -> Any:
    if x.rank != 2:
        raise t.c.error(t.c.at, "the tensor is no matrix")
    rows, columns = t.sizes(x)
    # Below a square the diagonal begins again, after an empty row.
    turns = columns + 1 if wrap else rows + columns
    ones = [[i % turns == j for j in range(columns)] for i in range(rows)]
    return t.masked_fill(x, t.constant(ones, pt.bool), value)


@composed("renorm")
def _renorm(t: Any, x: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    others = [d for d in range(x.rank) if d != dim % x.rank]
    norms = t.linalg_vector_norm(x, p, others, True)
    shrunk = t.mul(t.reciprocal(t.add(norms, 1e-7)), maxnorm)
    return t.mul(x, t.where(t.gt(norms, maxnorm), shrunk, t.ones_like(norms)))


@row("masked_scatter")
def _masked_scatter(c: Any, x: Any, mask: Any, source: Any) -> Any:
    shape, flat = c.op("Shape", x), c.constant([-1])
    where = c.op("Expand", mask, shape)
    ones = c.op("Cast", c.op("Reshape", where, flat), to=TYPES[pt.int64])
    count = c.op("Sub", c.op("CumSum", ones, c.constant(0)), c.constant(1))
    place = c.op("Max", count, c.constant(0))
    taken = c.op("Gather", c.op("Reshape", source, flat), place)
    return c.op("Where", where, c.op("Reshape", taken, shape), x)


def repeated(c: Any, x: Any, repeats: Any, dim: Any) -> Any:
    """Return elements, each as often as a tensor says."""
    if dim is None:
        x, dim, rank = c.op("Reshape", x, c.constant([-1])), 0, 1
    else:
        rank = x.rank
    ends = c.op("CumSum", wide(c, repeats), c.constant(0))
    total = c.op("ReduceSum", wide(c, repeats), c.constant([0]), keepdims=0)
    turns = c.op("Range", c.constant(0), total, c.constant(1))
    past = c.op(
        "GreaterOrEqual", c.op("Unsqueeze", turns, c.constant([1])),
        c.op("Unsqueeze", ends, c.constant([0])),
    )  # fmt: skip
    counted = c.op("Cast", past, to=TYPES[pt.int64])
    place = c.op("ReduceSum", counted, c.constant([1]), keepdims=0)
    return c.op("Gather", x, place, axis=dim % rank)


_START = {"prod": 1.0, "amax": float("-inf"), "amin": float("inf")}


@composed("scatter_reduce")
def _scatter_reduce(
    t: Any, x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True
) -> Any:
    c = t.c
    for d in range(src.rank):
        if src.value.known(d) is None or src.value.known(d) != index.value.known(d):
            src = t.narrow(src, d, 0, t.size(index, d))
    kind = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}[reduce]

    def scattered(start: Any, values: Any, how: str) -> Any:
        places = wide(c, index.value)
        axis = dim % x.rank
        made = c.op("ScatterElements", start.value, places, values.value, axis=axis, reduction=how)
        return t._made(made, start.examples)

    counts = None
    if not include_self or reduce == "mean":
        counts = scattered(t.zeros_like(x), t.ones_like(src), "add")
    start = x
    if not include_self:
        if reduce in ("amax", "amin") and not x.dtype.is_floating_point:
            raise c.error(c.at, "an extreme of integers without include_self")
        fresh = t.full_like(x, _START.get(reduce, 0))
        start = t.where(t.gt(counts, 0), fresh, x)
    made = scattered(start, src, kind)
    if reduce != "mean":
        return made
    if include_self:
        counts = t.add(counts, 1)
    rounding = None if x.dtype.is_floating_point else "floor"
    return t.div(made, t.clamp(counts, 1), rounding_mode=rounding)


@composed("index_reduce")
def _index_reduce(
    t: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    dim %= x.rank
    shape = [t.size(index, 0) if d == dim else 1 for d in range(x.rank)]
    places = t.expand(t.reshape(index, shape), t.sizes(source))
    return _scatter_reduce(t, x, dim, places, source, reduce, include_self)
