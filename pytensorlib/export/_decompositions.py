"""Operators by other operators: what `ExportedProgram.run_decompositions` replaces.

Each function takes what records an operator by name, ``r("add", x, y)``, and the arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import pytensorlib as pt

from .._ops import ops
from . import _recurrent
from ._einsum import einsum

__all__ = ["table"]

FORMS: dict[str, Callable[..., Any]] = {}


def of(*names: str) -> Callable[[Any], Any]:
    """Keep a function for operators, each by its name with its form."""

    def keep(f: Any) -> Any:
        FORMS.update(dict.fromkeys(names, f))
        return f

    return keep


@cache
def table() -> dict[Any, Any]:
    """Return the functions by operators."""
    found = {}
    for name, function in FORMS.items():
        packet, _, form = name.partition(".")
        found[getattr(getattr(ops.aten, packet), form or "default")] = function
    return found


def sizes(r: Any, x: Any) -> list[Any]:
    """Return the sizes of a tensor, open ones among them."""
    return list(r.__self__.sizes(x))


def product(values: Any) -> Any:
    n: Any = 1
    for v in values:
        n = n * v
    return n


@of("detach")
def _detach(r: Any, x: Any) -> Any:
    return r("alias", x)


@of("linear")
def _linear(r: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    turned = r("permute", weight, [1, 0])
    if x.dim() == 2:
        return r("mm", x, turned) if bias is None else r("addmm", bias, x, turned)
    shape = sizes(r, x)
    if x.dim() == 1:
        made = r("view", r("mm", r("unsqueeze", x, 0), turned), [weight.shape[0]])
        return made if bias is None else r("add", made, bias)
    rows = _reshape(r, x, [product(shape[:-1]), shape[-1]])
    made = r("mm", rows, turned) if bias is None else r("addmm", bias, rows, turned)
    return r("view", made, [*shape[:-1], weight.shape[0]])


def _convolution(n: int, transposed: bool) -> None:
    def plain(r: Any, x: Any, w: Any, b: Any = None, stride: Any = None, padding: Any = None,
              dilation: Any = None, groups: int = 1) -> Any:  # fmt: skip
        if isinstance(padding, str) or x.dim() == n + 1:
            return NotImplemented
        return r("convolution", x, w, b, stride or [1] * n, padding or [0] * n,
                 dilation or [1] * n, False, [0] * n, groups)  # fmt: skip

    def turned(
        r: Any, x: Any, w: Any, b: Any = None, stride: Any = None, padding: Any = None,
        output_padding: Any = None, groups: int = 1, dilation: Any = None,
    ) -> Any:  # fmt: skip
        if x.dim() == n + 1:
            return NotImplemented
        return r("convolution", x, w, b, stride or [1] * n, padding or [0] * n,
                 dilation or [1] * n, True, output_padding or [0] * n, groups)  # fmt: skip

    if transposed:
        FORMS[f"conv_transpose{n}d" if n == 1 else f"conv_transpose{n}d.input"] = turned
    else:
        FORMS[f"conv{n}d"] = plain


for _n in (1, 2, 3):
    _convolution(_n, False)
    _convolution(_n, True)


@of("batch_norm")
def _batch_norm(
    r: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, training: bool, momentum: float,
    eps: float, cudnn: bool,
) -> Any:  # fmt: skip
    if mean is None:
        return r("_native_batch_norm_legit", x, w, b, True, momentum, eps)[0]
    if training:
        return NotImplemented
    return r("_native_batch_norm_legit_no_training", x, w, b, mean, var, momentum, eps)[0]


@of("layer_norm")
def _layer_norm(
    r: Any, x: Any, shape: Any, w: Any = None, b: Any = None, eps: float = 1e-5, cudnn: bool = True
) -> Any:
    return r("native_layer_norm", x, shape, w, b, eps)[0]


@of("group_norm")
def _group_norm(
    r: Any, x: Any, groups: int, w: Any = None, b: Any = None, eps: float = 1e-5, cudnn: bool = True
) -> Any:
    n, c, *rest = sizes(r, x)
    return r("native_group_norm", x, w, b, n, c, product(rest), groups, eps)[0]


@of("feature_dropout", "alpha_dropout")
def _other_dropout(r: Any, x: Any, p: float, train: bool) -> Any:
    return NotImplemented if train and p else r("clone", x)


@of("dropout")
def _dropout(r: Any, x: Any, p: float, train: bool) -> Any:
    return r("native_dropout", x, p, True)[0] if train and p else r("clone", x)


@of("max_pool2d")
def _max_pool2d(r: Any, x: Any, kernel: Any, *args: Any) -> Any:
    return r("max_pool2d_with_indices", x, kernel, *args)[0]


@of("max_pool3d")
def _max_pool3d(r: Any, x: Any, kernel: Any, *args: Any) -> Any:
    return r("max_pool3d_with_indices", x, kernel, *args)[0]


@of("adaptive_avg_pool2d")
def _adaptive_avg_pool2d(r: Any, x: Any, size: Any) -> Any:
    if list(size) == [1, 1]:
        return r("mean", x, [-1, -2], True)
    return r("_adaptive_avg_pool2d", x, size)


@of("flatten.using_ints")
def _flatten(r: Any, x: Any, start: int = 0, end: int = -1) -> Any:
    shape = sizes(r, x)
    if not shape:
        return r("view", x, [1])
    start, end = start % len(shape), end % len(shape)
    if start == end:
        return x
    whole = [*shape[:start], product(shape[start : end + 1]), *shape[end + 1 :]]
    return _reshape(r, x, whole)


def _viewable(t: Any, shape: Any) -> bool:
    try:
        t.view(shape)
    except RuntimeError:
        return False
    return True


def _fits(r: Any, x: Any, shape: Any) -> bool:
    """Return whether a tensor can be seen in another shape without a copy, in all examples."""
    tracer = r.__self__.tracer
    return all(
        _viewable(t, tracer.example(list(shape), i)) for i, t in enumerate(tracer.traced(x).shadows)
    )


@of("reshape")
def _reshape(r: Any, x: Any, shape: Any) -> Any:
    if not _fits(r, x, shape):
        x = r("clone", x, memory_format=pt.contiguous_format)
    return r("view", x, list(shape))


@of("view")
def _view(r: Any, x: Any, shape: Any) -> Any:
    # What other operators give may lie otherwise than what the program's gave.
    return NotImplemented if _fits(r, x, shape) else _reshape(r, x, shape)


@of("unflatten.int")
def _unflatten(r: Any, x: Any, dim: int, shape: Any) -> Any:
    have = sizes(r, x)
    dim %= len(have)
    return r("view", x, [*have[:dim], *shape, *have[dim + 1 :]])


def _swapped(x: Any, a: int, b: int) -> list[int]:
    order = list(range(x.dim()))
    order[a], order[b] = order[b], order[a]
    return order


@of("transpose.int")
def _transpose(r: Any, x: Any, a: int, b: int) -> Any:
    return r("permute", x, _swapped(x, a, b)) if x.dim() else x


@of("t", "mT")
def _t(r: Any, x: Any) -> Any:
    return r("permute", x, _swapped(x, -1, -2)) if x.dim() > 1 else x


@of("numpy_T")
def _numpy_t(r: Any, x: Any) -> Any:
    return r("permute", x, list(range(x.dim()))[::-1])


@of("softmax.int")
def _softmax(r: Any, x: Any, dim: int, dtype: Any = None) -> Any:
    if dtype is not None and dtype is not x.dtype:
        x = r("_to_copy", x, dtype=dtype)
    return r("_softmax", x, dim, False)


@of("log_softmax.int")
def _log_softmax(r: Any, x: Any, dim: int, dtype: Any = None) -> Any:
    if dtype is not None and dtype is not x.dtype:
        x = r("_to_copy", x, dtype=dtype)
    return r("_log_softmax", x, dim, False)


@of("matmul")
def _matmul(r: Any, a: Any, b: Any) -> Any:
    if a.dim() == 2 and b.dim() == 2:
        return r("mm", a, b)
    if a.dim() == 3 and b.dim() == 3 and a.shape[0] == b.shape[0]:
        return r("bmm", a, b)
    if a.dim() > 2 and b.dim() == 2:
        shape = sizes(r, a)
        rows = _reshape(r, a, [product(shape[:-1]), shape[-1]])
        return r("view", r("mm", rows, b), [*shape[:-1], b.shape[1]])
    if a.dim() == b.dim() > 3 and a.shape[:-2] == b.shape[:-2]:
        left, right = sizes(r, a), sizes(r, b)
        n = product(left[:-2])
        a = _reshape(r, r("expand", a, left), [n, *left[-2:]])
        b = _reshape(r, r("expand", b, right), [n, *right[-2:]])
        made = r("bmm", a, b)
        return r("view", made, [*left[:-1], right[-1]])
    return NotImplemented


@of("scaled_dot_product_attention")
def _attention(
    r: Any, q: Any, k: Any, v: Any, mask: Any = None, p: float = 0.0, is_causal: bool = False, *,
    scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if enable_gqa or q.dim() < 3:
        return NotImplemented
    factor = math.sqrt(1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        rows, columns = sizes(r, q)[-2], sizes(r, k)[-2]
        if mask is not None or not (type(rows) is type(columns) is int):
            return NotImplemented
        scaled = r("mul.Scalar", q, factor)
        every = r("full", [rows, columns], True, dtype=pt.bool, device=q.device)
        mask = r("logical_and", _below(r, q, rows, columns, 0), every)
    if mask is not None and mask.dtype is pt.bool:
        hidden = _number(r, q, float("-inf"))
        mask = r("where", mask, _number(r, q, 0.0), hidden)
    if not is_causal:
        scaled = r("mul.Scalar", q, factor)
    keys = r("mul.Scalar", r("permute", k, _swapped(k, -1, -2)), factor)
    scores = r("matmul", scaled, keys)
    if mask is not None:
        scores = r("add", scores, mask)
    weights = r("_softmax", scores, -1, False)
    # A row that sees nothing gives zeros.
    seen = r("any", r("logical_not", r("eq", scores, float("-inf"))), -1, True)
    weights = r("where", r("logical_not", seen), r("full_like", weights, 0), weights)
    if p:
        weights = r("native_dropout", weights, p, True)[0]
    made = r("matmul", weights, v)
    if q.dim() != 4:
        return made
    # In the memory order of what the operator gives: heads within positions.
    made = r("clone", r("permute", made, [2, 0, 1, 3]), memory_format=pt.contiguous_format)
    return r("permute", made, [1, 2, 0, 3])


@of("silu")
def _silu(r: Any, x: Any) -> Any:
    return r("mul", x, r("sigmoid", x))


@of("relu6")
def _relu6(r: Any, x: Any) -> Any:
    return r("hardtanh", x, 0.0, 6.0)


def _to_six(r: Any, x: Any) -> Any:
    return r("clamp", r("clamp", r("add", x, 3), 0), None, 6)


@of("hardswish")
def _hardswish(r: Any, x: Any) -> Any:
    return r("div", r("mul", x, _to_six(r, x)), 6)


@of("hardsigmoid")
def _hardsigmoid(r: Any, x: Any) -> Any:
    return r("div", _to_six(r, x), 6)


@of("stack")
def _stack(r: Any, tensors: Any, dim: int = 0) -> Any:
    dim %= tensors[0].dim() + 1
    return r("cat", [r("unsqueeze", t, dim) for t in tensors], dim)


@of("expand_as")
def _expand_as(r: Any, x: Any, other: Any) -> Any:
    return r("expand", x, sizes(r, other))


@of("contiguous", "lift_fresh_copy")
def _copied(r: Any, x: Any, **options: Any) -> Any:
    return r("clone", x, **options)


@of("to.dtype")
def _to_dtype(r: Any, x: Any, dtype: Any, non_blocking: bool = False, copy: bool = False) -> Any:
    return x if dtype is x.dtype and not copy else r("_to_copy", x, dtype=dtype)


@of("type_as")
def _type_as(r: Any, x: Any, other: Any) -> Any:
    return x if other.dtype is x.dtype else r("_to_copy", x, dtype=other.dtype)


@of("rsub.Scalar")
def _rsub(r: Any, x: Any, other: Any, alpha: Any = 1) -> Any:
    return r("add", r("neg", x), other) if alpha == 1 else NotImplemented


@of("square")
def _square(r: Any, x: Any) -> Any:
    return r("pow", x, 2)


@of("std.dim")
def _std(r: Any, x: Any, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
    return r("sqrt", r("var", x, dim, correction=int(unbiased), keepdim=keepdim))


@of("var.dim")
def _var(r: Any, x: Any, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
    return r("var", x, dim, correction=int(unbiased), keepdim=keepdim)


# Tensors of one number, and parts of tensors.


def _filled(r: Any, shape: Any, value: Any, options: Any, like: Any = None) -> Any:
    kept = {k: v for k, v in options.items() if v is not None and k != "memory_format"}
    if kept.get("dtype") is None:
        kept["dtype"] = pt.get_default_dtype() if like is None else like.dtype
    if kept.get("device") is None and like is not None:
        kept["device"] = like.device
    return r("full", list(shape), value, **kept)


for _name, _value in (("zeros", 0), ("ones", 1)):

    def _made(r: Any, shape: Any, *, _value: int = _value, **options: Any) -> Any:
        return _filled(r, shape, _value, options)

    def _made_like(r: Any, x: Any, *, _value: int = _value, **options: Any) -> Any:
        return r("full_like", x, _value, **options)

    def _made_new(r: Any, x: Any, shape: Any, *, _value: int = _value, **options: Any) -> Any:
        return _filled(r, shape, _value, options, x)

    FORMS |= {_name: _made, f"{_name}_like": _made_like, f"new_{_name}": _made_new}


@of("new_full")
def _new_full(r: Any, x: Any, shape: Any, value: Any, **options: Any) -> Any:
    return _filled(r, shape, value, options, x)


@of("arange", "arange.start")
def _arange(r: Any, start: Any, end: Any = None, **options: Any) -> Any:
    if end is None:
        start, end = 0, start
    return r("arange", start, end, 1, **options)


def _number(r: Any, x: Any, value: Any) -> Any:
    return r("scalar_tensor", value, dtype=x.dtype, layout=pt.strided, device=x.device)


@of("masked_fill.Scalar")
def _masked_fill(r: Any, x: Any, mask: Any, value: Any) -> Any:
    return r("where", mask, _number(r, x, value), x)


@of("masked_fill.Tensor")
def _masked_fill_tensor(r: Any, x: Any, mask: Any, value: Any) -> Any:
    return r("where", mask, value, x) if value.dtype is x.dtype else NotImplemented


def _below(r: Any, x: Any, rows: int, columns: int, diagonal: int) -> Any:
    """Record where a matrix has its lower triangle."""
    across = r("unsqueeze", r("arange", 0, columns, 1, device=x.device), -2)
    down = r("unsqueeze", r("arange", 0, rows, 1, device=x.device), -1)
    return r("le", r("sub", across, down), diagonal)


@of("tril")
def _tril(r: Any, x: Any, diagonal: int = 0) -> Any:
    rows, columns = sizes(r, x)[-2:]
    if type(rows) is not int or type(columns) is not int:
        return NotImplemented
    return r("where", _below(r, x, rows, columns, diagonal), x, _number(r, x, 0))


@of("triu")
def _triu(r: Any, x: Any, diagonal: int = 0) -> Any:
    rows, columns = sizes(r, x)[-2:]
    if type(rows) is not int or type(columns) is not int:
        return NotImplemented
    lower = _below(r, x, rows, columns, diagonal - 1)
    return r("where", r("logical_not", lower), x, _number(r, x, 0))


def _parts(r: Any, x: Any, size: Any, dim: int) -> Any:
    dim %= x.dim()
    length = sizes(r, x)[dim]
    if type(length) is not int or type(size) is not int or size <= 0:
        return NotImplemented
    found = [min(size, length - i) for i in range(0, length, size)] or [0]
    return r("split_with_sizes", x, found, dim)


@of("split.Tensor")
def _split(r: Any, x: Any, size: Any, dim: int = 0) -> Any:
    return _parts(r, x, size, dim)


@of("split.sizes", "split")
def _split_sizes(r: Any, x: Any, found: Any, dim: int = 0) -> Any:
    return r("split_with_sizes", x, list(found), dim)


@of("chunk")
def _chunk(r: Any, x: Any, chunks: int, dim: int = 0) -> Any:
    length = sizes(r, x)[dim]
    return _parts(r, x, -(-length // chunks), dim) if type(length) is int else NotImplemented


@of("unbind.int")
def _unbind(r: Any, x: Any, dim: int = 0) -> Any:
    dim %= x.dim()
    length = sizes(r, x)[dim]
    if type(length) is not int:
        return NotImplemented
    return [r("squeeze", r("slice", x, dim, i, i + 1), [dim]) for i in range(length)]


@of("floor_divide")
def _floor_divide(r: Any, x: Any, y: Any) -> Any:
    return r("div", x, y, rounding_mode="floor")


@of("roll")
def _roll(r: Any, x: Any, shifts: Any, dims: Any = ()) -> Any:
    shape = sizes(r, x)
    if not dims or any(type(shape[d]) is not int or not shape[d] for d in dims):
        return NotImplemented
    for shift, d in zip(shifts, dims, strict=True):
        places = r("arange", 0, shape[d], 1, device=x.device)
        places = r("fmod", r("add", places, -shift % shape[d]), shape[d])
        x = r("index_select", x, d % x.dim(), places)
    return x


@of("narrow")
def _narrow(r: Any, x: Any, dim: int, start: Any, length: Any) -> Any:
    return r("slice", x, dim, start, start + length)


@of("clamp_min")
def _clamp_min(r: Any, x: Any, low: Any) -> Any:
    return r("clamp", x, low)


@of("clamp_max")
def _clamp_max(r: Any, x: Any, high: Any) -> Any:
    return r("clamp", x, None, high)


@of("pad")
def _pad(r: Any, x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    if mode == "constant":
        return r("constant_pad_nd", x, list(pad), 0.0 if value is None else value)
    if mode not in ("reflect", "replicate"):
        return NotImplemented
    shape = sizes(r, x)
    if any(type(n) is not int for n in (*shape, *pad)):
        return NotImplemented
    for i in range(len(pad) // 2):
        dim, before, after = x.dim() - 1 - i, pad[2 * i], pad[2 * i + 1]
        last = shape[dim] - 1
        places = r("arange", -before, last + 1 + after, 1, device=x.device)
        if mode == "replicate":
            places = r("clamp", places, 0, last)
        else:
            for _ in range(2):
                places = r("sub", last, r("abs", places))
        x = r("index", x, [*[None] * dim, places])
    return x


# Norms.


@of("rms_norm")
def _rms_norm(r: Any, x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    if x.dtype not in (pt.float32, pt.float64):
        return NotImplemented
    dims = list(range(x.dim() - len(shape), x.dim()))
    eps = pt.finfo(x.dtype).eps if eps is None else eps
    mean = r("mean", r("pow", x, 2), dims, True)
    made = r("mul", x, r("rsqrt", r("add.Scalar", mean, eps)))
    return made if weight is None else r("mul", made, weight)


@of("instance_norm")
def _instance_norm(
    r: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, own: bool, momentum: float, eps: float,
    cudnn: bool,
) -> Any:  # fmt: skip
    if mean is not None or not own:
        return NotImplemented
    n, c, *rest = shape = sizes(r, x)
    rows = _reshape(r, x, [1, n * c, *rest])
    made = r("_native_batch_norm_legit", rows, None, None, True, momentum, eps)[0]
    made = r("view", made, shape)
    for part, name in ((w, "mul"), (b, "add")):
        if part is not None:
            made = r(name, made, r("view", part, [1, c, *[1] * len(rest)]))
    return made


# Activations and losses.


@of("softplus")
def _softplus(r: Any, x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    scaled = x if beta == 1 else r("mul", x, beta)
    made = r("log1p", r("exp", scaled))
    made = made if beta == 1 else r("div", made, beta)
    return r("where", r("gt", scaled, threshold), x, made)


@of("mish")
def _mish(r: Any, x: Any) -> Any:
    return r("mul", x, r("tanh", _softplus(r, x)))


@of("log_sigmoid")
def _log_sigmoid(r: Any, x: Any) -> Any:
    low = r("minimum", _filled(r, [], 0, {}, x), x)
    return r("sub", low, r("log1p", r("exp", r("neg", r("abs", x)))))


@of("glu")
def _glu(r: Any, x: Any, dim: int = -1) -> Any:
    dim %= x.dim()
    length = sizes(r, x)[dim]
    if type(length) is not int:
        return NotImplemented
    half = length // 2
    first = r("slice", x, dim, 0, half)
    return r("mul", first, r("sigmoid", r("slice", x, dim, half, length)))


@of("selu")
def _selu(r: Any, x: Any) -> Any:
    return r("elu", x, 1.6732632423543772, 1.0507009873554805)  # arXiv:1706.02515


@of("celu")
def _celu(r: Any, x: Any, alpha: Any = 1.0) -> Any:
    low = r("expm1", x if alpha == 1 else r("div", x, alpha))
    low = low if alpha == 1 else r("mul", low, alpha)
    return r("where", r("gt", x, 0), x, low)


@of("special_expit")
def _expit(r: Any, x: Any) -> Any:
    return r("sigmoid", x)


def _reduced(r: Any, x: Any, reduction: int) -> Any:
    return x if reduction == 0 else r("mean", x) if reduction == 1 else r("sum", x, [])


@of("mse_loss")
def _mse_loss(r: Any, x: Any, y: Any, reduction: int = 1) -> Any:
    return _reduced(r, r("pow", r("sub", x, y), 2), reduction)


@of("l1_loss")
def _l1_loss(r: Any, x: Any, y: Any, reduction: int = 1) -> Any:
    return _reduced(r, r("abs", r("sub", x, y)), reduction)


def _rounded(r: Any, x: Any, y: Any, reduction: int, size: float, scale: float) -> Any:
    """A loss that is a square near zero."""
    away = r("abs", r("sub", x, y))
    square = r("mul", r("pow", away, 2), 0.5 * scale)
    line = r("mul", r("sub", away, 0.5 * size), scale * size)
    return _reduced(r, r("where", r("lt", away, size), square, line), reduction)


@of("smooth_l1_loss")
def _smooth_l1_loss(r: Any, x: Any, y: Any, reduction: int = 1, beta: float = 1.0) -> Any:
    if beta == 0:
        return _l1_loss(r, x, y, reduction)
    return _rounded(r, x, y, reduction, beta, 1 / beta)


@of("huber_loss")
def _huber_loss(r: Any, x: Any, y: Any, reduction: int = 1, delta: float = 1.0) -> Any:
    return _rounded(r, x, y, reduction, delta, 1.0)


@of("binary_cross_entropy_with_logits")
def _logits(
    r: Any, x: Any, y: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Any:
    logs = _log_sigmoid(r, x)
    if pos_weight is not None:
        logs = r("mul", logs, r("add", r("mul", r("sub", pos_weight, 1), y), 1))
    made = r("sub", r("mul", r("add", r("neg", y), 1), x), logs)
    return _reduced(r, made if weight is None else r("mul", made, weight), reduction)


@of("cross_entropy_loss")
def _cross_entropy(
    r: Any, x: Any, target: Any, weight: Any = None, reduction: int = 1,
    ignore_index: int = -100, label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    if weight is not None or label_smoothing or target.dtype.is_floating_point or x.dim() < 2:
        return NotImplemented
    logs = r("_log_softmax", x, 1, False)
    counts = r("ne", target, ignore_index)
    places = r("where", counts, target, _number(r, target, 0))
    found = r("gather", logs, 1, r("unsqueeze", places, 1))
    found = r("neg", r("squeeze", found, [1]))
    found = r("where", r("ne", target, ignore_index), found, _number(r, x, 0))
    if reduction == 1:
        total = r("sum", r("ne", target, ignore_index), [])
        total = r("_to_copy", total, dtype=x.dtype)
        return r("div", r("sum", found, []), total)
    return _reduced(r, found, reduction)


# Products.


@of("einsum")
def _einsum(r: Any, equation: str, tensors: Any, *, path: Any = None) -> Any:
    def step(name: str, *args: Any) -> Any:
        return _reshape(r, *args) if name == "shaped" else r(name, *args)

    made = einsum(step, lambda x: sizes(r, x), equation, tensors)
    return NotImplemented if made is None else made


@of("outer")
def _outer(r: Any, x: Any, y: Any) -> Any:
    return r("mul", r("view", x, [*sizes(r, x), 1]), y)


@of("baddbmm")
def _baddbmm(r: Any, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    made = r("bmm", a, b)
    made = made if alpha == 1 else r("mul", made, alpha)
    return r("add", x if beta == 1 else r("mul", x, beta), made)


@of("addcmul")
def _addcmul(r: Any, x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    product = r("mul", a if value == 1 else r("mul", a, value), b)
    return r("add", x, product)


@of("lerp.Scalar")
def _lerp(r: Any, x: Any, y: Any, weight: Any) -> Any:
    away = r("sub", y, x)
    if weight < 0.5:
        return r("add", x, r("mul", away, weight))
    return r("sub", y, r("mul", away, 1 - weight))


@of("logsumexp")
def _logsumexp(r: Any, x: Any, dim: Any, keepdim: bool = False) -> Any:
    dims = [dim] if isinstance(dim, int) else list(dim)
    if not dims:
        return NotImplemented
    most = r("amax", x, dims, True)
    bounded = r("where", r("eq", r("abs", most), math.inf), _number(r, x, 0.0), most)
    kept = bounded if keepdim else r("squeeze", bounded, dims)
    return r("add", r("log", r("sum", r("exp", r("sub", x, bounded)), dims, keepdim)), kept)


FORMS |= _recurrent.forms(sizes, _unbind)
