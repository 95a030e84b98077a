"""ONNX for operators that make tensors and numbers."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ._graph import TYPES
from ._rows import ROWS, row


def _dtype_of(c: Any, dtype: Any, fallback: Any = None) -> Any:
    known = c.described(c.at) if c.at is not None else None
    return dtype or getattr(known, "dtype", None) or fallback or pt.get_default_dtype()


def filled(c: Any, sizes: Any, value: Any, dtype: Any) -> Any:
    if (
        isinstance(sizes, list)
        and all(type(s) is int for s in sizes)
        and not isinstance(value, str)
    ):
        return (
            c.op("Expand", c.operand(value, dtype), c.ints(sizes))
            if sizes
            else c.op("Identity", c.operand(value, dtype))
        )
    shape = c.ints(sizes) if isinstance(sizes, list) else sizes
    return c.op("Expand", c.operand(value, dtype), shape)


def _filling(name: str, value: Any) -> None:
    def write(c: Any, sizes: Any, *rest: Any, dtype: Any = None, **options: Any) -> Any:
        number = rest[0] if value is None else value
        return filled(c, sizes, number, _dtype_of(c, dtype))

    def write_like(c: Any, x: Any, *rest: Any, dtype: Any = None, **options: Any) -> Any:
        number = rest[0] if value is None else value
        return filled(c, c.op("Shape", x), number, dtype or x.dtype)

    def write_new(c: Any, x: Any, sizes: Any, *rest: Any, dtype: Any = None, **options: Any) -> Any:
        number = rest[0] if value is None else value
        return filled(c, sizes, number, dtype or x.dtype)

    ROWS[name], ROWS[f"{name}_like"], ROWS[f"new_{name}"] = write, write_like, write_new


for _name, _value in (("zeros", 0), ("ones", 1), ("empty", 0), ("full", None)):
    _filling(_name, _value)


@row("scalar_tensor")
def _scalar_tensor(c: Any, value: Any, dtype: Any = None, **options: Any) -> Any:
    return c.op("Identity", c.operand(value, _dtype_of(c, dtype)))


@row("arange")
def _arange(c: Any, *bounds: Any, dtype: Any = None, **options: Any) -> Any:
    start, end, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    dtype = _dtype_of(c, dtype)
    kind = dtype if dtype in (pt.int64, pt.int32, pt.float32, pt.float64) else pt.float32
    made = c.op("Range", *(c.operand(v, kind) for v in (start, end, step)))
    return made if kind is dtype else c.op("Cast", made, to=TYPES[dtype])


@row("linspace")
def _linspace(c: Any, start: float, end: float, steps: int, dtype: Any = None, **o: Any) -> Any:
    return c.op(
        "Identity", c.constant(pt.linspace(start, end, steps).tolist(), _dtype_of(c, dtype))
    )


@row("eye")
def _eye(c: Any, n: int, m: Any = None, dtype: Any = None, **options: Any) -> Any:
    base = filled(c, [n, n if m is None else m], 0, pt.float32)
    return c.op("EyeLike", base, dtype=TYPES[_dtype_of(c, dtype)])


@row("meshgrid")
def _meshgrid(c: Any, tensors: Any, indexing: str = "ij") -> Any:
    made, n = [], len(tensors)
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    shape = c.op("Concat", *(c.op("Shape", tensors[i]) for i in order), axis=0)
    for i, t in enumerate(tensors):
        wanted = [-1 if order[d] == i else 1 for d in range(n)]
        made.append(c.op("Expand", c.op("Reshape", t, c.ints(wanted)), shape))
    return made


@row("one_hot")
def _one_hot(c: Any, x: Any, num_classes: int = -1) -> Any:
    if num_classes == -1:
        raise c.error(c.at, "the number of classes depends on the data; give it")
    return c.op("OneHot", x, c.constant([num_classes]), c.constant([0, 1]), axis=-1)


# Sizes and numbers.


@row("sym_size")
def _sym_size(c: Any, x: Any, dim: int) -> Any:
    size = c.size(x, dim)
    return size if isinstance(size, str) else c.constant(size)


@row("sym_numel")
def _sym_numel(c: Any, x: Any) -> Any:
    return c.op("Size", x)


@row("item", "_local_scalar_dense")
def _item(c: Any, x: Any) -> Any:
    flat = c.op("Reshape", x, c.constant([], pt.int64))
    return (
        flat
        if x.dtype in (pt.int64, pt.bool) or x.dtype.is_floating_point
        else c.op("Cast", flat, to=TYPES[pt.int64])
    )


@row("_assert_tensor_metadata", "_assert_scalar", "_assert_async")
def _nothing(c: Any, *args: Any, **kwargs: Any) -> Any:
    return None


@row("getitem")
def _getitem(c: Any, values: Any, index: Any) -> Any:
    return values[index]


@row("sym_max")
def _sym_max(c: Any, a: Any, b: Any) -> Any:
    return c.op("Max", *(v if isinstance(v, str) else c.constant(v) for v in (a, b)))


@row("sym_min")
def _sym_min(c: Any, a: Any, b: Any) -> Any:
    return c.op("Min", *(v if isinstance(v, str) else c.constant(v) for v in (a, b)))
