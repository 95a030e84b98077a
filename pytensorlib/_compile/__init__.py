"""Where PyTorch defines what keeps functions from its compiler."""

from __future__ import annotations

from .._ops import private as _private

__all__: list[str] = []

_disable_dynamo = _private._disable_dynamo
