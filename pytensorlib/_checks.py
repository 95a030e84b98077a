"""Conditions that programs state: they raise at once here, as PyTorch's do outside a compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _C

__all__ = [
    "_assert",
    "_check",
    "_check_index",
    "_check_is_size",
    "_check_not_implemented",
    "_check_tensor_all",
    "_check_tensor_all_with",
    "_check_type",
    "_check_value",
    "_check_with",
]


def _assert(condition: Any, message: Any) -> None:
    """Raise AssertionError unless a condition holds; a tensor of one element is one too."""
    if hasattr(type(condition), "__torch_function__") and type(condition) is not _C.Tensor:
        from .overrides import handle_torch_function

        handle_torch_function(_assert, (condition,), condition, message)
    elif not condition:
        raise AssertionError(message)


def _check_with(
    error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None
) -> None:
    """Raise an error of a class unless a condition holds; the message is a function."""
    if hasattr(cond, "__sym_check__"):
        cond.__sym_check__()
        return
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type("Expected cond to be True, but got False.")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError unless a condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise IndexError unless a condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise ValueError unless a condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise TypeError unless a condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise NotImplementedError unless a condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(
    i: Any, message: Callable[[], Any] | None = None, *, max: int | None = None
) -> None:
    """Raise RuntimeError unless a number can be a size, at most `max`."""
    for cond in (i >= 0,) if max is None else (i >= 0, i <= max):
        _check(cond if hasattr(cond, "__sym_check__") else bool(cond), message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None
) -> None:
    """Raise an error of a class unless all elements of a tensor of bool are True."""
    dtype = getattr(cond, "dtype", None)
    if dtype is None or dtype.is_floating_point or str(dtype) != "torch.bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {dtype or type(cond)}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError unless all elements of a tensor of bool are True."""
    _check_tensor_all_with(RuntimeError, cond, message)
