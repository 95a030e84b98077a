"""Utilities for training programs."""

from . import data

__all__ = ["data"]
