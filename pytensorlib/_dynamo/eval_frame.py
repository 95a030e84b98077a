"""Names of PyTorch's compiler that tell whether it is there."""

from __future__ import annotations

from .. import nn
from .._named import refusing
from .._named_modules import EAGER

__all__ = ["OptimizedModule", "is_dynamo_supported", "is_inductor_supported"]

OptimizedModule = refusing("OptimizedModule", __name__, EAGER, (nn.Module,))


def is_dynamo_supported() -> bool:
    """Return False: programs run eagerly."""
    return False


def is_inductor_supported() -> bool:
    """Return False: programs run eagerly."""
    return False
