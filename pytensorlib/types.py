"""Names of types that programs annotate with."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

import pytensorlib as pt

from .autograd.graph import GradientEdge

__all__ = ["Device", "FileLike", "Number", "Storage"]

_TensorOrTensors: TypeAlias = pt.Tensor | Sequence[pt.Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = _TensorOrTensors | GradientEdge | Sequence[GradientEdge]
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_dtype, _device, _layout, _size = pt.dtype, pt.device, pt.layout, pt.Size | list | tuple
_symint_size = _size
_dispatchkey = str | int
py_sym_types: tuple[type, ...] = ()

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
IntLikeType: TypeAlias = builtins.int
FloatLikeType: TypeAlias = builtins.float
BoolLikeType: TypeAlias = builtins.bool
Device: TypeAlias = pt.device | str | builtins.int | None
FileLike: TypeAlias = str | os.PathLike | IO[bytes]
Storage: Any = pt.UntypedStorage
