"""Calls of public functions as one operator of ATen with all its arguments, for `make_fx`.

Below gradients an operator may keep parameters of its call to itself, or be made of several.
Where a function is one operator in PyTorch, and only its result is used, the graph gets that one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytensorlib as pt

from ..._ops import ops
from ...export import _aten
from .._names import snake_case

__all__ = ["Whole", "replace", "whole"]

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
_SAMPLES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_BORDERS = {"zeros": 0, "border": 1, "reflection": 2}
_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805  # Klambauer et al. 2017, arXiv:1706.02515


class Whole:
    """One public call: the operator that it is, its arguments, and the nodes that it made.

    Parameters
    ----------
    name : str
        Of the operator.
    args : tuple
        Its arguments by position.
    kwargs : dict
        Its arguments by name.
    outputs : int, default 0
        How many results the operator gives; 0 where it is one tensor.
    place : int, default 0
        Which of them the call gives.
    always : bool, default False
        Whether it takes the place of an operator of its name, too: that has other arguments.
    """

    def __init__(
        self,
        name: str,
        args: Any,
        kwargs: Any = None,
        outputs: int = 0,
        place: int = 0,
        always: bool = False,
    ) -> None:
        self.name, self.args, self.kwargs = name, args, kwargs or {}
        self.outputs, self.place, self.always = outputs, place, always
        self.nodes: list[Any] = []
        self.result: Any = None
        self.target: Any = None

    def keeps(self, node: Any, own: Any) -> bool:
        """Return whether a node is of the operator, given the node of that, or a result of it."""
        if node is own:
            return True
        part = node.target is operator.getitem and node.args[0] is own
        return part and node.args[1] < max(self.outputs, 1)


def _pair(value: Any, n: int) -> list[int]:
    return [value] * n if isinstance(value, int) else list(value)


def _layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Whole:
    sizes = _pair(normalized_shape, 1)
    return Whole("native_layer_norm", (input, sizes, weight, bias, eps), outputs=3)


def _group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Whole:
    n, c = input.shape[:2]
    sizes = n, c, input.numel() // max(n * c, 1), num_groups
    return Whole("native_group_norm", (input, weight, bias, *sizes, eps), outputs=3)


def _batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Whole:
    args = input, weight, bias, running_mean, running_var, training, momentum, eps
    return Whole("native_batch_norm", args, outputs=3)


def _max_pool(n: int) -> Callable[..., Whole]:
    def rule(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Whole:
        places = [_pair(kernel_size, n), [] if stride is None else _pair(stride, n)]
        places += [_pair(padding, n), _pair(dilation, n)]
        args = (input, *places, ceil_mode)
        return Whole(f"max_pool{n}d_with_indices", args, outputs=2)

    return rule


def _pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Whole | None:
    pad = list(pad)
    if mode == "constant":
        return Whole("constant_pad_nd", (input, pad, 0.0 if value is None else value))
    names = {"reflect": "reflection", "replicate": "replication"}
    if mode not in names:
        return None
    return Whole(f"{names[mode]}_pad{len(pad) // 2}d", (input, pad))


def _grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Any = None,
) -> Whole:
    args = input, grid, _SAMPLES[mode], _BORDERS[padding_mode], bool(align_corners)
    return Whole(f"grid_sampler_{input.dim() - 2}d", args)


def _nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Whole | None:
    if input.dim() not in (1, 2, 4) or not (size_average is reduce is None):
        return None
    args = input, target, weight, _REDUCTIONS[reduction], ignore_index
    return Whole("nll_loss2d_forward" if input.dim() == 4 else "nll_loss_forward", args, outputs=2)


def _relu6(input: Any, inplace: bool = False) -> Whole | None:
    return None if inplace else Whole("hardtanh", (input, 0, 6))


def _selu(input: Any, inplace: bool = False) -> Whole | None:
    return None if inplace else Whole("elu", (input, _ALPHA, _SCALE))


def _spread(name: str) -> Callable[..., Whole]:
    def rule(
        input: Any, dim: Any = None, unbiased: Any = True, keepdim: bool = False, **more: Any
    ) -> Whole:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        dims = None if dim is None else _pair(dim, 1)
        named = {"correction": more.get("correction", int(unbiased))}
        if keepdim:
            named["keepdim"] = True
        return Whole(name, (input, dims), named)

    return rule


def _vector_norm(
    input: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, **more: Any
) -> Whole:
    dims = None if dim is None else _pair(dim, 1)
    return Whole("linalg_vector_norm", (input, ord, dims, keepdim), more)


def _unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Whole:
    places = (_pair(v, 2) for v in (kernel_size, dilation, padding, stride))
    return Whole("im2col", (input, *places))


def _norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, **more: Any
) -> Whole | None:
    if dim is None and p in (2, "fro", None) and not keepdim and not more:
        return Whole("linalg_vector_norm", (input,))
    if dim is None or p in (None, "nuc"):
        return None  # of all elements, or of matrices
    return _vector_norm(input, 2 if p == "fro" else p, dim, keepdim, **more)


def _fold(
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Whole:
    places = (_pair(v, 2) for v in (output_size, kernel_size, dilation, padding, stride))
    return Whole("col2im", (input, *places))


def _argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Whole:
    named = {"stable": True, "dim": dim, "descending": descending} if stable else {}
    args = (input,) if stable else (input, dim, descending)
    return Whole("sort", args, named, outputs=2, place=1)


def _soft(name: str) -> Callable[..., Whole | None]:
    def rule(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Whole | None:
        if dim is None or dtype is not None:
            return None
        return Whole(name, (input, dim, False), always=True)

    return rule


def _getitem(input: Any, index: Any) -> Whole | None:
    if not isinstance(index, pt.Tensor) or index.dtype is not pt.int64:
        return None
    return Whole("index", (input, [index]), always=True)


def _rsub(input: Any, other: Any) -> Whole | None:
    return Whole("rsub", (input, other)) if isinstance(other, (int, float)) else None


def _squeeze(input: Any, dim: Any = None) -> Whole | None:
    return Whole("squeeze", (input, dim), always=True) if isinstance(dim, int) else None


def _binary(rule: Callable[..., Whole]) -> Callable[..., Whole | None]:
    """The operator of a loss, whose oldest arguments are not used."""

    def made(*args: Any, size_average: Any = None, reduce: Any = None, **kwargs: Any) -> Any:
        return None if len(args) > 3 else rule(*args, **kwargs)

    return made


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Whole | None:
    if dropout_p or enable_gqa or query.dim() != 4 or query.device.type != "cpu":
        return None
    named = {"attn_mask": attn_mask, "scale": scale}
    named = {k: v for k, v in named.items() if v is not None}
    args = query, key, value, 0.0, is_causal
    return Whole("_scaled_dot_product_flash_attention_for_cpu", args, named, outputs=2)


def _same(name: str) -> Callable[..., Whole]:
    """The operator has the arguments of the function."""
    return lambda *args, **kwargs: Whole(name, args, kwargs)


_RULES: dict[str, Callable[..., Whole | None]] = {
    "__getitem__": _getitem,
    "__rsub__": _rsub,
    "argsort": _argsort,
    "batch_norm": _batch_norm,
    "fold": _fold,
    "grid_sample": _grid_sample,
    "group_norm": _group_norm,
    "layer_norm": _layer_norm,
    "log_softmax": _soft("_log_softmax"),
    "max_pool2d": _max_pool(2),
    "max_pool3d": _max_pool(3),
    "nll_loss": _nll_loss,
    "norm": _norm,
    "pad": _pad,
    "relu6": _relu6,
    "rsub": _rsub,
    "selu": _selu,
    "softmax": _soft("_softmax"),
    "squeeze": _squeeze,
    "std": _spread("std"),
    "unfold": _unfold,
    "var": _spread("var"),
    "vector_norm": _vector_norm,
    **{
        name: _same(name)
        for name in """argmax argmin diagonal div_ glu im2col mul_ pixel_shuffle
        pixel_unshuffle""".split()
    },
    "adaptive_avg_pool2d": lambda input, output_size: (
        Whole("_adaptive_avg_pool2d", (input, _pair(output_size, 2)))
        if _pair(output_size, 2) != [1, 1]
        else Whole("mean", (input, [-1, -2], True), always=True)
    ),
    "all": lambda input, dim=None, keepdim=False: Whole(
        "all", (input,) if dim is None else (input, dim, keepdim)
    ),
    "any": lambda input, dim=None, keepdim=False: Whole(
        "any", (input,) if dim is None else (input, dim, keepdim)
    ),
    "binary_cross_entropy": _binary(
        lambda input, target, weight=None, reduction="mean": Whole(
            "binary_cross_entropy", (input, target, weight, _REDUCTIONS[reduction])
        )
    ),
    "binary_cross_entropy_with_logits": _binary(
        lambda input, target, weight=None, reduction="mean", pos_weight=None: Whole(
            "binary_cross_entropy_with_logits",
            (input, target, weight, pos_weight, _REDUCTIONS[reduction]),
        )
    ),
    "clamp_max": _same("clamp_max"),
    "clamp_min": _same("clamp_min"),
    "scaled_dot_product_attention": _attention,
    "clip": _same("clamp"),
    "linalg_vector_norm": _vector_norm,
}


def whole(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Whole | None:
    """Return the operator that a public call is, where that is known.

    Parameters
    ----------
    func : callable
        A function or method.
    args, kwargs : sequence, dict
        Its arguments.

    Returns
    -------
    Whole or None
        With its arguments as a graph has them, but tensors.
    """
    name = getattr(func, "__name__", "")
    rule = _RULES.get(name)
    if rule is None or not args or not isinstance(args[0], pt.Tensor):
        return None
    if name == "unfold" and func is not pt.nn.functional.unfold:
        return None  # the method, which is another function
    try:
        call = rule(*args, **kwargs)
    except (TypeError, KeyError, IndexError):
        return None  # the function says what is wrong
    bound = None if call is None else _aten.bind(call.name, call.args, call.kwargs)
    if call is None or bound is None:
        return None
    schema, call.args, call.kwargs = bound
    call.target = getattr(getattr(ops.aten, schema.name), schema.overload)
    return call


def replace(graph: Any, call: Whole, results: Sequence[Any]) -> Any:
    """Put an operator with all its arguments in the place of what a call recorded.

    What else the call recorded is left for gradients that need it.

    Parameters
    ----------
    graph : Graph
        In the making.
    call : Whole
        With its nodes.
    results : sequence of Tensor
        What the operator gives.

    Returns
    -------
    Node or None
        Of the operator.
    """
    group = [n for n in call.nodes if n.op != "get_attr"]
    result = call.result
    alike = all(
        getattr(n.target, "_opname", "") == call.name and not hasattr(n.target, "_op")
        for n in group
    )
    if result not in group or (alike and not call.always):
        return group[0] if alike and group == [result] else None
    own = group[0]
    parts = [n for n in group if n.target is operator.getitem and n.args[0] is own]
    if call.outputs and getattr(own.target, "_opname", "") == call.name:
        same = all(_alike(n, results) for n in parts)
        if len(parts) + 1 == len(group) and result.args == (own, call.place) and same:
            own.target, own.args, own.kwargs = call.target, call.args, call.kwargs
            return own
    if call.outputs:
        with graph.inserting_before(result):
            own = graph.create_node("call_function", call.target, call.args, call.kwargs)
        result.target, result.args, result.kwargs = operator.getitem, (own, call.place), {}
        result.name = "getitem"
    else:
        own = result
        own.target, own.args, own.kwargs = call.target, call.args, call.kwargs
    own.name = snake_case(call.name)
    return own


def as_asked(func: Any, args: Sequence[Any], calls: Sequence[Any]) -> None:
    """Write places and sizes as the program gave them: from the end, or left open.

    Parameters
    ----------
    func : callable
        A function or method.
    args : sequence
        Its arguments.
    calls : sequence of Call
        What it called.
    """
    name = getattr(func, "__name__", "")
    if name == "__getitem__" and len(args) == 2:
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        if any(isinstance(i, pt.Tensor) for i in index):
            return
        asked = [i for i in index if type(i) is int]
        selects = [c for c in calls if c.name == "select" and c.node is not None]
        if len(asked) == len(selects):
            for call, i in zip(selects, asked, strict=True):
                call.values["index"] = i
                call.node.args = (*call.node.args[:2], i)
    elif name == "reshape" and calls and calls[-1].name in ("view", "_unsafe_view"):
        sizes = args[1] if len(args) == 2 and not isinstance(args[1], int) else args[1:]
        node = calls[-1].node
        if node is not None and all(isinstance(n, int) for n in sizes):
            node.args = (node.args[0], list(sizes))


def _alike(part: Any, results: Sequence[Any]) -> bool:
    """Return whether a result is what the operator gives at its place."""
    have, want = part.meta.get("val"), results[part.args[1] : part.args[1] + 1]
    return bool(want) and have.shape == want[0].shape and have.dtype is want[0].dtype


def results(call: Whole, given: Any, out: Any) -> list[Any]:
    """Return what the operator of a call gives.

    Parameters
    ----------
    call : Whole
        With the operator.
    given : tuple
        Its arguments by place and by name.
    out : Tensor
        What the call gave.
    """
    if not call.outputs:
        return [out]
    args, kwargs = given
    if call.name == "native_batch_norm":  # whose running statistics have been changed already
        args = tuple(a.clone() if i in (3, 4) and a is not None else a for i, a in enumerate(args))
    found = list(call.target(*args, **kwargs))
    found[call.place] = out
    return found
