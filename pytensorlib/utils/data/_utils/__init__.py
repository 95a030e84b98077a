"""Where PyTorch keeps the parts of the DataLoader."""

from . import collate, worker

__all__ = ["collate", "worker"]
