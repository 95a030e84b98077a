"""Names that libraries take from PyTorch's private module of its compiler: nothing is compiled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from . import jit
from .futures import Future
from .jit import export, ignore, is_scripting, unused
from .jit.annotations import BroadcastingList1, BroadcastingList2, BroadcastingList3

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Final",
    "Future",
    "boolean_dispatch",
    "can_compile_class",
    "export",
    "ignore",
    "is_scripting",
    "unused",
]

T = TypeVar("T")
_overload, _overload_method = jit._overload, jit._overload_method


def _copy_to_script_wrapper(fn: T) -> T:
    """Return the function as it is; tells a compiler to copy it to its own classes."""
    return fn


def can_compile_class(cls: type) -> bool:
    """Return False: nothing is compiled.

    Parameters
    ----------
    cls : type
        Any.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch._jit_internal.can_compile_class(int)
    False
    """
    return False


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """Return a function that calls one of two, as one of its arguments says.

    Parameters
    ----------
    arg_name : str
        The argument that says which.
    arg_index : int
        Its position.
    default : bool
        What it is where it is not given.
    if_true, if_false : callable
        The two functions; both take all arguments.
    module_name, func_name : str
        What the result is called, and where it says that it is from.

    Returns
    -------
    callable
        With the documentation of either.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> pick = torch._jit_internal.boolean_dispatch(
    ...     "last", 1, False, lambda x, last=True: x[-1], lambda x, last=False: x[0], "m", "pick")
    >>> pick([1, 2, 3]), pick([1, 2, 3], last=True)
    (1, 3)
    """

    def function(*args: Any, **kwargs: Any) -> Any:
        given = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if given else if_false)(*args, **kwargs)

    function.__doc__ = if_true.__doc__ or if_false.__doc__
    function.__module__, function.__name__ = module_name or __name__, func_name or "function"
    return function


def _qualified_name(obj: Any, mangle_name: bool = True) -> str:
    """Return the full name of a class or function."""
    own = getattr(obj, "_jit_override_qualname", None)
    if own is not None:
        return own
    name = getattr(obj, "__name__", None) or type(obj).__name__
    module = getattr(obj, "__module__", None)
    if module is None:
        raise RuntimeError(
            f"Could not get qualified name for class '{name}': __module__ can't be None."
        )
    return f"__torch__.{name}" if module == "__main__" else f"{module}.{name}"


@contextlib.contextmanager
def _disable_emit_hooks() -> Iterator[None]:
    """Do nothing for a block: no code is emitted."""
    yield
