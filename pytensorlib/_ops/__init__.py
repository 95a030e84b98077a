"""``torch.ops``: operators by namespace and name, ours and those that programs define."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytensorlib as pt

from .._absent import compiled as _compiled
from .._absent.modules import fill
from .._absent.table import EAGER
from .backward import BACKWARD, rnn_layer

__all__ = ["OpOverload", "OpOverloadPacket", "Operators", "registered"]

# Operators that programs defined, by "namespace::name"; `torch.library` fills it.
registered: dict[str, Any] = {}

# Where the operators of PyTorch's own namespace are found, in this order.
_HOMES = ("", "_C._nn", "nn.functional", "special", "linalg", "fft", "Tensor")


def _to_copy(self: Any, **kwargs: Any) -> Any:
    """Return a copy of a tensor, of another type or on another device."""
    kwargs = {k: v for k, v in kwargs.items() if v is not None and k != "layout"}
    pin = kwargs.pop("pin_memory", False)
    copied = self.to(**kwargs, copy=True) if kwargs else self.clone()
    return copied.pin_memory() if pin else copied


def _clone(self: Any, *, memory_format: Any = None, out: Any = None) -> Any:
    """Return a copy of a tensor, in `out` where that is given."""
    if out is not None:
        return out.copy_(self)
    return self.clone() if memory_format is None else self.clone(memory_format=memory_format)


def _sparse_addmm(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * self + alpha * mat1 @ mat2``, as of all matrices."""
    return pt.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _index(self: Any, indices: Any) -> Any:
    """Return what a tensor has at indices, which are tensors or None for all of a dimension."""
    return self[tuple(slice(None) if index is None else index for index in indices)]


def _slice(self: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """Return the part of a tensor from `start` to `end` of a dimension."""
    places: list[Any] = [slice(None)] * self.dim()
    places[dim] = slice(start, end, step)
    return self[tuple(places)]


def _softmax(self: Any, dim: int, half_to_float: bool) -> Any:
    """Return the softmax of a dimension."""
    return pt.softmax(self, dim)


def _log_softmax(self: Any, dim: int, half_to_float: bool) -> Any:
    """Return the logarithm of the softmax of a dimension."""
    return pt.log_softmax(self, dim)


def _nll_loss_forward(
    self: Any, target: Any, weight: Any, reduction: int, ignore_index: int
) -> tuple[Any, Any]:
    """Return the negative log likelihood, and the sum of the weights of what counts."""
    import pytensorlib.nn.functional as functions

    words = ("none", "mean", "sum")[reduction]
    loss = functions.nll_loss(self, target, weight, ignore_index=ignore_index, reduction=words)
    counts = (target != ignore_index).to(self.dtype)
    if weight is not None:
        counts = counts * weight[target.clamp(min=0)]
    total = counts.sum() if reduction else self.new_zeros(())
    return loss, total


def _log_sigmoid_forward(self: Any) -> tuple[Any, Any]:
    """Return the logarithm of the sigmoid, and what its gradient keeps: ``exp(-abs(x))``."""
    return pt.nn.functional.logsigmoid(self), pt.exp(-self.detach().abs())


# Operators that PyTorch's Python functions do not name.
_UNNAMED = BACKWARD | {
    "_log_softmax": _log_softmax,
    "_pin_memory": lambda self, device=None: self.pin_memory(),
    "_softmax": _softmax,
    "_sparse_addmm": _sparse_addmm,
    "_to_copy": _to_copy,
    "_unsafe_view": lambda self, size: self.view(list(size)),
    "alias": lambda self: self.view_as(self),
    "clone": _clone,
    "index": _index,
    "log_sigmoid_forward": _log_sigmoid_forward,
    "mkldnn_rnn_layer": rnn_layer,
    "nll_loss2d_forward": _nll_loss_forward,
    "nll_loss_forward": _nll_loss_forward,
    "slice": _slice,
}

# Operators that programs name, which are parts of others here and not called by themselves.
_PARTS = frozenset(
    """_efficient_attention_forward _flash_attention_forward _fused_rms_norm
    _log_softmax_backward_data _scaled_dot_product_cudnn_attention
    _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
    _scaled_dot_product_flash_attention_for_cpu _scaled_mm _softmax_backward_data
    cross_entropy_loss cross_entropy_loss_backward multi_margin_loss_backward
    multilabel_margin_loss_backward native_batch_norm native_dropout native_dropout_backward
    native_group_norm native_layer_norm relu_backward""".split()
)

# Operators whose results are other views of their first argument.
_VIEWS = frozenset(
    """alias as_strided chunk detach diagonal expand movedim narrow permute real imag select slice
    split split_with_sizes squeeze t transpose unbind unfold unsqueeze view view_as_complex
    view_as_real""".split()
)


# Operators of other namespaces of PyTorch's: the module that has them as functions.
_OTHERS = {
    "profiler::_record_function_enter": ("autograd.profiler", "_record_function_enter_new"),
    "profiler::_record_function_enter_new": ("autograd.profiler", "_record_function_enter_new"),
    "profiler::_record_function_exit": ("autograd.profiler", "_record_function_exit"),
    "profiler::_call_end_callbacks_on_jit_fut": (
        "autograd.profiler",
        "_call_end_callbacks_on_jit_fut",
    ),
}


# Namespaces whose operators are functions here, which ask such classes themselves.
_EAGER = frozenset(("aten", "prim", "prims", "higher_order"))


class _Schema:
    """The name of an operator's schema, and whether it is mutable."""

    def __init__(self, name: str, overload: str) -> None:
        self.name = name
        self.overload_name = "" if overload == "default" else overload
        written = name.endswith("_") and not name.endswith("__")
        self.is_mutable = written or overload == "out" or overload.endswith("_out")

    def __str__(self) -> str:
        return f"{self.name}.{self.overload_name}" if self.overload_name else self.name


def _stands_in(a: Any) -> bool:
    """Return whether something that is no tensor answers for functions: a proxy of `fx`."""
    return not isinstance(a, pt.Tensor) and hasattr(type(a), "__torch_function__")


def _called(form: Any, packet: OpOverloadPacket, args: tuple[Any, ...], kwargs: Any) -> Any:
    """Call an operator; one that programs define is first offered to classes like tensors."""
    given = [*args, *kwargs.values()]
    eager = packet._namespace in _EAGER
    if eager:
        lists = (a for a in given if isinstance(a, (list, tuple)))
        given = [a for a in (*given, *(e for part in lists for e in part)) if _stands_in(a)]
    if given:
        from ..overrides import handle_torch_function, has_torch_function

        if has_torch_function(given):
            return handle_torch_function(form, given, *args, **kwargs)
    return packet._function(*args, **kwargs)


class OpOverload:
    """One form of an operator: ``torch.ops.aten.add.Tensor``."""

    def __init__(self, packet: OpOverloadPacket, name: str) -> None:
        self.overloadpacket, self._overloadname = packet, name
        self._qualified_op_name = packet._qualified_op_name
        self._opname = packet.__name__
        self.__name__ = f"{packet.__name__}.{name}"
        self.__module__ = packet.__module__
        self.namespace = packet._namespace
        self._schema = _Schema(self._qualified_op_name, name)
        self.is_view = self.namespace == "aten" and packet.__name__ in _VIEWS
        self.tags: list[Any] = []

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _called(self, self.overloadpacket, args, kwargs)

    # An operator that keeps the parameters of a call is the same as that without.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverload) and (
            self._overloadname == other._overloadname
            and self._qualified_op_name == other._qualified_op_name
        )

    def __hash__(self) -> int:
        return hash((self._qualified_op_name, self._overloadname))

    def name(self) -> str:
        """Return ``namespace::name.form``."""
        form = "" if self._overloadname == "default" else f".{self._overloadname}"
        return self._qualified_op_name + form

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An operator with all its forms, which are one function here: ``torch.ops.aten.add``."""

    def __init__(self, namespace: str, name: str, function: Any) -> None:
        self._namespace, self._function = namespace, function
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__, self.__module__ = name, f"torch.ops.{namespace}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _called(self, self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        # Also while a copy is made, which has no names yet.
        if name.startswith("_") and name != "_RecordFunction":
            raise AttributeError(f"'OpOverloadPacket' object has no attribute {name!r}")
        form = self.__dict__[name] = OpOverload(self, name)
        return form

    def overloads(self) -> list[str]:
        """Return the names of the forms that were asked for, and "default"."""
        return ["default", *(n for n, v in vars(self).items() if isinstance(v, OpOverload))]

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class _Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self.name, self.__name__ = name, f"torch.ops.{name}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"'_OpNamespace' object has no attribute {name!r}")
        found = registered.get(full := f"{self.name}::{name}")
        if found is None and full in _OTHERS:
            home, inside = _OTHERS[full]
            found = getattr(importlib.import_module(f"pytensorlib.{home}"), inside)
        if found is None and self.name in ("aten", "prim", "prims"):
            found = _ours(name) or (_part(name) if name in _PARTS else None)
        elif self.name == "higher_order":
            from ..export._control_flow import OPERATORS

            if name in OPERATORS:
                return OPERATORS[name]
        elif found is None:
            found = _compiled.operator(self.name, name)
        if found is None:
            raise AttributeError(
                f"'_OpNamespace' '{self.name}' object has no attribute '{name}': no such operator "
                "is here; torch.library.custom_op defines operators"
            )
        packet = self.__dict__[name] = OpOverloadPacket(self.name, name, found)
        return packet


def _part(name: str) -> Any:
    """Return what an operator does that is only called as a part of others."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"torch.ops.aten.{name} is called by other functions here, not by itself: a mode that "
            "gets it can call what it got"
        )

    refuse._is_part = True  # type: ignore[attr-defined]
    return refuse


def _ours(name: str) -> Any:
    if name in _UNNAMED:
        return _UNNAMED[name]
    from .aten import FORMS

    if name in FORMS:
        return FORMS[name]
    family, _, rest = name.partition("_")
    if family in ("linalg", "fft", "special") and hasattr(getattr(pt, family), rest):
        return getattr(getattr(pt, family), rest)
    for home in _HOMES:
        place: Any = pt
        for part in home.split(".") if home else ():
            place = getattr(place, part, None)
        found = getattr(place, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    return None


class Operators:
    """The class of `torch.ops`: each attribute is a namespace."""

    @property
    def loaded_libraries(self) -> set[str]:
        """The paths of libraries that programs loaded."""
        return set(_compiled.loaded)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"torch.ops has no attribute {name!r}")
        space = self.__dict__[name] = _Namespace(name)
        return space

    def load_library(self, path: Any) -> None:
        """Note the operators of a library that is compiled for PyTorch's C++, and warn.

        Nothing of it runs: its operators raise where they are called.

        Raises
        ------
        OSError
            There is no such library, or the caller handles that: then it goes on without it.
        """
        _compiled.load(path, sys._getframe(1))

    def import_module(self, module: str) -> None:
        """Import a Python module that defines operators."""
        importlib.import_module(module)


ops = Operators()


fill(globals(), EAGER, "OperatorBase HigherOrderOperator PyOperator TorchBindOpOverload")
