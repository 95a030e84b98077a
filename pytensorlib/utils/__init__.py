"""Utilities for training programs."""

from . import data, dlpack

__all__ = ["data", "dlpack"]
