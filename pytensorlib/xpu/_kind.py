"""The devices of `torch.xpu`: GPUs of any maker that answer as "xpu"."""

from .._absent.table import NO_XPU
from .._gpu import Kind

__all__ = ["GPU"]

GPU = Kind("xpu", NO_XPU)
