"""Finds the package's modules, under its own name or as ``torch``.

As ``torch`` everything says so: modules, classes, functions and what pickles name. The modules are
then the same objects under two names, so a class found through either is one class.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, cast

__all__ = ["install"]

ROOT, ALIAS = "pytensorlib", "torch"
# A package of its own beside `torch`, which is one inside this one.
BESIDE = "functorch"
# Their functions are looked up in every small call, which a `__getattr__` would make slower.
HOT = {"nn.functional", "fft", "linalg", "special"}


def called(name: str, root: str) -> str:
    """Return the name of one of our modules under a root."""
    first, dot, rest = name.partition(".")
    return f"{root}.{name}" if first == BESIDE else root + dot + rest


def _renamed(get: Any, root: str) -> Any:
    """Return a property that tells names of modules under a root."""
    return property(lambda obj: called(get(obj), root))


def find_attribute(module: ModuleType, name: str) -> Any:
    """Return a submodule that is not loaded yet, for the `__getattr__` of a module.

    Raises
    ------
    AttributeError
        There is none; it says why, where PyTorch has one.
    ImportError
        The same, where ``from module import name`` asks.
    """
    home = module.__name__
    if name.startswith("__"):
        raise AttributeError(f"module {home!r} has no attribute {name!r}", name=name, obj=module)
    path = vars(module).get("__path__")
    if path is not None and PathFinder.find_spec(f"{home}.{name}", path) is not None:
        return importlib.import_module(f"{home}.{name}")
    from ._absent.modules import stands_in

    if stands_in(vars(module), name):
        return vars(module)[name]
    from ._absent import why

    reason = why(f"{home}.{name}")
    if reason is not None:
        from opcode import opmap

        asking = sys._getframe(2)
        if asking.f_code.co_code[asking.f_lasti] == opmap["IMPORT_FROM"]:
            text = f"cannot import name {name!r} from {home!r}: {reason}"
            raise ImportError(text, name=home, path=module.__file__)
    text = f"module {home!r} has no attribute {name!r}" + (f": {reason}" if reason else "")
    raise AttributeError(text, name=name, obj=module)


class Loader(SourceFileLoader):
    """Loads a module of ours under both its names, and lets it say what it lacks."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        names = [called(module.__name__, root) for root in finder.roots]
        sys.modules.update(dict.fromkeys(names, module))
        try:
            super().exec_module(module)
        except BaseException:
            for name in names[1:]:  # the import system forgets the first
                sys.modules.pop(name, None)
            raise
        if not (module.__name__.partition(".")[2] in HOT or "._" in module.__name__):
            explain(module)


def explain(module: ModuleType) -> None:
    """Let a module find its submodules, and say what it lacks and why."""
    own: Callable[[str], Any] | None = vars(module).get("__getattr__")

    def __getattr__(name: str) -> Any:  # noqa: N807
        if own is not None:
            try:
                return own(name)
            except AttributeError as e:
                if not str(e).endswith(f"no attribute {name!r}"):
                    raise  # it says more, or is another
        return find_attribute(module, name)

    vars(module)["__getattr__"] = __getattr__
    vars(module).setdefault("__path__", [])  # so that finders are asked for modules in it


class Twin:
    """Loads a module of ours by its other name: as what it is."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return our module itself."""
        module = importlib.import_module(called(spec.name, finder.roots[0]))
        spec.loader_state = module.__spec__
        return module

    def get_code(self, fullname: str) -> Any:
        """Return the module's code, for ``python -m``."""
        known = called(fullname, finder.roots[0])
        spec = importlib.util.find_spec(known)
        return None if spec is None else cast(Any, spec.loader).get_code(known)

    def exec_module(self, module: ModuleType) -> None:
        """Give the module back the spec that the import system replaced."""
        spec = module.__spec__
        if spec is not None and spec.loader is self:
            module.__spec__ = spec.loader_state


class Finder:
    """Finds our modules by the names in force, and says why PyTorch's others are not here."""

    # What modules are called, and what else they are found as.
    roots: tuple[str, ...] = (ROOT,)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return a spec for our module of that name, if there is one."""
        root, dot, _ = fullname.partition(".")
        if root == BESIDE and len(self.roots) > 1:
            dot = "."
        elif root not in self.roots:
            return watched(fullname, path, target) if len(self.roots) > 1 else None
        if not dot:  # somebody took the package out of `sys.modules`
            return ModuleSpec(fullname, twin) if len(self.roots) > 1 else None
        if root != self.roots[0]:
            known = called(fullname, self.roots[0])
            if known in sys.modules or importlib.util.find_spec(known) is not None:
                return ModuleSpec(fullname, twin)
        elif spec := PathFinder.find_spec(fullname, path, target):
            if type(spec.loader) is SourceFileLoader:
                spec.loader = Loader(spec.loader.name, spec.loader.path)
            return spec
        # `importlib.util.find_spec` asks too, and wants no error.
        importing = sys._getframe(2).f_code.co_name == "_find_and_load_unlocked"
        others = [finder for finder in sys.meta_path if finder is not self]
        if not importing or any(finder.find_spec(fullname, path, target) for finder in others):
            return None
        from ._absent import why

        reason = why(fullname)
        if reason is not None:
            raise ModuleNotFoundError(f"No module named {fullname!r}: {reason}", name=fullname)
        return None

    def find_distributions(self, context: Any) -> Iterator[Any]:
        """Yield the record of an installed ``torch``, where that means this package."""
        if ALIAS in self.roots and context.name in (None, ALIAS):
            from ._system.installed import Record

            yield Record()


finder, twin = Finder(), cast(Any, Twin())
sys.meta_path.insert(0, finder)


def rename(root: str) -> None:
    """Call all modules that are loaded, and what they define, by another root."""
    from . import _C

    old, seen = finder.roots[0], set()

    def ours(name: Any) -> bool:
        return isinstance(name, str) and name.partition(".")[0] == old

    def visit(value: Any) -> None:
        if id(value) in seen or not ours(getattr(value, "__module__", None)):
            return
        seen.add(id(value))
        try:
            value.__module__ = called(value.__module__, root)
        except AttributeError:
            return  # its type tells
        if isinstance(value, type):
            for member in vars(value).values():
                visit(member)
        visit(getattr(value, "__func__", None))  # of static and class methods

    for kind in (type(_C.add), type(vars(_C.Tensor)["add"])):
        kind.__module__ = _renamed(vars(kind)["__module__"].__get__, root)
    modules = {name: module for name, module in sys.modules.items() if ours(name)}
    finder.roots = (root, *(name for name in (ROOT, ALIAS) if name != root))
    for name, module in modules.items():
        sys.modules[called(name, root)] = module
        module.__name__ = called(name, root)
        module.__package__ = called(module.__package__ or name.rpartition(".")[0], root)
        for named in (cast(Any, module.__spec__), cast(Any, module.__loader__)):
            if ours(getattr(named, "name", None)):
                named.name = called(named.name, root)
    for module in modules.values():
        for value in list(vars(module).values()):
            visit(value)


def watched(fullname: str, path: Any, target: Any) -> ModuleSpec | None:
    """Return the spec of a module that is changed when it is loaded."""
    if fullname != "multiprocessing.spawn":
        return None
    spec = PathFinder.find_spec(fullname, path, target)
    if spec is not None and isinstance(spec.loader, SourceFileLoader):
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            tell_children(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


class Told(str):
    """The name of a new process, which in that process means ``torch`` to be this package."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return told, (str(self),)


def told(name: str) -> str:
    """Make ``torch`` mean this package in a new process, before it imports anything."""
    install()
    return name


def tell_children(spawn: Any) -> None:
    """Let processes that `multiprocessing` starts afresh know what ``torch`` means."""
    prepare = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        data = prepare(name)
        return data | {"name": Told(data["name"])}

    spawn.get_preparation_data = get_preparation_data


def adopt(space: dict[str, Any], names: Iterable[str]) -> None:
    """Let functions and classes say that they are of the module where PyTorch has them."""
    for name in names:
        space[name].__module__ = space["__name__"]


def install() -> None:
    """Make ``torch`` mean this package from here on, whether or not PyTorch is installed.

    Raises
    ------
    RuntimeError
        If PyTorch itself has been imported already.
    """
    loaded = sys.modules.get(ALIAS)
    if loaded is not None and loaded is not sys.modules.get(ROOT):
        raise RuntimeError("cannot make `torch` mean pytensorlib: PyTorch is imported already")
    if finder.roots[0] == ALIAS:
        return
    rename(ALIAS)
    told.__module__ = f"{ROOT}.{__name__.rpartition('.')[2]}"  # where nobody told yet
    sys.meta_path.remove(finder)
    sys.meta_path.insert(0, finder)
    if "multiprocessing.spawn" in sys.modules:
        tell_children(sys.modules["multiprocessing.spawn"])
