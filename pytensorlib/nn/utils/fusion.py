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
    """Weight and bias of the convolution that also does what a batch norm does.

    Parameters
    ----------
    conv_w, conv_b : Tensor
        Of the convolution; the bias may be None.
    bn_rm, bn_rv : Tensor
        The running mean and variance.
    bn_eps : float
        Added to the variance.
    bn_w, bn_b : Tensor or None
        Factor and offset of the batch norm.
    transpose : bool, default False
        The convolution is transposed.

    Returns
    -------
    tuple of Parameter
        Weight and bias.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> one = torch.ones(1)
    >>> w, b = nn.utils.fuse_conv_bn_weights(one.view(1, 1, 1), None, one, one, 0.0, 2 * one, one)
    >>> w.item(), b.item()
    (2.0, -1.0)
    """
    scale, shift = _scale_and_shift(bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    with pt.no_grad():
        weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
        bias = (shift if conv_b is None else conv_b * scale + shift).to(conv_w.dtype)
    keep = conv_w.requires_grad
    return Parameter(weight, keep), Parameter(bias, keep)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution that also does what a batch norm after it does in evaluation.

    Parameters
    ----------
    conv : Module
        A convolution, in evaluation mode.
    bn : Module
        A batch norm with running statistics, in evaluation mode.
    transpose : bool, default False
        The convolution is transposed.

    Returns
    -------
    Module
        Of the class of `conv`.

    Raises
    ------
    AssertionError
        One of them is in training mode.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> conv, norm = nn.Conv1d(2, 3, 1).eval(), nn.BatchNorm1d(3).eval()
    >>> x = torch.ones(1, 2, 4)
    >>> torch.allclose(nn.utils.fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)), atol=1e-5)
    True
    """
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
    """Weight and bias of the linear layer that also does what a batch norm does.

    Parameters
    ----------
    linear_w, linear_b : Tensor
        Of the layer; the bias may be None.
    bn_rm, bn_rv : Tensor
        The running mean and variance.
    bn_eps : float
        Added to the variance.
    bn_w, bn_b : Tensor
        Factor and offset of the batch norm.

    Returns
    -------
    tuple of Parameter
        Weight and bias.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> one = torch.ones(1)
    >>> w, b = nn.utils.fuse_linear_bn_weights(one.view(1, 1), None, one, one, 0.0, 2 * one, one)
    >>> w.item(), b.item()
    (2.0, -1.0)
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer that also does what a batch norm after it does in evaluation.

    Parameters
    ----------
    linear : Linear
        In evaluation mode.
    bn : Module
        A batch norm with running statistics, in evaluation mode.

    Returns
    -------
    Module
        Of the class of `linear`.

    Raises
    ------
    AssertionError
        One of them is in training mode, or sizes do not fit.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> linear, norm = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval()
    >>> x = torch.ones(4, 2)
    >>> torch.allclose(nn.utils.fuse_linear_bn_eval(linear, norm)(x), norm(linear(x)), atol=1e-5)
    True
    """
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    return fuse_conv_bn_eval(linear, bn)
