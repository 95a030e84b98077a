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


class _ConstantPad(_Pad):
    __constants__ = ["padding", "value"]

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Pad the last dimension with ``value``."""

    _n = 1


class ConstantPad2d(_ConstantPad):
    """Pad the last two dimensions with ``value``."""

    _n = 2


class ConstantPad3d(_ConstantPad):
    """Pad the last three dimensions with ``value``."""

    _n = 3


class ZeroPad1d(ConstantPad1d):
    """Pad the last dimension with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pad the last two dimensions with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pad the last three dimensions with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self._n + 1, self._n + 2):
            raise ValueError(
                f"expected {self._n + 1}D or {self._n + 2}D input (got {input.dim()}D input)"
            )
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """Pad the last dimension as if it were a circle."""

    _n = 1


class CircularPad2d(_CircularPad):
    """Pad the last two dimensions as if they were circles."""

    _n = 2


class CircularPad3d(_CircularPad):
    """Pad the last three dimensions as if they were circles."""

    _n = 3


class _ReflectionPad(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPad):
    """Pad the last dimension by its mirror image, without repeating the edge."""

    _n = 1


class ReflectionPad2d(_ReflectionPad):
    """Pad the last two dimensions by their mirror image, without repeating the edge."""

    _n = 2


class ReflectionPad3d(_ReflectionPad):
    """Pad the last three dimensions by their mirror image, without repeating the edge."""

    _n = 3


class _ReplicationPad(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPad):
    """Pad the last dimension by repeating its edge."""

    _n = 1


class ReplicationPad2d(_ReplicationPad):
    """Pad the last two dimensions by repeating their edges."""

    _n = 2


class ReplicationPad3d(_ReplicationPad):
    """Pad the last three dimensions by repeating their edges."""

    _n = 3
