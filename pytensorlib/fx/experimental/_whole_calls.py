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
from ..node import map_arg

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


def _max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Whole:
    places = [_pair(kernel_size, 2), [] if stride is None else _pair(stride, 2)]
    places += [_pair(padding, 2), _pair(dilation, 2)]
    args = (input, *places, ceil_mode)
    return Whole("max_pool2d_with_indices", args, outputs=2)


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
    if input.dim() not in (1, 2) or not (size_average is reduce is None):
        return None
    args = input, target, weight, _REDUCTIONS[reduction], ignore_index
    return Whole("nll_loss_forward", args, outputs=2)


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
    "max_pool2d": _max_pool2d,
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
        for name in "argmax argmin diagonal glu im2col pixel_shuffle pixel_unshuffle".split()
    },
    "adaptive_avg_pool2d": lambda input, output_size: (
        Whole("_adaptive_avg_pool2d", (input, _pair(output_size, 2)))
        if _pair(output_size, 2) != [1, 1]
        else Whole("mean", (input, [-1, -2], True))
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


def replace(graph: Any, calls: Sequence[Whole]) -> None:
    """Put operators with all their arguments in the place of what calls recorded.

    Parameters
    ----------
    graph : Graph
        With its output.
    calls : sequence of Whole
        With their nodes.
    """
    moved: dict[Any, Any] = {}

    def now(node: Any) -> Any:
        return now(moved[node]) if node in moved else node

    for call in calls:
        group = [n for n in call.nodes if n.op != "get_attr"]
        alike = all(
            getattr(n.target, "_opname", "") == call.name and not hasattr(n.target, "_op")
            for n in group
        )
        if call.result not in group or (alike and not call.always):
            continue
        inside = set(group)
        if any(u not in inside for n in group if n is not call.result for u in n.users):
            continue  # other results, which are not those of the operator
        call.args, call.kwargs = map_arg(tuple(call.args), now), map_arg(dict(call.kwargs), now)
        made = _written(graph, call, group)
        if call.result is not made:
            made.meta.update(call.result.meta)
            call.result.replace_all_uses_with(made)
            moved[call.result] = made
        for n in reversed(group):
            if n is not made and not n.users:
                graph.erase_node(n)
        # The name that it would have had if it had been there alone.
        op = made.args[0] if call.outputs else made
        free = snake_case(call.name)
        if op.name.startswith(free) and all(n.name != free for n in graph.nodes):
            op.name = free


def _written(graph: Any, call: Whole, group: list[Any]) -> Any:
    """Write the operator of a call, by the node that has its name where there is one."""
    own = next((n for n in group if getattr(n.target, "_opname", None) == call.name), None)
    first = call.result is own
    if call.outputs:
        first = call.result.target is operator.getitem and call.result.args == (own, call.place)
    if own is not None and first:
        own.target, own.args, own.kwargs = call.target, call.args, call.kwargs
        return call.result
    with graph.inserting_before(group[0]):
        name = snake_case(call.name)
        made = graph.create_node("call_function", call.target, call.args, call.kwargs, name=name)
        return graph.call_function(operator.getitem, (made, call.place)) if call.outputs else made
