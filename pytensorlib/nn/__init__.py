"""Layers, losses and the containers to build models from."""

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
