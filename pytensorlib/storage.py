"""Storages: the flat memory behind tensors, as bytes or as elements of one type."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar

import pytensorlib as pt

from . import _C, _alias, _gpu
from ._legacy.names import (  # noqa: F401  (PyTorch has them here)
    STORED,
    _dtype_to_storage_type_map,
    _get_dtype_from_pickle_storage_type,
    _read_as,
    _storage_type_to_dtype_map,
)

__all__ = ["TypedStorage", "UntypedStorage"]

UntypedStorage: Any = _C.UntypedStorage
_alias.adopt(globals(), ["UntypedStorage"])
F = TypeVar("F", bound=Callable[..., Any])


class _Warned:
    """Whether the program was told that typed storages go, and whether it is told each time."""

    once = False
    always = False


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    """Set whether each use of a typed storage warns, and not the first alone."""
    if not isinstance(always_warn, bool):
        raise AssertionError(f"always_warn must be bool, got {type(always_warn).__name__}")
    _Warned.always = always_warn


def _get_always_warn_typed_storage_removal() -> bool:
    """Return whether each use of a typed storage warns."""
    return _Warned.always


def _reset_warn_typed_storage_removal() -> None:
    """Let the next use of a typed storage warn again."""
    _Warned.once = False


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Warn that PyTorch gives typed storages up, at the first use of one."""
    if _Warned.always or not _Warned.once:
        _Warned.once = True
        # What asks classes of tensors stands between a method and its caller: two calls.
        caller = sys._getframe(stacklevel).f_code.co_filename
        stacklevel += 2 * caller.endswith(("_tensor/functions.py", "_tensor\\functions.py"))
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will "
            "be the only storage class. This should only matter to you if you are using storages "
            "directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead "
            "of tensor.storage()",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def _deprecated(method: F) -> F:
    """Let a public method of typed storages warn."""

    @wraps(method)
    def told(*args: Any, **kwargs: Any) -> Any:
        _warn_typed_storage_removal()
        return method(*args, **kwargs)

    return told  # type: ignore[return-value]


# The devices that storages may be asked for on; not all of them are here.
PLACES = ("cpu", "cuda", _gpu.OWN, "meta")
WAYS = """{0} received an invalid combination of arguments. Expected one of:
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)
{1}"""
OLD_WAYS = """{0} received an invalid combination of arguments. Expected one of:
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)
{1}"""


def _check_wrapped(storage: Any, ways: str, caller: str) -> None:
    """Raise where what is to be the memory of a storage is none."""
    if not isinstance(storage, UntypedStorage):
        told = f"Argument 'wrap_storage' must be UntypedStorage, but got {type(storage)}"
        raise TypeError(ways.format(caller, told))


def _check_content(args: tuple[Any, ...], wrapped: Any, ways: str, caller: str) -> None:
    """Raise where a storage cannot be made of these arguments."""
    if args and wrapped is not None:
        told = "No positional arguments should be given when using 'wrap_storage'"
        raise RuntimeError(ways.format(caller, told))
    if len(args) > 1:
        raise RuntimeError(ways.format(caller, "Too many positional arguments"))
    if args and not isinstance(args[0], (Integral, Sequence)):
        raise TypeError(ways.format(caller, f"Argument type not recognized: {type(args[0])}"))


class TypedStorage:
    """Flat memory of one dtype that tensors can share.

    PyTorch is giving typed storages up: the first use of one warns.

    Parameters
    ----------
    *args : int or sequence, optional
        How many elements, all zero; or the elements.
    wrap_storage : UntypedStorage, optional
        The memory, where there is some already.
    dtype : dtype, optional
        What its elements are; the default dtype if not given.
    device : device, optional
        Where the memory is; the CPU if not given.

    Raises
    ------
    RuntimeError, TypeError
        The arguments do not go together, or are of other kinds.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> warnings.filterwarnings("ignore", "TypedStorage is deprecated")
    >>> storage = torch.tensor([1.0, 2.0]).storage()
    >>> storage.tolist(), storage.dtype
    ([1.0, 2.0], torch.float32)
    >>> torch.TypedStorage([1, 2], dtype=torch.int16).float().tolist()
    [1.0, 2.0]
    """

    is_sparse = False
    dtype: Any
    _untyped_storage: Any

    def __init__(
        self,
        *args: Any,
        wrap_storage: Any = None,
        dtype: Any = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            _warn_typed_storage_removal()
        caller = "TypedStorage.__init__"
        _check_content(args, wrap_storage, WAYS, caller)
        if wrap_storage is not None:
            if dtype is None:
                raise RuntimeError(WAYS.format(caller, "Argument 'dtype' must be specified"))
            if not isinstance(dtype, pt.dtype):
                told = f"Argument 'dtype' must be torch.dtype, not {type(dtype)}"
                raise TypeError(WAYS.format(caller, told))
            if device is not None:
                told = "Argument 'device' should not be specified when 'wrap_storage' is given"
                raise RuntimeError(WAYS.format(caller, told))
            _check_wrapped(wrap_storage, WAYS, caller)
            self.dtype, self._untyped_storage = dtype, wrap_storage
            return
        self.dtype = pt.get_default_dtype() if dtype is None else dtype
        device = pt.device("cpu" if device is None else device)
        if not (device._is_gpu or device.type in PLACES):
            told = f"Storage device not recognized: {device.type}"
            raise RuntimeError(WAYS.format(caller, told))
        content = args[0] if args else 0
        if isinstance(content, Integral):
            nbytes = int(content) * self._element_size()
            self._untyped_storage = UntypedStorage(nbytes, device=device)
        else:
            made = pt.tensor(content, dtype=_read_as(self.dtype), device=device)
            self._untyped_storage = made.untyped_storage()

    @property
    def _dtype(self) -> Any:
        return self.dtype

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    @property
    def filename(self) -> str | None:
        """The path of the file that the memory is of, or None."""
        return self._untyped_storage.filename

    @property
    def device(self) -> Any:
        """Where the memory is."""
        _warn_typed_storage_removal()
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is that of a GPU that answers as "cuda"."""
        _warn_typed_storage_removal()
        return self._untyped_storage.is_cuda

    @property
    def is_hpu(self) -> bool:
        """Always False: there is no such device."""
        _warn_typed_storage_removal()
        return False

    def _wrap(self, memory: Any) -> TypedStorage:
        """Return other memory of the same elements."""
        return TypedStorage(wrap_storage=memory, dtype=self.dtype, _internal=True)

    def _elements(self) -> Any:
        """Return all of it as a tensor with one dimension."""
        memory = self._untyped_storage
        empty = pt.empty(0, dtype=_read_as(self.dtype), device=memory.device)
        _C._set_(empty, memory)
        return empty

    def _element_size(self) -> int:
        return self.dtype.itemsize

    def _size(self) -> int:
        return self._nbytes() // self._element_size()

    def _nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def _data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def _is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def _share_memory_(self) -> TypedStorage:
        self._untyped_storage.share_memory_()
        return self

    def _resize_(self, size: int) -> None:
        self._untyped_storage.resize_(size * self._element_size())

    def _pickle_storage_type(self) -> str:
        try:
            return _dtype_to_storage_type_map()[self.dtype]
        except KeyError:
            raise KeyError(f"dtype {self.dtype} is not recognized") from None

    def _share_fd_cpu_(self) -> tuple[int, int]:
        fd, nbytes = self._untyped_storage._share_fd_cpu_()
        return fd, nbytes // self._element_size()

    def _share_filename_cpu_(self) -> Any:
        return self._untyped_storage._share_filename_cpu_()

    def _write_file(self, *args: Any) -> None:
        self._untyped_storage._write_file(*args)

    def _weak_ref(self) -> int:
        return self._untyped_storage._weak_ref()

    @staticmethod
    def _free_weak_ref(key: int) -> None:
        UntypedStorage._free_weak_ref(key)

    @staticmethod
    def _expired(key: int) -> bool:
        return UntypedStorage._expired(key)

    def _new_shared(self, size: int, *, device: Any = None) -> TypedStorage:
        nbytes = size * self._element_size()
        return self._wrap(UntypedStorage._new_shared(nbytes, device=device or "cpu"))

    def _get_legacy_storage_class(self) -> Any:
        """Return the class of such storages from before dtypes, or None."""
        name = _dtype_to_storage_type_map().get(self.dtype)
        return getattr(pt, name) if name and self._untyped_storage.device.type == "cpu" else None

    def _getitem(self, index: Any) -> Any:
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        size = self._size()
        if not -size <= index < size:
            raise IndexError(f"index {index} out of range for storage of size {size}")
        return self._elements()[index].item()

    def _setitem(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if pt.is_storage(value):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._elements()[index] = value

    def _tolist(self) -> list[Any]:
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        return self._elements().tolist()

    @_deprecated
    def __getitem__(self, idx: Any) -> Any:
        return self._getitem(idx)

    @_deprecated
    def __setitem__(self, idx: Any, value: Any) -> None:
        self._setitem(idx, value)

    @_deprecated
    def __len__(self) -> int:
        return self._size()

    @_deprecated
    def __iter__(self) -> Any:
        return iter(self._tolist())

    def __eq__(self, other: object) -> bool:
        mine = self._untyped_storage
        return isinstance(other, TypedStorage) and mine == other._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    @_deprecated
    def __repr__(self) -> str:
        memory = self._untyped_storage
        root = pt.__name__
        told = f"{root}.storage.TypedStorage(dtype={self.dtype}, device={memory.device})"
        meta = memory.device.type == "meta"
        rows = "..." if meta else " " + "\n ".join(map(str, self._tolist()))
        return f"{rows}\n[{told} of size {self._size()}]"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._nbytes()

    def __copy__(self) -> TypedStorage:
        return self._wrap(copy(self._untyped_storage))

    def __deepcopy__(self, memo: Any) -> TypedStorage:
        return self._wrap(deepcopy(self._untyped_storage, memo))

    _deepcopy = __deepcopy__

    def __reduce__(self) -> Any:
        file = io.BytesIO()
        pt.save(self, file, _use_new_zipfile_serialization=False)
        return _load_from_bytes, (file.getvalue(),)

    @_deprecated
    def untyped(self) -> Any:
        """Return the memory as bytes."""
        return self._untyped_storage

    @_deprecated
    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self._nbytes()

    @_deprecated
    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self._element_size()

    @_deprecated
    def size(self) -> int:
        """Return the number of elements."""
        return self._size()

    @_deprecated
    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._data_ptr()

    @_deprecated
    def get_device(self) -> int | None:
        """Return the index of the device, None where it has none."""
        return self._untyped_storage.device.index

    @_deprecated
    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers."""
        return self._tolist()

    @_deprecated
    def fill_(self, value: Any) -> TypedStorage:
        """Set every element, and return self.

        Parameters
        ----------
        value : number
            What each is afterwards.
        """
        self._setitem(slice(None), value)
        return self

    @_deprecated
    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the bytes of another storage of the same size, and return self.

        Parameters
        ----------
        source : storage
            What to copy.
        non_blocking : bool, optional
            Without an effect.
        """
        self._untyped_storage.copy_(getattr(source, "_untyped_storage", source))
        return self

    @_deprecated
    def clone(self) -> TypedStorage:
        """Return a copy in new memory."""
        return self._wrap(self._untyped_storage.clone())

    @_deprecated
    def cpu(self) -> TypedStorage:
        """Return the elements in host memory: these, or a copy of them."""
        return self._wrap(self._untyped_storage.cpu())

    @_deprecated
    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """Return the elements on a device: these, or a copy of them.

        Parameters
        ----------
        device : device
            Where they are to be.
        non_blocking : bool, default False
            Without an effect.
        """
        return self._wrap(self._untyped_storage.to(device=device))

    @_deprecated
    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """Return the elements on a GPU that answers as "cuda": these, or a copy of them.

        Parameters
        ----------
        device : device, str or int, optional
            The current one where it is left out.
        non_blocking : bool, default False
            Without an effect.
        """
        return self._wrap(self._untyped_storage.cuda(device))

    @_deprecated
    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the storage's class, or the bytes as a storage of another one.

        Parameters
        ----------
        dtype : str or type, optional
            A class of storages.
        non_blocking : bool, default False
            Without an effect.
        """
        if dtype is not None:
            return self._untyped_storage.type(dtype)
        kind = self._get_legacy_storage_class()
        return f"{pt.__name__}.{kind.__name__ if kind else 'storage.TypedStorage'}"

    @_deprecated
    def pickle_storage_type(self) -> str:
        """Return the name of the class that checkpoints give the storage."""
        return self._pickle_storage_type()

    @_deprecated
    def resizable(self) -> bool:
        """Return whether `resize_` can change the size."""
        return self._untyped_storage.resizable()

    @_deprecated
    def resize_(self, size: int) -> TypedStorage:
        """Change the number of elements, keeping those that fit, and return self.

        Parameters
        ----------
        size : int
            How many elements there are afterwards.
        """
        self._resize_(size)
        return self

    @_deprecated
    def share_memory_(self) -> TypedStorage:
        """Move the memory to where other processes can map it, and return self."""
        return self._share_memory_()

    @_deprecated
    def is_shared(self) -> bool:
        """Return whether other processes can map the memory."""
        return self._is_shared()

    @_deprecated
    def is_pinned(self, device: Any = None) -> bool:
        """Return False: host memory needs no pinning.

        Parameters
        ----------
        device : device, optional
            Not used.
        """
        return False

    @_deprecated
    def pin_memory(self, device: Any = None) -> TypedStorage:
        """Return self: host memory needs no pinning.

        Parameters
        ----------
        device : device, optional
            Not used.
        """
        self._untyped_storage.pin_memory()
        return self

    @classmethod
    def from_buffer(
        cls, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any
    ) -> TypedStorage:
        """Return a copy of the bytes of a buffer.

        Parameters
        ----------
        *args, **kwargs
            As of `UntypedStorage.from_buffer`.
        dtype : dtype, optional
            What the elements are; the default dtype if not given.
        device : device, optional
            The CPU.
        """
        _warn_typed_storage_removal()
        if device is not None and pt.device(device).type != "cpu":
            where = pt.device(device).type
            raise RuntimeError(f"TypedStorage.from_buffer: Not available for device {where}")
        dtype = pt.get_default_dtype() if dtype is None else dtype
        memory = UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs)
        return TypedStorage(wrap_storage=memory, dtype=dtype, _internal=True)

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
        _warn_typed_storage_removal()
        raise RuntimeError("from_file can only be called on derived classes: FloatStorage, say")

    def _to(self, dtype: Any) -> TypedStorage:
        if not isinstance(dtype, pt.dtype):
            raise TypeError(f"Argument 'dtype' must be torch.dtype, not {type(dtype)}")
        memory = self._elements().to(dtype, copy=True).untyped_storage()
        return TypedStorage(wrap_storage=memory, dtype=dtype, _internal=True)


def _conversion(name: str, dtype: Any) -> Any:
    """Return a method that gives a storage's elements as those of another type."""

    def convert(self: Any) -> TypedStorage:
        return self._to(dtype)

    convert.__name__, convert.__qualname__ = name, f"TypedStorage.{name}"
    convert.__doc__ = f"Return a copy of the elements as {dtype}."
    return convert


CONVERSIONS = {
    "double": pt.float64,
    "float": pt.float32,
    "half": pt.float16,
    "long": pt.int64,
    "int": pt.int32,
    "short": pt.int16,
    "char": pt.int8,
    "byte": pt.uint8,
    "bool": pt.bool,
    "bfloat16": pt.bfloat16,
    "complex_double": pt.complex128,
    "complex_float": pt.complex64,
    "float8_e5m2": pt.float8_e5m2,
    "float8_e4m3fn": pt.float8_e4m3fn,
    "float8_e5m2fnuz": pt.float8_e5m2fnuz,
    "float8_e4m3fnuz": pt.float8_e4m3fnuz,
}
for _name, _dtype in CONVERSIONS.items():
    setattr(TypedStorage, _name, _deprecated(_conversion(_name, _dtype)))


def _load_from_bytes(data: bytes) -> Any:
    """Return the storage in a plain pickle of PyTorch's, which runs what it asks for anyway."""
    found = pt.load(io.BytesIO(data), weights_only=False)
    return found._wrap(found._untyped_storage) if isinstance(found, TypedStorage) else found


def _of(tensor: Any) -> TypedStorage:
    """Return the memory of a tensor, typed as the tensor is."""
    return TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype, _internal=True)


def __getattr__(name: str) -> Any:
    if name in ("_LegacyStorage", "_LegacyStorageMeta"):
        from ._legacy import storages as _storages

        return getattr(_storages, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
