"""Normalisation without a batch."""

from __future__ import annotations

import numbers
from typing import Any

import pytensorlib as pt

from ... import Tensor
from .. import functional as F
from .. import init
from .._advice import advise
from ..module import Module
from ..parameter import Parameter


class LocalResponseNorm(Module):
    """Divide by ``(k + alpha * mean of squares) ** beta`` over neighbouring channels of (N, C,
    ...).

    Parameters
    ----------
    size : int
        How many channels are neighbours.
    alpha : float, default 1e-4
        The factor of the mean.
    beta : float, default 0.75
        The power.
    k : float, default 1.0
        What is added.

    References
    ----------
    Krizhevsky et al. 2012, ImageNet classification with deep convolutional neural networks,
    NIPS.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.LocalResponseNorm(2, alpha=1.0)(torch.ones(1, 2, 1))
    tensor([[[0.7378],
             [0.5946]]])
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of (N, C, H, W).

    Parameters
    ----------
    size : int
        How many channels are neighbours.
    alpha : float, default 1e-4
        The factor of the mean.
    beta : float, default 0.75
        The power.
    k : float, default 1
        What is added.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.CrossMapLRN2d(2, alpha=1.0)(torch.ones(1, 2, 1, 1)).flatten()
    tensor([0.7378, 0.5946])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)


class LayerNorm(Module):
    """Normalise over the last dimensions: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The sizes of the dimensions to normalise over.
    eps : float, default 1e-5
        Added to the biased variance.
    elementwise_affine : bool, default True
        Learn a factor and an offset for each element.
    bias : bool, default True
        Learn the offset.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Raises
    ------
    RuntimeError
        The input does not end in `normalized_shape`.

    References
    ----------
    Ba et al. 2016, arXiv:1607.06450.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.LayerNorm(2)(torch.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        single = isinstance(normalized_shape, numbers.Integral)
        self.normalized_shape = (normalized_shape,) if single else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if elementwise_affine:
            made = {"device": device, "dtype": dtype}
            self.weight = Parameter(pt.empty(self.normalized_shape, **made))
            if bias:
                self.bias = Parameter(pt.empty(self.normalized_shape, **made))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        try:
            return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)
        except RuntimeError as error:
            advise(error, input, self.weight)
            raise

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divide by the root of the mean square over the last dimensions.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The sizes of the dimensions to normalise over.
    eps : float, optional
        Added to the mean square; the dtype's epsilon by default.
    elementwise_affine : bool, default True
        Learn a factor for each element.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Raises
    ------
    RuntimeError
        The input does not end in `normalized_shape`.

    References
    ----------
    Zhang and Sennrich 2019, arXiv:1910.07467.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.RMSNorm(2)(torch.tensor([3.0, 4.0])).detach()
    tensor([0.8485, 1.1314])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        single = isinstance(normalized_shape, numbers.Integral)
        self.normalized_shape = (normalized_shape,) if single else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", None)
        if elementwise_affine:
            self.weight = Parameter(pt.empty(self.normalized_shape, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Normalise each group of channels of each sample of (N, C, ...) by its own mean and variance.

    Parameters
    ----------
    num_groups : int
        Divides `num_channels`.
    num_channels : int
        C.
    eps : float, default 1e-5
        Added to the biased variance.
    affine : bool, default True
        Learn a factor and an offset for each channel.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.
    bias : bool, default True
        Learn the offset.

    Raises
    ------
    ValueError
        `num_channels` is no multiple of `num_groups`.

    References
    ----------
    Wu and He 2018, arXiv:1803.08494.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.GroupNorm(2, 4)(torch.tensor([[1.0, 3.0, 5.0, 9.0]])).detach()
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if affine:
            self.weight = Parameter(pt.empty(num_channels, device=device, dtype=dtype))
            if bias:
                self.bias = Parameter(pt.empty(num_channels, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )
