"""The devices of `torch.cuda`: GPUs of any maker that answer as "cuda"."""

from .._gpu import Kind
from .._named_modules import NO_CUDA

__all__ = ["GPU"]

GPU = Kind("cuda", NO_CUDA)
