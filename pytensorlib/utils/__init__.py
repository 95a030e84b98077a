"""Utilities for training programs."""

from . import data, dlpack, hooks

__all__ = ["data", "dlpack", "hooks"]
