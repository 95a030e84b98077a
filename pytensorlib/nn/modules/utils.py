"""Tuples of sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def ntuple(value: Any, n: int) -> tuple:
    """``value`` as a tuple, a single number repeated ``n`` times."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * n


def _single(value: Any) -> tuple:
    return ntuple(value, 1)


def _pair(value: Any) -> tuple:
    return ntuple(value, 2)


def _triple(value: Any) -> tuple:
    return ntuple(value, 3)


def _quadruple(value: Any) -> tuple:
    return ntuple(value, 4)
