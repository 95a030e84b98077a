"""``FloatStorage`` and its kin: a class of storages for each element type, from before dtypes."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from .. import storage
from ..storage import OLD_WAYS, TypedStorage, UntypedStorage, _check_content, _check_wrapped
from .names import _storage_type_to_dtype_map

__all__: list[str] = []


class _LegacyStorageMeta(type):
    """The class of these classes: a typed storage is an instance of the one for its elements."""

    _dtype: Any
    _kind: str

    @property
    def dtype(cls) -> Any:
        """The dtype of the elements."""
        storage._warn_typed_storage_removal()
        return cls._dtype

    def __instancecheck__(cls, obj: Any) -> bool:
        if cls is _LegacyStorage or not isinstance(obj, TypedStorage):
            return False
        return obj.dtype == cls._dtype and obj._untyped_storage.device.type == cls._kind


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """The metaclass of these classes: their instances are `TypedStorage`."""

    _dtype = None
    _kind = "cpu"

    def __new__(  # type: ignore[misc]
        cls,
        *args: Any,
        wrap_storage: Any = None,
        dtype: Any = None,
        device: Any = None,
        _internal: bool = False,
    ) -> TypedStorage:
        if not _internal:
            storage._warn_typed_storage_removal()
        if cls._dtype is None:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        caller = f"{cls}.__new__"
        for name, given in (("device", device), ("dtype", dtype)):
            if given is not None:
                told = f"Keyword argument '{name}' cannot be specified"
                raise RuntimeError(OLD_WAYS.format(caller, told))
        _check_content(args, wrap_storage, OLD_WAYS, caller)
        if wrap_storage is not None:
            _check_wrapped(wrap_storage, OLD_WAYS, caller)
            if (found := wrap_storage.device.type) != cls._kind:
                told = f"Device of 'wrap_storage' must be {cls._kind}, but got {found}"
                raise RuntimeError(OLD_WAYS.format(caller, told))
            return TypedStorage(wrap_storage=wrap_storage, dtype=cls._dtype, _internal=True)
        return TypedStorage(*args, dtype=cls._dtype, device=cls._kind, _internal=True)

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """Return a copy of the bytes of a buffer, as of `TypedStorage.from_buffer`."""
        storage._warn_typed_storage_removal()
        for name in ("dtype", "device"):
            if kwargs.get(name) is not None or len(args) == 5:
                raise RuntimeError(
                    f"from_buffer: '{name}' can only be specified in UntypedStorage.from_buffer "
                    "and TypedStorage.from_buffer"
                )
        memory = UntypedStorage.from_buffer(*args, dtype=cls._dtype, **kwargs)
        return TypedStorage(wrap_storage=memory, dtype=cls._dtype, _internal=True)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return the memory of a file, as of `TypedStorage.from_file`."""
        storage._warn_typed_storage_removal()
        memory = UntypedStorage.from_file(filename, shared, size * cls._dtype.itemsize)
        return TypedStorage(wrap_storage=memory, dtype=cls._dtype, _internal=True)

    @classmethod
    def _new_shared(cls, size: int) -> TypedStorage:  # type: ignore[override]
        memory = UntypedStorage._new_shared(size * cls._dtype.itemsize)
        return TypedStorage(wrap_storage=memory, dtype=cls._dtype, _internal=True)


_LegacyStorage.__module__ = _LegacyStorageMeta.__module__ = storage.__name__
_DOC = """Make a storage of {1} elements on the CPU, from before dtypes.

Parameters
----------
*args : int or sequence, optional
    How many elements, all zero; or the elements.
wrap_storage : UntypedStorage, optional
    The memory, where there is some already.
dtype, device : optional
    Refused: the class has them.

Returns
-------
TypedStorage
    Of that dtype, and an instance of this class.

Raises
------
RuntimeError, TypeError
    The arguments do not go together, or are of other kinds.

Examples
--------
>>> import warnings
>>> import pytensorlib as torch
>>> warnings.filterwarnings("ignore", "TypedStorage is deprecated")
>>> storage = torch.{0}([1, 0])
>>> storage.size(), isinstance(storage, torch.{0})
(2, True)
"""

for _name, _its in _storage_type_to_dtype_map().items():
    _space = {"_dtype": _its, "__module__": pt.__name__, "__doc__": _DOC.format(_name, _its)}
    globals()[_name] = _LegacyStorageMeta(_name, (_LegacyStorage,), _space)


def on_kind(kind: str) -> dict[str, Any]:
    """Return these classes once more, for a kind of device other than the CPU."""
    found = {}
    for name, dtype in _storage_type_to_dtype_map().items():
        doc = _DOC.format(name, dtype).partition("Examples")[0].rstrip()
        doc = doc.replace("on the CPU", f'on a GPU that answers as "{kind}"')
        doc += "\n\nExamples\n--------\n>>> import pytensorlib as torch\n"
        doc += f">>> kind = torch.{kind}.{name}\n"
        space = {"_dtype": dtype, "_kind": kind, "__module__": f"{pt.__name__}.{kind}"}
        found[name] = _LegacyStorageMeta(name, (_LegacyStorage,), {**space, "__doc__": doc})
    return found


_storage_classes = {
    UntypedStorage,
    TypedStorage,
    *(globals()[name] for name in _storage_type_to_dtype_map()),
}
