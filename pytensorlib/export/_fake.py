"""The metadata of a tensor in a graph: its sizes, type and device."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

__all__ = ["FakeTensor"]


class FakeTensor:
    """Describes a tensor of an exported program; sizes that are open are `SymInt`.

    Parameters
    ----------
    shape : Size
        The sizes.
    dtype, device, stride
        As of a tensor.
    """

    def __init__(self, shape: Any, dtype: Any, device: Any, stride: tuple[int, ...]) -> None:
        self.shape, self.dtype, self.device, self._stride = shape, dtype, device, stride
        self.layout, self.requires_grad = pt.strided, False

    @classmethod
    def of(cls, t: Any, shape: Any = None, device: Any = None) -> FakeTensor:
        """Return what describes a tensor."""
        return cls(t.shape if shape is None else shape, t.dtype, device or t.device, t.stride())

    def size(self, dim: int | None = None) -> Any:
        """Return the sizes, or one of them."""
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides in the first example, or one of them."""
        return self._stride if dim is None else self._stride[dim]

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def numel(self) -> Any:
        """Return the number of elements."""
        n: Any = 1
        for s in self.shape:
            n = n * s
        return n

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        dtype = "" if self.dtype is pt.float32 else f", dtype={self.dtype}"
        return f"FakeTensor(..., size=({sizes}{',' if len(self.shape) == 1 else ''}){dtype})"
