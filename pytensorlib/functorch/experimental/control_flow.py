"""Choices and maps as `functorch` had them."""

from __future__ import annotations

from ..._higher_order_ops.control import cond
from ..._higher_order_ops.scans import map

__all__ = ["cond", "map"]
