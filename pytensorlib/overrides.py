"""``__torch_function__``: classes that answer for functions of tensors themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from . import _C

__all__ = [
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether the class of an argument answers for functions of tensors itself."""
    return bool(_C._overloaded_args(list(relevant_args)))


def has_torch_function_unary(arg: Any) -> bool:
    """As `has_torch_function`, for one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """As `has_torch_function`, for arguments written out."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Let the classes of `relevant_args` answer for ``public_api(*args, **kwargs)``.

    Raises
    ------
    TypeError
        If none of them does.
    """
    found = _C._overloaded_args(list(relevant_args))
    types = tuple(type(obj) for obj in found)
    for obj in found:
        result = type(obj).__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: "
        f"{list(types)}"
    )


def is_tensor_like(inp: Any) -> bool:
    """Return whether `inp` is a tensor or an object that answers for functions of tensors."""
    return type(inp) is _C.Tensor or hasattr(inp, "__torch_function__")
