"""Folding batch normalisation into the layer before it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

import pytensorlib as pt

from ..parameter import Parameter


def _scale_and_shift(mean: Any, var: Any, eps: float, weight: Any, bias: Any) -> tuple[Any, Any]:
    scale = pt.rsqrt(var + eps)
    if weight is not None:
        scale = scale * weight
    return scale, -mean * scale if bias is None else bias - mean * scale


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the convolution that does both."""
    scale, shift = _scale_and_shift(bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    with pt.no_grad():
        weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
        bias = (shift if conv_b is None else conv_b * scale + shift).to(conv_w.dtype)
    keep = conv_w.requires_grad
    return Parameter(weight, keep), Parameter(bias, keep)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of ``conv`` that also does what ``bn`` does in evaluation."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the linear layer that does both."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of ``linear`` that also does what ``bn`` does in evaluation."""
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    return fuse_conv_bn_eval(linear, bn)
