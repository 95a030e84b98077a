"""Operators that take functions; in an exported program each stays one operator."""

from __future__ import annotations

from .._control import cond, while_loop
from .._named import fill, tell_missing
from .._named_modules import EAGER
from .._scans import map
from .associative_scan import associative_scan
from .scan import scan

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]

fill(globals(), EAGER, "flex_attention")
tell_missing(globals(), EAGER)
