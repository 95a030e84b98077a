"""The device of `torch.mps`: GPUs of any maker that answer as "mps"."""

from .._absent.table import NO_MPS
from .._gpu import Kind

__all__ = ["GPU"]

GPU = Kind("mps", NO_MPS)
