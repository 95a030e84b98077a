"""Parts of PyTorch that are not here.

Their names can be imported, subclassed, tested with ``isinstance`` and used as type hints, so that
a library that only mentions them works. Calling one raises `NotImplementedError`, which is a
`RuntimeError`, with the reason and what is nearest.
"""

from __future__ import annotations

import enum
import importlib
import importlib.machinery
import re
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

from ._alias import explain

__all__ = ["PartFinder", "fill", "install", "refusal", "refusing", "tell_missing"]

OURS = __name__.partition(".")[0]


class Part(NamedTuple):
    """A module of which nothing is here: why, and its names."""

    why: str
    names: str = ""


_DOC = """Not here: {why}

Parameters
----------
*args, **kwargs
    Not used.

Raises
------
NotImplementedError
    Always, where it is called.

Examples
--------
>>> from {ours} import {name}
"""


def shown(name: str) -> str:
    """Return the name by which users know something in a module of ours."""
    return "torch" + name[len(name.partition(".")[0]) :]


def _placed(value: Any, name: str, module: str, why: str) -> Any:
    value.__module__, value.__name__, value.__qualname__ = module, name, name
    value.__doc__ = _DOC.format(
        why=why, ours=OURS + module[len(module.partition(".")[0]) :], name=name
    )
    return value


def refusal(name: str, module: str, why: str) -> Any:
    """Return a function that raises, naming itself and saying `why`."""

    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{shown(module)}.{name}: {why}")

    return _placed(function, name, module, why)


def refusing(name: str, module: str, why: str, bases: tuple[type, ...] = ()) -> Any:
    """Return a class that can be subclassed and asked for, and of which none can be made."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        raise NotImplementedError(f"{shown(module)}.{name}: {why}")

    def __class_getitem__(cls: Any, item: Any) -> Any:  # noqa: N807
        return cls

    space = {"__init__": __init__, "__class_getitem__": classmethod(__class_getitem__)}
    return _placed(type(name, bases, space), name, module, why)


def fill(space: dict[str, Any], why: str, names: str) -> None:
    """Put `names` into the namespace of a module.

    ``Name`` is a class, ``name`` a function and ``Name{A B}`` an enumeration of these members.
    """
    module = space["__name__"]
    for name, members in re.findall(r"(\w+)(?:\{([^}]*)\})?", names):
        if members:
            value = enum.Enum(name, members.split(), module=module)  # type: ignore[misc]
            value.__doc__ = f"A choice of something that is not here: {why}"
            space[name] = value
        elif name.lstrip("_")[:1].isupper():
            raised = name.endswith(("Error", "Exception", "Failed", "Unsupported"))
            space[name] = refusing(name, module, why, (RuntimeError,) if raised else ())
        else:
            space[name] = refusal(name, module, why)


class PartFinder:
    """Makes the modules of `_named_modules.PARTS`, and the packages that hold them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for a module of the table."""
        root, _, name = fullname.partition(".")
        if root not in (OURS, "torch") or sys.modules.get(root) is not sys.modules.get(OURS):
            return None
        if not has(name):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Leave making the module object to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module."""
        from ._named_modules import PARTS

        part = PARTS.get(module.__name__.partition(".")[2])
        if part is None:
            module.__doc__ = "Holds modules of which nothing is here."
        else:
            module.__doc__ = f"Not here: {part.why}"
            fill(vars(module), part.why, part.names)
        tell_missing(vars(module), part.why if part else "")
        explain(module)


def has(name: str) -> bool:
    """Return whether the table has a module, or one inside it."""
    from ._named_modules import PARTS

    return bool(name) and (name in PARTS or any(part.startswith(name + ".") for part in PARTS))


def tell_missing(space: dict[str, Any], why: str) -> None:
    """Let a module find modules of the table in it, and say why other names are not there."""
    module = space["__name__"]

    def __getattr__(name: str) -> Any:  # noqa: N807
        full = f"{module}.{name}"
        if has(full.partition(".")[2]):
            return importlib.import_module(full)
        why_not = f": {why}" if why else ""
        raise AttributeError(f"module {shown(module)!r} has no attribute {name!r}{why_not}")

    space["__getattr__"] = __getattr__


def install() -> None:
    """Find the table's modules after all modules that are files."""
    if not any(isinstance(finder, PartFinder) for finder in sys.meta_path):
        sys.meta_path.append(PartFinder())
