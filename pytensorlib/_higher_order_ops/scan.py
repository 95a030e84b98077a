"""`scan` under the path that PyTorch keeps it at."""

from .scans import scan

__all__ = ["scan"]
