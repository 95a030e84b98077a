"""``__torch_function__``: classes that answer for functions of tensors themselves."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _C

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
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


def _places() -> dict[str, Any]:
    import pytensorlib as pt

    f = pt.nn.functional
    names = {"torch": pt, "torch.nn.functional": f, "torch.Tensor": pt.Tensor}
    return names | {f"torch.{n}": getattr(pt, n) for n in ("linalg", "fft", "special")}


# Operators of Python that the class of tensors has slots for, and properties that are operators.
_SLOTS = """
    abs add and eq floordiv ge getitem gt le lshift lt matmul mod mul ne neg or pow radd rand
    rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rshift rsub rtruediv rxor setitem sub
    truediv xor
""".split()
_PROPERTIES = ("H", "T", "mH", "mT")


@functools.cache
def _overridable() -> dict[str, Any]:
    """Return the functions that classes may answer for, by their full names."""
    taking = {
        (place, schema.partition("(")[0].partition(".")[0])
        for schema, place, *_ in _C._schemas()
        if "Tensor" in schema.partition("(")[2].rpartition("->")[0]
    }
    found: dict[str, Any] = {}
    for name, place in _places().items():
        home = name.partition(".")[2].replace("nn.functional", "nn") or "torch"
        for key, value in vars(place).items():
            private = key.startswith("_") and not key.startswith("__")
            if private or type(value) is not type(_C.add):
                continue
            known = {(home, n) for n in (key, key.removesuffix("_"), value.__name__)}
            if home == "Tensor" or (known | {("torch", key)}) & taking:
                found[f"{name}.{key}"] = value
    tensor = _C.Tensor
    found |= {f"torch.Tensor.__{n}__": getattr(tensor, f"__{n}__") for n in _SLOTS}
    getters = {n: vars(tensor)[n].__get__ for n in _PROPERTIES}
    return found | {f"torch.Tensor.{n}.__get__": getter for n, getter in getters.items()}


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """Return the functions for which ``__torch_function__`` is asked.

    What is written in Python is not among them, but what it calls.

    Returns
    -------
    dict
        Modules, and the class of tensors, with lists of functions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.add in torch.overrides.get_overridable_functions()[torch]
    True
    """
    found: dict[Any, list[Callable]] = {place: [] for place in _places().values()}
    names = _places()
    for full, value in _overridable().items():
        home = full.removesuffix(".__get__").rpartition(".")[0]
        found[names[home]].append(value)
    return found


def get_ignored_functions() -> set[Callable]:
    """Return the functions for which ``__torch_function__`` is not asked.

    Returns
    -------
    set
        Those that read no tensor, such as `torch.zeros`, and those that are written in Python,
        which ask through what they call.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> ignored = torch.overrides.get_ignored_functions()
    >>> torch.zeros in ignored, torch.add in ignored
    (True, False)
    """
    asked = set(_overridable().values())
    values = (v for place in _places().values() for k, v in vars(place).items() if k[0] != "_")
    return {v for v in values if callable(v) and not isinstance(v, type) and v not in asked}


def get_testing_overrides() -> dict[Callable, Callable]:
    """Return a stand-in for each function for which ``__torch_function__`` is asked.

    Returns
    -------
    dict
        From function to stand-in, which takes the same arguments and returns -1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.overrides.get_testing_overrides()[torch.add](1, 2)
    -1
    """

    def stand_in(function: Callable) -> Callable:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # a slot, or several forms
            return lambda *args, **kwargs: -1

        def answer(*args: Any, **kwargs: Any) -> int:
            signature.bind(*args, **kwargs)
            return -1

        answer.__signature__ = signature  # type: ignore[attr-defined]
        return answer

    return {function: stand_in(function) for function in _overridable().values()}


def is_tensor_method_or_property(func: Callable) -> bool:
    """Return whether a function that ``__torch_function__`` gets belongs to the class of tensors.

    Parameters
    ----------
    func : callable
        The function.

    Returns
    -------
    bool
        True for methods, operators, and ``__get__`` of properties.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> asked = torch.overrides.is_tensor_method_or_property
    >>> asked(torch.Tensor.add), asked(torch.Tensor.__add__), asked(torch.add)
    (True, True, False)
    """
    if getattr(func, "__name__", None) == "__get__":
        return True
    return any(func is v or func == v for v in get_overridable_functions()[_C.Tensor])


def resolve_name(f: Callable) -> str | None:
    """Return the full name of a function for which ``__torch_function__`` is asked.

    Parameters
    ----------
    f : callable
        The function.

    Returns
    -------
    str or None
        Such as "torch.Tensor.add"; None of other functions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.overrides.resolve_name(torch.Tensor.add), torch.overrides.resolve_name(len)
    ('torch.Tensor.add', None)
    """
    return next((name for name, value in _overridable().items() if value == f), None)


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
