"""Calls that the tracer does not record as one operator of the same name."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from .._ops import ops
from .._symbolic.ints import SymBool, SymFloat, SymInt, SymNode, _Sym
from ..utils import _pytree as pytree

__all__ = ["C_ONLY", "FACTORIES", "PLAIN", "RENAMED", "SPECIAL", "attribute"]

FACTORIES = frozenset(
    """zeros ones full empty rand randn randint randperm arange linspace logspace eye empty_strided
    scalar_tensor zeros_like ones_like full_like empty_like rand_like randn_like randint_like
    new_zeros new_ones new_full new_empty tril_indices triu_indices hann_window hamming_window
    blackman_window bartlett_window kaiser_window""".split()
)
# Functions of the extension with another name than PyTorch's operator.
RENAMED = {
    "concat": "cat", "concatenate": "cat", "absolute": "abs", "__abs__": "abs", "__neg__": "neg",
    "__invert__": "bitwise_not", "negative": "neg", "greater": "gt", "less": "lt",
    "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor",
    "__iand__": "bitwise_and_", "__ior__": "bitwise_or_", "__ixor__": "bitwise_xor_",
    "__floordiv__": "floor_divide", "__pow__": "pow", "__mod__": "remainder",
    "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift",
    "__ipow__": "pow_", "__ifloordiv__": "floor_divide_", "__imod__": "remainder_",
    "__matmul__": "matmul", "__truediv__": "div", "swapaxes": "transpose",
    "swapdims": "transpose", "moveaxis": "movedim",
}  # fmt: skip
# What asks nothing of data and gives no tensor.
PLAIN = frozenset(
    """dim ndimension is_floating_point is_complex element_size is_contiguous is_signed is_inference
    is_conj is_neg has_names is_tensor is_same_size can_cast promote_types result_type __hash__
    type_as_dtype is_shared is_pinned is_coalesced __format__ __repr__ __dir__ is_nested""".split()
)
# Handled only where the call is one of the extension, not of a Python function of that name.
C_ONLY = frozenset(
    {"norm", "layer_norm", "split", "to", "unique", "tensor", "rms_norm", "meshgrid"}
)
SPECIAL: dict[str, Callable[..., Any]] = {}


def special(*names: str) -> Callable[[Any], Any]:
    """Keep a function as the answer to calls of these names."""

    def keep(f: Any) -> Any:
        SPECIAL.update(dict.fromkeys(names, f))
        return f

    return keep


def attribute(tracer: Any, name: str, getter: Any, t: Any) -> Any:
    """Return an attribute of a tensor."""
    if name in ("T", "mT", "H", "mH", "real", "imag"):
        label = {"T": "numpy_T", "H": "matrix_H"}.get(name, name)
        return tracer.record(label, getter, (t,), {})
    traced = tracer.traced(t)
    if name == "shape":
        return tracer.shape(traced)
    if name == "device":
        return traced.device
    if name == "data":
        return tracer.record("detach", pt.Tensor.detach, (t,), {})
    if name in ("is_cuda", "is_cpu", "is_meta", "is_mps", "is_xpu"):
        return bool(traced.device.type == name[3:])
    if name == "grad":
        return None
    if name in ("requires_grad", "is_leaf", "grad_fn"):
        with tracer.away():
            return getter(t)
    with tracer.away():
        return getter(traced.shadows[0])


def known(tracer: Any, t: Any) -> bool:
    """Return whether a tensor depends on arguments or state; others are constants."""
    return id(t) in tracer.known


@special("size")
def _size(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    shape = tracer.shape(tracer.traced(args[0]))
    return shape if dim is None else shape[dim]


@special("__len__")
def _len(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    return int(tracer.size(tracer.traced(args[0]), 0))


@special("numel", "nelement")
def _numel(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    return tracer.shape(tracer.traced(args[0])).numel()


@special("stride")
def _stride(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    with tracer.away():
        return func(tracer.traced(args[0]).shadows[0], *args[1:], **kwargs)


@special("get_device")
def _get_device(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    device = tracer.traced(args[0]).device
    return -1 if device.type == "cpu" else device.index or 0


@special("requires_grad_", "retain_grad", "register_hook")
def _grad_option(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    return args[0]


@special("item", "__int__", "__float__", "__index__", "__bool__", "__complex__", "is_nonzero")
def _item(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    t = args[0]
    if not known(tracer, t):
        with tracer.away():
            return func(t)
    kind: Any = SymFloat if t.dtype.is_floating_point else SymInt
    kind = SymBool if t.dtype is pt.bool else kind
    low = -(2**63) if kind is SymInt else 0
    name, values, text = tracer.new_symbol(kind, low, None)
    node = tracer.call(ops.aten.item.default, (tracer.traced(t).node,), {}, "item")
    if kind is SymBool:
        text = f"Eq({name}, 1)"
    sym = kind(SymNode(tracer, values, text, lambda: node))
    node.meta["val"] = sym
    if func.__name__ == "item":
        return sym
    return func_of(func.__name__)(sym)


def func_of(name: str) -> Any:
    """Return the function of Python's that asks a number for what a method gives."""
    return {"__int__": int, "__float__": float, "__index__": int, "__bool__": builtins.bool}.get(
        name, builtins.bool
    )


@special("tolist", "numpy", "__array__", "data_ptr", "untyped_storage", "storage")
def _values(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    if not known(tracer, args[0]):
        with tracer.away():
            return func(*args, **kwargs)
    raise RuntimeError(
        f"torch.export: Tensor.{func.__name__} needs the numbers of a tensor, and an exported "
        "program has none while it is recorded; compute with tensors"
    )


@special("tensor", "as_tensor", "asarray", "from_numpy")
def _constant(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    data = args[0] if args else kwargs.get("data")
    if isinstance(data, pt.Tensor) and known(tracer, data):
        if func.__name__ == "tensor":
            return tracer.record("clone", pt.clone, (data,), {})
        return data if kwargs.get("dtype") is None else data.to(kwargs["dtype"])
    leaves = pytree.tree_leaves(data)
    if any(isinstance(v, _Sym) or (isinstance(v, pt.Tensor) and known(tracer, v)) for v in leaves):
        dtype = kwargs.get("dtype")
        if not isinstance(data, (list, tuple)):
            return tracer.record(
                "scalar_tensor", pt.scalar_tensor, (data,), _typed(dtype or _kind(data))
            )
        with tracer:
            return pt.stack(
                [
                    v.to(dtype)
                    if isinstance(v, pt.Tensor) and dtype
                    else v
                    if isinstance(v, pt.Tensor)
                    else pt.scalar_tensor(v, dtype=dtype or _kind(v))
                    for v in leaves
                ]
            )
    with tracer.away():
        kwargs = {k: v for k, v in kwargs.items() if k != "device"}
        made = func(*args, **kwargs)
    if func.__name__ != "tensor":
        return made
    found = tracer.traced(lifted(tracer, made))
    found.node = tracer.call(ops.aten.detach_.default, (found.node,), {}, "detach_")
    found.node.meta["val"] = tracer.described(found)
    return found.public


def _typed(dtype: Any) -> dict[str, Any]:
    return {"dtype": dtype}


def _kind(v: Any) -> Any:
    if isinstance(v, (bool, SymBool)):
        return pt.bool
    return pt.int64 if isinstance(v, (int, SymInt)) else pt.get_default_dtype()


def lifted(tracer: Any, made: Any) -> Any:
    """Return a new tensor of the program, made of a constant one."""
    traced = tracer.traced(made)
    if traced.node.op == "get_attr" and hasattr(tracer, "plain_constants"):
        return made
    node = tracer.call(ops.aten.lift_fresh_copy.default, (traced.node,), {}, "lift_fresh_copy")
    shadows = [shadow_of(made) for _ in range(tracer.examples)]
    return tracer.track(shadows[0], node, shadows, traced.device)


def shadow_of(t: Any) -> Any:
    """Return a tensor without memory like another."""
    return pt.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta")


_TO = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
    "int": "int32", "long": "int64", "short": "int16", "char": "int8", "byte": "uint8",
    "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip


@special("to", "cpu", "cuda", "type", *_TO)
def _to(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    name, x = func.__name__, args[0]
    dtype, device, copy = kwargs.get("dtype"), kwargs.get("device"), kwargs.get("copy", False)
    if name in _TO:
        dtype = getattr(pt, _TO[name])
    elif name in ("cpu", "cuda"):
        device = pt.device(name)
    for a in args[1:]:
        if isinstance(a, pt.dtype):
            dtype = a
        elif isinstance(a, (pt.device, str)) and name != "type":
            device = a
        elif isinstance(a, pt.Tensor):
            dtype, device = tracer.traced(a).shadows[0].dtype, tracer.traced(a).device
        elif isinstance(a, str):
            dtype = getattr(pt, a.rpartition(".")[2].replace("Tensor", "").lower(), None)
    if name == "type" and dtype is None:
        with tracer.away():
            return func(pt.empty(0, dtype=x.dtype))
    traced = tracer.traced(x)
    aten, node = ops.aten, traced.node
    before = traced.shadows[0].dtype
    target = tracer.real_device(device) if device is not None else traced.device
    tracer.call(
        aten._assert_tensor_metadata.default,
        (node,),
        {"dtype": before, "device": traced.device, "layout": pt.strided},
        "_assert_tensor_metadata_default",
    )
    if device is None or (dtype is not None and target == traced.device):
        made = tracer.call(
            aten.to.dtype, (node, dtype or before, *((False, True) if copy else ())), {}, "to"
        )
    else:
        options = {"dtype": dtype or before, "layout": pt.strided, "device": target}
        made = tracer.call(aten.to.dtype_layout, (node,), options, "to")
    same = not copy and dtype in (None, before) and target == traced.device
    with tracer.away():
        column = [s if same else s.to(dtype or before, copy=True) for s in traced.shadows]
    return tracer.results(made, column, target)


@special("contiguous")
def _contiguous(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    with tracer.away():
        shadows = tracer.traced(args[0]).shadows
        same = all(s.is_contiguous(*args[1:], **kwargs) for s in shadows)
    return args[0] if same else tracer.record("contiguous", func, args, kwargs)


@special("layer_norm")
def _layer_norm(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    full = [*args, *(None, None, 1e-5)[len(args) - 2 :]][:5]
    for i, name in enumerate(("input", "normalized_shape", "weight", "bias", "eps")):
        full[i] = kwargs.get(name, full[i])
    x, shape, weight, bias, eps = full
    nodes = tracer.argument([x, list(shape), weight, bias])
    node = tracer.call(ops.aten.layer_norm.default, (*nodes, eps, False), {}, "layer_norm")
    return tracer.results(node, tracer.run(func, args, kwargs), tracer.traced(x).device)


@special("norm")
def _norm(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    of_matrices = func is pt.linalg.norm
    names = ("input", "ord" if of_matrices else "p", "dim", "keepdim", "dtype")
    given = dict(zip(names, args, strict=False)) | kwargs
    given["input"] = given.get("input", given.get("A", args[0] if args else None))
    p = given.get(names[1], None if of_matrices else "fro")
    dtype = {"dtype": given["dtype"]} if given.get("dtype") is not None else {}
    dim = given.get("dim")
    dim = [dim] if isinstance(dim, int) else dim
    if of_matrices and p is not None and (len(dim) == 2 if dim else given["input"].dim() == 2):
        call = (given["input"], p, list(dim or (-2, -1)), given.get("keepdim", False))
        return tracer.record("linalg_matrix_norm", pt.linalg.matrix_norm, call, dtype)
    if p in ("fro", None):
        p = 2
    if isinstance(p, str):
        return tracer.record("norm", func, args, kwargs)
    call = (given["input"], p, dim, given.get("keepdim", False))
    return tracer.record("linalg_vector_norm", pt.linalg.vector_norm, call, dtype)


@special(
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d",
    "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
    "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_bilinear2d_aa",
    "_upsample_bicubic2d_aa",
)  # fmt: skip
def _upsample(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    name = func.__name__
    x, size, *rest = args
    corners = [rest.pop(0)] if "nearest" not in name else []
    scales: Any = [*rest, *(v for k, v in kwargs.items() if k.startswith("scale"))]
    if not scales or any(s is None for s in scales):
        scales = None
    written = (None if scales else list(size), *corners, scales)
    target = getattr(ops.aten, name).vec
    node = tracer.call(target, (tracer.traced(x).node, *tracer.argument(list(written))), {}, name)
    return tracer.results(node, tracer.run(func, args, kwargs), tracer.traced(x).device)


@special("_unit")
def _unit(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    x, eps, dim, p = args
    with tracer:
        length = pt.clamp_min(
            tracer.record("linalg_vector_norm", pt.linalg.vector_norm, (x, p, [dim], True), {}), eps
        )
        return x / length.expand_as(x)


@special("_softsign")
def _softsign(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    (x,) = args
    with tracer:
        return x / (x.abs() + 1)


@special("unique", "unique_consecutive")
def _unique(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Record what finds the values of a tensor: three tensors, two as long as the data says."""
    name, x = func.__name__, args[0]
    labels = ("sorted", "return_inverse", "return_counts", "dim")[name == "unique_consecutive" :]
    given = dict(zip(labels, args[1:], strict=False)) | kwargs
    inverse, counts = given.get("return_inverse", False), given.get("return_counts", False)
    flags = [True] if name == "unique_consecutive" else [given.get("sorted", True)]
    flags = [*(flags if name == "unique" else ()), inverse, counts]
    dim, traced = given.get("dim"), tracer.traced(x)
    _, values, text = tracer.new_symbol(SymInt, 0, None)
    if dim is None:
        target = (
            ops.aten._unique2.default if name == "unique" else ops.aten.unique_consecutive.default
        )
    else:
        dim %= x.dim()
        target = getattr(ops.aten, "unique_dim" if name == "unique" else name).default
        flags = [dim, *flags] if name == "unique" else [*flags, dim]
    node = tracer.call(target, (tracer.argument(x), *flags), {}, target._opname)
    columns: list[list[Any]] = [[], [], []]
    for v, t in zip(values, traced.shadows, strict=True):
        shape = tuple(t.shape)
        whole = (v,) if dim is None else (*shape[:dim], v, *shape[dim + 1 :])
        places = shape if dim is None else shape[dim : dim + 1]
        for column, size, dtype in (
            (columns[0], whole, x.dtype),
            (columns[1], places if inverse else (0,), pt.int64),
            (columns[2], (v,) if counts else (0,), pt.int64),
        ):
            column.append(pt.empty(size, dtype=dtype, device="meta"))
    made = [
        tracer.track(
            column[0],
            tracer.call(operator.getitem, (node, i), {}, "getitem"),
            column,
            traced.device,
        )
        for i, column in enumerate(columns)
    ]
    _remember(tracer, made[0], values, text, dim or 0)
    for i, asked in ((1, inverse), (2, counts)):
        if asked:
            part = tracer.known[id(made[i])]
            part.node.meta["val"] = tracer.described(part)
    node.meta["val"] = tuple(tracer.known[id(t)].node.meta["val"] for t in made)
    found = [made[0], *([made[1]] if inverse else []), *([made[2]] if counts else [])]
    return found[0] if len(found) == 1 else tuple(found)


@special("nonzero", "masked_select", "argwhere", "_unique2")
def _of_data(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Record an operator whose result is as long as the data says."""
    name, x = func.__name__, args[0]
    if kwargs.get("as_tuple"):
        found = _of_data(tracer, func, args, {})
        with tracer:
            return pt.unbind(found, 1)
    traced = tracer.traced(x)
    _, values, text = tracer.new_symbol(SymInt, 0, None)
    dims = traced.shadows[0].dim()
    dtype = x.dtype if name in ("masked_select", "_unique2") else pt.int64
    column = []
    for v in values:
        shape = (v, dims) if name in ("nonzero", "argwhere") else (v,)
        column.append(pt.empty(shape, dtype=dtype, device="meta"))
    nodes = tracer.argument(list(args)), tracer.argument(kwargs)
    target = getattr(ops.aten, name).default
    node = tracer.call(target, tuple(nodes[0]), nodes[1], name)
    made = tracer.track(column[0], node, column, traced.device)
    _remember(tracer, made, values, text)
    return made


@special("repeat_interleave")
def _repeated(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Record elements that are repeated as often as a tensor says."""
    given = dict(zip(("input", "repeats", "dim"), args, strict=False)) | kwargs
    x, repeats, dim = given["input"], given.get("repeats"), given.get("dim")
    counted = isinstance(repeats, pt.Tensor) or repeats is None
    if not counted or given.get("output_size") is not None:
        return tracer.record("repeat_interleave", pt.repeat_interleave, args, kwargs)
    traced = tracer.traced(x)
    _, values, text = tracer.new_symbol(SymInt, 0, None)
    at = None if dim is None else dim % x.dim()
    column = []
    for v, s in zip(values, traced.shadows, strict=True):
        shape = (v,) if at is None else (*s.shape[:at], v, *s.shape[at + 1 :])
        dtype = pt.int64 if repeats is None else x.dtype
        column.append(pt.empty(shape, dtype=dtype, device="meta"))
    form = ops.aten.repeat_interleave
    target = form.Tensor if repeats is None else form.self_Tensor
    operands = [v for v in (x, repeats, dim) if v is not None]
    node = tracer.call(target, tuple(tracer.argument(operands)), {}, "repeat_interleave")
    made = tracer.track(column[0], node, column, traced.device)
    _remember(tracer, made, values, text, at or 0)
    return made


def _remember(tracer: Any, made: Any, values: Any, text: Any, dim: int = 0) -> None:
    traced = tracer.known[id(made)]

    def make() -> Any:
        return tracer.call(ops.aten.sym_size.int, (traced.node, dim), {}, "sym_size_int", sym)

    sym = SymInt(SymNode(tracer, values, text, make))
    if len(set(values)) > 1:
        tracer.symbols[values] = sym
    traced.node.meta["val"] = tracer.described(traced)
    tracer.remembered(traced.node, dim)


@special("__rsub__")
def _rsub(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    return tracer.record("rsub", pt.rsub, args, {}, run=lambda x, y: y - x)


@special("__rpow__")
def _rpow(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    return tracer.record("pow", pt.pow, (args[1], args[0]), {})


@special("__rtruediv__", "__rdiv__")
def _rdiv(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    with tracer:
        return pt.mul(pt.reciprocal(args[0]), args[1])


@special("__rfloordiv__", "__rmod__", "__rmatmul__", "__rlshift__", "__rrshift__")
def _reflected(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    name = {"__rfloordiv__": "floor_divide", "__rmod__": "remainder"}.get(func.__name__, "matmul")
    return tracer.record(name, getattr(pt, name), (args[1], args[0]), {})


@special("__iter__")
def _iter(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    with tracer:
        return iter(pt.unbind(args[0]))


@special("__contains__")
def _contains(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    with tracer:
        return bool((args[0] == args[1]).any())


@special("split")
def _split(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    sizes = (
        args[1] if len(args) > 1 else kwargs.get("split_size_or_sections", kwargs.get("split_size"))
    )
    dim = args[2] if len(args) > 2 else kwargs.get("dim", 0)
    if isinstance(sizes, (list, tuple)):
        return tracer.record(
            "split_with_sizes", pt.split_with_sizes, (args[0], list(sizes), dim), {}
        )
    return tracer.record("split", pt.split, (args[0], sizes, dim), {})


@special("einsum")
def _einsum(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    if not isinstance(args[0], str):
        return tracer.record("einsum", func, args, kwargs)
    rest = args[1:]
    operands = (
        list(rest[0]) if len(rest) == 1 and isinstance(rest[0], (list, tuple)) else list(rest)
    )
    return tracer.record(
        "einsum", func, (args[0], operands), {}, run=lambda text, xs: pt.einsum(text, *xs)
    )


@special("meshgrid")
def _meshgrid(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    tensors = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    return tracer.record(
        "meshgrid", func, (list(tensors),), kwargs, run=lambda xs, **o: pt.meshgrid(*xs, **o)
    )


@special("lstm", "gru", "rnn_tanh", "rnn_relu")
def _recurrent(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    return tracer.record(func.__name__, func, args, kwargs)


def _basic(tracer: Any, x: Any, index: Any) -> tuple[Any, list[Any]]:
    """Apply the plain parts of an index; return the view and the tensors that are left, by dim."""
    parts = list(index) if isinstance(index, tuple) else [index]
    taken = 0
    for p in parts:
        if isinstance(p, pt.Tensor) and p.dtype in (pt.bool, pt.uint8):
            taken += p.dim()
        elif p is not None and p is not ... and not isinstance(p, bool):
            taken += 1
    rank = x.dim()
    if any(p is ... for p in parts):
        at = next(i for i, p in enumerate(parts) if p is ...)
        parts[at : at + 1] = [slice(None)] * (rank - taken)
    if taken > rank:
        raise IndexError(f"too many indices for tensor of dimension {rank}")
    dim, tensors = 0, {}
    for p in parts:
        if p is None:
            x, dim = x.unsqueeze(dim), dim + 1
        elif isinstance(p, slice):
            if p != slice(None):
                start = 0 if p.start is None else p.start
                stop = 2**63 - 1 if p.stop is None else p.stop
                step = 1 if p.step is None else p.step
                x = tracer.record("slice", ops.aten.slice.Tensor, (x, dim, start, stop, step), {})
            dim += 1
        elif isinstance(p, (int, SymInt)) and not isinstance(p, bool):
            x = x.select(dim, p)
        else:
            t = p if isinstance(p, pt.Tensor) else pt.tensor(p)
            tensors[dim] = t
            dim += t.dim() if t.dtype in (pt.bool, pt.uint8) else 1
    if not tensors:
        return x, []
    listed: list[Any] = []
    for d in range(max(tensors) + 1):
        if d in tensors:
            listed.append(tensors[d])
        elif len(listed) <= d and not any(
            t.dtype in (pt.bool, pt.uint8) and at < d < at + t.dim() for at, t in tensors.items()
        ):
            listed.append(None)
    return x, listed


@special("__getitem__")
def _getitem(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    with tracer:
        x, tensors = _basic(tracer, args[0], args[1])
        if not tensors:
            return (
                x if x is not args[0] else tracer.record("alias", ops.aten.alias.default, (x,), {})
            )
        masks = [t for t in tensors if t is not None and t.dtype in (pt.bool, pt.uint8)]
        if not masks:
            return tracer.record("index", ops.aten.index.Tensor, (x, tensors), {})
        with tracer.away():
            return _masked(tracer, x, tensors)


def _masked(tracer: Any, x: Any, tensors: list[Any]) -> Any:
    """Record an index by a mask: the result is as long as the data says."""
    if len([t for t in tensors if t is not None]) > 1:
        raise RuntimeError("torch.export: an index has a mask beside other tensors; use nonzero")
    traced = tracer.traced(x)
    at = next(i for i, t in enumerate(tensors) if t is not None)
    mask = tensors[at]
    _, values, text = tracer.new_symbol(SymInt, 0, None)
    column = []
    for v, s in zip(values, traced.shadows, strict=True):
        shape = (*s.shape[:at], v, *s.shape[at + mask.dim() :])
        column.append(pt.empty(shape, dtype=s.dtype, device="meta"))
    node = tracer.call(ops.aten.index.Tensor, (traced.node, tracer.argument(tensors)), {}, "index")
    made = tracer.track(column[0], node, column, traced.device)
    if at == 0:
        _remember(tracer, made, values, text)
    return made


@special("__setitem__")
def _setitem(tracer: Any, func: Any, args: Any, kwargs: Any) -> Any:
    x, index, value = args
    with tracer:
        if not isinstance(value, pt.Tensor):
            with tracer.away():
                made = pt.tensor(value, dtype=x.dtype if x.dtype.is_floating_point else None)
                value = lifted(tracer, made)
            number = True
        else:
            number = False
        view, tensors = _basic(tracer, x, index)
        if tensors:
            tracer.record("index_put_", pt.Tensor.index_put_, (view, tensors, value), {})
        elif number:
            tracer.record("fill_", pt.Tensor.fill_, (view, value), {})
        else:
            tracer.record("copy_", pt.Tensor.copy_, (view, value), {})
