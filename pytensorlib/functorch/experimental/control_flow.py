"""Choices and maps as `functorch` had them."""

from __future__ import annotations

from ..._control import cond
from ..._scans import map

__all__ = ["cond", "map"]
