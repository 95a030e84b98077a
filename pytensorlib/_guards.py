"""What the next call of a recorded function is taken to depend on, as conditions to be checked.

Which functions ran is observed (`_observed`). What they can have read is what their code names:
globals, variables of enclosing functions, defaults, and attributes of all objects that are found
from there, however deep. Each is a condition, or the call is not recorded.
"""

from __future__ import annotations

import array
import builtins
import collections
import contextlib
import contextvars
import functools
import gc
import operator
import os
import random
import struct
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import pytensorlib as pt

from . import _C
from ._observed import Observed, imports, is_library, is_library_module, is_own_module, loads

PLAIN = (int, float, bool, str, bytes, complex, type(None), pt.dtype, pt.device, pt.Size)


class CannotRecord(RuntimeError):
    """A call cannot be recorded and run again."""


# More conditions than this would take longer to check than calls take to run.
_MOST = 20_000
# Arrays of NumPy's with more bytes than this are not compared in each call.
_ARRAY = 4096
# Immutable, or without a part in what a tensor holds.
_ATOMS: tuple[type, ...] = (
    *(np.generic, np.dtype, np.ufunc, slice, range, types.CodeType, types.FrameType),
    *(types.CellType, types.GetSetDescriptorType, types.MemberDescriptorType),
    *(types.MethodDescriptorType, types.WrapperDescriptorType, types.TracebackType),
    *(types.GenericAlias, type(NotImplemented), type(...), pt.Generator, type(pt.zeros)),
)
# Modules of the standard library whose objects have no part in what a tensor holds.
_ASIDE = frozenset(
    "_io _thread abc asyncio ast builtins codecs concurrent datetime decimal fractions importlib "
    "inspect io logging multiprocessing pathlib queue re selectors signal socket subprocess sys "
    "tempfile threading time traceback typing unittest uuid warnings zoneinfo doctest".split()
)
# What a call of a module reads in its dictionary.
_HOOKS = frozenset(
    "_forward_hooks _forward_pre_hooks _forward_hooks_with_kwargs _forward_hooks_always_called "
    "_forward_pre_hooks_with_kwargs _backward_hooks _backward_pre_hooks".split()
)
_MODULE = frozenset(
    "training forward _parameters _buffers _modules _hooked _compiled_call_impl "
    "_is_full_backward_hook".split()
)
_INSIDE = ("_parameters", "_buffers", "_modules")
# Whose states are compared after a call.
_DRAWING = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)


def _random_state(x: Any) -> str:
    if isinstance(x, random.Random):
        return repr(x.getstate())
    if isinstance(x, np.random.RandomState):
        return repr([getattr(v, "tolist", lambda v=v: v)() for v in x.get_state(legacy=True)])
    bits = x.bit_generator if isinstance(x, np.random.Generator) else x
    return repr({k: getattr(v, "tolist", lambda v=v: v)() for k, v in bits.state.items()})


_POINTER = struct.calcsize("P")
_LRU = type(functools.lru_cache(int))
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def _class_dict(cls: type) -> dict[str, Any] | None:
    """Return the dictionary behind a class, for its proxy is no dictionary."""
    (found, *_) = gc.get_referents(vars(cls)) or (None,)
    return found if type(found) is dict else None


def _parts(function: types.FunctionType) -> tuple[Any, ...]:
    return function.__code__, function.__defaults__, function.__kwdefaults__


def _contents(x: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    return x.shape, x.strides, x.dtype.str, x.tobytes()


def _referent(ref: Any) -> int:
    return id(ref())


def _current(variable: Any) -> Any:
    return variable.get(None)


def _pairs(x: Any) -> tuple[Any, ...]:
    return tuple(x.items())


def _cached(x: Any) -> tuple[Any, ...]:
    now = x.cache_info()
    return now.misses, now.currsize


class _Anew(Exception):
    """More names are read than were known when the walk began."""


class Walk:
    """Collects conditions on all that functions which ran can have read.

    Parameters
    ----------
    observed : Observed, optional
        What ran in a call like the one that is to be recorded; nothing is looked at without it.
    """

    def __init__(self, observed: Observed | None = None) -> None:
        self._observed = observed or Observed()
        self._ran = {id(code) for code in self._observed.all()}
        self._begin()

    def _begin(self) -> None:
        self.guards = _C._Guards()
        self.optimizers: dict[int, Any] = {}
        # Each condition's name, which an error tells.
        self._paths: list[str] = []
        self._seen: dict[int, Any] = {}
        self._done: set[tuple[int, Any]] = set()
        self._classes: dict[int, list[tuple[str, Any]]] = {}
        self._todo: list[tuple[Any, str]] = []
        self._found: set[int] = set()
        # Generators of random numbers, and their states.
        self._sources: list[tuple[Any, Any, str]] = []

    def walk(self, roots: Iterable[tuple[Any, str]]) -> None:
        """Add conditions on what lies behind some objects, and behind the functions that ran."""
        hidden = self._observed.hidden()
        if hidden is not None:
            raise CannotRecord(hidden)
        roots = list(roots)
        try:
            self._walk(roots)
        except _Anew:
            self._begin()
            self._walk(roots)

    def _walk(self, roots: list[tuple[Any, str]]) -> None:
        self._todo.extend(roots)
        for code, names in self._observed.codes():
            self._globals(code, names)
        self._shared()
        self._run()
        # Functions that only C knows: what they enclose is found by their code.
        nested = {id(c) for code in self._observed.all() for c in code.co_consts}
        for code, _ in self._observed.codes():
            if code.co_freevars and id(code) not in self._found and id(code) not in nested:
                for owner in gc.get_referrers(code):
                    if isinstance(owner, types.FunctionType):
                        self._add(owner, owner.__name__)
        self._run()

    def drawn(self) -> str | None:
        """Return why a call that was made since cannot be recorded, if it drew random numbers."""
        for x, state, path in self._sources:
            if _random_state(x) != state:
                return f"it draws random numbers of {path}, which are not followed"
        return None

    def explain(self) -> Callable[[int], str | None]:
        """Return what gives a sentence on a condition that does not hold, by its number."""
        guards, paths = self.guards, tuple(self._paths)

        def why(i: int) -> str | None:
            if i >= len(paths):
                return None  # Another thread is at work with it.
            key = guards.changed(i)
            return f"{paths[i] if key is None else _entry(paths[i], key)} changed"

        return why

    def _run(self) -> None:
        while self._todo:
            x, path = self._todo.pop()
            self._look(x, path)
            if len(self._paths) > _MOST:
                raise CannotRecord(f"it depends on more than {_MOST:,} values ({path} is one)")

    def _add(self, x: Any, path: str) -> None:
        if not isinstance(x, PLAIN):
            self._todo.append((x, path))

    # ------------------------------------------------------------ conditions

    def _item(self, dictionary: dict[Any, Any], key: Any, path: str) -> None:
        """A dictionary has what it has under a key."""
        if (id(dictionary), key) in self._done:
            return
        self._done.add((id(dictionary), key))
        self._paths.append(path)
        # Of a subclass, without what that does for keys that are not there.
        if dict.__contains__(dictionary, key):
            value = dict.__getitem__(dictionary, key)
            self.guards.item(dictionary, key, value)
            self._add(value, path)
        else:
            self.guards.absent(dictionary, key)

    def _call(self, function: Callable[[Any], Any], x: Any, path: str) -> Any:
        """A function gives for an object what it gives now."""
        value = function(x)
        self._paths.append(path)
        self.guards.call(function, x, value)
        return value

    def _once(self, x: Any, what: str) -> bool:
        if (id(x), what) in self._done:
            return False
        self._done.add((id(x), what))
        return True

    # --------------------------------------------------------------- objects

    def _look(self, x: Any, path: str) -> None:
        if isinstance(x, PLAIN) or id(x) in self._seen:
            return
        self._seen[id(x)] = x
        if isinstance(x, pt.Tensor):
            self._paths.append(path)
            self.guards.memory(x)
            self._attributes(x, path)
        elif isinstance(x, _ATOMS):
            return
        elif isinstance(x, types.FunctionType):
            self._function(x, path)
        elif isinstance(x, types.ModuleType):
            self._module(x, path)
        elif isinstance(x, type):
            self._class(x, path)
        elif isinstance(x, (list, tuple, dict, set, frozenset, collections.deque)):
            self._container(x, path)
            if hasattr(x, "__dict__"):
                self._object(x, path)
        elif _is_optimizer(x):
            self.optimizers[id(x)] = x
        elif not self._special(x, path):
            self._object(x, path)

    def _container(self, x: Any, path: str) -> None:
        if isinstance(x, dict):
            self._dict(x, path)
            return
        if isinstance(x, list):
            self._paths.append(path)
            self.guards.items(x)
        elif not isinstance(x, (tuple, frozenset)):
            self._call(tuple, x, path)
        for i, value in enumerate(x):
            self._add(value, f"{path}[{i}]")

    def _dict(self, x: dict[Any, Any], path: str) -> None:
        if x is sys.modules:
            for name, module in list(x.items()):
                if not is_library_module(name):
                    self._add(module, name)
            return
        if isinstance(x, collections.OrderedDict) and len(x) > 1:
            # Its order is its own.
            self._call(tuple, x, path)
        self._paths.append(path)
        self.guards.all(x)
        for key, value in dict.items(x):
            self._add(key, path)
            self._add(value, _entry(path, key))

    def _special(self, x: Any, path: str) -> bool:
        """Look at an object whose parts are no attributes; tell whether it is one."""
        from . import _graph

        if isinstance(x, (types.MethodType, staticmethod, classmethod)):
            self._add(x.__func__, path)
            self._add(getattr(x, "__self__", None), path)
        elif isinstance(x, (types.BuiltinFunctionType, types.MethodWrapperType)):
            self._add(None if isinstance(x.__self__, types.ModuleType) else x.__self__, path)
        elif isinstance(x, functools.partial):
            self._paths.append(path)
            self.guards.all(x.keywords)
            for part in (x.func, x.args, x.keywords):
                self._add(part, path)
        elif isinstance(x, property):
            for value in (x.fget, x.fset, x.fdel):
                self._add(value, path)
        elif isinstance(x, _LRU):
            self._call(_cached, x, path)
            self._add(x.__wrapped__, path)
            for value in gc.get_referents(x):
                # The results that it keeps, in a dictionary where their number has no bound.
                if type(value) is not dict:
                    self._add(value, path)
                elif value is not getattr(x, "__dict__", None):
                    for found in value.values():
                        link = type(found).__name__ == "_lru_list_elem"
                        self._add(None if link else found, path)
        elif isinstance(x, weakref.ref):
            self._call(_referent, x, path)
            self._add(x(), path)
        elif isinstance(x, contextvars.ContextVar):
            self._add(self._call(_current, x, path), path)
        elif isinstance(x, types.MappingProxyType):
            self._add(self._call(_pairs, x, path), path)
        elif isinstance(x, (array.array, *_VIEWS)):
            self._add(self._call(tuple, x, path), path)
        elif isinstance(x, (bytearray, memoryview)) or type(type(x)).__module__ == "_ctypes":
            self._call(bytes, x, path)
        elif isinstance(x, np.ndarray):
            self._array(x, path)
        elif isinstance(x, (operator.attrgetter, operator.methodcaller)):
            # The names that it asks for are no code's.
            if not self._observed.open:
                self._observed.open = True
                raise _Anew
        elif isinstance(x, _DRAWING):
            self._sources.append((x, _random_state(x), path))
        elif isinstance(x, _graph.Recorded):
            self._add(x._function, path)
        elif self._is_aside(type(x)):
            kept: Any = getattr(x, "__dict__", None)
            for name in list(kept) if type(kept) is dict else ():
                if name in self._observed.asked:
                    self._item(kept, name, f"{path}.{name}")
        elif _is_of_c(type(x)):
            raise CannotRecord(f"it may read {path}, whose state an extension hides")
        elif hasattr(type(x), "__next__") and is_library_module(type(x).__module__):
            raise CannotRecord(f"it may take what {path} gives next, which is not followed")
        else:
            return False
        return True

    def _is_aside(self, cls: type) -> bool:
        if cls.__name__ == "GradScaler" and is_own_module(cls.__module__):
            return True
        if cls is threading.local or (hasattr(cls, "__next__") and cls.__module__ != "_io"):
            return False
        name = cls.__module__
        return isinstance(name, str) and name.partition(".")[0] in _ASIDE

    def _array(self, x: np.ndarray[Any, Any], path: str) -> None:
        if x.dtype.hasobject or x.nbytes > _ARRAY:
            raise CannotRecord(f"it may read {path}, a NumPy array too large to be compared")
        self._call(_contents, x, path)

    # ---------------------------------------------------- attributes, classes

    def _reads(self, name: Any) -> bool:
        return name in self._observed.names

    def _attributes(self, x: Any, path: str) -> None:
        """The attributes that a program gave a tensor."""
        own = getattr(x, "__dict__", None)
        if type(own) is dict:
            self._paths.append(path)
            self.guards.entries(own)
            for name in own:
                if self._observed.open or self._reads(name):
                    self._item(own, name, f"{path}.{name}")
        if type(x) not in (pt.Tensor, pt.nn.Parameter):
            self._class(type(x), path)

    def _object(self, x: Any, path: str) -> None:
        cls = type(x)
        module = isinstance(x, pt.nn.Module)
        mine = not is_library_module(cls.__module__)
        # Of the standard library's objects C may read everything.
        whole = (self._observed.open and not module) or not (mine or is_own_module(cls.__module__))
        try:
            own = object.__getattribute__(x, "__dict__")
        except (AttributeError, TypeError):
            own = None
        if isinstance(own, dict):
            if isinstance(x, threading.local):
                self._call(vars, x, path)
            else:
                self._paths.append(path)
                self.guards.own(x, own)
            # A flag says whether a call of a module looks at its hooks at all.
            hooked = module and getattr(x, "_hooked", True)
            if module:
                self._item(own, "_hooked", f"{path}._hooked")
            # What is added may hide what a class has.
            self._paths.append(path)
            self.guards.entries(own)
            for name in list(own):
                if module and name in _HOOKS:
                    if not hooked and name not in self._observed.asked:
                        continue
                    self._hooks(own, name, f"{path}.{name}")
                elif whole or self._reads(name) or (module and name in _MODULE):
                    inner = path if module and name in _INSIDE else f"{path}.{name}"
                    self._item(own, name, inner)
        else:
            self._paths.append(path)
            self.guards.own(x, None)
        self._class(cls, cls.__qualname__)
        for name, slot in self._slots(cls):
            if whole or self._observed.open or self._reads(name):
                self._slot(x, name, slot, f"{path}.{name}")

    def _hooks(self, own: dict[str, Any], name: str, path: str) -> None:
        """A dictionary of hooks, of which there are many and which has no attributes."""
        if id(own[name]) not in self._seen and isinstance(own[name], dict):
            self._seen[id(own[name])] = own[name]
            self._dict(own[name], path)
        self._item(own, name, path)

    def _slots(self, cls: type) -> list[tuple[str, Any]]:
        found = self._classes.get(id(cls))
        if found is None:
            found = [
                (name, value)
                for base in cls.__mro__
                if not is_library_module(base.__module__)
                for name, value in vars(base).items()
                if isinstance(value, types.MemberDescriptorType)
            ]
            self._classes[id(cls)] = found
        return found

    def _slot(self, x: Any, name: str, slot: Any, path: str) -> None:
        read = functools.partial(_slot_value, slot)
        self._add(self._call(read, x, path), path)

    def _class(self, cls: type, path: str) -> None:
        """What a class and its bases have under names that are read."""
        for base in cls.__mro__:
            library = is_library_module(base.__module__)
            if library and not is_own_module(base.__module__):
                continue
            own = _class_dict(base) if self._once(base, "class") else None
            if own is None:
                continue
            if not library:
                self._paths.append(base.__qualname__)
                self.guards.entries(own)
            for name in list(own):
                special = name.startswith("__") and callable(own[name]) and not library
                special |= name in ("forward", "__call__", "__getattr__", "_hooked")
                if self._reads(name) or special or (self._observed.open and not library):
                    self._item(own, name, f"{base.__qualname__}.{name}")
        if not is_library_module(type(cls).__module__):
            self._add(type(cls), path)

    # ------------------------------------------------- functions and modules

    def _function(self, x: types.FunctionType, path: str) -> None:
        if id(x.__code__) not in self._ran:
            return
        self._found.add(id(x.__code__))
        for name, cell in zip(x.__code__.co_freevars, x.__closure__ or ()):
            self._paths.append(name)
            self.guards.cell(cell)
            try:
                self._add(cell.cell_contents, name)
            except ValueError:
                continue
        if is_library(x.__code__.co_filename):
            return
        self._call(_parts, x, path)
        self._add(x.__defaults__, f"a default of {x.__name__}")
        self._add(x.__kwdefaults__, f"a default of {x.__name__}")
        self._attributes(x, path)
        self._globals(x.__code__, x.__globals__)

    def _globals(self, code: types.CodeType, names: dict[str, Any]) -> None:
        for name in loads(code):
            self._item(names, name, name)
            if name not in names:
                self._item(vars(builtins), name, name)
        for name in imports(code):
            if name in sys.modules and not is_library_module(name):
                self._item(sys.modules, name, name)
        if "import_module" in code.co_names or "modules" in code.co_names:
            for text in code.co_consts:
                if isinstance(text, str) and text in sys.modules:
                    self._add(sys.modules[text], text)

    def _module(self, x: types.ModuleType, path: str) -> None:
        own = vars(x)
        library = is_library_module(x.__name__)
        whole = self._observed.open and not library
        # What functions of the library read of it is no condition.
        names = self._observed.asked if library else self._observed.names
        for name in list(own):
            if whole or name in names:
                self._item(own, name, f"{path}.{name}")

    def _shared(self) -> None:
        """What all modules and optimizers read: hooks, and the process's environment."""
        hooks = vars(pt.nn._hooks)
        for name in [name for name in hooks if name.startswith("_global_")]:
            self._hooks(hooks, name, name)
        module = sys.modules.get("pytensorlib.optim.optimizer")
        for name in (
            ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks") if module else ()
        ):
            self._hooks(vars(module), name, name)
        if id(os.getenv.__code__) in self._ran:
            self._add(os.environ, "os.environ")

    def optimizer(self, x: Any, live: dict[int, set[str]]) -> None:
        """Add conditions on an optimizer; `live` has the options of each group that may change."""
        own = vars(x)
        self._paths.append("an optimizer")
        self.guards.own(x, own)
        asked = [name for name in own if name in self._observed.asked]
        hooks = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
        for name in (*hooks, "step", *asked):
            if name not in ("state", "param_groups"):
                self._item(own, name, f"{type(x).__name__}.{name}")
        for name in ("state", "param_groups"):
            self._paths.append(f"{type(x).__name__}.{name}")
            self.guards.item(own, name, own[name])
        self._paths.append(f"{type(x).__name__}.param_groups")
        self.guards.items(x.param_groups)
        self._class(type(x), type(x).__name__)
        for i, group in enumerate(x.param_groups):
            path = f"{type(x).__name__}.param_groups[{i}]"
            for name, value in group.items():
                if name not in live.get(id(group), ()):
                    self._paths.append(f"{path}[{name!r}]")
                    self.guards.item(group, name, value)
            if type(group["params"]) is list:
                self._paths.append(f"{path}['params']")
                self.guards.items(group["params"])
            for j, p in enumerate(group["params"]):
                self._add(p, f"{path}['params'][{j}]")
        for values in x.state.values():
            if type(values) is dict:
                for name, value in values.items():
                    self._paths.append(f"{type(x).__name__}.state[..][{name!r}]")
                    self.guards.item(values, name, value)
        self._run()

    def scaler(self, x: Any) -> None:
        """Add conditions on a `GradScaler`; what it notes of optimizers comes and goes."""
        own = vars(x)
        for name, value in own.items():
            if name != "_per_optimizer_states":
                self._paths.append(f"GradScaler.{name}")
                self.guards.item(own, name, value)


def _slot_value(slot: Any, x: Any) -> Any:
    try:
        return slot.__get__(x)
    except AttributeError:
        return operator  # Stands for none: nobody keeps a module in a slot by chance.


def _entry(path: str, key: Any) -> str:
    if isinstance(key, str) and key.isidentifier():
        return f"{path}.{key}"
    return f"{path}[{key!r}]" if isinstance(key, PLAIN) else path


def _is_of_c(cls: type) -> bool:
    """Return whether instances of a class have parts that only an extension knows."""
    while not is_library_module(cls.__module__) and cls.__base__ is not None:
        own = vars(cls)
        slots = sum(isinstance(v, types.MemberDescriptorType) for v in own.values())
        known = slots + ("__dict__" in own) + ("__weakref__" in own)
        if cls.__basicsize__ - cls.__base__.__basicsize__ > known * _POINTER:
            return True
        cls = cls.__base__
    return False


def _is_optimizer(x: Any) -> bool:
    module = sys.modules.get("pytensorlib.optim.optimizer")
    return module is not None and isinstance(x, module.Optimizer)


class TracingContext:
    """What PyTorch's compiler knows while it traces: it never does here."""

    @staticmethod
    def try_get() -> None:
        """Return None."""

    @staticmethod
    def get() -> None:
        """Raise: nothing is traced."""
        raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")


def active_fake_mode() -> None:
    """Return None: there are no fake tensors."""


def detect_fake_mode(inputs: Any = None) -> None:
    """Return None: there are no fake tensors."""


@contextlib.contextmanager
def tracing(context: Any) -> Iterator[Any]:
    """Do nothing for a block: nothing is traced."""
    yield context
