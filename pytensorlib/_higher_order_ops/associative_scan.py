"""`associative_scan` under the path that PyTorch keeps it at."""

from .scans import associative_scan

__all__ = ["associative_scan"]
