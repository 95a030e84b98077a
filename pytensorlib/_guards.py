"""What the next call of a recorded function is taken to depend on, as conditions to be checked."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytensorlib as pt

from . import _C

PLAIN = (int, float, bool, str, bytes, complex, type(None), pt.dtype, pt.device, pt.Size)
_CONTAINERS = (list, tuple, dict)
# Values further from the function than this are taken to stay.
_DEPTH = 6


def _ours(module: Any) -> bool:
    name = str(module or "").partition(".")[0]
    # Where the package means torch, its modules and classes say that name.
    own = {pt.__name__, "pytensorlib", "builtins", "numpy"}
    return name in own or name in sys.stdlib_module_names - {"__main__"}


class Walk:
    """Collects conditions on all that can be reached from a function and its arguments."""

    def __init__(self) -> None:
        self.guards = _C._Guards()
        self._seen: dict[int, Any] = {}
        self.optimizers: dict[int, Any] = {}

    def look(self, x: Any, depth: int = 0) -> None:
        """Add conditions on what lies behind `x`, which itself is known to stay."""
        if isinstance(x, PLAIN) or depth > _DEPTH or id(x) in self._seen:
            return
        self._seen[id(x)] = x
        if isinstance(x, pt.Tensor):
            self.guards.memory(x)
        elif isinstance(x, types.FunctionType):
            self._function(x, depth)
        elif isinstance(x, types.MethodType):
            self.look(x.__func__, depth)
            self.look(x.__self__, depth)
        elif isinstance(x, partial):
            self._all([x.func, *x.args, *x.keywords.values()], depth)
        elif isinstance(x, (list, tuple)):
            if type(x) is list:
                self.guards.items(x)
            self._all(x, depth)
        elif type(x) is dict:
            self._entries(x, x, depth)
        elif _is_optimizer(x):
            self.optimizers[id(x)] = x
        elif isinstance(x, pt.nn.Module) or not _ours(type(x).__module__):
            self._object(x, depth)

    def _all(self, values: Iterable[Any], depth: int) -> None:
        for value in values:
            self.look(value, depth + 1)

    def _entries(self, dictionary: dict[Any, Any], names: Iterable[Any], depth: int) -> None:
        for name in names:
            value = dictionary[name]
            self.guards.item(dictionary, name, value)
            self.look(value, depth + 1)

    def _object(self, x: Any, depth: int) -> None:
        own = getattr(x, "__dict__", None)
        if type(own) is dict:
            self.guards.entries(own)
            self._entries(own, own, depth)
            for value in own.values():
                if type(value) is dict or isinstance(value, dict):
                    self.guards.entries(value)
        if callable(x) and not isinstance(x, type):
            for name in ("forward", "__call__"):
                self.look(getattr(type(x), name, None), depth + 1)

    def _function(self, x: Any, depth: int) -> None:
        if _ours(x.__module__) and depth > 0:
            return
        for cell in x.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self.guards.cell(cell, value)
            self.look(value, depth + 1)
        names = _names(x.__code__)
        self._entries(x.__globals__, [n for n in names if n in x.__globals__], depth)
        for name in names:
            value = x.__globals__.get(name)
            if isinstance(value, types.ModuleType) and not _ours(value.__name__):
                own = vars(value)
                self._entries(own, [n for n in names if n in own], depth)
        self._all([*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()], depth)

    def optimizer(self, x: Any, live: dict[int, set[str]]) -> None:
        """Add conditions on an optimizer; `live` has the options of each group that may change."""
        own = vars(x)
        for name in ("state", "param_groups"):
            self.guards.item(own, name, own[name])
        self.guards.items(x.param_groups)
        for group in x.param_groups:
            for name, value in group.items():
                if name not in live.get(id(group), ()):
                    self.guards.item(group, name, value)
            if type(group["params"]) is list:
                self.guards.items(group["params"])
            for p in group["params"]:
                self.look(p)
        for values in x.state.values():
            if type(values) is dict:
                for name, value in values.items():
                    self.guards.item(values, name, value)

    def scaler(self, x: Any) -> None:
        """Add conditions on a `GradScaler`; what it notes of optimizers comes and goes."""
        own = vars(x)
        for name, value in own.items():
            if name != "_per_optimizer_states":
                self.guards.item(own, name, value)


def _names(code: types.CodeType) -> list[str]:
    """Return the names that a function, and those defined in it, use of their globals."""
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.update(dict.fromkeys(_names(constant)))
    return list(found)


def _is_optimizer(x: Any) -> bool:
    module = sys.modules.get("pytensorlib.optim.optimizer")
    return module is not None and isinstance(x, module.Optimizer)
