"""Padding."""

from __future__ import annotations

from typing import Any

from ... import Tensor
from .. import functional as F
from ..module import Module
from .utils import ntuple


class _Pad(Module):
    """Pads the last ``_n`` dimensions; ``padding`` holds (before, after), the last one first."""

    __constants__ = ["padding"]
    _n = 0
    _mode = ""

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = ntuple(padding, 2 * self._n)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    __constants__ = ["padding", "value"]

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pad the last dimension with a value.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right); negative numbers crop.
    value : float
        What is added.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ConstantPad1d((1, 0), 9.0)(torch.zeros(1, 2))
    tensor([[9., 0., 0.]])
    """

    _n = 1


class ConstantPad2d(_ConstantPadNd):
    """Pad the last two dimensions with a value.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right, top, bottom); negative numbers crop.
    value : float
        What is added.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ConstantPad2d((1, 0, 0, 1), 9.0)(torch.zeros(1, 1, 2))
    tensor([[[9., 0., 0.],
             [9., 9., 9.]]])
    """

    _n = 2


class ConstantPad3d(_ConstantPadNd):
    """Pad the last three dimensions with a value.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right, top, bottom, front, back); negative numbers crop.
    value : float
        What is added.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ConstantPad3d(1, 9.0)(torch.zeros(1, 1, 1, 1)).shape
    torch.Size([1, 3, 3, 3])
    """

    _n = 3


class ZeroPad1d(ConstantPad1d):
    """Pad the last dimension with zeros.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right); negative numbers crop.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ZeroPad1d((1, 0))(torch.ones(1, 2))
    tensor([[0., 1., 1.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pad the last two dimensions with zeros.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right, top, bottom); negative numbers crop.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ZeroPad2d((1, 0, 0, 1))(torch.ones(1, 1, 2))
    tensor([[[0., 1., 1.],
             [0., 0., 0.]]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pad the last three dimensions with zeros.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right, top, bottom, front, back); negative numbers crop.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ZeroPad3d(1)(torch.ones(1, 1, 1, 1)).shape
    torch.Size([1, 3, 3, 3])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self._n + 1, self._n + 2):
            raise ValueError(
                f"expected {self._n + 1}D or {self._n + 2}D input (got {input.dim()}D input)"
            )
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pad (N, C, L) or (C, L) as if it were a circle.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right); negative numbers crop.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.CircularPad1d((1, 0))(torch.arange(3.0).view(1, 3))
    tensor([[2., 0., 1., 2.]])
    """

    _n = 1


class CircularPad2d(_CircularPadNd):
    """Pad (N, C, H, W) or (C, H, W) as if its dimensions were circles.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right, top, bottom); negative numbers crop.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.CircularPad2d((1, 0, 0, 0))(torch.arange(4.0).view(1, 2, 2))
    tensor([[[1., 0., 1.],
             [3., 2., 3.]]])
    """

    _n = 2


class CircularPad3d(_CircularPadNd):
    """Pad (N, C, D, H, W) or (C, D, H, W) as if its dimensions were circles.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right, top, bottom, front, back); negative numbers crop.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.CircularPad3d(1)(torch.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    _n = 3


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pad (N, C, L) or (C, L) by its mirror image, without repeating the edge.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right); negative numbers crop.

    Raises
    ------
    RuntimeError
        A pad is not less than L.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ReflectionPad1d(2)(torch.arange(3.0).view(1, 3))
    tensor([[2., 1., 0., 1., 2., 1., 0.]])
    """

    _n = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pad (N, C, H, W) or (C, H, W) by its mirror image, without repeating the edge.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right, top, bottom); negative numbers crop.

    Raises
    ------
    RuntimeError
        A pad is not less than the size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ReflectionPad2d((1, 0, 0, 0))(torch.arange(4.0).view(1, 2, 2))
    tensor([[[1., 0., 1.],
             [3., 2., 3.]]])
    """

    _n = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pad (N, C, D, H, W) or (C, D, H, W) by its mirror image, without repeating the edge.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right, top, bottom, front, back); negative numbers crop.

    Raises
    ------
    RuntimeError
        A pad is not less than the size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ReflectionPad3d(1)(torch.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    _n = 3


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pad (N, C, L) or (C, L) by repeating its edge.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right); negative numbers crop.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ReplicationPad1d(2)(torch.arange(3.0).view(1, 3))
    tensor([[0., 0., 0., 1., 2., 2., 2.]])
    """

    _n = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pad (N, C, H, W) or (C, H, W) by repeating its edges.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right, top, bottom); negative numbers crop.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ReplicationPad2d((1, 0, 0, 0))(torch.arange(4.0).view(1, 2, 2))
    tensor([[[0., 0., 1.],
             [2., 2., 3.]]])
    """

    _n = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pad (N, C, D, H, W) or (C, D, H, W) by repeating its edges.

    Parameters
    ----------
    padding : int or tuple of int
        On every side, or (left, right, top, bottom, front, back); negative numbers crop.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ReplicationPad3d(1)(torch.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    _n = 3
