"""ONNX for operators that few models use."""

from __future__ import annotations

import math
from typing import Any

import pytensorlib as pt

from ._graph import TYPES, Value
from ._layout import between, wide
from ._pointwise import binary, promoted
from ._reductions import reduce
from ._rows import row


@row("atan2", "arctan2")
def _atan2(c: Any, y: Any, x: Any) -> Any:
    dtype = promoted(c, y, x)
    y, x, zero = c.operand(y, dtype), c.operand(x, dtype), c.constant(0.0, dtype)
    half, left = c.constant(math.pi / 2, dtype), c.op("Less", x, zero)
    below = c.op("Less", y, zero)
    turn = c.op("Where", below, c.constant(-math.pi, dtype), c.constant(math.pi, dtype))
    made = c.op("Atan", c.op("Div", y, x))
    made = c.op("Where", left, c.op("Add", made, turn), made)
    upright = c.op("Where", below, c.op("Neg", half), half)
    upright = c.op("Where", c.op("Equal", y, zero), zero, upright)
    return c.op("Where", c.op("Equal", x, zero), upright, made)


@row("hypot")
def _hypot(c: Any, x: Any, y: Any) -> Any:
    return c.op("Sqrt", c.op("Add", c.op("Mul", x, x), c.op("Mul", y, y)))


@row("logaddexp")
def _logaddexp(c: Any, x: Any, y: Any) -> Any:
    larger = c.op("Max", x, y)
    away = c.op("Neg", c.op("Abs", c.op("Sub", x, y)))
    one = c.constant(1.0, x.dtype)
    return c.op("Add", larger, c.op("Log", c.op("Add", one, c.op("Exp", away))))


@row("xlogy", "special_xlogy")
def _xlogy(c: Any, x: Any, y: Any) -> Any:
    dtype = promoted(c, x, y)
    x, y, zero = c.operand(x, dtype), c.operand(y, dtype), c.constant(0.0, dtype)
    return c.op("Where", c.op("Equal", x, zero), zero, c.op("Mul", x, c.op("Log", y)))


@row("nan_to_num")
def _nan_to_num(c: Any, x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if not x.dtype.is_floating_point:
        return c.op("Identity", x)
    info = pt.finfo(x.dtype)
    made = c.op("Where", c.op("IsNaN", x), c.constant(float(nan or 0.0), x.dtype), x)
    for sign, value in ((1, posinf), (-1, neginf)):
        limit = float(sign * info.max if value is None else value)
        found = c.op("IsInf", x, detect_negative=int(sign < 0), detect_positive=int(sign > 0))
        made = c.op("Where", found, c.constant(limit, x.dtype), made)
    return made


@row("isposinf", "isneginf")
def _one_inf(c: Any, x: Any) -> Any:
    positive = "pos" in str(c.at.target)
    return c.op("IsInf", x, detect_negative=int(not positive), detect_positive=int(positive))


@row("signbit")
def _signbit(c: Any, x: Any) -> Any:
    if not x.dtype.is_floating_point:
        return c.op("Less", x, c.operand(0, x.dtype))
    # 1 / -0.0 is -inf.
    turned = c.op("Less", c.op("Reciprocal", x), c.constant(0.0, x.dtype))
    zero = c.constant(0.0, x.dtype)
    at_zero = c.op("And", c.op("Equal", x, zero), turned)
    return c.op("Or", at_zero, c.op("Less", x, zero))


@row("heaviside")
def _heaviside(c: Any, x: Any, values: Any) -> Any:
    zero, one = c.constant(0, x.dtype), c.constant(1, x.dtype)
    step = c.op("Where", c.op("Greater", x, zero), one, zero)
    return c.op("Where", c.op("Equal", x, zero), values, step)


@row("sinc", "special_sinc")
def _sinc(c: Any, x: Any) -> Any:
    turned, zero = c.op("Mul", x, c.constant(math.pi, x.dtype)), c.constant(0.0, x.dtype)
    at = c.op("Equal", x, zero)
    safe = c.op("Where", at, c.constant(1.0, x.dtype), turned)
    return c.op("Where", at, c.constant(1.0, x.dtype), c.op("Div", c.op("Sin", safe), safe))


@row("logit", "special_logit")
def _logit(c: Any, x: Any, eps: Any = None) -> Any:
    if eps is not None:
        low, high = c.constant(float(eps), x.dtype), c.constant(1 - float(eps), x.dtype)
        x = Value(c.op("Clip", x, low, high), x.dtype, x.shape)
    return c.op("Log", c.op("Div", x, c.op("Sub", c.constant(1.0, x.dtype), x)))


def reduced(c: Any, x: Any, reduction: int) -> Any:
    """Return a loss of elements as its reduction."""
    if reduction == 0:
        return x
    return c.op("ReduceMean" if reduction == 1 else "ReduceSum", x, keepdims=0)


@row("binary_cross_entropy")
def _bce(c: Any, x: Any, y: Any, weight: Any = None, reduction: int = 1) -> Any:
    one, least = c.constant(1.0, x.dtype), c.constant(-100.0, x.dtype)
    sides = [
        c.op("Mul", a, c.op("Max", c.op("Log", b), least))
        for a, b in ((y, x), (c.op("Sub", one, y), c.op("Sub", one, x)))
    ]
    made = c.op("Neg", c.op("Add", *sides))
    return reduced(c, made if weight is None else c.op("Mul", made, weight), reduction)


@row("binary_cross_entropy_with_logits")
def _bce_logits(
    c: Any, x: Any, y: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Any:
    one = c.constant(1.0, x.dtype)
    soft = c.op("Softplus", c.op("Neg", x))
    if pos_weight is not None:
        scale = c.op("Add", one, c.op("Mul", c.op("Sub", pos_weight, one), y))
        soft = c.op("Mul", scale, soft)
    made = c.op("Add", c.op("Mul", c.op("Sub", one, y), x), soft)
    return reduced(c, made if weight is None else c.op("Mul", made, weight), reduction)


@row("smooth_l1_loss", "huber_loss")
def _smooth(c: Any, x: Any, y: Any, reduction: int = 1, beta: float = 1.0) -> Any:
    huber = "huber" in str(c.at.target)
    away = c.op("Abs", c.op("Sub", x, y))
    limit, half = c.constant(float(beta), x.dtype), c.constant(0.5, x.dtype)
    square = c.op("Mul", half, c.op("Mul", away, away))
    line = c.op("Sub", away, c.op("Mul", half, limit))
    if huber:
        line = c.op("Mul", line, limit)
    elif beta:
        square = c.op("Div", square, limit)
    return reduced(c, c.op("Where", c.op("Less", away, limit), square, line), reduction)


@row("kl_div")
def _kl_div(c: Any, x: Any, y: Any, reduction: int = 1, log_target: bool = False) -> Any:
    if log_target:
        made = c.op("Mul", c.op("Exp", y), c.op("Sub", y, x))
    else:
        made = c.op("Sub", _xlogy(c, y, y), c.op("Mul", y, x))
    return reduced(c, made, reduction)


@row("col2im")
def _col2im(
    c: Any, x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> Any:
    return c.op(
        "Col2Im", x, c.ints(size), c.ints(kernel), dilations=list(dilation),
        pads=list(padding) * 2, strides=list(stride),
    )  # fmt: skip


@row("unfold")
def _unfold(c: Any, x: Any, dim: int, size: int, step: int) -> Any:
    dim %= x.rank
    whole = x.known(dim)
    if whole is None:
        raise c.error(c.at, "the size that it takes windows of is open")
    places = [[i + j for j in range(size)] for i in range(0, whole - size + 1, step)]
    made = c.op("Gather", x, c.constant(places), axis=dim)
    order = [*range(dim + 1), *range(dim + 2, x.rank + 1), dim + 1]
    return c.op("Transpose", made, perm=order)


@row("rand", "randn")
def _random(c: Any, sizes: Any, dtype: Any = None, **options: Any) -> Any:
    kind = "RandomNormalLike" if "randn" in str(c.at.target) else "RandomUniformLike"
    dtype = dtype or pt.get_default_dtype()
    like = c.op("Expand", c.constant(0.0, dtype), c.ints(sizes))
    return c.op(kind, like, dtype=TYPES[dtype])


@row("rand_like", "randn_like")
def _random_like(c: Any, x: Any, dtype: Any = None, **options: Any) -> Any:
    kind = "RandomNormalLike" if "randn" in str(c.at.target) else "RandomUniformLike"
    return c.op(kind, x, dtype=TYPES[dtype or x.dtype])


@row("bernoulli")
def _bernoulli(c: Any, x: Any, **options: Any) -> Any:
    return c.op("Bernoulli", x)


@row("trace")
def _trace(c: Any, x: Any) -> Any:
    eye = c.op("EyeLike", x)
    total = x.dtype if x.dtype.is_floating_point else pt.int64
    return c.op("ReduceSum", c.cast(c.op("Mul", x, eye), total, x.dtype), keepdims=0)


@row("hstack", "vstack", "dstack", "column_stack", "row_stack")
def _stacked(c: Any, tensors: Any) -> Any:
    name = str(c.at.target).split(".")[1]
    rank = tensors[0].rank
    if name == "hstack":
        return c.op("Concat", *tensors, axis=0 if rank == 1 else 1)
    if name in ("vstack", "row_stack"):
        rows = tensors if rank > 1 else [c.op("Unsqueeze", t, c.ints([0])) for t in tensors]
        return c.op("Concat", *rows, axis=0)
    if name == "column_stack":
        rows = [t if t.rank > 1 else c.op("Unsqueeze", t, c.ints([1])) for t in tensors]
        return c.op("Concat", *rows, axis=1)
    axes = {1: [0, 2], 2: [2]}.get(rank)
    rows = tensors if axes is None else [c.op("Unsqueeze", t, c.ints(axes)) for t in tensors]
    return c.op("Concat", *rows, axis=2)


@row("index_add", "index_copy")
def _index_add(c: Any, x: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    dim %= x.rank
    shape = [-1 if d == dim else 1 for d in range(x.rank)]
    places = c.op("Expand", c.op("Reshape", wide(c, index), c.ints(shape)), c.op("Shape", source))
    if alpha != 1:
        source = c.op("Mul", source, c.operand(alpha, x.dtype))
    how = "add" if "add" in str(c.at.target) else None
    return c.op("ScatterElements", x, places, source, axis=dim, reduction=how)


@row("index_fill")
def _index_fill(c: Any, x: Any, dim: int, index: Any, value: Any) -> Any:
    dim %= x.rank
    length = c.op("Reshape", c.op("Size", index), c.constant([1]))
    sizes = [length if d == dim else c.ints([c.size(x, d)]) for d in range(x.rank)]
    source = c.op("Expand", c.operand(value, x.dtype), c.op("Concat", *sizes, axis=0))
    return _index_add(c, x, dim, index, source)


@row("bucketize", "searchsorted")
def _bucketize(
    c: Any, a: Any, b: Any, *flags: Any, out_int32: bool = False, right: bool = False,
    side: Any = None, sorter: Any = None,
) -> Any:  # fmt: skip
    values, edges = (a, b) if "bucketize" in str(c.at.target) else (b, a)
    flags = (*flags, out_int32, right)[:2] if len(flags) < 2 else flags
    if edges.rank != 1 or sorter is not None:
        raise c.error(c.at, "its boundaries have rows or an order of their own")
    right = bool(flags[1]) or side == "right"
    dtype = promoted(c, values, edges)
    each = c.op("Unsqueeze", c.operand(values, dtype), c.ints([-1]))
    below = c.op("GreaterOrEqual" if right else "Greater", each, c.operand(edges, dtype))
    kind = pt.int32 if flags[0] else pt.int64
    return c.op("ReduceSum", c.op("Cast", below, to=TYPES[kind]), c.ints([-1]), keepdims=0)


@row("linalg_cross", "cross")
def _cross(c: Any, a: Any, b: Any, dim: Any = -1) -> Any:
    dim = (-1 if dim is None else dim) % a.rank

    def turned(t: Any, n: int) -> Any:
        return c.op("Concat", between(c, t, dim, n, 3), between(c, t, dim, 0, n), axis=dim)

    left = c.op("Mul", turned(a, 1), turned(b, 2))
    return c.op("Sub", left, c.op("Mul", turned(a, 2), turned(b, 1)))


@row("inner")
def _inner(c: Any, a: Any, b: Any) -> Any:
    return c.op("Einsum", a, b, equation="...i,...i->..." if b.rank == 1 else "...i,ki->...k")


@row("addmv")
def _addmv(c: Any, x: Any, m: Any, v: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    made = c.op("MatMul", m, v)
    if alpha != 1:
        made = c.op("Mul", made, c.operand(alpha, x.dtype))
    scaled = x if beta == 1 else c.op("Mul", x, c.operand(beta, x.dtype))
    return c.op("Add", scaled, made)


@row("aminmax")
def _aminmax(c: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return [reduce(c, f"Reduce{k}", x, dim, keepdim) for k in ("Min", "Max")]


@row("native_dropout")
def _native_dropout(c: Any, x: Any, p: float, train: Any) -> Any:
    if train:
        raise c.error(c.at, "it draws numbers; call eval() on the module first")
    return [c.op("Identity", x), c.op("Equal", x, x)]


@row("fmin", "fmax")
def _without_nan(c: Any, x: Any, y: Any) -> Any:
    kind = "Min" if "fmin" in str(c.at.target) else "Max"
    made = c.op("Where", c.op("IsNaN", x), y, binary(c, kind, x, y))
    return c.op("Where", c.op("IsNaN", y), x, made)
