"""The package's modules, and its public objects by the place where users find them."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytensorlib as torch

PACKAGE = Path(torch.__file__).parent

MODULES = [
    m.name
    for m in pkgutil.walk_packages([str(PACKAGE)], "pytensorlib.")
    if not m.name.endswith(("__main__", "_C")) and ".examples" not in m.name
]


def public():
    """Functions, classes and constants by the place where users find them."""
    seen = {}
    for name in MODULES:
        if any(part.startswith("_") for part in name.split(".")[1:]):
            continue
        module = importlib.import_module(name)
        for key, value in vars(module).items():
            if not key.startswith("_") and not isinstance(value, (ModuleType, TypeVar)):
                seen[f"{name}.{key}"] = value
    for key, value in vars(torch).items():
        if not key.startswith("_") and not isinstance(value, ModuleType):
            seen[f"pytensorlib.{key}"] = value
    return seen
