"""Composed rows of operators that move, order and count elements."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytensorlib as pt

from ._composed import composed, is_tensor


@composed("adjoint")
def _adjoint(t: Any, x: Any) -> Any:
    return t.transpose(x, -2, -1)


@composed("conj_physical", "resolve_conj", "resolve_neg", "real")
def _same(t: Any, x: Any) -> Any:
    return t.clone(x)


@composed("ravel")
def _ravel(t: Any, x: Any) -> Any:
    return t.reshape(x, [-1])


@composed("broadcast_to")
def _broadcast_to(t: Any, x: Any, size: Any) -> Any:
    return t.expand(x, size)


@composed("broadcast_tensors")
def _broadcast_tensors(t: Any, *given: Any) -> Any:
    tensors = given[0] if isinstance(given[0], list) else given
    shape = pt.broadcast_shapes(*([t.size(x, d) for d in range(x.rank)] for x in tensors))
    return [t.expand(x, list(shape)) for x in tensors]


@composed("atleast_1d", "atleast_2d", "atleast_3d")
def _atleast(t: Any, x: Any) -> Any:
    n = int(str(t.c.at.target).split("atleast_")[1][0])
    if isinstance(x, list):
        return [_to_rank(t, v, n) for v in x]
    return _to_rank(t, x, n)


def _to_rank(t: Any, x: Any, n: int) -> Any:
    if x.rank == 0:
        return t.reshape(x, [1] * n)
    if n > 1 and x.rank == 1:
        x = t.unsqueeze(x, 0)
    return t.unsqueeze(x, -1) if n == 3 and x.rank == 2 else t.clone(x)


@composed("fliplr", "flipud")
def _flipped(t: Any, x: Any) -> Any:
    return t.flip(x, [1 if "fliplr" in str(t.c.at.target) else 0])


@composed("rot90")
def _rot90(t: Any, x: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    a, b = (d % x.rank for d in dims)
    if k % 4 == 2:
        return t.flip(x, [a, b])
    if k % 4 == 0:
        return t.clone(x)
    turned = t.transpose(x, a, b)
    return t.flip(turned, [a if k % 4 == 1 else b])


@composed("msort")
def _msort(t: Any, x: Any) -> Any:
    return t.sort(x, 0)[0]


@composed("kthvalue")
def _kthvalue(t: Any, x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    found = [t.narrow(part, dim, k - 1, 1) for part in t.topk(x, k, dim, False)]
    return found if keepdim else [t.squeeze(part, dim) for part in found]


@composed("median")
def _median(t: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        x = t.reshape(x, [-1])
        return _kthvalue(t, x, (math.prod(t.sizes(x)) + 1) // 2)[0]
    return _kthvalue(t, x, (t.size(x, dim) + 1) // 2, dim, keepdim)


@composed("linalg_diagonal")
def _linalg_diagonal(t: Any, x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    return t.diagonal(x, offset, dim1, dim2)


@composed("isin")
def _isin(t: Any, x: Any, among: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    if not is_tensor(among):
        found = t.eq(x, among)
    elif not is_tensor(x):
        found = t.any(t.eq(among, x))
    else:
        found = t.any(t.eq(t.unsqueeze(x, -1), t.reshape(among, [-1])), -1)
    return t.logical_not(found) if invert else found


@composed("nansum")
def _nansum(t: Any, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    kept = t.where(t.isnan(x), t.zeros_like(x), x)
    return t.sum(kept, _all(x, dim), keepdim)


@composed("nanmean")
def _nanmean(t: Any, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    counted = t.to(t.logical_not(t.isnan(x)), x.dtype)
    return t.div(_nansum(t, x, dim, keepdim), t.sum(counted, _all(x, dim), keepdim))


def _all(x: Any, dim: Any) -> Any:
    if dim is None:
        return list(range(x.rank))
    return dim if isinstance(dim, list) else [dim]


@composed("trapezoid", "trapz")
def _trapezoid(t: Any, y: Any, x: Any = None, dim: int = -1, dx: Any = 1) -> Any:
    steps = (x if is_tensor(x) else None), dx
    return t.sum(_strips(t, y, steps, dim % y.rank), [dim])


@composed("cumulative_trapezoid")
def _cumulative(t: Any, y: Any, x: Any = None, dim: int = -1, dx: Any = 1) -> Any:
    steps = (x if is_tensor(x) else None), dx
    return t.cumsum(_strips(t, y, steps, dim % y.rank), dim)


def _strips(t: Any, y: Any, steps: Any, dim: int) -> Any:
    x, dx = steps

    def both(v: Any, d: int) -> Any:
        n = t.size(v, d)
        return t.narrow(v, d, 1, n - 1), t.narrow(v, d, 0, n - 1)

    total = t.add(*both(y, dim))
    if x is None:
        return t.mul(total, dx / 2)
    width = t.sub(*both(x, x.rank - 1 if x.rank == 1 else dim))
    if x.rank == 1:
        width = t.reshape(width, [-1] + [1] * (y.rank - 1 - dim))
    return t.mul(t.mul(total, width), 0.5)


@composed("take")
def _take(t: Any, x: Any, index: Any) -> Any:
    found = t.index_select(t.reshape(x, [-1]), 0, t.reshape(index, [-1]))
    return t.reshape(found, t.sizes(index))


@composed("tensor_split", "hsplit", "vsplit", "dsplit")
def _split_at(t: Any, x: Any, where: Any, dim: int = 0) -> Any:
    name = str(t.c.at.target)
    if "tensor_split" not in name:
        dim = {"h": 0 if x.rank == 1 else 1, "v": 0, "d": 2}[name.split("split", maxsplit=1)[0][-1]]
    n = t.size(x, dim)
    if isinstance(where, int):
        small, more = divmod(n, where)
        where = [i * small + min(i, more) for i in range(1, where)]
    elif not isinstance(where, list):
        raise t.c.error(t.c.at, "where it splits is a tensor")
    ends = [0, *(min(max(w + n if w < 0 else w, 0), n) for w in where), n]
    return [t.narrow(x, dim, a, max(b - a, 0)) for a, b in itertools.pairwise(ends)]


@composed("sum_to_size")
def _sum_to_size(t: Any, x: Any, size: Any) -> Any:
    extra = x.rank - len(size)
    dims = [*range(extra), *(i + extra for i, n in enumerate(size) if n == 1)]
    made = t.sum(x, dims, True) if dims else x
    return t.reshape(made, list(size))


@composed("pad_sequence")
def _pad_sequence(
    t: Any, tensors: Any, batch_first: bool = False, padding_value: float = 0.0, side: str = "right"
) -> Any:
    most = max(t.size(x, 0) for x in tensors)
    rows = []
    for x in tensors:
        more = most - t.size(x, 0)
        ends = [more, 0] if side == "left" else [0, more]
        rows.append(t.constant_pad_nd(x, [0, 0] * (x.rank - 1) + ends, padding_value))
    return t.stack(rows, 0 if batch_first else 1)


@composed("native_channel_shuffle")
def _shuffle(t: Any, x: Any, groups: int) -> Any:
    n, channels, *rest = t.sizes(x)
    parts = t.reshape(x, [n, groups, channels // groups, *rest])
    return t.reshape(t.transpose(parts, 1, 2), [n, channels, *rest])


@composed("slice_copy")
def _slice_copy(
    t: Any, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    return t.slice(x, dim, start, end, step)


@composed("isreal")
def _isreal(t: Any, x: Any) -> Any:
    return t.ones_like(x, dtype=pt.bool)


@composed("cumprod")
def _cumprod(t: Any, x: Any, dim: int, dtype: Any = None) -> Any:
    return t.prod(_earlier(t, x, dim, 1), dim % x.rank + 1)


@composed("cummax", "cummin")
def _cumulative_extreme(t: Any, x: Any, dim: int) -> Any:
    largest = "cummax" in str(t.c.at.target)
    table = _earlier(t, x, dim, -math.inf if largest else math.inf)
    # The last of equals: they are counted from the end.
    at, n = dim % x.rank + 1, t.size(x, dim)
    extreme = t.max if largest else t.min
    values, places = extreme(t.flip(table, [at]), at)
    return [values, t.rsub(places, n - 1)]


@composed("logcumsumexp")
def _logcumsumexp(t: Any, x: Any, dim: int) -> Any:
    return t.logsumexp(_earlier(t, x, dim, -math.inf), [dim % x.rank + 1])


def _earlier(t: Any, x: Any, dim: int, other: float) -> Any:
    """Return for each place of a dimension the elements up to there, and another for the rest."""
    if not x.dtype.is_floating_point:
        raise t.c.error(t.c.at, "its elements are integers")
    dim %= x.rank
    n = t.size(x, dim)
    table = t.expand(t.unsqueeze(x, dim), [*[-1] * dim, n, n, *[-1] * (x.rank - dim - 1)])
    earlier = t.constant([[j <= i for j in range(n)] for i in range(n)], pt.bool)
    kept = t.reshape(earlier, [n, n] + [1] * (x.rank - dim - 1))
    return t.where(kept, table, t.constant(other, x.dtype))


@composed("block_diag")
def _block_diag(t: Any, *given: Any) -> Any:
    tensors = given[0] if isinstance(given[0], list) else given
    blocks = [t.reshape(x, [1] * (2 - x.rank) + t.sizes(x)) for x in tensors]
    widths = [t.size(x, 1) for x in blocks]
    rows = [
        t.constant_pad_nd(x, [sum(widths[:i]), sum(widths[i + 1 :])], 0)
        for i, x in enumerate(blocks)
    ]
    return t.cat(rows, 0)


@composed("cartesian_prod")
def _cartesian(t: Any, *given: Any) -> Any:
    tensors = given[0] if isinstance(given[0], list) else given
    if len(tensors) == 1:
        return t.clone(tensors[0])
    return t.stack([t.reshape(x, [-1]) for x in t.meshgrid(list(tensors), indexing="ij")], 1)


@composed("max_unpool2d", "max_unpool3d")
def _max_unpool(t: Any, x: Any, places: Any, size: Any, *rest: Any) -> Any:
    n = 3 if "3d" in str(t.c.at.target) else 2
    lead = [t.size(x, d) for d in range(x.rank - n)]
    flat = t.expand(t.constant(0.0, x.dtype), [*lead, math.prod(size)])
    rows = t.reshape(x, [*lead, -1]), t.reshape(places, [*lead, -1])
    return t.reshape(t.scatter(flat, -1, rows[1], rows[0]), [*lead, *size])
