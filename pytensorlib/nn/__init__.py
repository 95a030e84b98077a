"""Layers, losses and the containers to build models from."""

from typing import Any

from . import functional, init, modules, utils
from .module import Module
from .modules import *  # noqa: F403
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "Module",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "utils",
]
__all__ += modules.__all__
# Loaded when first used.
_LATER = {"DataParallel": "parallel", "attention": "", "parallel": "", "parameter": ""}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_LATER[name] or name}")
    return getattr(home, name) if _LATER[name] else home
