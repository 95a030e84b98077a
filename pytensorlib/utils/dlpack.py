"""Memory shared with other array libraries through DLPack."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import from_dlpack
from .._tensor import DLDeviceType

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Any) -> Any:
    """Return a DLPack capsule over the memory of `tensor`, to be consumed once."""
    return _C._to_dlpack(tensor)
