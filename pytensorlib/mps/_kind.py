"""The device of `torch.mps`: GPUs of any maker that answer as "mps"."""

from .._gpu import Kind
from .._named_modules import NO_MPS

__all__ = ["GPU"]

GPU = Kind("mps", NO_MPS)
