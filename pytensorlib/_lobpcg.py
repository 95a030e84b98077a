"""Where PyTorch defines `lobpcg`."""

from __future__ import annotations

from ._lowrank import lobpcg

__all__ = ["lobpcg"]
