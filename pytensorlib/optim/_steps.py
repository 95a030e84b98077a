"""Private names of `torch.optim.optimizer` that optimizers for PyTorch import."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytensorlib as pt

from .. import _gpu


def _default_to_fused_or_foreach(
    params: list[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Say which of PyTorch's ways to step suits: whether fused, and whether over lists.

    A program's own optimizer that asks works over lists of floating-point tensors here.
    """
    if differentiable:
        return False, False
    kinds = (pt.Tensor, pt.nn.Parameter)
    plain = all(p is None or (type(p) in kinds and p.is_floating_point()) for p in params)
    return (use_fused and plain, plain and not use_fused)


def _get_value(x: Any) -> Any:
    """Return a number, of a tensor of one element too."""
    return x.item() if isinstance(x, pt.Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """Return what it is given: nothing is compiled."""
    return x


def _dispatch_sqrt(x: Any) -> Any:
    """Return the square root of a number or tensor."""
    return x.sqrt() if isinstance(x, pt.Tensor) else math.sqrt(x)


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the devices whose steps could be recorded: none."""
    return []


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the devices with kernels over lists."""
    return ["cpu", _gpu.name()]


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """Return the type of counts of steps."""
    return pt.float64 if pt.get_default_dtype() == pt.float64 else pt.float32


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Replace complex tensors in lists by views of real numbers."""
    for i, p in enumerate(params):
        if p.is_complex():
            for values in (params, *state_and_grads):
                values[i] = pt.view_as_real(values[i])


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """Let a ``step`` run with gradients off, unless its optimizer is differentiable."""

    @wraps(step)
    def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
        with pt.set_grad_enabled(self.defaults["differentiable"]):
            return step(self, *args, **kwargs)

    return stepped


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[..., Any]:
    """Return a decorator that leaves its function as it is."""
    return lambda fn: fn


ParamsT = Iterable[Any]
_params_t = ParamsT
