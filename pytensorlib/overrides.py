"""``__torch_function__``: classes that answer for functions of tensors themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _C

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "wrap_torch_function",
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


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable:
    """Return a decorator that lets classes answer for a function of one's own.

    Parameters
    ----------
    dispatcher : callable
        Takes what the function takes, and returns the arguments whose classes are asked.

    Returns
    -------
    callable
        The decorator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Unit:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return f"{func.__name__} answered"
    >>> @torch.overrides.wrap_torch_function(lambda x: (x,))
    ... def double(x):
    ...     return 2 * x
    >>> double(2), double(Unit())
    (4, 'double answered')
    """

    def decorator(func: Callable) -> Callable:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorator


class TorchFunctionMode:
    """While it is on, its ``__torch_function__`` answers for each function of tensors.

    It is a context manager. Modes nest: the last one is asked first, and the function that it
    calls asks the one before.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Count(torch.overrides.TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Count() as count:
    ...     y = torch.add(torch.ones(2), torch.ones(2))
    >>> count.calls > 0
    True
    """

    def __init__(self) -> None:
        """Make one, which is off."""

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Return what a call gives; subclasses say what.

        Parameters
        ----------
        func : callable
            The function that was called.
        types : tuple of type
            Classes of its arguments that answer themselves.
        args : tuple
            Its arguments by position.
        kwargs : dict, optional
            Its arguments by name.

        Raises
        ------
        NotImplementedError
            Always, in this class.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define __torch_function__")

    def __enter__(self) -> Any:
        """Turn it on, for this thread."""
        _C._push_torch_function_mode(self)
        return self

    def __exit__(self, *error: Any) -> None:
        """Turn it off."""
        _C._pop_torch_function_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a new mode; the old spelling of the constructor.

        Parameters
        ----------
        *args, **kwargs
            Of the constructor.
        """
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls the function as it is.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.overrides.BaseTorchFunctionMode():
    ...     y = torch.ones(2) + 1
    >>> y
    tensor([2., 2.])
    """

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Return what the function gives.

        Parameters
        ----------
        func : callable
            The function that was called.
        types : tuple of type
            Not used.
        args : tuple
            Its arguments by position.
        kwargs : dict, optional
            Its arguments by name.
        """
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    """Return the mode that is asked first, or None."""
    modes = _C._torch_function_modes()
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> list[Any]:
    """Return the modes that are on, the one that is asked first at the end."""
    return _C._torch_function_modes()


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """Take the mode that is asked first away meanwhile."""
    mode = _C._pop_torch_function_mode()
    try:
        yield mode
    finally:
        _C._push_torch_function_mode(mode)
