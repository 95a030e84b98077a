"""Methods of byte storages that the extension does not have."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from .. import _C
from .._system import WINDOWS, file_handle, file_name

__all__ = ["StorageBase", "attach"]

# Storages that programs hold without keeping them, by number, and how often each.
_weak: dict[int, tuple[Any, int]] = {}
ORDERS = {"little": "little", "big": "big", "native": sys.byteorder}


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
        return _C._map_file(file_handle(fd), nbytes, shared)
    finally:
        os.close(fd)


def _from_buffer(
    buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, dtype: Any = None
) -> Any:
    """Return a copy of the bytes of a buffer.

    Parameters
    ----------
    buffer : bytes-like
        What is copied.
    byte_order : {"native", "little", "big"}, optional
        The order of an element's bytes; needed for elements of more than one.
    count : int, default -1
        How many elements; all that there are if negative.
    offset : int, default 0
        How many bytes to leave out first.
    dtype : dtype
        Of the elements.

    Returns
    -------
    UntypedStorage
        In this machine's order of bytes; bools are 0 or 1.

    Raises
    ------
    ValueError
        The buffer has no whole elements, or too few, or the order is none.
    RuntimeError
        The dtype or the order is missing.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> storage = torch.UntypedStorage.from_buffer(b"ab", "big", dtype=torch.int16)
    >>> torch.as_tensor(storage, dtype=torch.int16)
    tensor([24930], dtype=torch.int16)
    """
    if dtype is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    if not isinstance(dtype, pt.dtype):
        raise RuntimeError("argument 'dtype' must be of type torch.dtype")
    item = dtype.itemsize
    if byte_order is None:
        if item > 1:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        byte_order = "native"
    if byte_order not in ORDERS:
        raise ValueError(
            f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')"
        )
    data = memoryview(buffer).cast("B")
    if not 0 <= offset <= len(data):
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({len(data)}), but "
            f"got {offset}"
        )
    left = len(data) - offset
    if count < 0:
        if left % item:
            raise ValueError(f"buffer size ({left}) must be a multiple of element size ({item})")
        count = left // item
    elif count * item > left:
        raise ValueError(
            f"buffer has only {left // item} elements after offset {offset}, but specified a size "
            f"of {count}"
        )
    made: Any = _C.UntypedStorage(count * item)
    if not count:
        return made
    flat = made._as_bytes()
    flat.copy_(pt.frombuffer(bytearray(data[offset : offset + count * item]), dtype=pt.uint8))
    if ORDERS[byte_order] != sys.byteorder:
        made.byteswap(dtype)
    if dtype == pt.bool:
        flat.copy_(flat != 0)
    return made


def _share_memory_(self: Any) -> Any:
    """Move the memory to where other processes can map it.

    Returns
    -------
    UntypedStorage
        This one.

    Raises
    ------
    RuntimeError
        NumPy or another library knows the memory, or there is none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.UntypedStorage(4).share_memory_().is_shared()
    True
    """
    from ..multiprocessing._shared import share

    if self.device.type == "meta":
        raise RuntimeError("_share_fd_: only available on CPU, got a storage on meta")
    return share(self) if self.device.type == "cpu" else self


def _share_fd_cpu_(self: Any) -> tuple[int, int]:
    """Move the memory to a file without a name, and return a descriptor of it and its size."""
    if self.device.type != "cpu":
        raise RuntimeError("_share_fd_: only available on CPU")
    if WINDOWS:
        raise NotImplementedError("shared memory has no descriptor on Windows: send the storage")
    return os.dup(_share_memory_(self)._map_handle()), self.nbytes()


def _share_filename_cpu_(self: Any) -> Any:
    """Raise: shared memory has no name here."""
    if self.device.type != "cpu":
        raise RuntimeError("_share_filename_: only available on CPU")
    raise NotImplementedError("shared memory has no file name here: use _share_fd_cpu_")


@classmethod  # type: ignore[misc]
def _new_shared(cls: Any, size: int, *, device: Any = "cpu") -> Any:
    """Return a new storage that other processes can map."""
    made = cls(size, device=device)
    return _share_memory_(made) if made.device.type == "cpu" else made


def _filename(self: Any) -> str | None:
    """The path of the file that the memory is of, if what is written goes there; or None."""
    fd = self._map_handle() if self.is_shared() else None
    if fd is None:
        return None
    path = file_name(fd)
    return path if path is not None and os.path.exists(path) else None


def _sizeof(self: Any) -> int:
    """Return the bytes of the object and of its memory."""
    return object.__sizeof__(self) + self.nbytes()


def _dlpack(self: Any, **kwargs: Any) -> Any:
    """Return a capsule of the bytes, by which other libraries share them."""
    return self._as_bytes().__dlpack__(**kwargs)


def _dlpack_device(self: Any) -> tuple[int, int]:
    """Return where the bytes are, as DLPack numbers devices."""
    return self._as_bytes().__dlpack_device__()


def _to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
    """Return the bytes on a device: this storage, or a copy.

    Parameters
    ----------
    device : device
        Where they are to be.
    non_blocking : bool, default False
        Without an effect.

    Returns
    -------
    UntypedStorage
        There.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> storage = torch.UntypedStorage(2)
    >>> storage.to(device="cpu") is storage
    True
    """
    device = pt.device(device)
    if device._is_gpu and device.index is None:
        device = pt.device(device.type, _C._wgpu_current())
    if device == self.device:
        return self
    return self._as_bytes().to(device).untyped_storage()


def _cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    """Return the bytes on a GPU that answers as "cuda": these, or a copy of them.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.
    non_blocking : bool, default False
        Without an effect.

    Returns
    -------
    UntypedStorage
        There.

    Raises
    ------
    RuntimeError
        There is no such device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     storage = torch.UntypedStorage(2).cuda()
    """
    return self.to(device=pt.device("cuda" if device is None else device))


def _type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the name of the storage's class, or the bytes as a storage of another one.

    Parameters
    ----------
    dtype : str or type, optional
        A class of storages.
    non_blocking : bool, default False
        Without an effect.

    Returns
    -------
    str or storage
        Of as many elements as there are bytes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.UntypedStorage([1, 2]).type(torch.UntypedStorage).tolist()
    [1, 2]
    """
    own = f"{pt.__name__}.storage.UntypedStorage"
    if dtype is None:
        return own
    root: Any = pt
    kind = getattr(pt, dtype.rpartition(".")[2], None) if isinstance(dtype, str) else dtype
    if kind is _C.UntypedStorage:
        return self
    if not isinstance(kind, type) or kind not in root._storage_classes:
        raise ValueError(f"type: expected a class of storages or its name, got {dtype!r}")
    return kind(self.size()).copy_(self)


def _pin_memory(self: Any, device: Any = None) -> Any:
    """Return the storage: host memory needs no pinning.

    Parameters
    ----------
    device : device, optional
        Not used.

    Returns
    -------
    UntypedStorage
        This one.

    Raises
    ------
    TypeError
        It is not in host memory.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.UntypedStorage(2).pin_memory().nbytes()
    2
    """
    if self.device.type != "cpu":
        raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
    return self


def _get_device(self: Any) -> int | None:
    """Return the index of the device, None where it has none."""
    return self.device.index


def _reversed(self: Any) -> Any:
    """Return the bytes from the last to the first."""
    return reversed(self.tolist())


def _weak_ref(self: Any) -> int:
    """Return a number for the storage, which `_expired` asks about until it is given back."""
    key = self._cdata
    handle, count = _weak.get(key, (self._weak(), 0))
    _weak[key] = handle, count + 1
    return key


def _free_weak_ref(key: int) -> None:
    """Give a number of `_weak_ref` back."""
    if key in _weak:
        handle, count = _weak.pop(key)
        if count > 1:
            _weak[key] = handle, count - 1


def _expired(key: int) -> bool:
    """Return whether nobody keeps the storage of a number of `_weak_ref`."""
    return key not in _weak or _weak[key][0]() is None


def _new_with_weak_ptr(key: int) -> Any:
    """Return the storage of a number of `_weak_ref`, or None once nobody keeps it."""
    return _weak[key][0]() if key in _weak else None


def _new(self: Any) -> Any:
    """Return an empty storage on the same device."""
    return _C.UntypedStorage(device=self.device)


def _fix_weakref(self: Any) -> None:
    """Do nothing: what a weak reference gives is kept like anything else."""


def _byteswap(self: Any, dtype: Any) -> None:
    """Reverse the bytes of each element, of each part of a complex one, in place.

    Parameters
    ----------
    dtype : dtype
        Of the elements.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> storage = torch.UntypedStorage([1, 2, 3, 4])
    >>> storage.byteswap(torch.int16)
    >>> storage.tolist()
    [2, 1, 4, 3]
    """
    item = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    self._byteswap(max(item, 1))


def _swap(self: Any, size: int) -> None:
    """Reverse the bytes of each element of a size; what is left at the end stays."""
    flat = self._as_bytes()
    whole = flat[: flat.numel() // size * size].view(-1, size)
    whole.copy_(whole.flip(1))


def _elements_as(self: Any, dtype: Any) -> Any:
    """Return the bytes, as numbers, as elements of a type."""
    from ..storage import TypedStorage

    return TypedStorage(wrap_storage=self, dtype=pt.uint8, _internal=True)._to(dtype)


def _write_file(self: Any, file: Any, is_real_file: bool, save_size: bool, item: int) -> None:
    """Write the bytes to a file, after the number of elements where that is asked for."""
    data = bytes(self.cpu())
    head = (len(data) // item).to_bytes(8, sys.byteorder) if save_size else b""
    file.write(head + data)


def _is_elsewhere(self: Any) -> bool:
    """Always False: there is no such device."""
    return False


def attach() -> None:
    """Give the class its methods."""
    from ..storage import CONVERSIONS, _conversion

    kind: Any = _C.UntypedStorage
    Sequence.register(kind)  # of its bytes
    given = {
        "__dlpack__": _dlpack,
        "__dlpack_device__": _dlpack_device,
        "__reversed__": _reversed,
        "__sizeof__": _sizeof,
        "_byteswap": _swap,
        "_expired": staticmethod(_expired),
        "_fix_weakref": _fix_weakref,
        "_free_weak_ref": staticmethod(_free_weak_ref),
        "_new_shared": _new_shared,
        "_new_with_weak_ptr": staticmethod(_new_with_weak_ptr),
        "_share_fd_cpu_": _share_fd_cpu_,
        "_share_filename_cpu_": _share_filename_cpu_,
        "_to": _elements_as,
        "_weak_ref": _weak_ref,
        "_write_file": _write_file,
        "byteswap": _byteswap,
        "cuda": _cuda,
        "filename": property(_filename),
        "from_buffer": staticmethod(_from_buffer),
        "from_file": staticmethod(_from_file),
        "get_device": _get_device,
        "is_hpu": property(_is_elsewhere),
        "is_sparse": False,
        "is_sparse_csr": False,
        "new": _new,
        "pin_memory": _pin_memory,
        "share_memory_": _share_memory_,
        "to": _to,
        "type": _type,
    }
    for name, value in given.items():
        setattr(kind, name, value)
    for name, dtype in CONVERSIONS.items():
        setattr(kind, name, _conversion(name, dtype))


class _StorageBaseMeta(type):
    """Lets every storage be one of `StorageBase`, which is derived from them."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        base = _C.UntypedStorage if cls is StorageBase else cls
        return base in subclass.__mro__


class StorageBase(_C.UntypedStorage, metaclass=_StorageBaseMeta):
    """What untyped storages are; only classes derived from it can be made.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> isinstance(torch.ones(1).untyped_storage(), torch.StorageBase)
    True
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is StorageBase:
            raise RuntimeError(
                "Cannot directly construct StorageBase; subclass it and then construct that"
            )
        return super().__new__(cls, *args, **kwargs)
