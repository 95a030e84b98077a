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
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

from .._alias import explain

__all__ = ["PartFinder", "fill", "install", "lacking", "refusal", "refusing", "tell_missing"]

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
    owner, _, _ = name.partition(".")  # `name` may be that of a member
    value.__module__, value.__name__, value.__qualname__ = module, name.rpartition(".")[2], name
    value.__doc__ = _DOC.format(
        why=why, ours=OURS + module[len(module.partition(".")[0]) :], name=owner
    )
    return value


def refusal(name: str, module: str, why: str) -> Any:
    """Return a function that raises, naming itself and saying `why`."""

    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{shown(module)}.{name}: {why}")

    return _placed(function, name, module, why)


def refusing(
    name: str, module: str, why: str, bases: tuple[type, ...] = (), members: str = ""
) -> Any:
    """Return a class that can be subclassed and asked for, and of which none can be made.

    It has `members`, which refuse too.
    """

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        raise NotImplementedError(f"{shown(module)}.{name}: {why}")

    def __class_getitem__(cls: Any, item: Any) -> Any:  # noqa: N807
        return cls

    space = {"__init__": __init__, "__class_getitem__": classmethod(__class_getitem__)}
    return lacking(_placed(type(name, bases, space), name, module, why), why, members)


def lacking(kind: Any, why: str, members: str) -> Any:
    """Give a class members that refuse; return it."""
    for member in members.split():
        made = refusing if member.lstrip("_")[:1].isupper() else refusal
        value = made(f"{kind.__name__}.{member}", kind.__module__, why)
        setattr(kind, member, value if isinstance(value, type) else staticmethod(value))
    return kind


def fill(space: dict[str, Any], why: str, names: str) -> None:
    """Put `names` into the namespace of a module.

    ``Name`` is a class, ``Name[a B]`` one that has these, ``name`` a function, ``Name{A B}`` an
    enumeration of these members and ``name=1`` a value.
    """
    module = space["__name__"]
    found: Any
    for name, choices, members, value in _NAME.findall(names):
        if choices:
            found = _CHOICE(name, choices.split(), module=module)
            found.__doc__ = f"A choice of something that is not here: {why}"
        elif value:
            import ast  # what few names need, and takes as long as three modules of ours

            found = ast.literal_eval(value)
        elif members or name.lstrip("_")[:1].isupper():
            raised = name.endswith(("Error", "Exception", "Failed", "Unsupported"))
            found = refusing(name, module, why, (RuntimeError,) if raised else (), members)
        else:
            found = refusal(name, module, why)
        space[name] = found


_CHOICE: Any = enum.Enum
_NAME = re.compile(r"(\w+)(?:\{([^}]*)\}|\[([^\]]*)\]|=(\S+))?")


@cache
def rows() -> dict[str, list[Part]]:
    """Return what is named of each module of the tables; "" is the package itself."""
    from .names import NAMES
    from .table import PARTS

    found = {place: [part] for place, part in PARTS.items()}
    for why, text in NAMES.items():
        for line in text.split("\n"):
            place, _, names = line.strip().partition(":")
            if place:
                found.setdefault("" if place == "torch" else place, []).append(Part(why, names))
    return found


def parts(place: str) -> list[Part]:
    """Return what is named of a module, which may be here with other names."""
    return rows().get(place, [])


@cache
def places() -> set[str]:
    """Return the modules of the tables, and the packages that hold them."""
    found = set()
    for name in rows():
        while name:
            found.add(name)
            name = name.rpartition(".")[0]
    return found


@cache
def spelled(place: str) -> dict[str, str]:
    """Return the names of a module of the tables, and why each is not here."""
    return {name: part.why for part in parts(place) for name, *_ in _NAME.findall(part.names)}


def stands_in(space: dict[str, Any], name: str) -> bool:
    """Put what stands for a name into the namespace of a module that lacks it, if anything does."""
    place = space["__name__"].partition(".")[2]
    if name not in spelled(place):
        return False
    for part in parts(place):
        for match in _NAME.finditer(part.names):
            if match[1] == name:
                fill(space, part.why, match[0])
    return True


class PartFinder:
    """Makes the modules of the tables, and the packages that hold them."""

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
        found = parts(module.__name__.partition(".")[2])
        why = found[0].why if found else ""
        module.__doc__ = f"Not here: {why}" if why else "Holds modules of which nothing is here."
        for part in found:
            fill(vars(module), part.why, part.names)
        tell_missing(vars(module), why)
        explain(module)


def has(name: str) -> bool:
    """Return whether the table has a module, or one inside it."""
    return name in places()


def tell_missing(space: dict[str, Any], why: str, *, modules: bool = True) -> None:
    """Let a module find modules of the table in it, and say why other names are not there.

    Without `modules` those are found only where they are imported: libraries ask for one as an
    attribute to learn whether PyTorch was built with it.
    """
    module = space["__name__"]

    def __getattr__(name: str) -> Any:  # noqa: N807
        full = f"{module}.{name}"
        if modules and has(full.partition(".")[2]):
            return importlib.import_module(full)
        if stands_in(space, name):
            return space[name]
        why_not = f": {why}" if why else ""
        raise AttributeError(f"module {shown(module)!r} has no attribute {name!r}{why_not}")

    space["__getattr__"] = __getattr__


def install() -> None:
    """Find the table's modules after all modules that are files."""
    if not any(isinstance(finder, PartFinder) for finder in sys.meta_path):
        sys.meta_path.append(PartFinder())
