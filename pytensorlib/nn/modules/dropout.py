"""Dropout; every layer here is the identity in evaluation."""

from __future__ import annotations

from ... import Tensor
from .. import functional as F
from ..module import Module


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, zero each element with probability `p` and divide the others by ``1 - p``.

    Parameters
    ----------
    p : float, default 0.5
        The probability, in [0, 1].
    inplace : bool, default False
        Overwrite the input with the result.

    Raises
    ------
    ValueError
        `p` is not in [0, 1].

    References
    ----------
    Hinton et al. 2012, arXiv:1207.0580.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Dropout(0.5).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """In training, zero whole channels of (N, C, L) or (C, L) and divide the others by ``1 - p``.

    Parameters
    ----------
    p : float, default 0.5
        The probability, in [0, 1].
    inplace : bool, default False
        Overwrite the input with the result.

    Raises
    ------
    ValueError
        `p` is not in [0, 1].

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Dropout1d(1.0)(torch.ones(1, 2, 2)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """In training, zero whole channels of (N, C, H, W) and divide the others by ``1 - p``.

    Parameters
    ----------
    p : float, default 0.5
        The probability, in [0, 1].
    inplace : bool, default False
        Overwrite the input with the result.

    Raises
    ------
    ValueError
        `p` is not in [0, 1].

    References
    ----------
    Tompson et al. 2014, arXiv:1411.4280.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Dropout2d(1.0)(torch.ones(1, 2, 2, 2)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """In training, zero whole channels of (N, C, D, H, W) or (C, D, H, W) and scale the others.

    Parameters
    ----------
    p : float, default 0.5
        The probability, in [0, 1].
    inplace : bool, default False
        Overwrite the input with the result.

    Raises
    ------
    ValueError
        `p` is not in [0, 1].

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Dropout3d(1.0)(torch.ones(1, 2, 2, 2, 2)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps the mean and variance that `SELU` maintains.

    Parameters
    ----------
    p : float, default 0.5
        The probability, in [0, 1].
    inplace : bool, default False
        Overwrite the input with the result.

    Raises
    ------
    ValueError
        `p` is not in [0, 1].

    References
    ----------
    Klambauer et al. 2017, arXiv:1706.02515.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.AlphaDropout(0.5).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels of (N, C, ...).

    Parameters
    ----------
    p : float, default 0.5
        The probability, in [0, 1].
    inplace : bool, default False
        Overwrite the input with the result.

    Raises
    ------
    ValueError
        `p` is not in [0, 1].

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.FeatureAlphaDropout(0.5).eval()(torch.ones(1, 3))
    tensor([[1., 1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
