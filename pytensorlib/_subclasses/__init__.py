"""Tensors without memory that say which device they stand for: here they are on `meta`."""

from __future__ import annotations

from .fake_tensor import (  # type: ignore[attr-defined]
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)
from .fake_utils import CrossRefFakeMode  # type: ignore[attr-defined]

__all__ = [
    "CrossRefFakeMode",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
]
