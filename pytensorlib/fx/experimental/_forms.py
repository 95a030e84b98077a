"""How PyTorch composes functions and gradients that are one operator here, for `make_fx`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ... import _C
from ..._ops import ops
from ...autograd.function import _watching
from ...export import _methods
from ...export._einsum import einsum
from ...utils._python_dispatch import _disable_current_modes
from .._names import Namespace
from . import _gradients, _writer

__all__ = ["below", "factory_options", "form"]

_aten = ops.aten
# By operators, the forms that functions here ask for.
WANTED: dict[str, Any] = {}
_BEGUN: list[Any] = []


# Functions: what computes them with simpler ones, or None where they are one operator.


def _exact(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call an operator that the graph is to have in this form."""
    packet, _, overload = name.partition(".")
    target = getattr(getattr(_aten, packet), overload)
    own = {"add_": "add", "transpose_": "transpose"}.get(packet, packet)
    WANTED[own] = target
    try:
        return getattr(_aten, own)(*args, **kwargs)
    finally:
        del WANTED[own]


def _one_operator(name: str, *args: Any) -> Any:
    """Call what is one operator in the graph, whatever computes it."""
    from .proxy_tensor import get_proxy_mode

    return _gradients.sealed(get_proxy_mode(), name, *args)


def _shaped(input: Any, sizes: Any) -> Any:
    """View a tensor in other sizes, or a copy of it."""
    with _writer.quiet():
        fits = _writer.viewable(input, sizes)
    if not fits:
        return _unsafe_view(input.clone(memory_format=pt.contiguous_format), sizes)
    return input.view(sizes)


def _unsafe_view(input: Any, sizes: Any) -> Any:
    return _one_operator("_unsafe_view", input, list(sizes))


def _folds(input: Any, other: Any) -> bool:
    """Return whether a product of many matrices with one is that of one large matrix."""
    if other.requires_grad or input.numel() == 0:
        return True
    steps = range(input.dim() - 2)
    return all(input.stride(d) == input.stride(d + 1) * input.shape[d + 1] for d in steps)


def _matmul(input: Any, other: Any) -> Any:
    if not isinstance(other, pt.Tensor) or input.dim() < 2 or other.dim() < 2:
        return None
    if input.dim() == other.dim() == 2:
        return input.mm(other)
    if other.dim() == 2 and _folds(input, other):
        rows = _shaped(input, [input.shape[:-1].numel(), input.shape[-1]])
        return _unsafe_view(rows.mm(other), [*input.shape[:-1], other.shape[1]])
    if input.dim() == 2:
        return None
    lead = list(pt.broadcast_shapes(input.shape[:-2], other.shape[:-2]))
    (n, m), p = input.shape[-2:], other.shape[-1]
    left = _shaped(input.expand(*lead, n, m), [math.prod(lead), n, m])
    right = _shaped(other.expand(*lead, m, p), [math.prod(lead), m, p])
    return _unsafe_view(left.bmm(right), [*lead, n, p])


def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    if input.dim() < 2 or weight.dim() != 2:
        return None
    if bias is not None and input.dim() == 2:
        return pt.addmm(bias, input, weight.t())
    if bias is not None and input.is_contiguous():
        columns = weight.t() if _watching.stack else None
        rows = input.view(input.shape[:-1].numel(), input.shape[-1])
        columns = weight.t() if columns is None else columns
        return pt.addmm(bias, rows, columns).view(*input.shape[:-1], weight.shape[0])
    made = _matmul(input, weight.t())
    if bias is None or made is None:
        return made
    return _exact("add_.Tensor", made, bias) if _watching.stack else made.add(bias)


def _square(input: Any) -> Any:
    return input.pow(2)


def _einsum(equation: Any, *operands: Any) -> Any:
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not isinstance(equation, str):
        return None

    def step(name: str, x: Any, *args: Any) -> Any:
        return _shaped(x, *args) if name == "shaped" else getattr(x, name)(*args)

    return einsum(step, lambda x: x.shape, equation, operands)


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
    return _one_operator("_prelu_kernel", input, weight.view(sizes))


def _glu(input: Any, dim: int = -1) -> Any:
    return _one_operator("glu", input, dim)


def _logsigmoid(input: Any) -> Any:
    return _one_operator("log_sigmoid_forward", input)[0]


def _pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    return _one_operator("pixel_shuffle", input, upscale_factor)


def _pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    return _one_operator("pixel_unshuffle", input, downscale_factor)


def _windows(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    places = ([v] * 2 if isinstance(v, int) else list(v) for v in
              (kernel_size, dilation, padding, stride))  # fmt: skip
    return _one_operator("im2col", input, *places)


def _dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if not training or inplace or not 0 < p < 1:
        return None
    noise = _exact("bernoulli_.float", _exact("empty_like.default", input), 1 - p)
    return input.mul(_exact("div_.Scalar", noise, 1 - p))


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
    mean = input.pow(2).mean(list(last), True)
    made = input.mul(pt.rsqrt(_exact("add_.Scalar", mean, eps)))
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
        logs = pt.log_softmax(input, dim)
        loss = pt.nn.functional.nll_loss(
            logs, target, weight, ignore_index=ignore_index, reduction=reduction
        )
        return _smoothed(loss, logs, target, ignore_index, reduction, label_smoothing)
    if label_smoothing or weight is not None or reduction == "none":
        return None
    made = pt.log_softmax(input, dim).mul(target).sum().neg()
    count = input.numel() // input.shape[dim]
    return made if reduction == "sum" else _exact("div.Scalar", made, count)


def _smoothed(
    loss: Any, logs: Any, target: Any, ignored: int, reduction: str, amount: float
) -> Any:
    """Mix a loss with that of all classes."""
    if not amount:
        return loss
    dim = 0 if logs.dim() == 1 else 1
    every = logs.sum([dim]).neg()
    left_out = target.eq(ignored)
    every = every.masked_fill_(left_out, 0.0)
    if reduction == "mean":
        count = left_out.bitwise_not().sum()
        every = every.sum().div(count)
    elif reduction == "sum":
        every = every.sum()
    every = _exact("mul.Scalar", every, amount / logs.shape[dim])
    return _exact("mul.Scalar", loss, 1 - amount).add(every)


def _attention_heads(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool,
    dropout_p: float, out_proj_weight: Any, out_proj_bias: Any, training: bool = True,
    key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> Any:  # fmt: skip
    functions = pt.nn.functional
    rare = bias_k, bias_v, key_padding_mask, static_k, static_v, in_proj_weight
    if any(t is not None for t in rare[:5]) or in_proj_weight is None:
        return None
    if add_zero_attn or use_separate_proj_weight or query.dim() != 3 or key is not value:
        return None
    causal = is_causal and not need_weights and attn_mask is not None
    if attn_mask is not None and not causal:
        return None
    length, batch, width = query.shape
    sources, each = key.shape[0], width // num_heads
    if width != embed_dim_to_check or each * num_heads != width:
        return None

    def parts(made: Any, n: int) -> list[Any]:
        made = _aten.unflatten.int(made, -1, [n, width]).unsqueeze(0).transpose(0, -2)
        made = made.squeeze(-2).contiguous()
        return [made[i] for i in range(n)]

    if query is key:
        q, k, v = parts(functions.linear(query, in_proj_weight, in_proj_bias), 3)
    else:
        first, rest = in_proj_weight.split([width, 2 * width])
        biases = (None, None) if in_proj_bias is None else in_proj_bias.split([width, 2 * width])
        q = functions.linear(query, first, biases[0])
        k, v = parts(functions.linear(key, rest, biases[1]), 2)
    q = q.view(length, batch * num_heads, each).transpose(0, 1)
    k, v = (t.view(sources, batch * num_heads, each).transpose(0, 1) for t in (k, v))
    rate = dropout_p if training else 0.0
    if not need_weights:
        q = q.view(batch, num_heads, length, each)
        k, v = (t.view(batch, num_heads, sources, each) for t in (k, v))
        made = functions.scaled_dot_product_attention(q, k, v, None, rate, causal)
        made = made.permute(2, 0, 1, 3).contiguous().view(length * batch, width)
        made = functions.linear(made, out_proj_weight, out_proj_bias)
        return made.view(length, batch, width), None
    scores = pt.bmm(q * math.sqrt(1.0 / each), k.transpose(-2, -1))
    weights = pt.softmax(scores, -1)
    weights = functions.dropout(weights, rate) if rate > 0 else weights
    made = _shaped(pt.bmm(weights, v).transpose(0, 1), [length * batch, width])
    made = functions.linear(made, out_proj_weight, out_proj_bias).view(length, batch, width)
    weights = weights.view(batch, num_heads, length, sources)
    return made, weights.mean(dim=1) if average_attn_weights else weights


# Recurrent layers.


def _cell_rnn(name: str) -> Callable[..., Any]:
    def step(given: Any, hidden: Any, weight: Any, bias: Any) -> Any:
        return getattr(pt.nn.functional.linear(hidden, weight, bias).add_(given), name)()

    return step


def _cell_gru(given: Any, hidden: Any, weight: Any, bias: Any) -> Any:
    size = hidden.shape[1]
    from_input = _one_operator("unsafe_split.Tensor", given, size, 1)
    made = pt.nn.functional.linear(hidden, weight, bias)
    from_hidden = _one_operator("unsafe_split.Tensor", made, size, 1)
    reset = from_hidden[0].add_(from_input[0]).sigmoid_()
    update = from_hidden[1].add_(from_input[1]).sigmoid_()
    new = from_input[2].add(from_hidden[2].mul_(reset)).tanh_()
    return (hidden - new).mul_(update).add_(new)


def _recurrent(step: Any) -> Callable[..., Any]:
    def form(
        input: Any, hx: Any, params: Any, has_biases: Any, num_layers: Any = None,
        dropout: Any = None, train: Any = None, bidirectional: Any = None, batch_first: Any = None,
    ) -> Any:  # fmt: skip
        if batch_first is None or bidirectional or (train and dropout and num_layers > 1):
            return None  # of packed sequences, or both ways
        if input.dim() != 3 or len(params) != num_layers * (4 if has_biases else 2):
            return None
        x = input.transpose(0, 1) if batch_first else input
        last = []
        each = len(params) // num_layers
        for layer, hidden in enumerate(hx.unbind(0)):
            own = list(params[layer * each : (layer + 1) * each])
            biases = own[2:] if has_biases else [None, None]
            steps = pt.nn.functional.linear(x, own[0], biases[0]).unbind(0)
            made = []
            for given in steps:
                hidden = step(given, hidden, own[1], biases[1])
                made.append(hidden)
            x = pt.stack(made)
            last.append(hidden)
        if batch_first:
            x = _exact("transpose_.default", x, 0, 1)
        return x, pt.stack(last)

    return form


def _lstm(
    input: Any, hx: Any, params: Any, has_biases: Any, num_layers: Any = None,
    dropout: Any = None, train: Any = None, bidirectional: Any = None, batch_first: Any = None,
) -> Any:  # fmt: skip
    if batch_first is None or not has_biases or bidirectional or (dropout and train):
        return None
    if input.dim() != 3 or len(params) != 4 * num_layers or input.dtype is not pt.float32:
        return None
    h, c = hx
    if params[1].shape[1] != c.shape[-1] or h.shape != c.shape:
        return None  # projected
    x = input.transpose(0, 1) if batch_first else input
    x = x.contiguous()
    hidden, cells = [], []
    for layer in range(num_layers):
        weights = params[4 * layer : 4 * layer + 4]
        made = _one_operator(
            "mkldnn_rnn_layer", x, *weights, h[layer], c[layer], False, [], 2, c.shape[-1], 1,
            True, False, batch_first, train,
        )  # fmt: skip
        x = made[0]
        hidden.append(made[1])
        cells.append(made[2])
    if batch_first:
        x = x.transpose(0, 1)
    return x, pt.stack(hidden), pt.stack(cells)


def _backward(input: Any, gradient: Any = None, *args: Any, **kwargs: Any) -> Any:
    if gradient is None and input.numel() == 1:
        _BEGUN.append(input)
        try:
            gradient = pt.ones_like(input)
        finally:
            _BEGUN.pop()
    return input.backward(gradient, *args, **kwargs) or False


_FORMS: dict[str, Callable[..., Any]] = {
    "avg_pool1d": _avg_pool1d,
    "backward": _backward,
    "cross_entropy": _cross_entropy,
    "dropout": _dropout,
    "einsum": _einsum,
    "glu": _glu,
    "gru": _recurrent(_cell_gru),
    "instance_norm": _instance_norm,
    "kl_div": _kl_div,
    "linear": _linear,
    "log_sigmoid": _logsigmoid,
    "logsigmoid": _logsigmoid,
    "lstm": _lstm,
    "matmul": _matmul,
    "__matmul__": _matmul,
    "max_pool1d": _max_pool1d,
    "multi_head_attention_forward": _attention_heads,
    "normalize": _normalize,
    "outer": _outer,
    "pixel_shuffle": _pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
    "prelu": _prelu,
    "rms_norm": _rms_norm,
    "rnn_relu": _recurrent(_cell_rnn("relu")),
    "rnn_tanh": _recurrent(_cell_rnn("tanh")),
    "square": _square,
    "std_mean": _spread("std_mean"),
    "unfold": _windows,
    "var_mean": _spread("var_mean"),
}


def form(func: Any) -> Callable[..., Any] | None:
    """Return what computes a function with simpler ones, or None.

    Parameters
    ----------
    func : callable
        A function or method.
    """
    name = getattr(func, "__name__", "")
    if name == "unfold" and func is not pt.nn.functional.unfold:
        return None  # the method, which is another function
    return _FORMS.get(name)


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
        if n.op == "get_attr":
            n.name = names.create_name(n.target, None)
        elif n.op != "call_function":
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
