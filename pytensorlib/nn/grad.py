"""Gradients of convolutions by their input and weight, as functions."""

from __future__ import annotations

import sys
from typing import Any

import pytensorlib as pt

from . import functional as F

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]

_DOC = """Return the gradient of `conv{n}d` by its {what}.

Parameters
----------
{first}
grad_output : Tensor
    The gradient of the result.
stride, padding, dilation : int or tuple, default 1, 0, 1
    As of the convolution.
groups : int, default 1
    As of the convolution.

Returns
-------
Tensor
    Of the shape of the {what}.

Examples
--------
>>> import pytensorlib as torch
>>> from pytensorlib import nn
>>> x, w = torch.ones(1, 1{fours}), torch.ones(1, 1{twos})
>>> y = nn.functional.conv{n}d(x, w)
>>> nn.grad.conv{n}d_{what}({call}, torch.ones_like(y)).sum().item()
{value}
"""
_INPUT = (
    "input_size : sequence of int\n    The shape of the input.\nweight : Tensor\n    The weight."
)
_WEIGHT = (
    "input : Tensor\n    The input.\nweight_size : sequence of int\n    The shape of the weight."
)


def _make(n: int, what: str) -> Any:
    conv = getattr(F, f"conv{n}d")

    def differentiated(x: Any, w: Any, by: Any, grad_output: Any, **options: Any) -> Any:
        record = pt.is_grad_enabled() and any(t.requires_grad for t in (x, w, grad_output))
        with pt.enable_grad():
            by.requires_grad_()
            y = conv(x, w, None, **options)
            (gradient,) = pt.autograd.grad(y, by, grad_output, create_graph=record)
        return gradient

    def of_input(
        input_size: Any,
        weight: Any,
        grad_output: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        x = pt.zeros(tuple(input_size), dtype=grad_output.dtype, device=grad_output.device)
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        return differentiated(x, weight, x, grad_output, **options)

    def of_weight(
        input: Any,
        weight_size: Any,
        grad_output: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        w = pt.zeros(tuple(weight_size), dtype=grad_output.dtype, device=grad_output.device)
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        return differentiated(input, w, w, grad_output, **options)

    found = of_input if what == "input" else of_weight
    found.__name__ = found.__qualname__ = f"conv{n}d_{what}"
    found.__doc__ = _DOC.format(
        n=n,
        what=what,
        first=_INPUT if what == "input" else _WEIGHT,
        fours=", 4" * n,
        twos=", 2" * n,
        call="x.shape, w" if what == "input" else "x, w.shape",
        value=float(3**n * 2**n),
    )
    return found


conv1d_input, conv1d_weight = _make(1, "input"), _make(1, "weight")
conv2d_input, conv2d_weight = _make(2, "input"), _make(2, "weight")
conv3d_input, conv3d_weight = _make(3, "input"), _make(3, "weight")

# Not in `functional`, which these functions call.
F.grad = sys.modules[__name__]  # type: ignore[attr-defined]
