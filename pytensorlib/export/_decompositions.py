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
    if training or mean is None:
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


@of("dropout", "feature_dropout", "alpha_dropout")
def _dropout(r: Any, x: Any, p: float, train: bool) -> Any:
    return NotImplemented if train and p else r("clone", x)


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
        made = r("bmm", _reshape(r, a, [n, *left[-2:]]), _reshape(r, b, [n, *right[-2:]]))
        return r("view", made, [*left[:-1], right[-1]])
    return NotImplemented


@of("scaled_dot_product_attention")
def _attention(
    r: Any, q: Any, k: Any, v: Any, mask: Any = None, p: float = 0.0, is_causal: bool = False, *,
    scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if p or is_causal or enable_gqa or q.dim() < 3:
        return NotImplemented
    factor = math.sqrt(1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    keys = r("mul", r("permute", k, _swapped(k, -1, -2)), factor)
    scores = r("matmul", r("mul", q, factor), keys)
    if mask is not None and mask.dtype is pt.bool:
        zeros = r("full_like", scores, 0.0)
        scores = r("add", scores, r("masked_fill", zeros, r("logical_not", mask), float("-inf")))
    elif mask is not None:
        scores = r("add", scores, mask)
    weights = r("_softmax", scores, -1, False)
    if mask is not None:  # a row that sees nothing gives zeros
        hidden = r("logical_not", r("any", r("ne", scores, float("-inf")), -1, True))
        weights = r("where", hidden, r("full_like", weights, 0), weights)
    return r("matmul", weights, v)


@of("silu")
def _silu(r: Any, x: Any) -> Any:
    return r("mul", x, r("sigmoid", x))


@of("relu6")
def _relu6(r: Any, x: Any) -> Any:
    return r("hardtanh", x, 0.0, 6.0)


@of("hardswish")
def _hardswish(r: Any, x: Any) -> Any:
    return r("div", r("mul", x, r("clamp", r("add", x, 3), 0, 6)), 6)


@of("hardsigmoid")
def _hardsigmoid(r: Any, x: Any) -> Any:
    return r("div", r("clamp", r("add", x, 3), 0, 6), 6)


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
