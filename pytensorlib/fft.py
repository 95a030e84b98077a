"""Functions of ``torch.fft``."""

from __future__ import annotations

from . import _C
from ._C import Tensor as Tensor  # noqa: PLC0414  (as PyTorch has it here)
from ._tensor.spectral import fftfreq, rfftfreq

_names = [n for n in vars(_C._fft) if not n.startswith(("_", "fft_"))]
globals().update({n: getattr(_C._fft, n) for n in _names})
__all__ = ["fftfreq", "rfftfreq", *_names]  # noqa: PLE0604  (a list of names)
