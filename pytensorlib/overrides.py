"""``__torch_function__``: classes that answer for functions of tensors themselves."""

from __future__ import annotations

import functools
import importlib
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _C, _absent, _capi
from ._absent.modules import spelled
from ._tensor import _AS_THEY_ARE
from ._tensor import functions as _functions

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether a mode, or the class of an argument, answers for functions of tensors itself.

    Parameters
    ----------
    relevant_args : iterable
        Arguments of a call.

    Returns
    -------
    bool
        True under a mode, and where the class of one defines ``__torch_function__``; plain tensors
        do not count.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.overrides.has_torch_function([torch.zeros(1), 2])
    False
    """
    return not _functions.skipped() and _C._has_torch_function(list(relevant_args))


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
        True under a mode, and where the class of one defines ``__torch_function__``; plain tensors
        do not count.

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
    answer = _C._answered_of(public_api, list(relevant_args), args, kwargs)
    if answer is NotImplemented:
        name = f"{public_api.__module__}.{public_api.__name__}"
        raise TypeError(
            f"no implementation found for '{name}' on types that implement __torch_function__: []"
        )
    return answer


def redispatch_function(
    func: Callable, types: Iterable[type], args: tuple = (), kwargs: dict | None = None
) -> Any:
    """Call a function whose answer was asked for, without asking for it again.

    Parameters
    ----------
    func : callable
        What ``__torch_function__`` is told of.
    types : iterable of type
        What it is told of the arguments' classes; not used.
    args : tuple
        Its arguments by position.
    kwargs : dict, optional
        Its arguments by name.

    Returns
    -------
    object
        What the function gives; functions that it calls ask, operators have none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Told(torch.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return torch.overrides.redispatch_function(func, types, args, kwargs)
    >>> torch.ones(2).as_subclass(Told) + 1
    tensor([2., 2.])
    """
    return _functions.without_asking(func, args, kwargs or {})


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
    """Return what functions are looked for in, by its name."""
    import pytensorlib as pt

    return {
        "torch": pt,
        "torch.functional": pt.functional,
        "torch.nn.functional": pt.nn.functional,
        "torch.Tensor": pt.Tensor,
        "torch.linalg": pt.linalg,
        "torch.fft": pt.fft,
        "torch.special": pt.special,
    }


def _listed(place: str, home: Any, name: str) -> Any:
    """Return what a name in a place stands for, and None where that is not listed."""
    of_class = place == "torch.Tensor"
    if not of_class and (name[0] == "_" or name[-1] == "_" or not name[0].islower()):
        return None
    value = _functions.members(home).get(name) if of_class else getattr(home, name)
    if of_class:
        private = name.startswith("_") and not name.startswith("__")
        if name in _functions._NEVER or (private and name not in _functions._PRIVATE):
            return None
        if getattr(object, name, None) == value:
            return None
        return value if callable(value) or hasattr(value, "__get__") else None
    kinds = (type(_C.add), types.FunctionType, types.BuiltinFunctionType)
    return value if isinstance(value, kinds) else None


@functools.cache
def _named() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what asks, and what does not, by full names."""
    asking: dict[str, Any] = {}
    ignored: dict[str, Any] = {}
    for place, home in _places().items():
        silent = _functions.ignored_names().get(place, frozenset())
        absent = spelled(place.partition(".")[2])
        for name in sorted(_functions.members(home) if place == "torch.Tensor" else dir(home)):
            value = _listed(place, home, name)
            if value is None or name in absent or isinstance(value, _absent.Missing):
                continue
            if name in silent:
                ignored[f"{place}.{name}"] = value
            else:
                asking[f"{place}.{name}"] = value
    return asking, ignored


def _getter(value: Any) -> Any:
    """Return the getter of an attribute, and any other function as it is."""
    return value if callable(value) else value.__get__


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """Return the functions for which ``__torch_function__`` is asked.

    Returns
    -------
    dict
        Modules, and the class of tensors, with lists of functions; attributes of tensors with a
        list of their ``__get__``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.add in torch.overrides.get_overridable_functions()[torch]
    True
    """
    found: dict[Any, list[Callable]] = {}
    places = _places()
    for full, value in _named()[0].items():
        home = places[full.rpartition(".")[0]] if callable(value) else value
        found.setdefault(home, []).append(_getter(value))
    return found


def get_ignored_functions() -> set[Callable]:
    """Return the functions for which ``__torch_function__`` is not asked.

    Returns
    -------
    set
        Those that read no tensor, such as `torch.zeros`: classes are not asked, modes are.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> ignored = torch.overrides.get_ignored_functions()
    >>> torch.zeros in ignored, torch.add in ignored
    (True, False)
    """
    return {_getter(value) for value in _named()[1].values()}


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
        if function.__name__ == "__get__":
            return lambda self: -1
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # a slot, or several forms
            return lambda *args, **kwargs: -1
        # Tensors that are written as separate arguments.
        parameters = [
            p.replace(kind=p.VAR_POSITIONAL, default=p.empty)
            if p.default == () and p.name in ("matrices", "operands", "tensors")
            else p
            for p in signature.parameters.values()
        ]
        signature = signature.replace(parameters=parameters)

        def answer(*args: Any, **kwargs: Any) -> int:
            signature.bind(*args, **kwargs)
            return -1

        answer.__signature__ = signature  # type: ignore[attr-defined]
        return answer

    functions = [_getter(value) for value in _named()[0].values()]
    for place in ("torch.autograd", "torch.nn.init"):
        names = _functions.ELSEWHERE[place]
        home = importlib.import_module(place.replace("torch", _C.__name__.partition(".")[0], 1))
        functions += [getattr(home, name) for name in names]
    return {function: stand_in(function) for function in functions}


def get_default_nowrap_functions() -> set[Callable]:
    """Return the functions whose results keep their class in the default ``__torch_function__``.

    Returns
    -------
    set
        The getters of other tensors: those of a view's base and of a gradient.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.Tensor.grad.__get__ in torch.overrides.get_default_nowrap_functions()
    True
    """
    return set(_AS_THEY_ARE)


def _get_overloaded_args(
    relevant_args: Iterable[Any], get_type_fn: Callable[[Any], type] | None = None
) -> list[Any]:
    """Return the arguments whose classes answer, one of each class, subclasses first."""
    kind = type if get_type_fn is None else get_type_fn
    found: list[Any] = []
    for arg in relevant_args if _capi._is_torch_function_enabled() else ():
        own = getattr(kind(arg), "__torch_function__", _C._disabled_torch_function_impl)
        if own is _C._disabled_torch_function_impl or kind(arg) in map(kind, found):
            continue
        place = (i for i, other in enumerate(found) if issubclass(kind(arg), kind(other)))
        found.insert(next(place, len(found)), arg)
    return found


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
    return func in _tensor_methods()


@functools.cache
def _tensor_methods() -> frozenset[Callable]:
    """Return the methods of tensors that ask."""
    return frozenset(get_overridable_functions()[_C.Tensor])


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
    return _resolved().get(f)


@functools.cache
def _resolved() -> dict[Callable, str]:
    """Return the full names of functions."""
    found: dict[Callable, str] = {}
    for full, value in (_named()[1] | _named()[0]).items():
        if callable(value):
            found[value] = full
        else:
            found |= {
                getattr(value, how): f"{full}.{how}"
                for how in ("__get__", "__set__")
                if hasattr(value, how)
            }
    return found


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


def _push_mode(mode: Any) -> None:
    """Let a mode answer."""
    _C._push_torch_function_mode(mode)


def _pop_mode() -> Any:
    """Take the mode away that is asked first, and return it."""
    return _C._pop_torch_function_mode()


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """Take the mode that is asked first away meanwhile."""
    mode = _C._pop_torch_function_mode()
    try:
        yield mode
    finally:
        _C._push_torch_function_mode(mode)


_functions.install()
