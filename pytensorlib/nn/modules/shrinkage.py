"""Activations that move elements towards zero, or set small ones to it."""

from __future__ import annotations

from ... import Tensor
from .. import functional as F
from ..module import Module


class Tanhshrink(Module):
    """``x - tanh(x)``, elementwise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Tanhshrink()(torch.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Hardshrink(Module):
    """``x`` where ``|x| > lambd``, else 0.

    Parameters
    ----------
    lambd : float, default 0.5
        The bound.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Hardshrink()(torch.tensor([-2.0, 0.3]))
    tensor([-2.,  0.])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """``x`` moved towards 0 by `lambd`; 0 where it would get there.

    Parameters
    ----------
    lambd : float, default 0.5
        How far; not negative.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Softshrink()(torch.tensor([-2.0, 0.3]))
    tensor([-1.5000,  0.0000])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)
