"""Softmax and its like, along a dimension."""

from __future__ import annotations

from typing import Any

from ... import Tensor
from .. import functional as F
from ..module import Module


class _AlongDim(Module):
    __constants__ = ["dim"]
    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """``exp(x) / sum(exp(x))`` along a dimension: positive weights that sum to 1.

    Parameters
    ----------
    dim : int
        Leaving it out is deprecated and warns.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Softmax(dim=0)(torch.tensor([1.0, 2.0]))
    tensor([0.2689, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmin(_AlongDim):
    """``softmax(-x)``: the smallest element gets the largest weight.

    Parameters
    ----------
    dim : int
        Leaving it out is deprecated and warns.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Softmin(dim=0)(torch.tensor([1.0, 2.0]))
    tensor([0.7311, 0.2689])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """``log(softmax(x))``, computed without leaving the log domain.

    Parameters
    ----------
    dim : int
        Leaving it out is deprecated and warns.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.LogSoftmax(dim=0)(torch.tensor([0.0, 200.0]))
    tensor([-200.,    0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W), at each pixel.

    Raises
    ------
    ValueError
        The input has another number of dimensions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Softmax2d()(torch.zeros(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3, _stacklevel=5)
