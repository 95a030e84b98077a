"""Finds the operator of `torch.ops` that a call is, for ``__torch_dispatch__``."""

from __future__ import annotations

from typing import Any

from .. import _C, _ops

Tensor = _C.Tensor

# Forms of operators that do not depend on the arguments.
_ONLY = {
    **dict.fromkeys(
        "add sub mul copysign index slice unsafe_split true_divide xlogy".split(), "Tensor"
    ),
    **dict.fromkeys("select transpose unbind unflatten size stride".split(), "int"),
    **dict.fromkeys("std var std_mean var_mean".split(), "correction"),
    "empty": "memory_format",
    "flatten": "using_ints",
    "scatter_reduce": "two",
    "where": "self",
}
# Forms for a number and for a tensor at this place.
_NUMBER: dict[str, tuple[int, str, str]] = {
    **dict.fromkeys(
        "eq ne lt le gt ge fmod remainder fill bitwise_and bitwise_or bitwise_xor".split(),
        (1, "Scalar", "Tensor"),
    ),
    **dict.fromkeys("lerp masked_fill".split(), (2, "Scalar", "Tensor")),
    **dict.fromkeys("clamp clamp_min clamp_max clip".split(), (1, "default", "Tensor")),
    "index_fill": (3, "int_Scalar", "int_Tensor"),
    "pow": (1, "Tensor_Scalar", "Tensor_Tensor"),
    "scatter": (3, "value", "src"),
}
# Forms where there is more than the tensor.
_MORE = {
    "all": "dim",
    "any": "dim",
    "max": "dim",
    "mean": "dim",
    "median": "dim",
    "min": "dim",
    "nanmedian": "dim",
    "nansum": "default",
    "prod": "dim_int",
    "squeeze": "dim",
    "sum": "dim_IntList",
}


def _form(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the form of an operator for its arguments, as PyTorch names it."""
    base = name.removesuffix("_") or name
    second = args[1] if len(args) > 1 else None
    if base in ("div", "divide"):
        return "Tensor_mode" if kwargs.get("rounding_mode") is not None else "Tensor"
    if base in _ONLY:
        return _ONLY[base]
    if base in _NUMBER:
        place, number, tensor = _NUMBER[base]
        if base == "pow" and not isinstance(args[0], Tensor):
            return "Scalar"
        if base == "pow" and name == "pow_":
            number, tensor = "Scalar", "Tensor"
        return tensor if any(isinstance(a, Tensor) for a in args[place:]) else number
    if base in _MORE and len(args) > 1:
        if base in ("max", "min") and isinstance(second, Tensor):
            return "other"
        return "dims" if base == "squeeze" and isinstance(second, list) else _MORE[base]
    if base == "split":
        return "sizes" if isinstance(second, list) else "Tensor"
    if base == "arange" and len(args) > 1:
        return "start_step" if len(args) > 2 else "start"
    if base == "randint" and len(args) > 2:
        return "low"
    if base == "view" and isinstance(second, _C.dtype):
        return "dtype"
    if base == "random":
        return {1: "default", 2: "to"}.get(len(args), "from")
    if base == "bernoulli" and name == "bernoulli_":
        return "Tensor" if isinstance(second, Tensor) else "float"
    if base == "round" and kwargs.get("decimals"):
        return "decimals"
    if base == "sort" and "stable" in kwargs:
        return "stable"
    return "default"


class _Computed(_ops.OpOverload):
    """An operator with the parameters of one call, which takes its tensors."""

    def __init__(self, packet: Any, name: str, op: Any) -> None:
        super().__init__(packet, name)
        self._op = op

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if kwargs:
            raise TypeError(f"{self}: unexpected arguments {sorted(kwargs)}; it takes tensors")
        if out is None and self._opname.endswith("_"):
            out = args[0]
        written = out if out is None or isinstance(out, (tuple, list)) else (out,)
        results = self._op(args, written)
        return results[0] if len(results) == 1 else results

    __hash__ = _ops.OpOverload.__hash__


def _packet(name: str) -> Any:
    space = _ops.ops.aten
    found = getattr(space, name, None)
    if found is None:
        found = _ops.OpOverloadPacket("aten", name, _ops._part(name))
        space.__dict__[name] = found
    return found


def _operator(name: str, args: Any, kwargs: Any, op: Any, whole: bool) -> Any:
    """Return the operator that a call below gradients is.

    Parameters
    ----------
    name : str
        Its name.
    args, kwargs : tuple, dict
        Its arguments.
    op : callable or None
        What computes it, with its parameters.
    whole : bool
        Whether the arguments are all that it needs.
    """
    packet, form = _packet(name), _form(name, args, kwargs)
    if "out" in kwargs:
        form = "out" if form in ("default", "Tensor") else f"{form}_out"
    if op is None or (whole and not hasattr(packet._function, "_is_part")):
        return getattr(packet, form)
    return _Computed(packet, form, op)
