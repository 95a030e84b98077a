"""The gradient of each operator as PyTorch's graphs have it, for `make_fx`.

A rule is given what writes operators, the gradient of the result, and the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytensorlib as pt

from ._writer import Call, Writer, viewable

__all__ = ["KEPT", "RULES", "WRITTEN", "kept", "ruled"]

_LAST = 2**63 - 1


# Rules. One by the arguments' names is asked for those that need a gradient, in the order of the
# names; the others give all gradients at once, by name. A rule gives None where it knows no more
# than the core.

Part = Callable[[Writer, Any, Call], Any]
RULES: dict[str, dict[str, Part] | Callable[..., Any]] = {}
# In place: whose gradient does not need what was there, or only by a copy; by which arguments.
WRITTEN = {
    **dict.fromkeys(
        "add exp masked_fill neg relu rsqrt sigmoid sqrt sub tanh transpose".split(), None
    ),
    "div": frozenset({"self"}),
    "mul": frozenset({"self"}),
}
# Operators whose gradient keeps their result.
KEPT: dict[str, tuple[int, ...]] = {}


def rule(*names: str, keeps: tuple[int, ...] = ()) -> Callable[[Any], Any]:
    """Keep a rule for operators, and which of their results it needs."""

    def keep(f: Any) -> Any:
        for name in names:
            RULES[name] = f
            if keeps:
                KEPT[name] = keeps
        return f

    return keep


def _times(r: Writer, g: Any, factor: Any) -> Any:
    return g if factor == 1 else r("mul.Scalar", g, factor)


def _options(t: Any) -> dict[str, Any]:
    return {"dtype": t.dtype, "layout": t.layout, "device": t.device}


def _zero(r: Writer, t: Any, value: Any) -> Any:
    return r("scalar_tensor", value, **_options(t))


rule("add")(
    {
        "other": lambda r, g, c: _times(r, g, c.alpha),
        "self": lambda r, g, c: g,
    }
)
rule("sub")(
    {
        "other": lambda r, g, c: r("neg", _times(r, g, c.alpha)),
        "self": lambda r, g, c: g,
    }
)
rule("rsub")(
    {
        "other": lambda r, g, c: g,
        "self": lambda r, g, c: r("neg", _times(r, g, c.alpha)),
    }
)
rule("mul")(
    {
        "other": lambda r, g, c: r("mul.Tensor", g, c.self),
        "self": lambda r, g, c: r(f"mul.{c.form}", g, c.other),
    }
)


@rule("div")
def _div(r: Writer, g: Any, c: Call) -> Any:
    if c.values.get("rounding_mode") is not None:
        return None
    found = {}
    if "other" in c.needs:
        twice = r("div.Tensor", r("div.Tensor", c.self, c.other), c.other)
        found["other"] = r("mul.Tensor", r("neg", g), twice)
    if "self" in c.needs:
        found["self"] = r(f"div.{c.form}", g, c.other)
    return found


# One input, whose gradient is written with it or with the result.


def _reciprocal(r: Writer, g: Any, c: Call) -> Any:
    square = r("mul.Tensor", c.result, c.result)
    return r("mul.Tensor", r("neg", g), square)


def _rsqrt(r: Writer, g: Any, c: Call) -> Any:
    cube = r("pow.Tensor_Scalar", c.result, 3)
    return r("mul.Tensor", r("mul.Scalar", g, -0.5), cube)


for _name, _part in {
    "abs": lambda r, g, c: r("mul.Tensor", g, r("sgn", c.self)),
    "cos": lambda r, g, c: r("mul.Tensor", g, r("neg", r("sin", c.self))),
    "erf": lambda r, g, c: r("mul.Tensor", r(
        "mul.Scalar", r("exp", r("neg", r("pow.Tensor_Scalar", c.self, 2))), 2 / math.sqrt(math.pi)
    ), g),
    "log": lambda r, g, c: r("div.Tensor", g, c.self),
    "log1p": lambda r, g, c: r("div.Tensor", g, r("add.Scalar", c.self, 1)),
    "neg": lambda r, g, c: r("neg", g),
    "sin": lambda r, g, c: r("mul.Tensor", g, r("cos", c.self)),
    "clone": lambda r, g, c: g,
    "t": lambda r, g, c: r("t", g),
    "flip": lambda r, g, c: r("flip", g, c.dims),
    "roll": lambda r, g, c: r("roll", g, [-n for n in c.shifts], c.dims),
    "transpose": lambda r, g, c: r("transpose.int", g, c.dim0, c.dim1),
    "expand": lambda r, g, c: r.fit(g, c.self.shape),
    "unsqueeze": lambda r, g, c: r("squeeze.dim", g, c.dim),
    "masked_fill": lambda r, g, c: r("masked_fill.Scalar", g, c.mask, 0),
    "_to_copy": lambda r, g, c: r("_to_copy", g, **_options(c.self)),
    "constant_pad_nd": lambda r, g, c: r("constant_pad_nd", g, [-n for n in c.pad]),
    "cumsum": lambda r, g, c: r("flip", r("cumsum", r("flip", g, [c.dim]), c.dim), [c.dim]),
    "select": lambda r, g, c: r("select_backward", g, list(c.self.shape), c.dim, c.index),
    "diagonal": lambda r, g, c: r(
        "diagonal_backward", g, list(c.self.shape), c.offset, c.dim1, c.dim2
    ),
    "slice": lambda r, g, c: g if c.self.shape == g.shape else r(
        "slice_backward", g, list(c.self.shape), c.dim, c.start or 0,
        _LAST if c.end is None else c.end, c.step,
    ),
    "gelu": lambda r, g, c: r(
        "gelu_backward", g, c.self,
        **({} if c.approximate == "none" else {"approximate": c.approximate}),
    ),
    "silu": lambda r, g, c: r("silu_backward", g, c.self),
    "mish": lambda r, g, c: r("mish_backward", g, c.self),
    "hardswish": lambda r, g, c: r("hardswish_backward", g, c.self),
    "hardsigmoid": lambda r, g, c: r("hardsigmoid_backward", g, c.self),
    "hardtanh": lambda r, g, c: r("hardtanh_backward", g, c.self, c.min_val, c.max_val),
    "leaky_relu": lambda r, g, c: r("leaky_relu_backward", g, c.self, c.negative_slope, False),
    "elu": lambda r, g, c: r(
        "elu_backward", g, c.alpha, c.scale, c.input_scale, False, c.self
    ),
    "celu": lambda r, g, c: r("elu_backward", g, c.alpha, 1, 1.0 / c.alpha, False, c.self),
    "softplus": lambda r, g, c: r("softplus_backward", g, c.self, c.beta, c.threshold),
    "threshold": lambda r, g, c: r("threshold_backward", g, c.self, c.threshold),
    "glu": lambda r, g, c: r("glu_backward", g, c.self, c.dim),
    "log_sigmoid_forward": lambda r, g, c: r("log_sigmoid_backward", g, c.self, c.results[1]),
    "avg_pool2d": lambda r, g, c: r(
        "avg_pool2d_backward", g, c.self, c.kernel_size, c.stride, c.padding, c.ceil_mode,
        c.count_include_pad, c.divisor_override,
    ),
    "avg_pool3d": lambda r, g, c: r(
        "avg_pool3d_backward", g, c.self, c.kernel_size, c.stride, c.padding, c.ceil_mode,
        c.count_include_pad, c.divisor_override,
    ),
    "_adaptive_avg_pool2d": lambda r, g, c: r("_adaptive_avg_pool2d_backward", g, c.self),
    "_adaptive_avg_pool3d": lambda r, g, c: r("_adaptive_avg_pool3d_backward", g, c.self),
    "max_pool2d_with_indices": lambda r, g, c: r(
        "max_pool2d_with_indices_backward", g, c.self, c.kernel_size, c.stride, c.padding,
        c.dilation, c.ceil_mode, c.results[1],
    ),
    "max_pool3d_with_indices": lambda r, g, c: r(
        "max_pool3d_with_indices_backward", g, c.self, c.kernel_size, c.stride, c.padding,
        c.dilation, c.ceil_mode, c.results[1],
    ),
    **{
        f"{kind}_pad{n}d": lambda r, g, c: r(f"{c.name}_backward", g, c.self, c.padding)
        for kind in ("reflection", "replication") for n in (1, 2, 3)
    },
    "im2col": lambda r, g, c: r(
        "col2im", g, list(c.self.shape[-2:]), c.kernel_size, c.dilation, c.padding, c.stride
    ),
    "col2im": lambda r, g, c: r("im2col", g, c.kernel_size, c.dilation, c.padding, c.stride),
}.items():  # fmt: skip
    RULES[_name] = {"self": _part}

for _name, _part in {
    "exp": lambda r, g, c: r("mul.Tensor", g, c.result),
    "expm1": lambda r, g, c: r("mul.Tensor", g, r("add.Scalar", c.result, 1)),
    "reciprocal": _reciprocal,
    "relu": lambda r, g, c: r("threshold_backward", g, c.result, 0),
    "rsqrt": _rsqrt,
    "sigmoid": lambda r, g, c: r("sigmoid_backward", g, c.result),
    "sqrt": lambda r, g, c: r("div.Tensor", g, r("mul.Scalar", c.result, 2)),
    "tanh": lambda r, g, c: r("tanh_backward", g, c.result),
    "_softmax": lambda r, g, c: r("_softmax_backward_data", g, c.result, c.dim, c.self.dtype),
    "_safe_softmax": lambda r, g, c: r("_softmax_backward_data", g, c.result, c.dim, c.self.dtype),
    "_log_softmax": lambda r, g, c: r(
        "_log_softmax_backward_data", g, c.result, c.dim, c.self.dtype
    ),
}.items():
    RULES[_name], KEPT[_name] = {"self": _part}, (0,)


@rule("pow")
def _pow(r: Writer, g: Any, c: Call) -> Any:
    n = c.exponent
    if isinstance(n, pt.Tensor) or not isinstance(c.self, pt.Tensor) or n == 0:
        return None
    inner = r("mul.Scalar", r("pow.Tensor_Scalar", c.self, float(n) - 1.0), float(n))
    return {"self": r("mul.Tensor", g, inner)}


@rule("nan_to_num")
def _nan_to_num(r: Writer, g: Any, c: Call) -> Any:
    bounded = r("ne.Scalar", r("abs", c.self), math.inf)
    known = r("mul.Tensor", r("eq.Tensor", c.self, c.self), bounded)
    return {"self": r("mul.Tensor", g, known)}


def _share(r: Writer, g: Any, a: Any, b: Any) -> Any:
    return r("div.Tensor", g, r("add.Scalar", r("exp", r("sub.Tensor", a, b)), 1))


rule("logaddexp")(
    {
        "other": lambda r, g, c: _share(r, g, c.self, c.other),
        "self": lambda r, g, c: _share(r, g, c.other, c.self),
    }
)


def _xlogy(r: Writer, g: Any, c: Call) -> Any:
    made = r("xlogy.Tensor", g, c.other)
    low = r("le.Scalar", c.other, 0.0)
    none = r("bitwise_and.Tensor", r("eq.Scalar", c.self, 0.0), low)
    return r("masked_fill.Scalar", made, none, 0.0)


rule("xlogy")(
    {
        "other": lambda r, g, c: r("div.Tensor", r("mul.Tensor", g, c.self), c.other),
        "self": _xlogy,
    }
)
rule("pixel_shuffle")({"self": lambda r, g, c: r("pixel_unshuffle", g, c.upscale_factor)})
rule("pixel_unshuffle")({"self": lambda r, g, c: r("pixel_shuffle", g, c.downscale_factor)})


@rule("atan2")
def _atan2(r: Writer, g: Any, c: Call) -> Any:
    right = r("mul.Tensor", c.other, c.other)
    square = r("add.Tensor", r("mul.Tensor", c.self, c.self), right)
    inverse = r("reciprocal", square)
    inverse = r("masked_fill.Scalar", inverse, r("eq.Scalar", square, 0), 0)
    found = {}
    if "self" in c.needs:
        found["self"] = r("mul.Tensor", r("mul.Tensor", g, c.other), inverse)
    if "other" in c.needs:
        found["other"] = r("mul.Tensor", r("mul.Tensor", g, r("neg", c.self)), inverse)
    return found


# Products.


def _by_left(r: Writer, g: Any, left: Any, right: Any) -> Any:
    """The gradient of a product of matrices by the left one, in its memory order."""
    if left.stride(0) == 1 and left.stride(1) == left.shape[0]:
        return r("t", r("mm", right, r("t", g)))
    return r("mm", g, r("t", right))


def _by_right(r: Writer, g: Any, left: Any, right: Any) -> Any:
    if right.stride(0) == 1 and right.stride(1) == right.shape[0]:
        return r("t", r("mm", r("t", g), left))
    return r("mm", r("t", left), g)


rule("mm")(
    {
        "mat2": lambda r, g, c: _by_right(r, g, c.self, c.mat2),
        "self": lambda r, g, c: _by_left(r, g, c.self, c.mat2),
    }
)
rule("addmm")(
    {
        "mat1": lambda r, g, c: _times(r, _by_left(r, g, c.mat1, c.mat2), c.alpha),
        "mat2": lambda r, g, c: _times(r, _by_right(r, g, c.mat1, c.mat2), c.alpha),
        "self": lambda r, g, c: _times(r, g, c.beta),
    }
)
rule("bmm")(
    {
        "mat2": lambda r, g, c: r("bmm", r("transpose.int", c.self, 1, 2), g),
        "self": lambda r, g, c: r("bmm", g, r("transpose.int", c.mat2, 1, 2)),
    }
)
rule("baddbmm")(
    {
        "batch1": lambda r, g, c: _times(
            r, r("bmm", g, r("transpose.int", c.batch2, 1, 2)), c.alpha
        ),
        "batch2": lambda r, g, c: _times(
            r, r("bmm", r("transpose.int", c.batch1, 1, 2), g), c.alpha
        ),
        "self": lambda r, g, c: _times(r, g, c.beta),
    }
)
rule("mv")(
    {
        "self": lambda r, g, c: r("mul.Tensor", r("view", g, [g.shape[0], 1]), c.vec),
        "vec": lambda r, g, c: r("mv", r("t", c.self), g),
    }
)
rule("dot")(
    {
        "self": lambda r, g, c: r("mul.Tensor", g, c.tensor),
        "tensor": lambda r, g, c: r("mul.Tensor", g, c.self),
    }
)


# Shapes.


@rule("view", "_unsafe_view", "reshape")
def _view(r: Writer, g: Any, c: Call) -> Any:
    shape = list(c.self.shape)
    if not viewable(g, shape):
        whole = r("clone", g, memory_format=pt.contiguous_format)
        return {"self": r("_unsafe_view", whole, shape)}
    return {"self": r("view", g, shape)}


@rule("permute")
def _permute(r: Writer, g: Any, c: Call) -> Any:
    dims = [d % c.self.dim() for d in c.dims]
    return {"self": r("permute", g, [dims.index(d) for d in range(len(dims))])}


@rule("squeeze")
def _squeeze(r: Writer, g: Any, c: Call) -> Any:
    n = c.self.dim()
    dims = c.values.get("dim")
    if dims is None:
        dims = [d for d in range(n) if c.self.shape[d] == 1]
    dims = sorted(d % n for d in ([dims] if isinstance(dims, int) else dims)) if n else []
    for d in dims:
        if c.self.shape[d] == 1:
            g = r("unsqueeze", g, d)
    return {"self": g}


def _pieces(r: Writer, gs: Any, shapes: Sequence[Any], like: Any) -> list[Any]:
    """The gradients of parts, zeros where there is none."""
    return [
        r("zeros", list(s), **_options(like)) if g is None else g
        for g, s in zip(gs, shapes, strict=True)
    ]


@rule("split", "split_with_sizes", "unsafe_split")
def _split(r: Writer, g: Any, c: Call) -> Any:
    like = next(v for v in c.grads if v is not None)
    parts = _pieces(r, c.grads, [t.shape for t in c.results], like)
    return {"self": r("cat", parts, *([c.dim % c.self.dim()] if c.dim else []))}


@rule("unbind")
def _unbind(r: Writer, g: Any, c: Call) -> Any:
    like = next(v for v in c.grads if v is not None)
    parts = []
    for v in c.grads:
        if v is None:
            v = r("expand", r("zeros", [], **_options(like)), list(like.shape))
        parts.append(v)
    return {"self": r("stack", parts, *([c.dim] if c.dim else []))}


@rule("cat")
def _cat(r: Writer, g: Any, c: Call) -> Any:
    found, start = {}, 0
    dim = c.dim % g.dim()
    for i, t in enumerate(c.tensors):
        if t.dim() != g.dim():
            return None
        end = start + t.shape[dim]
        if f"tensors.{i}" in c.needs:
            found[f"tensors.{i}"] = r("slice.Tensor", g, dim, start, end)
        start = end
    return found


@rule("stack")
def _stack(r: Writer, g: Any, c: Call) -> Any:
    dim = c.dim % g.dim()
    return {
        f"tensors.{i}": r("select.int", g, dim, i)
        for i in range(len(c.tensors))
        if f"tensors.{i}" in c.needs
    }


# Reductions.


def _dims(c: Call) -> list[int]:
    dims = c.values.get("dim")
    dims = [dims] if isinstance(dims, int) else list(dims or [])
    n = c.self.dim()
    return sorted(d % n for d in dims) if n else []


def _restored(r: Writer, t: Any, c: Call) -> Any:
    """Put back dimensions that a reduction left out."""
    if not c.values.get("keepdim"):
        dims = c.values.get("dim")
        one = [dims] if isinstance(dims, int) else dims
        for d in one if one and len(one) == 1 and c.self.dim() else _dims(c):
            t = r("unsqueeze", t, d)
    return t


def _spread(r: Writer, g: Any, c: Call) -> Any:
    return r("expand", _restored(r, g, c), list(c.self.shape))


@rule("sum")
def _sum(r: Writer, g: Any, c: Call) -> Any:
    if c.self.dim() and "dim" in c.values and not c.values["dim"]:
        return None
    return {"self": _spread(r, g, c)}


@rule("mean")
def _mean(r: Writer, g: Any, c: Call) -> Any:
    if c.self.dim() and "dim" in c.values and not c.values["dim"]:
        return None
    dims = _dims(c) if "dim" in c.values else range(c.self.dim())
    return {"self": r("div.Scalar", _spread(r, g, c), math.prod(c.self.shape[d] for d in dims))}


@rule("max", "min", "topk", "sort", "kthvalue", "median", "mode")
def _selected(r: Writer, g: Any, c: Call) -> Any:
    if len(c.results) == 1 and c.name in ("max", "min"):
        missing = r("logical_and", r("isnan", c.self), r("isnan", c.result))
        best = r("logical_or_", r("eq.Tensor", c.self, c.result), missing)
        return {"self": r("mul.Tensor", best, r("div.Tensor", g, r("sum", best)))}
    if len(c.results) < 2 or not c.self.dim():
        return None
    places = c.results[1]
    if "keepdim" in c.values:
        g, places = _restored(r, g, c), _restored(r, places, c)
    zeros = r("new_zeros", g, list(c.self.shape))
    return {"self": r("scatter.src", zeros, c.dim, places, g)}


KEPT |= {"max.default": (0,), "min.default": (0,)}


@rule("amax", "amin", keeps=(0,))
def _extreme(r: Writer, g: Any, c: Call) -> Any:
    dims = _dims(c)
    if not dims:
        return None
    kept = [1 if d in dims else n for d, n in enumerate(c.self.shape)]
    whole = not c.keepdim
    best = r("view", c.result, kept) if whole else c.result
    at = r("eq.Tensor", best, c.self)
    g = r("view", g, kept) if whole else g
    count = r("sum.dim_IntList", at, dims, True)
    return {"self": r("mul.Tensor", r("div.Tensor", g, count), at)}


def _variance(r: Writer, g: Any, c: Call) -> Any:
    dims, correction = _dims(c), c.values.get("correction")
    if not dims:
        return None
    correction = 1 if correction is None else correction
    free = math.prod(c.self.shape[d] for d in dims) - correction
    if free <= 0:
        return None
    g = _restored(r, g, c)
    away = r("sub.Tensor", c.self, r("mean.dim", c.self, list(c.dim), True))
    return r("mul.Tensor", r("mul.Scalar", g, 2.0 / free), away)


@rule("var", "var_mean")
def _var(r: Writer, g: Any, c: Call) -> Any:
    if g is None or any(v is not None for v in c.grads[1:]):
        return None
    made = _variance(r, g, c)
    return None if made is None else {"self": made}


@rule("std", keeps=(0,))
def _std(r: Writer, g: Any, c: Call) -> Any:
    if not _dims(c):
        return None
    part = r("div.Tensor", g, r("mul.Scalar", c.result, 2))
    part = r("masked_fill_.Scalar", part, r("eq.Scalar", c.result, 0), 0)
    made = _variance(r, part, c)
    return None if made is None else {"self": made}


@rule("linalg_vector_norm", "norm", keeps=(0,))
def _norm(r: Writer, g: Any, c: Call) -> Any:
    p = c.values.get("ord", c.values.get("p", 2))
    if p != 2:
        return None
    length = c.result
    if c.values.get("dim") is not None:
        g, length = _restored(r, g, c), _restored(r, length, c)
    unit = r("div.Tensor", c.self, length)
    unit = r("masked_fill_.Scalar", unit, r("eq.Scalar", length, 0), 0)
    return {"self": r("mul.Tensor", g, unit)}


@rule("logsumexp", keeps=(0,))
def _logsumexp(r: Writer, g: Any, c: Call) -> Any:
    g, made = _restored(r, g, c), _restored(r, c.result, c)
    return {"self": r("mul.Tensor", g, r("exp", r("sub.Tensor", c.self, made)))}


# Choices.


def _clamped(r: Writer, g: Any, c: Call, low: Any, high: Any) -> Any:
    if isinstance(low, pt.Tensor) or isinstance(high, pt.Tensor):
        return None
    zero = _zero(r, g, 0.0)
    inside = None if low is None else r("ge.Scalar", c.self, low)
    if high is not None:
        under = r("le.Scalar", c.self, high)
        inside = under if inside is None else r("logical_and_", inside, under)
    return {"self": r("where.self", inside, g, zero)}


rule("clamp")(lambda r, g, c: _clamped(r, g, c, c.min, c.max))
rule("clamp_min")(lambda r, g, c: _clamped(r, g, c, c.min, None))
rule("clamp_max")(lambda r, g, c: _clamped(r, g, c, None, c.max))


@rule("where")
def _where(r: Writer, g: Any, c: Call) -> Any:
    found = {}
    if "other" in c.needs:
        found["other"] = r("where.self", c.condition, _zero(r, g, 0), g)
    if "self" in c.needs:
        zero = _zero(r, g, 0)
        found["self"] = r("where.self", c.condition, g, zero)
    return found


@rule("maximum", "minimum")
def _greater(r: Writer, g: Any, c: Call) -> Any:
    def part(lost: str) -> Any:
        half = r("div.Scalar", g, 2)
        shared = r("where.self", r("eq.Tensor", c.self, c.other), half, g)
        return r("masked_fill_.Scalar", shared, r(lost, c.self, c.other), 0)

    lost = ("gt.Tensor", "lt.Tensor") if c.name == "maximum" else ("lt.Tensor", "gt.Tensor")
    found = {}
    if "other" in c.needs:
        found["other"] = part(lost[0])
    if "self" in c.needs:
        found["self"] = part(lost[1])
    return found


@rule("lerp")
def _lerp(r: Writer, g: Any, c: Call) -> Any:
    if isinstance(c.weight, pt.Tensor):
        return None
    return {
        name: r("mul.Scalar", g, factor)
        for name, factor in (("end", c.weight), ("self", 1 - c.weight))
        if name in c.needs
    }


@rule("addcmul")
def _addcmul(r: Writer, g: Any, c: Call) -> Any:
    found = {}
    if "self" in c.needs:
        found["self"] = g
    for name, other in (("tensor1", c.tensor2), ("tensor2", c.tensor1)):
        if name in c.needs:
            found[name] = r("mul.Tensor", g, _times(r, other, c.value))
    return found


# Indices.


@rule("index")
def _index(r: Writer, g: Any, c: Call) -> Any:
    zeros = r("new_zeros", g, list(c.self.shape), **_options(c.self))
    return {"self": r("index_put", zeros, list(c.indices), g, True)}


@rule("index_select")
def _index_select(r: Writer, g: Any, c: Call) -> Any:
    zeros = r("new_zeros", g, list(c.self.shape), **_options(c.self))
    return {"self": r("index_add", zeros, c.dim, c.index, g)}


@rule("gather")
def _gather(r: Writer, g: Any, c: Call) -> Any:
    zeros = r("new_zeros", g, list(c.self.shape))
    return {"self": r("scatter_add", zeros, c.dim, c.index, g)}


rule("scatter_add")(
    {
        "self": lambda r, g, c: g,
        "src": lambda r, g, c: r("gather", g, c.dim, c.index),
    }
)


@rule("embedding")
def _embedding(r: Writer, g: Any, c: Call) -> Any:
    rest = c.weight.shape[0], c.padding_idx, c.scale_grad_by_freq
    return {"weight": r("embedding_dense_backward", g, c.indices, *rest)}


# Layers.


def _masked(found: Sequence[Any], names: Sequence[str], c: Call) -> dict[str, Any]:
    return {n: v for n, v in zip(names, found, strict=True) if n in c.needs}


@rule("convolution")
def _convolution(r: Writer, g: Any, c: Call) -> Any:
    names = ("input", "weight", "bias")
    sizes = [0] if c.bias is None else list(c.bias.shape)
    rest = c.stride, c.padding, c.dilation, c.transposed, c.output_padding, c.groups
    mask = [n in c.needs for n in names]
    made = r("convolution_backward", g, c.input, c.weight, sizes, *rest, mask)
    return _masked(made, names, c)


@rule("native_layer_norm")
def _layer_norm(r: Writer, g: Any, c: Call) -> Any:
    names = ("input", "weight", "bias")
    mask = [n in c.needs for n in names]
    made = r(
        "native_layer_norm_backward", g, c.input, list(c.normalized_shape), *c.results[1:],
        c.weight, c.bias, mask,
    )  # fmt: skip
    return _masked(made, names, c)


@rule("native_group_norm", keeps=(1, 2))
def _group_norm(r: Writer, g: Any, c: Call) -> Any:
    names = ("input", "weight", "bias")
    mask = [n in c.needs for n in names]
    if not g.is_contiguous():
        g = r("clone", g, memory_format=pt.contiguous_format)
    rest = c.N, c.C, c.HxW, c.group
    made = r("native_group_norm_backward", g, c.input, *c.saved, c.weight, *rest, mask)
    return _masked(made, names, c)


@rule("native_batch_norm")
def _batch_norm(r: Writer, g: Any, c: Call) -> Any:
    names = ("input", "weight", "bias")
    mask = [n in c.needs for n in names]
    made = r(
        "native_batch_norm_backward", g, c.input, c.weight, c.running_mean, c.running_var,
        *c.results[1:], c.training, c.eps, mask,
    )  # fmt: skip
    return _masked(made, names, c)


@rule("_prelu_kernel")
def _prelu(r: Writer, g: Any, c: Call) -> Any:
    return _masked(r("_prelu_kernel_backward", g, c.self, c.weight), ("self", "weight"), c)


@rule("_scaled_dot_product_flash_attention_for_cpu", keeps=(0,))
def _attention(r: Writer, g: Any, c: Call) -> Any:
    named = {"attn_mask": c.attn_mask}
    if c.scale is not None:
        named["scale"] = c.scale
    args = g, c.query, c.key, c.value, c.result, c.results[1], c.dropout_p, c.is_causal
    made = r("_scaled_dot_product_flash_attention_for_cpu_backward", *args, **named)
    return _masked(made, ("query", "key", "value"), c)


@rule("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d",
      "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d")  # fmt: skip
def _upsample(r: Writer, g: Any, c: Call) -> Any:
    rest = [v for k, v in c.values.items() if k not in ("self", "output_size")]
    while rest and rest[-1] is None:
        rest.pop()
    sizes = list(c.output_size), list(c.self.shape)
    return {"self": r(f"{c.name}_backward", g, *sizes, *rest)}


# Losses.


@rule("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss(r: Writer, g: Any, c: Call) -> Any:
    args = c.target, c.weight, c.reduction, c.ignore_index, c.results[1]
    name = c.name.replace("_forward", "_backward")
    # Called the target of the loss, not the operator.
    return {"self": r(name, g, c.self, c.values["target"], *args[1:])}


@rule("mse_loss", "smooth_l1_loss", "huber_loss")
def _loss(r: Writer, g: Any, c: Call) -> Any:
    more = [c.values[n] for n in ("beta", "delta") if n in c.values]
    a, b = c.values["self"], c.values["target"]
    return {
        name: r(f"{c.name}_backward", g, x, y, c.reduction, *more)
        for name, x, y in (("self", a, b), ("target", b, a))
        if name in c.needs
    }


@rule("binary_cross_entropy_with_logits")
def _logits(r: Writer, g: Any, c: Call) -> Any:
    if c.needs != {"self"} or c.weight is not None or c.pos_weight is not None:
        return None
    away = r("sub.Tensor", r("sigmoid", c.self), c.values["target"])
    made = r("mul.Tensor", away, g)
    return {"self": r("div_.Scalar", made, c.self.numel()) if c.reduction == 1 else made}


@rule("mkldnn_rnn_layer", keeps=(0, 1, 2))
def _rnn_layer(r: Writer, g: Any, c: Call) -> Any:
    names = ("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_")
    tensors = [c.values[n] for n in names]
    sizes = c.mode, c.hidden_size, c.num_layers, c.has_biases, c.train, c.bidirectional
    made = r(
        "mkldnn_rnn_layer_backward", *tensors, *c.saved, *c.grads[:3], c.reverse, *sizes,
        list(c.batch_sizes), c.batch_first, c.results[3],
    )  # fmt: skip
    return _masked(made, names, c)


@rule("binary_cross_entropy")
def _binary_cross_entropy(r: Writer, g: Any, c: Call) -> Any:
    if c.needs != {"self"}:
        return None
    args = c.values["target"], c.weight, c.reduction
    return {"self": r("binary_cross_entropy_backward", g, c.self, *args)}


def kept(call: Call) -> list[Any]:
    """Return the results that the gradient of a call keeps."""
    own = f"{call.name}.{call.target._overloadname}"
    return [call.results[i] for i in KEPT.get(own, KEPT.get(call.name, ()))]


def ruled(r: Writer, call: Call) -> Any:
    """Return the gradients by the names of arguments, or None where the rule gives none."""
    part: Any = RULES[call.name]
    g = call.grads[0]
    if call.target._opname.endswith("_") and not call.copied:
        alone = WRITTEN.get(call.name, frozenset())
        if alone is not None and not call.needs <= alone:
            return None
    tensors = [v for v in call.values.values() if isinstance(v, pt.Tensor)]
    if any(t.is_complex() for t in tensors):
        return None
    if not isinstance(part, dict):
        made = part(r, g, call)
        return made if made is not None and call.needs <= made.keys() else None
    if g is None or not call.needs <= part.keys():
        return None
    return {name: part[name](r, g, call) for name in sorted(call.needs)}
