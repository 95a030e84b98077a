"""What checkpoints call to make tensors and parameters; the names are part of the format.

What else `torch._utils` has is in `_background`.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytensorlib as pt

from .. import _C
from .._serialization.machine import CorruptCheckpointError
from .._serialization.sparse import COMPRESSED, sparse_tensor
from .._serialization.storages import FileStorage
from .._tensor.pickling import _get_obj_state, _set_obj_state  # noqa: F401  (libraries ask for them here)
from ..storage import TypedStorage


def _tensor_over(storage: Any, offset: Any, size: Any, stride: Any, dtype: Any = None) -> Any:
    if isinstance(storage, FileStorage):
        return storage.tensor(offset, size, stride, dtype)
    if not isinstance(storage, TypedStorage):
        raise CorruptCheckpointError(f"tensor: needs a storage, got {type(storage).__name__}")
    memory = storage._untyped_storage
    empty = pt.empty(0, dtype=dtype or storage.dtype, device=memory.device)
    return empty.set_(memory, offset, size, stride)


def _element_size(dtype: Any) -> int:
    """Return the bytes of one element of a type."""
    if not isinstance(dtype, pt.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


class KeyErrorMessage(str):
    """A text that `KeyError` does not quote."""

    __slots__ = ()

    __repr__ = str.__str__


class ExceptionWrapper:
    """An error of another thread or process, to be raised again with its traceback in the text.

    Parameters
    ----------
    exc_info : tuple, optional
        As of ``sys.exc_info()``; of the error that is handled if not given.
    where : str, default "in background"
        Where it was raised.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = exc_info or sys.exc_info()
        self.exc_type: Any = kind
        self.where = where
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))

    def reraise(self) -> NoReturn:
        """Raise the error, or a RuntimeError where its class takes no text."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        try:
            by_name = getattr(self.exc_type, "message", None)
            error = self.exc_type(message=text) if by_name else self.exc_type(text)
        except Exception:
            error = RuntimeError(text)
        raise error from None


def _rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Any:
    return _tensor_over(storage, offset, size, stride)


def _rebuild_tensor_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Any:
    t = _tensor_over(storage, offset, size, stride)
    return t.requires_grad_(True) if requires_grad else t


def _rebuild_tensor_v3(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Any:
    t = _tensor_over(storage, offset, size, stride, dtype)
    return t.requires_grad_(True) if requires_grad else t


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Any:
    if not isinstance(dtype, pt.dtype):
        raise CorruptCheckpointError(f"tensor: needs a dtype, got {type(dtype).__name__}")
    t = pt.empty_strided(size, stride, dtype=dtype, device="meta")
    return t.requires_grad_(True) if requires_grad else t


def _get_layout(name: str) -> Any:
    for layout in (_C.strided, _C.sparse_coo, *COMPRESSED):
        if str(layout) == name:
            return layout
    raise CorruptCheckpointError(f"layout {name!r}: there are no tensors of it here")


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Any:
    tensors = 3 if layout in COMPRESSED else 2
    if layout not in (_C.sparse_coo, *COMPRESSED):
        raise CorruptCheckpointError(f"sparse tensor: layout {layout!r} is not supported")
    if not isinstance(data, tuple) or not tensors < len(data) <= 4:
        raise CorruptCheckpointError("sparse tensor: needs coordinates, values and a size")
    *parts, size = data[: tensors + 1]
    known = data[tensors + 1] if len(data) > tensors + 1 else None
    ints = isinstance(size, tuple) and all(type(n) is int for n in size)
    if (
        not ints
        or not all(isinstance(part, _C.Tensor) for part in parts)
        or not isinstance(known, (bool, type(None)))
    ):
        raise CorruptCheckpointError("sparse tensor: needs coordinates, values and a size")
    if _LOADING.unchecked is None:
        return _made(layout, parts, size, known)
    t = _made(layout, parts, size, known, check=False)
    _LOADING.unchecked.append((layout, parts, size, known))
    return t


def _made(layout: Any, parts: Any, size: Any, known: bool | None, check: bool = True) -> Any:
    try:
        return sparse_tensor(layout, parts, size, known, check)
    except (RuntimeError, IndexError) as error:
        raise CorruptCheckpointError(f"sparse tensor: {error}") from error


class _Loading(threading.local):
    """What is known of the file that is read."""

    unchecked: list[Any] | None = None  # sparse tensors whose coordinates have not been read yet
    map_location: Any = None


_LOADING = _Loading()


@contextmanager
def checked_later() -> Iterator[None]:
    """Check sparse tensors at the end of the block, when their coordinates have been read."""
    before, made = _LOADING.unchecked, []  # type: tuple[list[Any] | None, list[Any]]
    _LOADING.unchecked = made
    try:
        yield
    finally:
        _LOADING.unchecked = before
    for given in made:
        _made(*given)


@contextmanager
def placed(map_location: Any) -> Iterator[None]:
    """Let tensors without memory say that they are where a file's storages are put."""
    before, _LOADING.map_location = _LOADING.map_location, map_location
    try:
        yield
    finally:
        _LOADING.map_location = before


def _rebuild_wrapper_subclass(
    cls: Any,
    dtype: Any,
    size: Any,
    stride: Any,
    storage_offset: Any,
    layout: Any,
    device: Any,
    requires_grad: bool,
) -> Any:
    """Make a tensor without memory, for which its class answers."""
    if not (isinstance(cls, type) and issubclass(cls, pt.Tensor)):
        raise CorruptCheckpointError(f"tensor: needs a class of tensors, got {cls!r}")
    place = _LOADING.map_location
    if isinstance(place, dict):
        place = place.get(str(device), device)
    elif callable(place) and not isinstance(place, (str, pt.device)):
        raise RuntimeError(
            "Callable map_location not supported with _rebuild_wrapper_subclass: a tensor without "
            "memory has no storage to hand over; give a device or a dict of them"
        )
    try:
        return pt.Tensor._make_wrapper_subclass(
            cls,
            size,
            strides=stride,
            storage_offset=storage_offset,
            dtype=dtype,
            layout=layout,
            device=device if place is None else place,
            requires_grad=requires_grad,
        )
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise CorruptCheckpointError(f"{cls.__name__}: {error}") from error


def _rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Any:
    return pt.nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(
    data: Any, requires_grad: bool, backward_hooks: Any, state: Any
) -> Any:
    return _with_state(pt.nn.Parameter(data, requires_grad), state)


def _rebuild_from_type_v2(function: Any, kind: Any, args: Any, state: Any) -> Any:
    """Make a tensor of a subclass, or one with attributes of its own."""
    t = function(*args)
    if type(t) is not kind:
        t = t.as_subclass(kind)
    set_state = getattr(kind, "__setstate__", None)
    if set_state is not None and set_state is not getattr(pt.Tensor, "__setstate__", None):
        t.__setstate__(state)
        return t
    return _with_state(t, state)


def _with_state(t: Any, state: Any) -> Any:
    """Set the attributes that an object was saved with."""
    parts = state if isinstance(state, tuple) else (state,)
    if len(parts) > 2 or not all(part is None or isinstance(part, dict) for part in parts):
        raise CorruptCheckpointError(f"the state of a {type(t).__name__} must be a dict")
    for values in parts:
        for name, value in (values or {}).items():
            if not isinstance(name, str) or hasattr(pt.Tensor, name):
                raise CorruptCheckpointError("an attribute of a tensor would hide one of its own")
            setattr(t, name, value)
    return t


def __getattr__(name: str) -> Any:
    if name.startswith("__") or name == "background":  # which is looked up before it is imported
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import background

    try:
        return getattr(background, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
