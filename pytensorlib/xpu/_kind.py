"""The devices of `torch.xpu`: GPUs of any maker that answer as "xpu"."""

from .._gpu import Kind
from .._named_modules import NO_XPU

__all__ = ["GPU"]

GPU = Kind("xpu", NO_XPU)
