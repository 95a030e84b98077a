"""`lobpcg` at PyTorch's private path."""

from __future__ import annotations

from ._lowrank import lobpcg

__all__ = ["lobpcg"]
