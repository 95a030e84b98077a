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
    """Return whether the class of an argument answers for functions of tensors itself.

    Parameters
    ----------
    relevant_args : iterable
        Arguments of a call.

    Returns
    -------
    bool
        True where the class of one defines ``__torch_function__``; plain tensors do not count.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.overrides.has_torch_function([torch.zeros(1), 2])
    False
    """
    return bool(_C._overloaded_args(list(relevant_args)))


def has_torch_function_unary(arg: Any) -> bool:
    """As `has_torch_function`, for one argument.

    Parameters
    ----------
    arg : object
        An argument of a call.

    Returns
    -------
    bool
        True where its class defines ``__torch_function__``; plain tensors do not count.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Unit:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return "answered"
    >>> torch.overrides.has_torch_function_unary(Unit())
    True
    """
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """As `has_torch_function`, for arguments written out.

    Parameters
    ----------
    *args : object
        Arguments of a call.

    Returns
    -------
    bool
        True where the class of one defines ``__torch_function__``; plain tensors do not count.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.overrides.has_torch_function_variadic(torch.zeros(1), 2)
    False
    """
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Let the classes of `relevant_args` answer for ``public_api(*args, **kwargs)``.

    Parameters
    ----------
    public_api : callable
        The function that was called.
    relevant_args : iterable
        Arguments whose classes are asked, subclasses first.
    *args, **kwargs
        All its arguments.

    Returns
    -------
    object
        The first answer that is not ``NotImplemented``.

    Raises
    ------
    TypeError
        If none of them does.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Unit:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return f"{func.__name__} answered"
    >>> def double(x):
    ...     return 2 * x
    >>> unit = Unit()
    >>> torch.overrides.handle_torch_function(double, [unit], unit)
    'double answered'
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
    """Return whether `inp` is a tensor or an object that answers for functions of tensors.

    Parameters
    ----------
    inp : object
        Anything.

    Returns
    -------
    bool
        True for tensors and objects with ``__torch_function__``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.overrides.is_tensor_like(torch.zeros(1)), torch.overrides.is_tensor_like([1.0])
    (True, False)
    """
    return type(inp) is _C.Tensor or hasattr(inp, "__torch_function__")
