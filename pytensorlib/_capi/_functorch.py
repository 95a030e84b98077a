"""`torch._C._functorch`: what libraries ask of tensors inside transforms of functions.

A tensor of slices knows what it is a slice of; what is differentiated is a plain tensor, so that
none has a level. What would make or take apart a wrapper refuses.
"""

from __future__ import annotations

import enum
from typing import Any

from .. import _C
from .._absent.modules import fill

__all__: list[str] = []

fill(
    globals(),
    "transforms make and take apart their tensors in the core, which have no hidden dimension and "
    "no level that a program could set. Call torch.func's transforms themselves.",
    "_add_batch_dim _remove_batch_dim _unwrap_batched _wrap_functional_tensor "
    "_unwrap_functional_tensor _assert_wrapped_functional _propagate_functional_input_mutation "
    "_vmap_increment_nesting _vmap_decrement_nesting _func_increment_nesting "
    "_func_decrement_nesting _grad_increment_nesting _grad_decrement_nesting "
    "_jvp_increment_nesting _jvp_decrement_nesting _wrap_for_grad _unwrap_for_grad "
    "_maybe_unsafe_set_level current_level get_unwrapped pop_dynamic_layer_stack "
    "push_dynamic_layer_stack pop_dynamic_layer_stack_and_undo_to_depth dump_dls dump_local_tls "
    "dump_tensor tls_set_vmap_excluded _set_dynamic_layer_keys_included DynamicLayer CInterpreter "
    "CGradInterpreterPtr CJvpInterpreterPtr CVmapInterpreterPtr CFunctionalizeInterpreterPtr",
)


class TransformType(enum.Enum):
    """The kind of a transform."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


class RandomnessType(enum.Enum):
    """Whether slices may draw random numbers, and whether each gets the same ones."""

    Error = 0
    Same = 1
    Different = 2


def no(*args: Any) -> bool:
    """Return False."""
    return False


def nothing(*args: Any) -> None:
    """Return None."""


is_legacy_batchedtensor = is_gradtrackingtensor = is_functionaltensor = no


def is_batchedtensor(tensor: Any) -> bool:
    """Return whether a tensor stands for slices, inside of `vmap`."""
    return _C._slices_of(tensor) is not None


is_functorch_wrapped_tensor = is_dead_tensor_wrapper = no
maybe_current_level = peek_interpreter_stack = get_interpreter_stack = nothing


def maybe_get_level(tensor: Any) -> int:
    """Return -1: a tensor has no level."""
    return -1


def maybe_get_bdim(tensor: Any) -> int:
    """Return the dimension of the slices in what a tensor is a slice of; -1 of others."""
    found = _C._slices_of(tensor)
    return -1 if found is None else int(found[1])


def dlevel(tensor: Any) -> int:
    """Return 0: a tensor is behind no wrapper."""
    return 0


def get_dynamic_layer_stack_depth() -> int:
    """Return 0: there is no stack of transforms."""
    return 0


def unwrap_if_dead(tensor: Any) -> Any:
    """Return the tensor."""
    return tensor


class Setting:
    """Something that is set and asked for, and that nothing here depends on."""

    def __init__(self, value: bool) -> None:
        self.value = value

    def get(self) -> bool:
        """Return it."""
        return self.value

    def set(self, value: bool) -> None:
        """Set it."""
        self.value = bool(value)


_inplace, _single = map(Setting, (False, False))
get_inplace_requires_grad_allowed = _inplace.get
set_inplace_requires_grad_allowed = _inplace.set
get_single_level_autograd_function_allowed = _single.get
set_single_level_autograd_function_allowed = _single.set


class Fallback:
    """The fallback of `vmap` for operators without a rule: a loop over slices, with a warning."""

    def __init__(self) -> None:
        self.enabled, self.warns = True, True

    def tell(self) -> None:
        """Tell the core."""
        _C._set_vmap_loops(int(self.warns) if self.enabled else 2)


_fallback = Fallback()


def _is_vmap_fallback_enabled() -> bool:
    """Return whether operators without a rule run once for each slice."""
    return _fallback.enabled


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """Say whether operators without a rule run once for each slice, or raise."""
    _fallback.enabled = bool(enabled)
    _fallback.tell()


def _are_vmap_fallback_warnings_enabled() -> bool:
    """Return whether that warns."""
    return _fallback.warns


def _set_vmap_fallback_warning_enabled(enabled: bool) -> None:
    """Say whether that warns."""
    _fallback.warns = bool(enabled)
    _fallback.tell()


def reshape_dim_into(src: int, dst: int, x: Any) -> Any:
    """Return `x` with dimension `src` in front of what is dimension `dst` then, both made one."""
    src %= x.dim()
    dst %= x.dim() - 1
    return x.movedim(src, dst).flatten(dst, dst + 1)


def reshape_dim_outof(src: int, size1: int, x: Any) -> Any:
    """Return `x` with dimension `src` made two, the first of this size."""
    src %= x.dim()
    size = x.shape[src]
    if size1 < 1 or size % size1:
        raise RuntimeError(
            f"shape[src] % size1 == 0: dimension {src} of size {size} cannot become {size1} rows"
        )
    return x.unflatten(src, (size1, size // size1))
