"""Operators that take functions; in an exported program each stays one operator."""

from __future__ import annotations

from .._absent.modules import fill, tell_missing
from .._absent.table import EAGER
from .associative_scan import associative_scan
from .control import cond, while_loop
from .map import map
from .scan import scan

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]

fill(globals(), EAGER, "flex_attention")
tell_missing(globals(), EAGER)
