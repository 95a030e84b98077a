"""Switches for recording: context managers that are decorators too."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .. import _C

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


def _wrap_generator(make: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    """Enter the mode for each stretch of the generator's body, not while its user runs."""

    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = func(*args, **kwargs)
        step: Callable[..., Any] = inner.send
        message: Any = None
        while True:
            try:
                with make():
                    value = step(message)
            except StopIteration as stop:
                return stop.value
            try:
                message = yield value
                step = inner.send
            except GeneratorExit:
                with make():
                    inner.close()
                raise
            except BaseException as error:
                message = error
                step = inner.throw

    return generator


class _Steps:
    """An awaitable over a generator, so that other tasks never see a coroutine's mode."""

    __slots__ = ("steps",)

    def __init__(self, steps: Any) -> None:
        self.steps = steps

    def __await__(self) -> Any:
        return self.steps


def decorated(make: Callable[[], Any], func: F) -> F:
    """Return a function, coroutine or generator that runs in what `make` gives, each time."""
    import inspect  # slow to load

    if inspect.isclass(func):
        warnings.warn(
            "Decorating classes is deprecated: only construction runs under the mode. "
            "Decorate functions or methods, such as __init__, instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif inspect.isgeneratorfunction(func):
        return functools.wraps(func)(_wrap_generator(make, func))  # type: ignore[return-value]
    elif inspect.iscoroutinefunction(func):
        steps = _wrap_generator(make, lambda *a, **k: func(*a, **k).__await__())

        @functools.wraps(func)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            return await _Steps(steps(*args, **kwargs))

        return coroutine  # type: ignore[return-value]

    @functools.wraps(func)
    def function(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return function  # type: ignore[return-value]


class _Mode(_C._Mode):
    """A context manager that can also decorate functions, coroutines and generators."""

    __slots__ = ()

    def clone(self) -> Any:
        """Return a fresh manager with the same settings."""
        return type(self)()

    def __call__(self, func: F) -> F:
        return decorated(self.clone, func)


class _BareMode(_Mode):
    """A mode without arguments: ``@no_grad`` means the same as ``@no_grad()``."""

    __slots__ = ()
    _grad = True

    if TYPE_CHECKING:

        def __init__(self, func: Any = None) -> None: ...

    @overload
    def __new__(cls) -> _BareMode: ...
    @overload
    def __new__(cls, func: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, func: Any = None) -> Any:
        self = super().__new__(cls, cls._grad)
        return self if func is None else self(func)


class no_grad(_BareMode):
    """Turn recording off, as a context manager or a decorator.

    Parameters
    ----------
    func : callable, optional
        A function to run in that mode, where it is used as a decorator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    __slots__ = ()
    _grad = False


class enable_grad(_BareMode):
    """Turn recording on, as inside a `no_grad` block; context manager or decorator.

    Parameters
    ----------
    func : callable, optional
        A function to run in that mode, where it is used as a decorator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.no_grad():
    ...     with torch.enable_grad():
    ...         y = 2 * x
    >>> y.requires_grad
    True
    """

    __slots__ = ()


class set_grad_enabled(_Mode):
    """Turn recording on or off at once; as a context manager, until the block ends.

    Parameters
    ----------
    mode : bool
        Whether operations are recorded.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> training = False
    >>> with torch.set_grad_enabled(training):
    ...     (2 * x).requires_grad
    False
    """

    __slots__ = ("mode",)

    def __new__(cls, mode: bool) -> Any:
        return super().__new__(cls, mode)

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.set()

    def __call__(self, func: F) -> F:
        # Decorating must not change the mode for the rest of the module.
        self.restore()
        return super().__call__(func)

    def __enter__(self) -> None:
        # The mode is on since this was made, and what was before is noted since then.
        self.set()

    def __str__(self) -> str:
        return f"{type(self).__module__}.{type(self).__qualname__}(mode={self.mode})"

    def __repr__(self) -> str:
        return str(self)

    def clone(self) -> set_grad_enabled:
        return type(self)(self.mode)


class inference_mode(_Mode):
    """Like `no_grad`, and what is made inside can never take part in a recorded operation.

    Parameters
    ----------
    mode : bool, default True
        False leaves inference mode inside an outer block.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.inference_mode():
    ...     y = 2 * x
    >>> y.requires_grad, y.is_inference()
    (False, True)
    """

    __slots__ = ("mode",)

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return super().__new__(cls, not mode, mode)
        return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def clone(self) -> inference_mode:
        return type(self)(self.mode)


class _Kept(contextlib.ContextDecorator):
    """A setting that is kept and changes nothing here; within a ``with`` block, or from now on."""

    now = True

    def __init__(self, value: bool) -> None:
        kind = type(self)
        self.before, self.value, kind.now = kind.now, bool(value), bool(value)

    def clone(self) -> Any:
        """Return a fresh manager with the same setting."""
        return type(self)(self.value)

    _recreate_cm = clone

    def __call__(self, func: F) -> F:
        # Decorating must not change the setting for the rest of the module.
        type(self).now = self.before
        return super().__call__(func)

    def __enter__(self) -> None:
        """Leave what was set."""

    def __exit__(self, *error: object) -> None:
        type(self).now = self.before


class set_multithreading_enabled(_Kept):
    """Keep whether backward may use threads of its own; it runs in the thread that calls it.

    Parameters
    ----------
    mode : bool
        Whether it may.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.autograd.set_multithreading_enabled(False):
    ...     (2 * x).backward()
    >>> x.grad
    tensor([2.])
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)


class enforce_grad_layout_policy(_Kept):
    """Keep whether gradients shall lie in memory as their leaves do; backward does as it does.

    Parameters
    ----------
    enable : bool, default True
        Whether they shall.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.autograd.enforce_grad_layout_policy(False):
    ...     (2 * x).backward()
    >>> x.grad
    tensor([2.])
    """

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)
