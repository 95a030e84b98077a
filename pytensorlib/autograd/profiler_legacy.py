"""The profile by its old name."""

from .profiler import profile

__all__ = ["profile"]
