"""`rearrange` by its older name."""

from __future__ import annotations

from ..func import rearrange

__all__ = ["rearrange"]
