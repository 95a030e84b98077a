"""The GPU through wgpu."""

from __future__ import annotations

from . import _C

__all__ = ["is_available"]


def is_available() -> bool:
    """Return whether a GPU adapter is there."""
    return bool(getattr(_C, "_wgpu_available", lambda: False)())
