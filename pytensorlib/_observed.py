"""Which functions run in Python while a call is recorded, and what their code names."""

from __future__ import annotations

import dis
import functools
import os
import sys
import sysconfig
from collections.abc import Iterator
from types import CodeType
from typing import Any

import numpy as np

import pytensorlib as pt

# What reads attributes by names that no code has.
_OPEN = frozenset(
    "getattr hasattr vars dir __dict__ __getattribute__ __getattr__ __slots__ __reduce__ "
    "attrgetter methodcaller getattr_static getmembers asdict astuple fields replace copy deepcopy "
    "pickle dumps format_map".split()
)
# What reads variables by names that no code has.
_HIDDEN = ("eval", "exec", "globals", "_getframe", "currentframe", "get_objects", "get_referrers")


def _places() -> tuple[str, ...]:
    paths = [sysconfig.get_path("stdlib"), os.path.dirname(os.__file__)]
    modules = [pt.__file__, np.__file__]
    homes = [*paths, *[os.path.dirname(file) for file in modules if file]]
    return tuple(os.path.join(home, "") for home in homes)


# The code of functions that are not looked into, by its identity.
opaque: dict[int, CodeType] = {}

_PLACES = _places()
_PACKAGES = tuple(os.path.join("", name, "") for name in ("site-packages", "dist-packages"))
_OWN = _PLACES[2:]


@functools.cache
def is_library(file: str) -> bool:
    """Return whether a file is this package's, the standard library's or NumPy's."""
    if file.startswith((*_OWN, "<frozen ")):
        return True
    inside = file.startswith(_PLACES)
    return inside and not any(os.sep + p.strip(os.sep) + os.sep in file for p in _PACKAGES)


def is_own_module(name: str) -> bool:
    """Return whether a module of that name is this package's, which may mean ``torch``."""
    return name.partition(".")[0] in (pt.__name__, "pytensorlib")


@functools.cache
def _of_module(name: str) -> bool:
    if name in ("builtins", "_operator") or is_own_module(name):
        return True
    if name == "__main__" or name not in sys.modules:
        return False
    file = getattr(sys.modules[name], "__file__", None)
    if file is None:
        return name.partition(".")[0] in sys.stdlib_module_names
    return is_library(file)


def is_library_module(name: Any) -> bool:
    """Return whether a module of that name is this package's, the standard library's or NumPy's."""
    return _of_module(name) if isinstance(name, str) else False


@functools.lru_cache(maxsize=4096)
def _named(code: CodeType) -> frozenset[str]:
    """Return the names of attributes that code may ask for, of texts in it too."""
    texts = [c for c in code.co_consts if isinstance(c, str) and c.isidentifier()]
    return frozenset([*code.co_names, *texts])


@functools.lru_cache(maxsize=4096)
def loads(code: CodeType) -> tuple[str, ...]:
    """Return the names of globals that code reads."""
    found = {
        i.argval: None
        for i in dis.get_instructions(code)
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
    }
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def imports(code: CodeType) -> tuple[str, ...]:
    """Return the names of modules that code imports where it runs."""
    return tuple(i.argval for i in dis.get_instructions(code) if i.opname == "IMPORT_NAME")


class Observed:
    """The functions that ran in a call: their code, and the globals of each.

    Examples
    --------
    >>> from pytensorlib._observed import Observed
    >>> seen = Observed()
    >>> seen.run(lambda x: x + 1, (2,), {})
    3
    >>> [code.co_name for code, _ in seen.codes()]
    ['<lambda>']
    """

    __slots__ = ("_inside", "_seen", "_user", "asked", "names", "open")

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], tuple[CodeType, dict[str, Any]]] = {}
        self._user: list[tuple[CodeType, dict[str, Any]]] | None = None
        # The call of a function that is not looked into, while that is at work.
        self._inside: Any = None
        # The names of attributes that the functions may ask for, and those of the program's alone.
        self.names: frozenset[str] = frozenset()
        self.asked: frozenset[str] = frozenset()
        # Whether attributes are read by names that no code has.
        self.open = False

    def _note(self, frame: Any, event: str, _: Any) -> None:
        if self._inside is not None:
            if event == "return" and frame is self._inside:
                self._inside = None
        elif event == "call":
            code, names = frame.f_code, frame.f_globals
            key = id(code), id(names)
            if key in self._seen:
                return
            if key[0] in opaque:
                self._inside = frame
            else:
                self._seen[key] = code, names

    def run(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function, and note which functions that runs."""
        sys.setprofile(self._note)
        try:
            return function(*args, **kwargs)
        finally:
            sys.setprofile(None)

    def close(self) -> None:
        """Find what the functions name."""
        user = [pair for pair in self._seen.values() if not is_library(pair[0].co_filename)]
        self._user = user
        self.names = frozenset().union(*[_named(code) for code in self.all()])
        self.asked = frozenset().union(*[_named(code) for code, _ in user])
        self.open = any(not _OPEN.isdisjoint(code.co_names) for code, _ in user)

    def codes(self) -> list[tuple[CodeType, dict[str, Any]]]:
        """Return the code of functions that are no library's, with their globals."""
        if self._user is None:
            self.close()
        return self._user or []

    def has(self, code: CodeType) -> bool:
        """Return whether a function of this code ran."""
        return any(key[0] == id(code) for key in self._seen)

    def all(self) -> Iterator[CodeType]:
        """Give the code of each function that ran."""
        return (code for code, _ in self._seen.values())

    def hidden(self) -> str | None:
        """Return what was asked for variables by names that no code has."""
        for code, _ in self.codes():
            for name in _HIDDEN:
                if name in code.co_names:
                    return f"{code.co_name} asks {name} for variables"
        return None

    def within(self, other: Observed) -> bool:
        """Return whether no function ran that did not run in another call."""
        known = {id(code) for code, _ in other.codes()}
        return all(id(code) in known for code, _ in self.codes())
