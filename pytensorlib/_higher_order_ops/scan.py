"""`scan` under the path that PyTorch keeps it at."""

from .._scans import scan

__all__ = ["scan"]
