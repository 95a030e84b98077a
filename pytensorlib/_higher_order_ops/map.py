"""`map` under the path that PyTorch keeps it at."""

from .scans import map

__all__ = ["map"]
