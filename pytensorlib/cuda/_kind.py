"""The devices of `torch.cuda`: GPUs of any maker that answer as "cuda"."""

from .._absent.table import NO_CUDA
from .._gpu import Kind

__all__ = ["GPU"]

GPU = Kind("cuda", NO_CUDA)
