"""ONNX for operators that move elements: views, joins, indices."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ._graph import TYPES, Value
from ._rows import inverse, row


def _places(dim: int, rank: int) -> int:
    return dim % rank if rank else 0


@row("view", "reshape", "_unsafe_view")
def _view(c: Any, x: Any, *shape: Any) -> Any:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], list) else list(shape)
    if isinstance(sizes, pt.dtype):
        raise c.error(c.at, "it reads memory as another type")
    if sum(isinstance(s, str) for s in sizes) == 1 and -1 not in sizes:
        sizes = [-1 if isinstance(s, str) else s for s in sizes]  # what is open is the rest
    return c.op("Reshape", x, c.ints(sizes), allowzero=1 if 0 in sizes else None)


@row("view_as", "reshape_as")
def _view_as(c: Any, x: Any, other: Any) -> Any:
    return c.op("Reshape", x, c.op("Shape", other))


@row("flatten")
def _flatten(c: Any, x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    if x.rank == 0:
        return c.op("Reshape", x, c.ints([1]))
    first, last = start_dim % x.rank, end_dim % x.rank
    if first == last:
        return c.op("Identity", x)
    kept = [x.known(d) for d in (*range(first), *range(last + 1, x.rank))]
    if all(k is not None for k in kept):
        return c.op("Reshape", x, c.ints([*kept[:first], -1, *kept[first:]]))
    return c.op(
        "Reshape",
        x,
        c.ints(
            [
                *(c.size(x, d) for d in range(first)),
                -1,
                *(c.size(x, d) for d in range(last + 1, x.rank)),
            ]
        ),
    )


@row("unflatten")
def _unflatten(c: Any, x: Any, dim: int, sizes: Any) -> Any:
    dim %= x.rank
    shape = [*(c.size(x, d) for d in range(dim)), *sizes]
    return c.op("Reshape", x, c.ints([*shape, *(c.size(x, d) for d in range(dim + 1, x.rank))]))


@inverse("view", "reshape", "_unsafe_view", "view_as", "reshape_as", "flatten", "unflatten",
         "squeeze", "unsqueeze", "alias", "detach")  # fmt: skip
def _unview(c: Any, base: Any, new: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
    return c.op("Reshape", new, c.op("Shape", base))


@row("permute")
def _permute(c: Any, x: Any, *dims: Any) -> Any:
    order = dims[0] if len(dims) == 1 and isinstance(dims[0], list) else dims
    return c.op("Transpose", x, perm=[d % x.rank for d in order])


@inverse("permute")
def _unpermute(c: Any, base: Any, new: Any, index: Any, *dims: Any) -> Any:
    order = dims[0] if len(dims) == 1 and isinstance(dims[0], list) else dims
    order = [d % base.rank for d in order]
    return c.op("Transpose", new, perm=[order.index(d) for d in range(base.rank)])


def swapped(rank: int, a: int, b: int) -> list[int]:
    """Return the order of dimensions with two of them exchanged."""
    order = list(range(rank))
    order[a], order[b] = order[b], order[a]
    return order


@row("transpose", "swapaxes", "swapdims")
def _transpose(c: Any, x: Any, a: int, b: int) -> Any:
    return c.op("Transpose", x, perm=swapped(x.rank, a, b)) if x.rank else c.op("Identity", x)


@inverse("transpose", "swapaxes", "swapdims")
def _untranspose(c: Any, base: Any, new: Any, index: Any, a: int, b: int) -> Any:
    return c.op("Transpose", new, perm=swapped(base.rank, a, b))


@row("t", "mT", "numpy_T")
def _t(c: Any, x: Any) -> Any:
    if x.rank < 2:
        return c.op("Identity", x)
    every = c.at is not None and "numpy_T" in str(c.at.target)
    perm = list(range(x.rank))[::-1] if every else swapped(x.rank, -1, -2)
    return c.op("Transpose", x, perm=perm)


@row("movedim")
def _movedim(c: Any, x: Any, source: Any, destination: Any) -> Any:
    source = [source] if isinstance(source, int) else source
    destination = [destination] if isinstance(destination, int) else destination
    source, destination = ([d % x.rank for d in ds] for ds in (source, destination))
    rest = [d for d in range(x.rank) if d not in source]
    order: list[Any] = [None] * x.rank
    for s, d in zip(source, destination, strict=True):
        order[d] = s
    perm = [rest.pop(0) if d is None else d for d in order]
    return c.op("Transpose", x, perm=perm)


@row("squeeze")
def _squeeze(c: Any, x: Any, dim: Any = None) -> Any:
    if dim is None:
        dims = [d for d in range(x.rank) if x.known(d) == 1]
    else:
        dims = [d % max(x.rank, 1) for d in (dim if isinstance(dim, list) else [dim])]
        dims = [d for d in dims if x.rank and x.known(d) == 1]
    return c.op("Squeeze", x, c.ints(dims)) if dims else c.op("Identity", x)


@row("unsqueeze")
def _unsqueeze(c: Any, x: Any, dim: int) -> Any:
    return c.op("Unsqueeze", x, c.ints([dim % (x.rank + 1)]))


@row("expand")
def _expand(c: Any, x: Any, *sizes: Any, implicit: bool = False) -> Any:
    wanted = sizes[0] if len(sizes) >= 1 and isinstance(sizes[0], list) else list(sizes)
    return c.op("Expand", x, c.ints([1 if s == -1 else s for s in wanted]))


@row("expand_as")
def _expand_as(c: Any, x: Any, other: Any) -> Any:
    return c.op("Expand", x, c.op("Shape", other))


@row("repeat", "tile")
def _repeat(c: Any, x: Any, *repeats: Any) -> Any:
    times = repeats[0] if len(repeats) == 1 and isinstance(repeats[0], list) else list(repeats)
    more = len(times) - x.rank
    if more < 0:
        times = [1] * -more + list(times)
    elif more > 0:
        x = c.op("Unsqueeze", x, c.ints(list(range(more))))
    return c.op("Tile", x, c.ints(times))


@row("repeat_interleave")
def _repeat_interleave(c: Any, x: Any, repeats: Any = None, dim: Any = None, **options: Any) -> Any:
    from ._places import repeated

    if isinstance(repeats, Value):
        return repeated(c, x, repeats, dim)
    if repeats is None:
        return repeated(c, Value(c.op("Range", c.constant(0), c.op("Size", x), c.constant(1)),
                                 pt.int64, x.shape), x, 0)  # fmt: skip
    if not isinstance(repeats, int):
        raise c.error(c.at, "the number of repetitions is open")
    if dim is None:
        flat = c.op("Reshape", x, c.ints([-1, 1]))
        return c.op("Reshape", c.op("Tile", flat, c.ints([1, repeats])), c.ints([-1]))
    dim %= x.rank
    wide = c.op("Unsqueeze", x, c.ints([dim + 1]))
    tiled = c.op("Tile", wide, c.ints([repeats if d == dim + 1 else 1 for d in range(x.rank + 1)]))
    sizes = [-1 if d == dim else c.size(x, d) for d in range(x.rank)]
    return c.op("Reshape", tiled, c.ints(sizes))


@row("cat", "concat")
def _cat(c: Any, tensors: Any, dim: int = 0) -> Any:
    from ._pointwise import promoted

    kept = [t for t in tensors if not (t.rank == 1 and t.known(0) == 0)] or tensors[:1]
    dtype = promoted(c, *kept)
    return c.op("Concat", *(c.cast(t, dtype) for t in kept), axis=_places(dim, kept[0].rank))


@row("stack")
def _stack(c: Any, tensors: Any, dim: int = 0) -> Any:
    from ._pointwise import promoted

    dim %= tensors[0].rank + 1
    dtype = promoted(c, *tensors)
    rows = [c.op("Unsqueeze", c.cast(t, dtype), c.ints([dim])) for t in tensors]
    return c.op("Concat", *rows, axis=dim)


def parts(c: Any, x: Any, sizes: list[int], dim: int) -> list[Any]:
    if len(sizes) == 1:
        return [c.op("Identity", x)]
    return list(c.op("Split", x, c.ints(sizes), n=len(sizes), axis=dim % x.rank))


@row("split", "split_with_sizes", "unsafe_split")
def _split(c: Any, x: Any, size: Any, dim: int = 0) -> Any:
    if isinstance(size, list):
        return parts(c, x, size, dim)
    whole = x.known(dim)
    if whole is None:
        raise c.error(c.at, "the size that it splits is open; give the sizes of the parts")
    sizes = [min(size, whole - i) for i in range(0, whole, size)]
    return parts(c, x, sizes, dim)


@row("chunk")
def _chunk(c: Any, x: Any, chunks: int, dim: int = 0) -> Any:
    whole = x.known(dim)
    if whole is None:
        raise c.error(c.at, "the size that it splits is open")
    return _split(c, x, -(-whole // chunks), dim)


@inverse("split", "split_with_sizes", "unsafe_split", "chunk")
def _unsplit(c: Any, base: Any, new: Any, index: Any, size: Any, dim: int = 0) -> Any:
    whole = base.known(dim)
    if whole is None:
        raise c.error(c.at, "the size that it splits is open")
    if "chunk" in str(c.at.target if c.at is not None else "") or isinstance(size, str):
        size = -(-whole // size)
    sizes = (
        size if isinstance(size, list) else [min(size, whole - i) for i in range(0, whole, size)]
    )
    start = sum(sizes[:index])
    return _unslice(c, base, new, None, dim, start, start + sizes[index])


@row("unbind")
def _unbind(c: Any, x: Any, dim: int = 0) -> Any:
    return [c.op("Gather", x, c.constant(i), axis=dim % x.rank) for i in range(x.known(dim) or 0)]


def joined(c: Any, base: Any, pieces: list[Any], dim: int) -> Any:
    kept = [p for p in pieces if p is not None]
    return kept[0] if len(kept) == 1 else c.op("Concat", *kept, axis=dim % base.rank)


def between(c: Any, x: Any, dim: int, start: Any, stop: Any, step: int = 1) -> Any:
    """Return a part of a dimension."""
    return c.op("Slice", x, c.ints([start]), c.ints([stop]), c.ints([dim % x.rank]), c.ints([step]))


@row("slice")
def _slice(c: Any, x: Any, dim: int = 0, start: Any = 0, end: Any = None, step: int = 1) -> Any:
    end = 2**63 - 1 if end is None else end
    return between(c, x, dim, 0 if start is None else start, end, step)


@inverse("slice")
def _unslice(
    c: Any, base: Any, new: Any, index: Any, dim: int = 0, start: Any = 0, end: Any = None,
    step: int = 1,
) -> Any:  # fmt: skip
    start, end = 0 if start is None else start, 2**63 - 1 if end is None else end
    if step != 1:
        return placed(c, base, new, dim, start, end, step)
    whole = base.known(dim)
    if type(start) is int and whole is not None:
        start = max(start + whole, 0) if start < 0 else min(start, whole)
    if type(end) is int and whole is not None:
        end = max(end + whole, 0) if end < 0 else min(end, whole)
    before = None if start == 0 else between(c, base, dim, 0, start)
    last = end == whole if type(end) is int and whole is not None else end == 2**63 - 1
    after = None if last else between(c, base, dim, end, 2**63 - 1)
    return joined(c, base, [before, new, after], dim)


def placed(c: Any, base: Any, new: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    """Write a part of a dimension with steps: by the numbers of its places."""
    dim %= base.rank
    length = c.op("Shape", base, start=dim, end=dim + 1)
    every = c.op("Range", c.constant(0), c.op("Squeeze", length, c.constant([0])), c.constant(1))
    places = c.op("Slice", every, c.ints([start]), c.ints([end]), c.ints([0]), c.ints([step]))
    shape = [-1 if d == dim else 1 for d in range(base.rank)]
    places = c.op("Expand", c.op("Reshape", places, c.ints(shape)), c.op("Shape", new))
    return c.op("ScatterElements", base, places, new, axis=dim)


@row("narrow")
def _narrow(c: Any, x: Any, dim: int, start: Any, length: Any) -> Any:
    if isinstance(start, Value):
        start = c.op("Cast", start, to=TYPES[pt.int64])
    stop = (
        start + length
        if type(start) is int and type(length) is int
        else c.op("Add", *(v if isinstance(v, str) else c.constant(v) for v in (start, length)))
    )
    return between(c, x, dim, start, stop)


@row("select")
def _select(c: Any, x: Any, dim: int, index: Any) -> Any:
    place = index if isinstance(index, str) else c.constant(index)
    return c.op("Gather", x, place, axis=dim % x.rank)


@inverse("select")
def _unselect(c: Any, base: Any, new: Any, index: Any, dim: int, place: Any) -> Any:
    row_ = c.op("Unsqueeze", new, c.ints([dim % base.rank]))
    if type(place) is int:
        whole = base.known(dim)
        if place < 0 and whole is not None:
            place += whole
        before = None if place == 0 else between(c, base, dim, 0, place)
        last = place == -1 or place + 1 == whole
        after = None if last else between(c, base, dim, place + 1, 2**63 - 1)
        return joined(c, base, [before, row_, after], dim)
    following = c.op("Add", place, c.constant(1))
    return joined(
        c, base,
        [between(c, base, dim, 0, place), row_, between(c, base, dim, following, 2**63 - 1)], dim,
    )  # fmt: skip


@inverse("unbind")
def _ununbind(c: Any, base: Any, new: Any, index: Any, dim: int = 0) -> Any:
    return _unselect(c, base, new, None, dim, index)


@row("index")
def _index(c: Any, x: Any, indices: Any) -> Any:
    given = [(d, i) for d, i in enumerate(indices) if i is not None]
    if len(given) == 1 and given[0][1].dtype in (pt.bool, pt.uint8):
        dim, mask = given[0]
        if mask.rank == 1:
            return c.op("Compress", x, mask, axis=dim)
        if dim == 0:
            places = c.op("Transpose", c.op("NonZero", mask), perm=[1, 0])
            return c.op("GatherND", x, places)
        raise c.error(c.at, "the mask stands behind other dimensions")
    if len(given) == 1:
        dim, index = given[0]
        return c.op("Gather", x, wide(c, index), axis=dim)
    places = [d for d, _ in given]
    following = places == list(range(places[0], places[0] + len(places)))
    first = [*places, *(d for d in range(x.rank) if d not in places)]
    source = x if first == list(range(x.rank)) else c.op("Transpose", x, perm=first)
    rank = max(i.rank for _, i in given)
    shape = None
    for _, i in given:
        size = c.op("Shape", i)
        shape = size if shape is None else broadcast(c, shape, size)
    columns = [c.op("Unsqueeze", c.op("Expand", wide(c, i), shape), c.ints([-1])) for _, i in given]
    made = c.op("GatherND", source, c.op("Concat", *columns, axis=-1))
    if following and places[0] > 0:
        # The dimensions of the indices come where the first of those was.
        rest = x.rank - len(places)
        order = [
            *range(rank, rank + places[0]),
            *range(rank),
            *range(rank + places[0], rank + rest),
        ]
        made = c.op("Transpose", made, perm=order)
    return made


def broadcast(c: Any, a: Any, b: Any) -> Any:
    """Return the shape of two shapes together, by what expands to it."""
    zero = c.constant([0])
    made = c.op("Expand", c.op("Expand", zero, a), b)
    return c.op("Shape", made)


def wide(c: Any, index: Any) -> Any:
    return c.cast(index, pt.int64)


@row("index_put")
def _index_put(c: Any, x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    given = [(d, i) for d, i in enumerate(indices) if i is not None]
    if len(given) == 1 and given[0][1].dtype in (pt.bool, pt.uint8):
        mask = given[0][1]
        if accumulate or (values.rank > 0 and values.shape != (1,)) or given[0][0] != 0:
            raise c.error(c.at, "a mask takes one number, not a tensor")
        more = x.rank - mask.rank
        seen = c.op("Unsqueeze", mask, c.ints(list(range(mask.rank, x.rank)))) if more else mask
        return c.op("Where", seen, c.cast(values, x.dtype), x)
    places = [d for d, _ in given]
    if places != list(range(len(places))):
        order = [*places, *(d for d in range(x.rank) if d not in places)]
        moved = Value(c.op("Transpose", x, perm=order), x.dtype, [x.shape[d] for d in order])
        if values.rank > 0 and places[0] > 0:
            raise c.error(c.at, "the indices stand behind other dimensions")
        made = _index_put(c, moved, [i for _, i in given], values, accumulate)
        return c.op("Transpose", made, perm=[order.index(d) for d in range(x.rank)])
    shape = None
    for _, i in given:
        size = c.op("Shape", i)
        shape = size if shape is None else broadcast(c, shape, size)
    columns = [c.op("Unsqueeze", c.op("Expand", wide(c, i), shape), c.ints([-1])) for _, i in given]
    where = columns[0] if len(columns) == 1 else c.op("Concat", *columns, axis=-1)
    rest = c.op("Shape", x, start=len(places), end=x.rank)
    full = c.op("Concat", shape, rest, axis=0)
    updates = c.op("Expand", c.cast(values, x.dtype), full)
    return c.op("ScatterND", x, where, updates, reduction="add" if accumulate else None)


@row("index_select")
def _index_select(c: Any, x: Any, dim: int, index: Any) -> Any:
    return c.op("Gather", x, wide(c, index), axis=dim % x.rank)


@row("gather")
def _gather(c: Any, x: Any, dim: int, index: Any, **options: Any) -> Any:
    return c.op("GatherElements", x, wide(c, index), axis=dim % x.rank)


@row("take_along_dim")
def _take_along_dim(c: Any, x: Any, index: Any, dim: int) -> Any:
    dim %= x.rank
    if any(index.shape[d] != x.shape[d] for d in range(x.rank) if d != dim):
        rows = [1 if d == dim else c.size(x, d) for d in range(x.rank)]
        columns = [c.size(index, d) if d == dim else 1 for d in range(x.rank)]
        index = c.op("Expand", c.op("Expand", wide(c, index), c.ints(columns)), c.ints(rows))
        return c.op("GatherElements", x, index, axis=dim)
    return c.op("GatherElements", x, wide(c, index), axis=dim % x.rank)


@row("scatter")
def _scatter(c: Any, x: Any, dim: int, index: Any, src: Any, **options: Any) -> Any:
    if isinstance(src, Value):
        updates = c.cast(src, x.dtype)
        shape = c.op("Shape", index)
        if src.shape != index.shape:
            starts, axes = c.ints([0] * x.rank), c.ints(list(range(x.rank)))
            updates = c.op("Slice", updates, starts, shape, axes)
    else:
        updates = c.op("Expand", c.operand(src, x.dtype), c.op("Shape", index))
    return c.op("ScatterElements", x, wide(c, index), updates, axis=dim % x.rank)


@row("scatter_add")
def _scatter_add(c: Any, x: Any, dim: int, index: Any, src: Any) -> Any:
    return c.op("ScatterElements", x, wide(c, index), src, axis=dim % x.rank, reduction="add")


@row("slice_scatter")
def _slice_scatter(
    c: Any, x: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    return _unslice(c, x, c.name(src), None, dim, start, end, step)


@row("select_scatter")
def _select_scatter(c: Any, x: Any, src: Any, dim: int, index: Any) -> Any:
    return _unselect(c, x, c.name(src), None, dim, index)


@row("nonzero", "argwhere")
def _nonzero(c: Any, x: Any) -> Any:
    return c.op("Transpose", c.op("NonZero", x), perm=[1, 0])


@row("masked_select")
def _masked_select(c: Any, x: Any, mask: Any) -> Any:
    shape = broadcast(c, c.op("Shape", x), c.op("Shape", mask))
    places = c.op("Transpose", c.op("NonZero", c.op("Expand", mask, shape)), perm=[1, 0])
    return c.op("GatherND", c.op("Expand", x, shape), places)


@row("flip")
def _flip(c: Any, x: Any, dims: Any) -> Any:
    n = len(dims)
    ends = c.ints([-(2**63)] * n)
    return c.op(
        "Slice", x, c.ints([-1] * n), ends, c.ints([d % x.rank for d in dims]), c.ints([-1] * n)
    )


@row("roll")
def _roll(c: Any, x: Any, shifts: Any, dims: Any = None) -> Any:
    if not dims:
        flat = Value(c.op("Reshape", x, c.ints([-1])), x.dtype, (None,))
        return c.op("Reshape", _roll(c, flat, shifts, [0]), c.op("Shape", x))
    made = x
    for shift, dim in zip(shifts, dims, strict=True):
        if shift == 0:
            continue
        dim %= x.rank
        value = made if isinstance(made, Value) else Value(made, x.dtype, x.shape)
        tail = between(c, value, dim, -shift, 2**63 - 1)
        made = c.op("Concat", tail, between(c, value, dim, 0, -shift), axis=dim)
    return made


@row("tril", "triu")
def _triangle(c: Any, x: Any, diagonal: Any = 0) -> Any:
    upper = 1 if c.at is not None and "triu" in str(c.at.target) else 0
    k = diagonal if isinstance(diagonal, str) else c.constant(diagonal)
    if x.dtype is pt.bool:
        made = c.op("Trilu", c.cast(x, pt.float32), k, upper=upper)
        return c.op("Cast", made, to=TYPES[pt.bool])
    return c.op("Trilu", x, k, upper=upper)


@row("diagonal")
def _diagonal(c: Any, x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    a, b = x.known(dim1), x.known(dim2)
    if a is None or b is None:
        raise c.error(c.at, "the sizes of a diagonal are open")
    order = [d for d in range(x.rank) if d not in (dim1 % x.rank, dim2 % x.rank)]
    moved = c.op("Transpose", x, perm=[dim1 % x.rank, dim2 % x.rank, *order])
    rows = range(
        max(0, -offset), max(0, -offset) + max(0, min(a - max(0, -offset), b - max(0, offset)))
    )
    made = c.op("GatherND", moved, c.constant([[i, i + offset] for i in rows]))
    return c.op("Transpose", made, perm=[*range(1, x.rank - 1), 0])
