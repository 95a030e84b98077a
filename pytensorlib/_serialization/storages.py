"""The storages of checkpoints: memory of a file, and the tensors made from it."""

from __future__ import annotations

import reprlib
from typing import Any

import pytensorlib as pt

from .. import _C
from ..storage import TypedStorage
from .machine import CorruptCheckpointError

__all__ = ["LIMIT", "FileStorage", "brief"]

LIMIT = 2**63
HOST = pt.device("cpu")
_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 2, 60, 60


def brief(value: Any) -> str:
    """Return a few characters about something that a file holds, however large that is."""
    if type(value) in (int, float, str, bytes, bool, type(None), tuple, list):
        return _SHORT.repr(value)
    return f"a {type(value).__name__}"


class FileStorage(TypedStorage):
    """Memory of a file, checked against what the file says of its tensors.

    Parameters
    ----------
    data : Tensor
        One-dimensional, uint8, on the CPU.
    dtype : dtype
        How a tensor without a dtype of its own reads it.
    device : device, optional
        Where the tensors made of it live.
    """

    def __init__(self, data: Any, dtype: Any, device: Any = None) -> None:
        self.data, self.dtype = data, dtype
        self.place = HOST if device in (None, "cpu") else pt.device(device)
        self.typed: dict[Any, Any] = {}

    @property
    def _untyped_storage(self) -> Any:
        flat = self.as_dtype(pt.uint8)
        whole, start = flat.untyped_storage(), flat.storage_offset()
        if whole.nbytes() == flat.numel():
            return whole
        return whole[start : start + flat.numel()]

    def _nbytes(self) -> int:
        return self.data.numel()

    def as_dtype(self, dtype: Any) -> Any:
        """Return all of it as a one-dimensional tensor."""
        if dtype not in self.typed:
            item = dtype.itemsize
            if self._nbytes() % item:
                raise CorruptCheckpointError(
                    f"a storage of {self._nbytes()} bytes does not hold whole {dtype} elements"
                )
            flat = (
                self.data.view(dtype) if self._nbytes() else pt.empty(0, dtype=dtype, device=HOST)
            )
            self.typed[dtype] = flat if self.place.type == "cpu" else flat.to(self.place)
        return self.typed[dtype]

    def tensor(self, offset: Any, size: Any, stride: Any, dtype: Any = None) -> Any:
        """Return a tensor over this memory, after checking that it stays within it.

        Raises
        ------
        CorruptCheckpointError
            If the extent does not fit.
        """
        dtype = dtype or self.dtype
        if self.place is HOST:
            try:
                return _C._from_bytes(self.data, dtype, offset, size, stride)
            except (RuntimeError, TypeError, ValueError, OverflowError):
                pass  # said in full below
        flat = self.as_dtype(dtype)
        size, stride = tuple(size), tuple(stride)
        if len(size) != len(stride):
            raise CorruptCheckpointError(
                f"tensor: unequal size length ({len(size)}) and stride length ({len(stride)})"
            )
        for n in (offset, *size, *stride):
            if type(n) is not int or not 0 <= n < LIMIT:
                raise CorruptCheckpointError(
                    f"tensor: invalid storage offset, size or stride {brief(n)}: must be ints of "
                    "63 bits"
                )
        numel, last = 1, offset
        for n, step in zip(size, stride, strict=True):
            numel *= max(n, 1)
            last += max(n - 1, 0) * step
            if max(numel, last) >= LIMIT:
                raise CorruptCheckpointError(
                    f"tensor: size {brief(size)} and stride {brief(stride)} are invalid: they "
                    "reach beyond 63 bits"
                )
        if 0 in size:
            last = offset - 1
        if last >= flat.numel():
            raise CorruptCheckpointError(
                f"tensor: size {brief(size)}, stride {brief(stride)}, offset {offset} reach "
                f"element {last} of a storage of {flat.numel()}"
            )
        return flat.as_strided(size, stride, flat.storage_offset() + offset)
