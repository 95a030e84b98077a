"""Changes of other objects for the length of a trace, and functions that a tracer records whole."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytensorlib as pt

from ..utils import _pytree as pytree
from .proxy import Proxy

__all__ = ["Patcher", "wrap"]

# The namespaces of modules, and the functions in them that are recorded whole.
functions_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
methods_to_patch: list[tuple[type, str]] = []
_MISSING = object()


def find_proxy(*values: Any) -> Proxy | None:
    """Return the first proxy in containers, if there is one."""
    for leaf in pytree.tree_leaves(values):
        if isinstance(leaf, Proxy):
            return leaf
        if isinstance(leaf, slice):
            found = find_proxy(leaf.start, leaf.stop, leaf.step)
            if found is not None:
                return found
    return None


def recorded(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that becomes a node where an argument is a proxy."""

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def recorded_method(cls: type, name: str) -> Callable[..., Any]:
    """Return a method that becomes a node where an argument is a proxy."""
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


class Patcher:
    """Changes namespaces and classes, and changes them back at the end of its block."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self.visited: set[int] = set()

    def patch(self, space: dict[str, Any], name: str, new: Any) -> None:
        """Put another function into a namespace."""
        before = space.get(name, _MISSING)
        if getattr(before, "__fx_already_patched", False):
            return
        new.__fx_already_patched = True
        space[name] = new

        def undo() -> None:
            if before is _MISSING:
                del space[name]
            else:
                space[name] = before

        self._undo.append(undo)

    def patch_method(self, cls: type, name: str, new: Any) -> None:
        """Put another method into a class."""
        before = vars(cls).get(name, _MISSING)
        if getattr(before, "__fx_already_patched", False):
            return
        new.__fx_already_patched = True
        setattr(cls, name, new)

        def undo() -> None:
            if before is _MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, before)
            if name == "__getattr__":
                look_up_quickly(cls)

        self._undo.append(undo)

    def visit_once(self, thing: Any) -> bool:
        """Return True the first time that an object is asked for."""
        if id(thing) in self.visited:
            return False
        self.visited.add(id(thing))
        return True

    def autowrap(self, space: dict[str, Any], function_ids: set[int]) -> None:
        """Let functions that are known by identity be recorded, wherever a namespace has them."""
        if not self.visit_once(space):
            return
        for name, value in list(space.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                self.patch(space, name, recorded(value))

    def wrap_registered(self) -> None:
        """Let what `wrap` was told be recorded."""
        for (_, name), space in list(functions_to_patch.items()):
            original = space.get(name, getattr(builtins, name, None))
            if original is not None:
                self.patch(space, name, recorded(original))
        for cls, name in methods_to_patch:
            self.patch_method(cls, name, recorded_method(cls, name))

    def __enter__(self) -> Patcher:
        return self

    def __exit__(self, *error: object) -> None:
        while self._undo:
            self._undo.pop()()
        self.visited.clear()


def _subclasses(cls: type) -> Iterator[type]:
    seen, rest = {cls}, [cls]
    below: Any
    while rest:
        yield (at := rest.pop())
        for below in at.__subclasses__():
            if below not in seen:
                seen.add(below)
                rest.append(below)


def look_up_quickly(cls: type) -> None:
    """Give modules' classes the attribute lookup back that Python took while it was replaced."""
    below: Any
    for below in _subclasses(cls):
        pt._C._fast_attributes(below)


def wrap(fn_or_name: Any) -> Any:
    """Tell tracers to record calls of a function, and not what it does.

    Parameters
    ----------
    fn_or_name : callable or str
        A global function of the module that calls this, or its name.

    Returns
    -------
    callable or str
        The same.

    Raises
    ------
    RuntimeError
        It is neither.
    NotImplementedError
        `wrap` is not called at the top of a module.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> @torch.fx.wrap
    ... def double(x):
    ...     return 2 * x
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    import sys

    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    if callable(fn_or_name):
        if isinstance(fn_or_name, str):
            raise AssertionError("fn_or_name must be a callable or a name, not both")
        name = fn_or_name.__name__
    else:
        name = fn_or_name
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    functions_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name
