"""ONNX for operators that reduce, sort and multiply."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ._graph import TYPES, Value
from ._pointwise import promoted
from ._rows import ROWS, row


def dims_of(x: Any, dim: Any) -> list[int]:
    """Return dimensions as a list; all where none is given."""
    if dim is None or dim == []:
        return list(range(x.rank))
    return [d % max(x.rank, 1) for d in (dim if isinstance(dim, list) else [dim])]


def reduce(c: Any, kind: str, x: Any, dim: Any, keepdim: bool, rank: int | None = None) -> Any:
    """Add a node that reduces."""
    if rank is None:
        rank = x.rank
    if rank == 0:
        return c.op("Identity", x) if isinstance(x, Value) else x
    if dim is None or dim == []:
        return c.op(kind, x, keepdims=int(keepdim))
    dims = [d % rank for d in (dim if isinstance(dim, list) else [dim])]
    return c.op(kind, x, c.ints(dims), keepdims=int(keepdim))


@row("sum")
def _sum(c: Any, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    dtype = dtype or (x.dtype if x.dtype.is_floating_point else pt.int64)
    return reduce(c, "ReduceSum", c.cast(x, dtype), dim, keepdim, x.rank)


@row("mean")
def _mean(c: Any, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    x_ = c.cast(x, dtype) if dtype else x
    return reduce(c, "ReduceMean", x_, dim, keepdim, x.rank)


@row("prod")
def _prod(c: Any, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    dtype = dtype or (x.dtype if x.dtype.is_floating_point else pt.int64)
    return reduce(c, "ReduceProd", c.cast(x, dtype), dim, keepdim, x.rank)


@row("amax")
def _amax(c: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return reduce(c, "ReduceMax", x, dim, keepdim)


@row("amin")
def _amin(c: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return reduce(c, "ReduceMin", x, dim, keepdim)


@row("logsumexp")
def _logsumexp(c: Any, x: Any, dim: Any, keepdim: bool = False) -> Any:
    return reduce(c, "ReduceLogSumExp", x, dim, keepdim)


@row("max", "min")
def _extreme(c: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    kind = "Max" if c.at is not None and str(c.at.target).startswith("aten.max") else "Min"
    if isinstance(dim, Value):
        dtype = promoted(c, x, dim)
        return c.op(kind, c.cast(x, dtype), c.cast(dim, dtype))
    if dim is None:
        return reduce(c, f"Reduce{kind}", x, None, False)
    dim = dim % max(x.rank, 1)
    values = reduce(c, f"Reduce{kind}", x, dim, keepdim)
    return [values, c.op(f"Arg{kind}", x, axis=dim, keepdims=int(keepdim))]


def _argument(name: str, kind: str) -> None:
    def write(c: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if x.dtype is pt.bool:
            x = c.op("Cast", x, to=TYPES[pt.int32])
        if dim is None:
            flat = c.op("Reshape", x, c.ints([-1]))
            return c.op(kind, flat, axis=0, keepdims=0)
        return c.op(
            kind, x, axis=dim % max(len(c.at.args[0].meta["val"].shape), 1), keepdims=int(keepdim)
        )

    ROWS[name] = write


_argument("argmax", "ArgMax")
_argument("argmin", "ArgMin")


def _truths(name: str, kind: str) -> None:
    def write(c: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        ones = c.op("Cast", c.cast(x, pt.bool), to=TYPES[pt.int32])
        made = reduce(c, kind, ones, dim, keepdim, x.rank)
        return c.op("Cast", made, to=TYPES[pt.bool])

    ROWS[name] = write


_truths("any", "ReduceMax")
_truths("all", "ReduceMin")


@row("count_nonzero")
def _count_nonzero(c: Any, x: Any, dim: Any = None) -> Any:
    ones = c.op("Cast", c.cast(x, pt.bool), to=TYPES[pt.int64])
    return reduce(c, "ReduceSum", ones, dim, False, x.rank)


def spread(c: Any, x: Any, dim: Any, correction: Any, keepdim: bool, root: bool) -> Any:
    """Return the mean, with its dimensions kept, and the variance or its root."""
    dims = dims_of(x, dim)
    mean = reduce(c, "ReduceMean", x, dims, True)
    away = c.op("Sub", x, mean)
    total = reduce(c, "ReduceSum", c.op("Mul", away, away), dims, keepdim, x.rank)
    count: Any = 1
    for d in dims:
        size = c.size(x, d)
        if type(size) is int and type(count) is int:
            count *= size
        else:
            count = c.op(
                "Mul", *(v if isinstance(v, str) else c.constant(v) for v in (count, size))
            )
    if type(count) is int:
        n = c.constant(float(max(count - correction, 0)), x.dtype)
    else:
        n = c.op(
            "Sub", c.op("Cast", count, to=TYPES[x.dtype]), c.constant(float(correction), x.dtype)
        )
    made = c.op("Div", total, n)
    return mean, c.op("Sqrt", made) if root else made


def _options(args: Any, correction: Any, unbiased: Any, keepdim: bool) -> Any:
    """Return dimensions, correction and whether dimensions stay, of all forms of `var`."""
    args = list(args)
    if args and isinstance(args[0], bool):
        return None, int(args[0]), keepdim
    dim = args[0] if args else None
    if len(args) > 1:
        unbiased = args[1]
    if len(args) > 2:
        keepdim = args[2]
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return dim, correction, keepdim


@row("var", "std")
def _var(
    c: Any, x: Any, *args: Any, dim: Any = None, correction: Any = None, unbiased: Any = None,
    keepdim: bool = False,
) -> Any:  # fmt: skip
    args = args or ((dim,) if dim is not None else ())
    dims, correction, keepdim = _options(args, correction, unbiased, keepdim)
    root = c.at is not None and str(c.at.target).startswith("aten.std")
    return spread(c, x, dims, correction, keepdim, root)[1]


@row("var_mean", "std_mean")
def _var_mean(
    c: Any, x: Any, *args: Any, dim: Any = None, correction: Any = None, unbiased: Any = None,
    keepdim: bool = False,
) -> Any:  # fmt: skip
    args = args or ((dim,) if dim is not None else ())
    dims, correction, keepdim = _options(args, correction, unbiased, keepdim)
    root = c.at is not None and str(c.at.target).startswith("aten.std")
    mean, made = spread(c, x, dims, correction, keepdim, root)
    if not keepdim:
        mean = c.op("Squeeze", mean, c.ints(dims_of(x, dims)))
    return [made, mean]


@row("linalg_vector_norm")
def _vector_norm(
    c: Any, x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    if ord == 2:
        return reduce(c, "ReduceL2", x, dim, keepdim)
    if ord == 1:
        return reduce(c, "ReduceL1", x, dim, keepdim)
    size = c.op("Abs", x)
    if ord in (float("inf"), float("-inf")):
        return reduce(c, "ReduceMax" if ord > 0 else "ReduceMin", size, dim, keepdim, x.rank)
    power = c.op("Pow", size, c.constant(float(ord), x.dtype))
    total = reduce(c, "ReduceSum", power, dim, keepdim, x.rank)
    return c.op("Pow", total, c.constant(1.0 / ord, x.dtype))


@row("norm")
def _norm(
    c: Any, x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    return _vector_norm(c, x, 2 if p is None else p, dim, keepdim)


@row("linalg_norm")
def _linalg_norm(
    c: Any, x: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, **o: Any
) -> Any:
    if ord is not None and (dim is None or len(dim) > 1) and x.rank > 1:
        raise c.error(c.at, "it is the norm of a matrix")
    return _vector_norm(c, x, 2 if ord is None else ord, dim, keepdim)


@row("cumsum")
def _cumsum(c: Any, x: Any, dim: int, dtype: Any = None) -> Any:
    dtype = dtype or (x.dtype if x.dtype.is_floating_point else pt.int64)
    return c.op("CumSum", c.cast(x, dtype), c.constant(dim))


@row("softmax", "_softmax")
def _softmax(c: Any, x: Any, dim: int, dtype: Any = None) -> Any:
    x_ = c.cast(x, dtype) if isinstance(dtype, pt.dtype) else x
    return c.op("Softmax", x_, axis=dim % max(x.rank, 1))


@row("log_softmax", "_log_softmax")
def _log_softmax(c: Any, x: Any, dim: int, dtype: Any = None) -> Any:
    x_ = c.cast(x, dtype) if isinstance(dtype, pt.dtype) else x
    return c.op("LogSoftmax", x_, axis=dim % max(x.rank, 1))


@row("topk")
def _topk(c: Any, x: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return list(
        c.op("TopK", x, c.ints([k]), n=2, axis=dim % x.rank, largest=int(largest), sorted=1)
    )


@row("sort")
def _sort(c: Any, x: Any, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    return _topk(c, x, c.size(x, dim), dim, descending)


@row("argsort")
def _argsort(c: Any, x: Any, dim: int = -1, descending: bool = False, **options: Any) -> Any:
    return _sort(c, x, dim, descending)[1]


@row("matmul", "mm", "bmm", "mv")
def _matmul(c: Any, a: Any, b: Any) -> Any:
    return c.op("MatMul", a, b)


@row("dot", "vdot")
def _dot(c: Any, a: Any, b: Any) -> Any:
    return c.op("MatMul", a, b)


@row("outer")
def _outer(c: Any, a: Any, b: Any) -> Any:
    return c.op("Mul", c.op("Unsqueeze", a, c.ints([1])), b)


@row("linear")
def _linear(c: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    if x.rank == 2 and bias is not None:
        return c.op("Gemm", x, weight, bias, transB=1)
    made = c.op("MatMul", x, c.op("Transpose", weight, perm=[1, 0]))
    return made if bias is None else c.op("Add", made, bias)


@row("addmm")
def _addmm(c: Any, bias: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    return c.op("Gemm", a, b, bias, alpha=float(alpha), beta=float(beta))


@row("baddbmm", "addbmm")
def _baddbmm(c: Any, bias: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    made = c.op("MatMul", a, b)
    if "addbmm" in str(c.at.target) and "baddbmm" not in str(c.at.target):
        made = c.op("ReduceSum", made, c.ints([0]), keepdims=0)
    if alpha != 1:
        made = c.op("Mul", made, c.constant(float(alpha), a.dtype))
    if beta == 0:
        return made
    if beta != 1:
        bias = c.op("Mul", bias, c.constant(float(beta), a.dtype))
    return c.op("Add", bias, made)


@row("einsum")
def _einsum(c: Any, equation: str, tensors: Any, path: Any = None) -> Any:
    return c.op("Einsum", *tensors, equation=equation)


@row("cosine_similarity")
def _cosine(c: Any, a: Any, b: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    least = c.constant(float(eps), a.dtype)
    dot = reduce(c, "ReduceSum", c.op("Mul", a, b), dim, False, a.rank)
    sides = [c.op("Max", reduce(c, "ReduceL2", v, dim, False), least) for v in (a, b)]
    return c.op("Div", dot, c.op("Mul", *sides))


@row("cdist", "_cdist_forward")
def _cdist(c: Any, a: Any, b: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    wide = c.op("Sub", c.op("Unsqueeze", a, c.ints([-2])), c.op("Unsqueeze", b, c.ints([-3])))
    if p == 1:
        return c.op("ReduceL1", wide, c.ints([-1]), keepdims=0)
    if p == 2:
        return c.op("ReduceL2", wide, c.ints([-1]), keepdims=0)
    raise c.error(c.at, f"p={p}; 1 and 2 can be written")


@row("bilinear")
def _bilinear(c: Any, a: Any, b: Any, weight: Any, bias: Any = None) -> Any:
    made = c.op("Einsum", a, weight, b, equation="...n,onm,...m->...o")
    return made if bias is None else c.op("Add", made, bias)


@row("diff")
def _diff(
    c: Any, x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Any:
    pieces = [p for p in (prepend, x, append) if p is not None]
    made: Any = x
    if len(pieces) > 1:
        made = c.op("Concat", *(c.cast(p, x.dtype) for p in pieces), axis=dim % x.rank)
    axis = c.ints([dim % x.rank])
    for _ in range(n):
        after = c.op("Slice", made, c.ints([1]), c.ints([2**63 - 1]), axis)
        before = c.op("Slice", made, c.ints([0]), c.ints([-1]), axis)
        made = c.op("Xor" if x.dtype is pt.bool else "Sub", after, before)
    return made
