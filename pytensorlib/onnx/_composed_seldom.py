"""Composed rows of statistics, losses and places that few models use."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytensorlib as pt

from ._composed import composed, is_tensor
from ._graph import TYPES
from ._rows import row


def _flat(t: Any, x: Any) -> Any:
    return t.reshape(x, [-1])


# Order.


def _quantile(t: Any, x: Any, q: Any, dim: Any, keepdim: bool, how: str, skip: bool) -> Any:
    """Return quantiles along a dimension; those of several numbers come first."""
    rank = x.rank
    if dim is None:
        x, at = _flat(t, x), 0
    else:
        at = dim % max(rank, 1)
    n = t.size(x, at)
    empty = t.isnan(x)
    ordered = t.sort(t.where(empty, t.full_like(x, math.inf), x), at)[0]
    numbers = t.sum(t.to(t.logical_not(empty), x.dtype), [at], True)  # along which there are n
    qs = _flat(t, t.to(q, x.dtype)) if is_tensor(q) else t.constant([float(q)], x.dtype)
    row_ = t.reshape(qs, [1] * at + [-1] + [1] * (x.rank - at - 1))
    place = t.mul(t.clamp(t.sub(numbers, 1.0), 0.0, None), row_)
    low, high = t.floor(place), t.ceil(place)
    if how == "lower":
        high = low
    elif how == "higher":
        low = high
    elif how == "nearest":
        low = high = t.round(place)
    share = t.full_like(place, 0.5) if how == "midpoint" else t.sub(place, low)
    sizes = [t.size(qs, 0) if d == at else -1 for d in range(x.rank)]
    whole = [t.size(x, d) if d != at else s for d, s in enumerate(sizes)]
    below, above = (t.gather(ordered, at, t.to(t.expand(v, whole), pt.int64)) for v in (low, high))
    made = below
    if how in ("linear", "midpoint"):
        made = t.where(t.eq(low, high), below, t.add(below, t.mul(t.sub(above, below), share)))
    lost = t.eq(numbers, 0.0) if skip else t.lt(numbers, float(n))
    made = t.where(lost, t.full_like(made, math.nan), made)
    if is_tensor(q) and q.rank:
        made = t.movedim(made, at, 0)
        if dim is None:
            return t.reshape(made, [-1] + [1] * rank) if keepdim else _flat(t, made)
        return t.unsqueeze(made, at + 1) if keepdim else made
    if dim is None:
        return t.reshape(made, [1] * rank if keepdim else [])
    return made if keepdim else t.squeeze(made, at)


@composed("quantile")
def _quantiles(
    t: Any, x: Any, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear"
) -> Any:
    return _quantile(t, x, q, dim, keepdim, interpolation, False)


@composed("nanquantile")
def _nanquantiles(
    t: Any, x: Any, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear"
) -> Any:
    return _quantile(t, x, q, dim, keepdim, interpolation, True)


@composed("nanmedian")
def _nanmedian(t: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        made = _nanmedian(t, _flat(t, x), 0)[0]
        return t.reshape(made, [])
    empty = t.isnan(x)
    ordered, places = t.sort(t.where(empty, t.full_like(x, math.inf), x), dim)
    count = t.sum(t.to(t.logical_not(empty), pt.float32), [dim], True)
    middle = t.to(t.floor(t.mul(t.clamp(t.sub(count, 1.0), 0.0, None), 0.5)), pt.int64)
    value, place = t.gather(ordered, dim, middle), t.gather(places, dim, middle)
    value = t.where(t.eq(count, 0.0), t.full_like(value, math.nan), value)
    return [value, place] if keepdim else [t.squeeze(value, dim), t.squeeze(place, dim)]


@composed("mode")
def _mode(t: Any, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    dim %= max(x.rank, 1)
    n = t.size(x, dim)
    # How often each element is there, and of the most frequent the smallest.
    rows = t.movedim(x, dim, -1)
    same = t.eq(t.unsqueeze(rows, -1), t.unsqueeze(rows, -2))
    often = t.sum(t.to(same, pt.int64), [-1])
    best = t.eq(often, t.amax(often, [-1], True))
    info = pt.finfo(x.dtype) if x.dtype.is_floating_point else pt.iinfo(x.dtype)
    value = t.amin(t.where(best, rows, t.full_like(rows, info.max)), [-1], True)
    place = t.amax(
        t.mul(t.to(t.eq(rows, value), pt.int64), t.constant(list(range(n)), pt.int64)), [-1], True
    )
    made = [t.movedim(v, -1, dim) for v in (value, place)]
    return made if keepdim else [t.squeeze(v, dim) for v in made]


@composed("histc")
def _histc(t: Any, x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:  # noqa: A002
    x = _flat(t, x)
    if min == max == 0:
        low, high = t.amin(x, [0]), t.amax(x, [0])
        same = t.to(t.eq(low, high), x.dtype)
        low, high = t.sub(low, same), t.add(high, same)
    else:
        if min == max:
            min, max = min - 1, max + 1  # noqa: A001
        low, high = t.constant(float(min), x.dtype), t.constant(float(max), x.dtype)
    inside = t.logical_and(t.ge(x, low), t.le(x, high))
    bin_ = t.floor(t.mul(t.div(t.sub(x, low), t.sub(high, low)), float(bins)))
    bin_ = t.where(inside, t.clamp(bin_, 0, bins - 1), t.full_like(bin_, -1.0))
    numbers = t.constant([float(i) for i in range(bins)], x.dtype)
    return t.sum(t.to(t.eq(t.unsqueeze(bin_, -1), numbers), x.dtype), [0])


_OF_NOTHING = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


@composed("segment_reduce")
def _segment_reduce(
    t: Any, x: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None,
    axis: int = 0, unsafe: bool = False, initial: Any = None,
) -> Any:  # fmt: skip
    if indices is not None or not x.dtype.is_floating_point:
        raise t.c.error(t.c.at, "its segments are given by indices, or it is of whole numbers")
    if lengths is not None:
        stops = t.cumsum(lengths, axis)
        starts = t.sub(stops, lengths)
    else:
        n = t.size(offsets, axis) - 1
        starts, stops = t.narrow(offsets, axis, 0, n), t.narrow(offsets, axis, 1, n)
    places = t.constant(list(range(t.size(x, axis))), pt.int64)
    starts, stops = t.unsqueeze(starts, -1), t.unsqueeze(stops, -1)
    inside = t.logical_and(t.ge(places, starts), t.lt(places, stops))
    for _ in range(x.rank - axis - 1):
        inside = t.unsqueeze(inside, -1)
    nothing = t.constant(_OF_NOTHING[reduce], x.dtype)
    each = t.where(inside, t.unsqueeze(x, axis), nothing)
    if reduce == "prod":
        made = t.prod(each, axis + 1)
    else:
        made = {"max": t.amax, "min": t.amin}.get(reduce, t.sum)(each, [axis + 1])
    if initial is not None:
        kind = {"max": t.maximum, "min": t.minimum, "prod": t.mul}.get(reduce, t.add)
        made = kind(made, t.full_like(made, float(initial)))
    if reduce != "mean":
        return made
    count = t.sum(t.to(inside, x.dtype), [axis + 1])
    made = t.div(made, t.clamp(count, 1.0, None))
    lost = t.eq(t.add(count, t.zeros_like(made)), 0.0)
    return made if initial is not None else t.where(lost, t.full_like(made, math.nan), made)


# Places.


def _picked(x: Any, t: Any, size: Any, stride: Any, offset: Any) -> list[int]:
    """Return where in the memory of a tensor the elements of a strided view are."""
    node = t.c.at.args[0]
    known = node.meta["val"]
    strides = list(itertools.accumulate([1, *t.sizes(x)[:0:-1]], lambda a, b: a * b))[::-1]
    if x.value.base is not None or ([*known.stride()] != strides[-x.rank :] and x.rank):
        raise t.c.error(t.c.at, "its tensor is a view")
    counts = itertools.product(*(range(s) for s in size))
    start = offset or 0
    return [start + sum(i * s for i, s in zip(at, stride, strict=True)) for at in counts]


@composed("as_strided")
def _as_strided(t: Any, x: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    places = _picked(x, t, size, stride, storage_offset)
    return t.reshape(t.index_select(_flat(t, x), 0, t.constant(places, pt.int64)), list(size))


@composed("as_strided_scatter")
def _as_strided_scatter(
    t: Any, x: Any, src: Any, size: Any, stride: Any, storage_offset: Any = None
) -> Any:
    places = t.constant(_picked(x, t, size, stride, storage_offset), pt.int64)
    return t.reshape(t.scatter(_flat(t, x), 0, places, _flat(t, src)), t.sizes(x))


@composed("combinations")
def _combinations(t: Any, x: Any, r: int = 2, with_replacement: bool = False) -> Any:
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(t.size(x, 0)), r))
    if not rows:
        raise t.c.error(t.c.at, "there are no combinations")
    flat = t.constant([i for found in rows for i in found], pt.int64)
    return t.reshape(t.index_select(x, 0, flat), [len(rows), r])


@composed("put")
def _put(t: Any, x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    n = math.prod(t.sizes(x))
    places = _flat(t, index)
    places = t.where(t.lt(places, 0), t.add(places, n), places)
    write = t.scatter_add if accumulate else t.scatter
    return t.reshape(write(_flat(t, x), 0, places, _flat(t, source)), t.sizes(x))


@composed("unravel_index")
def _unravel(t: Any, index: Any, shape: Any) -> Any:
    found, rest = [], index
    for n in reversed(shape):
        found.append(t.remainder(rest, n))
        rest = t.floor_divide(rest, n)
    return found[::-1]


@composed("bitwise_right_shift", "__rshift__")
def _right_shift(t: Any, x: Any, n: Any) -> Any:
    if is_tensor(n):
        raise t.c.error(t.c.at, "the number of bits is a tensor")
    return t.floor_divide(x, 2**n)


@composed("gradient")
def _gradient(t: Any, x: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    dims = list(range(x.rank)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    steps = (
        spacing if isinstance(spacing, list) else [1.0 if spacing is None else spacing] * len(dims)
    )
    if any(is_tensor(s) for s in steps):
        raise t.c.error(t.c.at, "coordinates are given")
    return [
        _slope(t, x, d % x.rank, float(h), edge_order) for d, h in zip(dims, steps, strict=True)
    ]


def _slope(t: Any, x: Any, d: int, h: float, order: int) -> Any:
    n = t.size(x, d)

    def part(i: int, length: int = 1) -> Any:
        return t.narrow(x, d, i, length)

    inside = t.mul(t.sub(part(2, n - 2), part(0, n - 2)), 0.5 / h) if n > 2 else None
    if order == 1:
        first = t.mul(t.sub(part(1), part(0)), 1 / h)
        last = t.mul(t.sub(part(n - 1), part(n - 2)), 1 / h)
    else:
        first = t.sub(t.mul(part(1), 2.0), t.add(t.mul(part(0), 1.5), t.mul(part(2), 0.5)))
        last = t.add(t.mul(part(n - 1), 1.5), t.mul(part(n - 3), 0.5))
        last = t.sub(last, t.mul(part(n - 2), 2.0))
        first, last = t.mul(first, 1 / h), t.mul(last, 1 / h)
    return t.cat([first, last] if inside is None else [first, inside, last], d)


@row("nonzero_static")
def _nonzero_static(c: Any, x: Any, *, size: int, fill_value: int = -1) -> Any:
    zero = c.constant(0, x.dtype) if x.dtype is not pt.bool else None
    found = c.op("NonZero", x if zero is None else c.op("Not", c.op("Equal", x, zero)))
    rest = c.constant([[fill_value] * x.rank] * size)
    rows = c.op("Concat", c.op("Transpose", found, perm=[1, 0]), rest, axis=0)
    return c.op("Slice", rows, c.ints([0]), c.ints([size]), c.ints([0]))


@row("unique_consecutive")
def _unique_consecutive(
    c: Any, x: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    if dim is not None and x.rank > 1:
        raise c.error(c.at, "it is asked for along a dimension")
    flat = c.op("Reshape", x, c.ints([-1]))
    end = c.constant([2**62])
    after = c.op("Slice", flat, c.ints([1]), end, c.ints([0]))
    before = c.op("Slice", flat, c.ints([0]), c.ints([-1]), c.ints([0]))
    new = c.op("Not", c.op("Equal", after, before))
    first = c.op(
        "Slice",
        c.op("Expand", c.constant([True], pt.bool), c.op("Shape", flat)),
        c.ints([0]),
        c.ints([1]),
        c.ints([0]),
    )
    new = c.op("Concat", first, new, axis=0)
    values = c.op("Compress", flat, new, axis=0)
    number = c.op("CumSum", c.op("Cast", new, to=TYPES[pt.int64]), c.constant(0))
    inverse = c.op("Reshape", c.op("Sub", number, c.constant(1)), c.op("Shape", x))
    starts = c.op("Reshape", c.op("NonZero", new), c.ints([-1]))
    stops = c.op(
        "Concat", c.op("Slice", starts, c.ints([1]), end, c.ints([0])), c.op("Shape", flat), axis=0
    )
    none = c.constant([])
    return [
        values,
        inverse if return_inverse else none,
        c.op("Sub", stops, starts) if return_counts else none,
    ]


# Losses and layers.


def _reduced(t: Any, x: Any, reduction: int) -> Any:
    return x if reduction == 0 else (t.mean if reduction == 1 else t.sum)(x)


@composed("multi_margin_loss")
def _multi_margin(
    t: Any, x: Any, target: Any, p: Any = 1, margin: float = 1.0, weight: Any = None,
    reduction: int = 1,
) -> Any:  # fmt: skip
    single = x.rank == 1
    if single:
        x = t.unsqueeze(x, 0)
    places = t.reshape(target, [-1, 1])
    n = t.size(x, 1)
    own = t.gather(x, 1, places)
    each = t.relu(t.add(t.sub(x, own), float(margin)))
    each = each if p == 1 else t.mul(each, each)
    if weight is not None:
        each = t.mul(each, t.reshape(t.index_select(weight, 0, _flat(t, target)), [-1, 1]))
    others = t.ne(t.constant([list(range(n))], pt.int64), places)
    made = t.mul(t.sum(t.mul(each, t.to(others, x.dtype)), [1]), 1 / n)
    if single and reduction == 0:
        return t.reshape(made, [])
    return _reduced(t, made, reduction)


@composed("multilabel_margin_loss")
def _multilabel_margin(t: Any, x: Any, target: Any, reduction: int = 1) -> Any:
    single = x.rank == 1
    if single:
        x, target = t.unsqueeze(x, 0), t.unsqueeze(target, 0)
    n = t.size(x, 1)
    # Labels end where the first is negative.
    valid = t.eq(t.cumsum(t.to(t.lt(target, 0), pt.int64), 1), 0)
    own = t.gather(x, 1, t.where(valid, target, t.zeros_like(target)))
    numbers = t.constant(list(range(n)), pt.int64)
    hits = t.logical_and(t.eq(t.unsqueeze(target, -1), numbers), t.unsqueeze(valid, -1))
    other = t.eq(t.sum(t.to(hits, pt.int64), [1]), 0)
    each = t.relu(t.add(t.sub(t.unsqueeze(x, 1), t.unsqueeze(own, 2)), 1.0))
    counted = t.logical_and(t.unsqueeze(valid, 2), t.unsqueeze(other, 1))
    made = t.mul(t.sum(t.mul(each, t.to(counted, x.dtype)), [1, 2]), 1 / n)
    if single and reduction == 0:
        return t.reshape(made, [])
    return _reduced(t, made, reduction)


@composed("pdist")
def _pdist(t: Any, x: Any, p: float = 2.0) -> Any:
    pairs = list(itertools.combinations(range(t.size(x, 0)), 2))
    if not pairs:
        raise t.c.error(t.c.at, "there is one row")
    a, b = (t.index_select(x, 0, t.constant([pair[i] for pair in pairs], pt.int64)) for i in (0, 1))
    return t.linalg_vector_norm(t.sub(a, b), p, [-1])


@composed("conv_tbc")
def _conv_tbc(t: Any, x: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    made = t.conv1d(t.permute(x, [1, 2, 0]), t.permute(weight, [2, 1, 0]), bias, [1], [pad])
    return t.permute(made, [2, 0, 1])


@composed("fake_quantize_per_channel_affine")
def _fake_quantize(
    t: Any, x: Any, scale: Any, zero: Any, axis: int, quant_min: int, quant_max: int
) -> Any:
    shape = [-1 if d == axis % x.rank else 1 for d in range(x.rank)]
    scale, zero = t.reshape(scale, shape), t.reshape(t.to(zero, x.dtype), shape)
    placed = t.clamp(t.add(t.round(t.div(x, scale)), zero), quant_min, quant_max)
    return t.mul(t.sub(placed, zero), scale)
