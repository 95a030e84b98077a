"""How PyTorch composes functions and gradients that are one operator here, for `make_fx`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ... import _C
from ..._ops import ops
from ...export import _methods
from ...utils._python_dispatch import _disable_current_modes
from .._names import Namespace

__all__ = ["below", "factory_options", "form"]

_aten = ops.aten


# Functions: what computes them with simpler ones, or None where they are one operator.


def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    if input.dim() < 3 or weight.dim() != 2 or not input.is_contiguous():
        return None
    rows = input.view(input.shape[:-1].numel(), input.shape[-1])
    columns = weight.t()
    if bias is None:
        return rows.mm(columns).view(*input.shape[:-1], weight.shape[0])
    return pt.addmm(bias, rows, columns).view(*input.shape[:-1], weight.shape[0])


def _square(input: Any) -> Any:
    return input.pow(2)


def _one(value: Any) -> int:
    return value if isinstance(value, int) else value[0]


def _max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    if return_indices or input.dim() != 3:
        return None
    size = _one(kernel_size)
    step = size if stride is None else _one(stride)
    places = [1, step], [0, _one(padding)], [1, _one(dilation)]
    wide = input.unsqueeze(-2)
    return pt.max_pool2d(wide, [1, size], *places, ceil_mode).squeeze(-2)


def _avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    if input.dim() != 3:
        return None
    size = _one(kernel_size)
    step = size if stride is None else _one(stride)
    places = [1, step], [0, _one(padding)]
    wide = input.unsqueeze(-2)
    made = pt.nn.functional.avg_pool2d(wide, [1, size], *places, ceil_mode, count_include_pad)
    return made.squeeze(-2)


def _prelu(input: Any, weight: Any) -> Any:
    sizes = [weight.numel() if d == 1 else 1 for d in range(max(input.dim(), 1))]
    return _aten._prelu_kernel.default(input, weight.view(sizes))


def _kl_div(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    if log_target or not (size_average is reduce is None):
        return None
    product = target.mul(input)
    each = pt.xlogy(target, target).sub(product)
    if reduction == "batchmean":
        return each.sum().div(input.shape[0])
    return each if reduction == "none" else each.sum() if reduction == "sum" else each.mean()


def _rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    last = range(input.dim() - len(normalized_shape), input.dim())
    eps = pt.finfo(input.dtype).eps if eps is None else eps
    if input.dtype not in (pt.float32, pt.float64):
        return None
    made = input.mul(pt.rsqrt(input.pow(2).mean(list(last), True).add_(eps)))
    return made if weight is None else made.mul(weight)


def _instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    if not (running_mean is running_var is weight is bias is None) or not input.is_contiguous():
        return None
    n, c, *sizes = input.shape
    rows = input.view(1, n * c, *sizes)
    made = pt.nn.functional.batch_norm(
        rows, None, None, None, None, training=True, momentum=momentum, eps=eps
    )
    return made.view(n, c, *sizes)


def _spread(name: str) -> Callable[..., Any]:
    def rule(
        input: Any, dim: Any = None, unbiased: Any = True, keepdim: bool = False, **more: Any
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        dims = [dim] if isinstance(dim, int) else dim
        more = {"correction": int(unbiased), **more}
        return getattr(_aten, name).correction(input, dims, keepdim=keepdim, **more)

    return rule


def _outer(input: Any, vec2: Any) -> Any:
    return input.view(input.shape[0], 1).mul(vec2) if input.is_contiguous() else None


def _normalize(
    input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None
) -> Any:
    if out is not None:
        return None
    length = pt.linalg.vector_norm(input, p, dim, keepdim=True)
    return input / length.clamp_min(eps).expand_as(input)


def _cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    if not (size_average is reduce is None) or (label_smoothing and weight is not None):
        return None
    dim = 0 if input.dim() == 1 else 1
    if not target.is_floating_point():
        if label_smoothing:
            return None
        logs = pt.log_softmax(input, dim)
        return pt.nn.functional.nll_loss(
            logs, target, weight, ignore_index=ignore_index, reduction=reduction
        )
    if label_smoothing or weight is not None or reduction == "none":
        return None
    made = pt.log_softmax(input, dim).mul(target).sum().neg()
    count = input.numel() // input.shape[dim]
    return made if reduction == "sum" else _aten.div.Scalar(made, count)


_FORMS: dict[str, Callable[..., Any]] = {
    "avg_pool1d": _avg_pool1d,
    "cross_entropy": _cross_entropy,
    "instance_norm": _instance_norm,
    "kl_div": _kl_div,
    "linear": _linear,
    "max_pool1d": _max_pool1d,
    "normalize": _normalize,
    "outer": _outer,
    "prelu": _prelu,
    "rms_norm": _rms_norm,
    "square": _square,
    "std_mean": _spread("std_mean"),
    "var_mean": _spread("var_mean"),
}


def form(func: Any) -> Callable[..., Any] | None:
    """Return what computes a function with simpler ones, or None.

    Parameters
    ----------
    func : callable
        A function or method.
    """
    return _FORMS.get(getattr(func, "__name__", ""))


# Operators of the core that keep parameters to themselves: what computes the same in PyTorch's
# graphs. What they give is compared: where a parameter is not the default they stay as they are.


def _mul(g: Any, y: Any, a: Any, b: Any) -> Any:
    return g.mul(a if b is g else b)


def _div(g: Any, y: Any, a: Any, b: Any) -> Any:
    return g.div(b) if a is g else g.neg().mul(a.div(b).div(b))


def _erf(g: Any, y: Any, x: Any) -> Any:
    return x.pow(2).neg().exp().mul(2 / math.sqrt(math.pi)).mul(g)


def _power(g: Any, x: Any, n: float) -> Any:
    return g.mul(x.pow(n - 1.0).mul(float(n)))


# The gradient of an operator, given that of its result, its result and its operands.
_COMPOSED: dict[str, Callable[..., Any]] = {
    "abs_backward": lambda g, y, x: g.mul(x.sgn()),
    "cos_backward": lambda g, y, x: g.mul(x.sin().neg()),
    "div_backward": _div,
    "erf_backward": _erf,
    "exp_backward": lambda g, y, x: g.mul(y),
    "log_backward": lambda g, y, x: g.div(x),
    "mul_backward": _mul,
    "neg_backward": lambda g, y, x: g.neg(),
    "reciprocal_backward": lambda g, y, x: g.neg().mul(y.mul(y)),
    "rsqrt_backward": lambda g, y, x: g.mul(-0.5).mul(y.pow(3)),
    "sin_backward": lambda g, y, x: g.mul(x.cos()),
    "sqrt_backward": lambda g, y, x: g.div(y.mul(2)),
    "sub_backward": lambda g, y, a, b: g.neg(),
}
# Gradients that are operators of ATen: which of the three they take, and what else.
_GRADIENTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "gelu_backward": ("gelu_backward", lambda g, y, x: (g, x)),
    "relu_backward": ("threshold_backward", lambda g, y, x: (g, y, 0)),
    "sigmoid_backward": ("sigmoid_backward", lambda g, y, x: (g, y)),
    "silu_backward": ("silu_backward", lambda g, y, x: (g, x)),
    "tanh_backward": ("tanh_backward", lambda g, y, x: (g, y)),
}
# The same operator with the arguments that are told.
_PLAIN = frozenset(
    """abs add.Tensor bmm cos div.Tensor eq.Tensor exp isneginf log logical_not mul.Tensor neg sin
    sqrt sub.Tensor tanh tril where.self""".split()
)


def _same(made: Any, want: Any) -> bool:
    """Return whether two results are equal but for the last bits, and tell anything."""
    if not isinstance(made, pt.Tensor) or made.shape != want.shape or made.dtype is not want.dtype:
        return False
    return bool(want.any()) and bool(pt.allclose(made, want, atol=1e-6, equal_nan=True))


def _calls(func: Any, args: Any, seen: Any) -> list[tuple[Any, Any]]:
    """Return operators with arguments that may be a call of one that does not tell all."""
    name, overload = func._opname, func._overloadname
    if name == "gelu_backward" and set(seen["gelu"]) != {"none"}:
        return []
    if name in _COMPOSED:
        return [(_COMPOSED[name], args)]
    if name in _GRADIENTS:
        target, chosen = _GRADIENTS[name]
        return [(getattr(_aten, target).default, chosen(*args))]
    if (name if overload == "default" else f"{name}.{overload}") in _PLAIN:
        return [(getattr(getattr(_aten, name), overload), args)]
    if name == "pow_backward" and len(args) == 3:
        return [(_power, (args[0], args[2], n)) for n in dict.fromkeys(seen["pow"])]
    if name in ("_softmax_backward_data", "_log_softmax_backward_data"):
        (g, y), op = args, getattr(_aten, name).default
        dims = {d % y.dim() for d in seen[name[: -len("_backward_data")]]}
        return [(op, (g, y, d, y.dtype)) for d in dims] if len(dims) == 1 else []
    return []


def below(func: Any, args: Any, seen: dict[str, list[Any]]) -> tuple[Any, Any] | None:
    """Return what a call of an operator of the core is in PyTorch's graphs, or None.

    Parameters
    ----------
    func : OpOverload
        The operator, with parameters that its arguments do not tell.
    args : tuple
        Its arguments.
    seen : dict
        By operator, the parameters of its calls before: a gradient is of one of them.

    Returns
    -------
    function : OpOverload or callable
        An operator that takes the place of it, or a function of tensors that computes the same.
    args : tuple
        The arguments of that.
    """
    calls = _calls(func, args, seen)
    if not calls:
        return None
    before = _C._rest_torch_function(2)
    try:
        with _disable_current_modes(), pt.no_grad():
            want = func(*args)
            found = [call for call in calls if _gives(call, want)]
    finally:
        _C._rest_torch_function(before)
    return found[0] if len(found) == 1 else None


def _gives(call: tuple[Any, Any], want: Any) -> bool:
    try:
        return _same(call[0](*call[1]), want)
    except Exception:  # not of these types
        return False


def tidied(graph: Any) -> None:
    """Write views as PyTorch's gradients do, and leave out those that change nothing.

    Parameters
    ----------
    graph : Graph
        With its output.
    """
    begun = False  # whether a gradient is computed
    for n in list(graph.nodes):
        if n.op != "call_function" or not n.args or not hasattr(n.args[0], "meta"):
            continue
        base = n.args[0]
        have, before = n.meta.get("val"), base.meta.get("val")
        begun = begun or (n.target is _aten.ones_like.default and "memory_format" in n.kwargs)
        if n.target is _aten.expand.default and base.target is _aten.view.default:
            # A sum's gradient: a tensor of no dimension is expanded as it is.
            (first, sizes) = base.args
            if first.meta["val"].dim() == 0 and set(sizes) == {1}:
                n.args = (first, *n.args[1:])
                if not base.users:
                    graph.erase_node(base)
            elif begun and (d := _inserted(first.meta["val"].shape, before.shape)) is not None:
                base.target, base.args, base.name = _aten.unsqueeze.default, (first, d), "unsqueeze"
        elif begun and n.target is _aten.mul.Tensor and base.target is _aten.pow.Tensor_Scalar:
            n.target = _aten.mul.Scalar if isinstance(n.args[1], float) else n.target
        elif n.target is _aten.slice.Tensor and have is not None and before is not None:
            if have.shape == before.shape and n.args[1:] == (n.args[1], 0, have.shape[n.args[1]]):
                n.replace_all_uses_with(base)
                graph.erase_node(n)
        elif n.target is _aten.detach.default and base.target is _aten.view.default:
            # What a transform makes of its argument.
            inner = base.args[0]
            if inner.target is _aten.detach.default and inner.meta["val"].shape == have.shape:
                n.replace_all_uses_with(inner.args[0])
                for gone in (n, base, inner):
                    if not gone.users:
                        graph.erase_node(gone)
    _rename(graph)


def _inserted(before: Any, after: Any) -> int | None:
    """Return where the one dimension of one element is that a tensor has more than another."""
    if len(after) != len(before) + 1:
        return None
    return next(
        (
            d
            for d, n in enumerate(after)
            if n == 1 and (*after[:d], *after[d + 1 :]) == tuple(before)
        ),
        None,
    )


def _rename(graph: Any) -> None:
    """Number nodes of one operator again, in their order."""
    calls, names = [n for n in graph.nodes if n.op == "call_function"], Namespace()
    for n in graph.nodes:
        if n.op != "call_function":
            names.create_name(n.name, None)
    for n in calls:
        stem, _, number = n.name.rpartition("_")
        n._final_name = names.create_name(stem if number.isdigit() and stem else n.name, None)
    for n in calls:
        n.name = n._final_name
        del n._final_name


def factory_options(name: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the options of what makes tensors as PyTorch's graphs have them.

    Parameters
    ----------
    name : str
        Of the operator.
    kwargs : dict
        Its arguments by name.
    """
    if name not in _methods.FACTORIES or name in ("empty_strided", "scalar_tensor"):
        return kwargs
    found = {k: v for k, v in kwargs.items() if k not in ("device", "pin_memory", "memory_format")}
    device = kwargs.get("device")
    if device is None and not name.endswith("_like") and not name.startswith("new_"):
        device = pt.get_default_device()
    if device is not None:
        found["device"] = pt.device(device)
    found["pin_memory"] = False
    if "memory_format" in kwargs:
        found["memory_format"] = kwargs["memory_format"]
    return found
