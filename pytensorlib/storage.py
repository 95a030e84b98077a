"""Typed storages: the flat memory behind tensors, as checkpoints name it."""

from __future__ import annotations

import io
import os
import reprlib
from collections.abc import Sequence
from typing import Any, ClassVar

import pytensorlib as pt

from . import _C
from ._pickle_vm import CorruptCheckpointError

__all__ = [
    "BFloat16Storage",
    "BoolStorage",
    "ByteStorage",
    "CharStorage",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DoubleStorage",
    "FloatStorage",
    "HalfStorage",
    "IntStorage",
    "LongStorage",
    "ShortStorage",
    "TypedStorage",
]

UntypedStorage = _C.UntypedStorage
LIMIT = 2**63
HOST = pt.device("cpu")
_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 2, 60, 60


def brief(value: Any) -> str:
    """Return a few characters about something that a file holds, however large that is."""
    if type(value) in (int, float, str, bytes, bool, type(None), tuple, list):
        return _SHORT.repr(value)
    return f"a {type(value).__name__}"


class TypedStorage:
    """Flat memory of one dtype that tensors can share.

    Parameters
    ----------
    data : Tensor
        One-dimensional, uint8, on the CPU.
    dtype : dtype
        How a tensor without a dtype of its own reads it.
    device : device, optional
        Where the tensors made of it live.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> storage = torch.tensor([1.0, 2.0]).storage()
    >>> storage.tolist(), storage.dtype
    ([1.0, 2.0], torch.float32)
    """

    names: ClassVar[dict[Any, str]] = {}
    dtype: Any = None

    def __init__(self, data: Any, dtype: Any = None, device: Any = None) -> None:
        self.data = data
        self.dtype = dtype or type(self).dtype
        self.device = HOST if device in (None, "cpu") else pt.device(device)
        self._typed: dict[Any, Any] = {}

    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self.data.numel()

    def untyped(self) -> Any:
        """Return the memory as bytes."""
        return self.data.untyped_storage()

    _untyped_storage = property(untyped)

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self.dtype.itemsize

    def size(self) -> int:
        """Return the number of elements."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def resize_(self, size: int) -> TypedStorage:
        """Change the number of elements, keeping those that fit, and return self.

        Parameters
        ----------
        size : int
            How many elements there are afterwards.
        """
        self.data = self.untyped().resize_(size * self.dtype.itemsize)._as_bytes()
        self._typed.clear()
        return self

    def share_memory_(self) -> TypedStorage:
        """Move the memory to where other processes can map it, and return self."""
        self.untyped().share_memory_()
        return self

    def is_shared(self) -> bool:
        """Return whether other processes can map the memory."""
        return self.untyped().is_shared()

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return the memory of a file as elements of the class's type.

        Parameters
        ----------
        filename : path
            The file; where `shared`, it is made and grows as needed.
        shared : bool, default False
            Whether what is written goes to the file.
        size : int
            How many elements.
        """
        if cls.dtype is None:
            raise RuntimeError("from_file: a class with a dtype is needed, such as FloatStorage")
        raw = _from_file(filename, shared, size * cls.dtype.itemsize)
        return cls(raw._as_bytes(), cls.dtype)

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self.data.data_ptr()

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers."""
        return self.as_dtype(self.dtype).tolist()

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __getitem__(self, key: Any) -> Any:
        part = self.as_dtype(self.dtype)[key]
        return part.item() if part.dim() == 0 else _of(part.clone())

    def __setitem__(self, key: Any, value: Any) -> None:
        self.as_dtype(self.dtype)[key] = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.untyped() == other.untyped()

    def __hash__(self) -> int:
        return hash(self.untyped())

    def __repr__(self) -> str:
        rows = "".join(f" {v}\n" for v in self.tolist())
        return (
            f"{rows}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) "
            f"of size {self.size()}]"
        )

    def as_dtype(self, dtype: Any) -> Any:
        """Return all of it as a one-dimensional tensor."""
        if dtype not in self._typed:
            item = dtype.itemsize
            if self.nbytes() % item:
                raise CorruptCheckpointError(
                    f"a storage of {self.nbytes()} bytes does not hold whole {dtype} elements"
                )
            flat = self.data.view(dtype) if self.nbytes() else pt.empty(0, dtype=dtype, device=HOST)
            self._typed[dtype] = flat if self.device.type == "cpu" else flat.to(self.device)
        return self._typed[dtype]

    def tensor(self, offset: Any, size: Any, stride: Any, dtype: Any = None) -> Any:
        """Return a tensor over this memory, after checking that it stays within it.

        Raises
        ------
        CorruptCheckpointError
            If the extent does not fit.
        """
        dtype = dtype or self.dtype
        if self.device is HOST:
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


def _from_file(filename: Any, shared: bool = False, nbytes: int = 0, **named: Any) -> Any:
    """Return the bytes of a file as a storage.

    Parameters
    ----------
    filename : path
        The file; where `shared`, it is made and grows as needed.
    shared : bool, default False
        Whether what is written goes to the file.
    nbytes : int
        How many bytes.

    Returns
    -------
    UntypedStorage
        Read from the file as its elements are used.

    Raises
    ------
    OSError
        There is no such file, or it is shorter.

    Examples
    --------
    >>> import tempfile
    >>> import pytensorlib as torch
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(bytes([1, 2, 3]))
    ...     file.flush()
    ...     torch.UntypedStorage.from_file(file.name, False, 3).tolist()
    [1, 2, 3]
    """
    nbytes = named.pop("size", nbytes)
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    fd = os.open(filename, flags, 0o600)
    try:
        if shared and os.fstat(fd).st_size < nbytes:
            os.ftruncate(fd, nbytes)
        return _C._map_file(fd, nbytes, shared)
    finally:
        os.close(fd)


def _share_memory_(self: Any) -> Any:
    """Move the memory to where other processes can map it.

    Returns
    -------
    UntypedStorage
        This one.

    Raises
    ------
    RuntimeError
        NumPy or another library knows the memory.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.UntypedStorage(4).share_memory_().is_shared()
    True
    """
    from .multiprocessing._shared import share

    return share(self)


def _sizeof(self: Any) -> int:
    """Return the bytes of the object and of its memory."""
    return object.__sizeof__(self) + self.nbytes()


def _dlpack(self: Any, **kwargs: Any) -> Any:
    """Return a capsule of the bytes, by which other libraries share them."""
    return self._as_bytes().__dlpack__(**kwargs)


def _dlpack_device(self: Any) -> tuple[int, int]:
    """Return where the bytes are, as DLPack numbers devices."""
    return self._as_bytes().__dlpack_device__()


UntypedStorage.__dlpack__ = _dlpack  # type: ignore[attr-defined]
UntypedStorage.__dlpack_device__ = _dlpack_device  # type: ignore[attr-defined]
Sequence.register(UntypedStorage)  # of its bytes
UntypedStorage.__sizeof__ = _sizeof  # type: ignore[method-assign]
UntypedStorage.from_file = staticmethod(_from_file)  # type: ignore[attr-defined]
UntypedStorage.share_memory_ = _share_memory_  # type: ignore[attr-defined]


def _load_from_bytes(data: bytes) -> Any:
    """Return the storage in a plain pickle of PyTorch's, which runs what it asks for anyway."""
    return pt.load(io.BytesIO(data), weights_only=False)


def _of(tensor: Any) -> TypedStorage:
    """Return the memory of a tensor, typed as the tensor is."""
    return TypedStorage(tensor.untyped_storage()._as_bytes(), tensor.dtype, tensor.device)


_DOC = """Flat memory of {1} that tensors can share.

Parameters
----------
data : Tensor
    One-dimensional, uint8, on the CPU.
dtype : dtype, optional
    The one of the class.
device : device, optional
    Where the tensors made of it live.

Examples
--------
>>> import pytensorlib as torch
>>> torch.{0}.dtype
{1}
"""


def _typed(name: str, dtype: Any) -> type[TypedStorage]:
    TypedStorage.names[dtype] = name
    space = {"dtype": dtype, "__module__": __name__, "__doc__": _DOC.format(name, dtype)}
    return type(name, (TypedStorage,), space)


BFloat16Storage = _typed("BFloat16Storage", pt.bfloat16)
BoolStorage = _typed("BoolStorage", pt.bool)
ByteStorage = _typed("ByteStorage", pt.uint8)
CharStorage = _typed("CharStorage", pt.int8)
ComplexDoubleStorage = _typed("ComplexDoubleStorage", pt.complex128)
ComplexFloatStorage = _typed("ComplexFloatStorage", pt.complex64)
DoubleStorage = _typed("DoubleStorage", pt.float64)
FloatStorage = _typed("FloatStorage", pt.float32)
HalfStorage = _typed("HalfStorage", pt.float16)
IntStorage = _typed("IntStorage", pt.int32)
LongStorage = _typed("LongStorage", pt.int64)
ShortStorage = _typed("ShortStorage", pt.int16)
