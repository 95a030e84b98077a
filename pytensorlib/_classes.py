"""``torch.classes``: classes of C++ by namespace and name, of which there are none."""

from __future__ import annotations

import sys
from typing import Any

from ._absent import compiled as _compiled

__all__ = ["classes"]


class _Space:
    """The classes of one namespace."""

    def __init__(self, name: str) -> None:
        self.name, self.__name__ = name, f"torch.classes.{name}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"'_ClassNamespace' object has no attribute {name!r}")
        raise RuntimeError(
            f"Tried to instantiate class '{self.name}.{name}', but it does not exist! Ensure that "
            "it is registered via torch::class_: classes of C++ are not here"
        )


class _Classes:
    """The class of `torch.classes`: each attribute is a namespace."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"torch.classes has no attribute {name!r}")
        space = self.__dict__[name] = _Space(name)
        return space

    @property
    def loaded_libraries(self) -> set[str]:
        """The paths of libraries that programs loaded."""
        return set(_compiled.loaded)

    def load_library(self, path: Any) -> None:
        """Note a library, as `torch.ops.load_library` does."""
        _compiled.load(path, sys._getframe(1))


classes = _Classes()
