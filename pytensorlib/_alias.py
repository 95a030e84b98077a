"""Lets ``import torch`` mean this package.

The modules are the same objects under two names, so a class found through either is one class.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

__all__ = ["install"]

ALIAS, ROOT = "torch", __name__.partition(".")[0]


class Package(ModuleType):
    """A package of ours under either name."""

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system binds a module that it finds by its second name on the package, where
        # something else may have taken that name since (`autograd.gradcheck`, the function).
        found_again = isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        if not (found_again and name in self.__dict__):
            super().__setattr__(name, value)


class TorchFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``torch`` and ``torch.x`` as this package and its module ``x``."""

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for our module of that name, if there is one."""
        if fullname != ALIAS and not fullname.startswith(ALIAS + "."):
            return None
        ours = ROOT + fullname[len(ALIAS) :]
        if ours not in sys.modules:
            try:
                if importlib.util.find_spec(ours) is None:
                    return None
            except ModuleNotFoundError:
                return None
        return importlib.util.spec_from_loader(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return our module itself."""
        module = importlib.import_module(ROOT + spec.name[len(ALIAS) :])
        spec.loader_state = module.__spec__
        if type(module) is ModuleType and hasattr(module, "__path__"):
            module.__class__ = Package
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module back the spec that the import system replaced."""
        spec = module.__spec__
        if spec is not None and spec.loader is self:
            module.__spec__ = spec.loader_state


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
    if not any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchFinder())
