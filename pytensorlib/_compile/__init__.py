"""`torch._compile`: functions that mark others as not to be compiled."""

from __future__ import annotations

from .._ops import private as _private

__all__: list[str] = []

_disable_dynamo = _private._disable_dynamo
