"""Errors raised in other threads, and lists of tensors as one: `torch._utils`."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytensorlib as pt

__all__ = ["ExceptionWrapper", "KeyErrorMessage"]


class KeyErrorMessage(str):
    """A text that `KeyError` does not quote.

    Examples
    --------
    >>> from pytensorlib._utils import KeyErrorMessage
    >>> str(KeyError(KeyErrorMessage("no such key")))
    'no such key'
    """

    __slots__ = ()

    __repr__ = str.__str__


class ExceptionWrapper:
    """An error of another process or thread, to be raised again here.

    Parameters
    ----------
    exc_info : tuple, optional
        As of `sys.exc_info`; the error that is handled where none is given.
    where : str, default "in background"
        Where it happened.

    Examples
    --------
    >>> from pytensorlib._utils import ExceptionWrapper
    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError:
    ...     wrapped = ExceptionWrapper(where="in a thread")
    >>> try:
    ...     wrapped.reraise()
    ... except ZeroDivisionError as error:
    ...     print(str(error).splitlines()[0])
    Caught ZeroDivisionError in a thread.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = exc_info or sys.exc_info()
        self.exc_type: Any = kind
        # The traceback would keep frames alive, and cannot be pickled.
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> None:
        """Raise the error, with its traceback in the text.

        Raises
        ------
        Exception
            Of the class that it had; a RuntimeError where that takes more than a text.
        """
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            error = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


def _element_size(dtype: Any) -> int:
    """Return the bytes of an element."""
    if not isinstance(dtype, pt.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _flatten_dense_tensors(tensors: Sequence[Any]) -> Any:
    """Return tensors as one of one dimension."""
    return pt.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return views of a flat tensor, of the shapes of others."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view_as(t) for part, t in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Iterable[Any], size_limit: int) -> Iterator[list[Any]]:
    """Yield lists of tensors of one type, each of some bytes or more but the last."""
    lists: dict[str, tuple[list[Any], int]] = {}
    for t in tensors:
        have, size = lists.pop(t.type(), ([], 0))
        own = t.numel() * t.element_size()
        if have and size + own > size_limit:
            yield have
            have, size = [], 0
        lists[t.type()] = ([*have, t], size + own)
    for have, _ in lists.values():
        yield have


def _reorder_tensors_as(tensors: Iterable[Any], ordered_tensors: Iterable[Any]) -> tuple[Any, ...]:
    """Return tensors whose types come as those of others do."""
    by_type: dict[str, list[Any]] = {}
    for t in tensors:
        by_type.setdefault(t.type(), []).append(t)
    queues = {kind: iter(found) for kind, found in by_type.items()}
    return tuple(next(queues[t.type()]) for t in ordered_tensors)


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> Any:
    """Return the number of a device; -1 for the CPU, where that may be."""
    if isinstance(device, str):
        device = pt.device(device)
    if isinstance(device, pt.device):
        if device.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        if device.type == "cpu":
            return -1
        index = device.index
    else:
        index = device
    if index is not None:
        return index
    if optional and device is None:
        accelerator = pt.accelerator.current_accelerator()
        return None if accelerator is None else pt.accelerator.current_device_index()
    if optional:
        return pt.accelerator.current_device_index()
    raise ValueError(
        f"Expected a torch.device with a specified index or an integer, but got:{device}"
    )


def _get_available_device_type() -> str | None:
    """Return the type of the GPU, None where there is none."""
    found = pt.accelerator.current_accelerator()
    return None if found is None or not pt.accelerator.is_available() else found.type


def _get_device_module(device_type: str) -> Any:
    """Return the module that has a device's functions."""
    module = getattr(pt, device_type, None)
    if module is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as "
            f"'torch.{device_type}'."
        )
    return module


def _get_all_device_indices() -> list[int]:
    """Return the numbers of all GPUs."""
    return list(range(pt.accelerator.device_count()))


def _get_current_device_index() -> int:
    """Return the number of the GPU in use, -1 where there is none."""
    return pt.accelerator.current_device_index() if pt.accelerator.is_available() else -1


def _is_privateuse1_backend_available() -> bool:
    """Return False: programs bring no backend of their own."""
    return False


def _get_obj_state(obj: Any) -> Any:
    """Return what makes an object like `obj`: its attributes, and those of its slots."""
    if "__getstate__" in {name for kind in type(obj).__mro__[:-1] for name in vars(kind)}:
        return obj.__getstate__()
    slots = [s for kind in type(obj).__mro__ for s in getattr(kind, "__slots__", ())]
    if slots:
        return obj.__dict__, {s: getattr(obj, s) for s in slots if hasattr(obj, s)}
    return obj.__dict__


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Give an object what `_get_obj_state` told of another; return it."""
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        attributes, slots = state
    else:
        attributes, slots = state, None
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        setattr(obj, name, value)
    return obj


def _type(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """Return a tensor or storage of another type, as its own method does."""
    return self.type(dtype, non_blocking=non_blocking, **kwargs)


def _import_dotted_name(name: str) -> Any:
    """Return what a full name stands for."""
    first, *rest = name.split(".")
    found = __import__(first)
    for part in rest:
        found = getattr(found, part)
    return found


class _ClassPropertyDescriptor:
    """A property of a class itself."""

    def __init__(self, fget: Any, fset: Any = None) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.fget.__get__(instance, type(instance) if owner is None else owner)()


def classproperty(func: Any) -> _ClassPropertyDescriptor:
    """Make a method a property of the class.

    Parameters
    ----------
    func : callable
        Takes the class.

    Returns
    -------
    descriptor
        Found on the class and on its instances.

    Examples
    --------
    >>> from pytensorlib._utils import classproperty
    >>> class Named:
    ...     @classproperty
    ...     def name(cls):
    ...         return cls.__name__
    >>> Named.name
    'Named'
    """
    return _ClassPropertyDescriptor(
        func if isinstance(func, (classmethod, staticmethod)) else classmethod(func)
    )
