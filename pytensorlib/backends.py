"""What scripts ask of ``torch.backends``: PyTorch's own backends are not here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]


def _absent(**switches: Any) -> SimpleNamespace:
    """Make a backend that is not available, with switches that scripts may set."""
    return SimpleNamespace(is_available=lambda: False, is_built=lambda: False, **switches)


cudnn = _absent(enabled=False, benchmark=False, deterministic=False, allow_tf32=False)
cuda = _absent(matmul=SimpleNamespace(allow_tf32=False))
mps = _absent()
mkl = _absent()
mkldnn = _absent()
openmp = _absent()
