"""Functions of ``torch.fft``."""

from __future__ import annotations

from . import _C

_names = [n for n in vars(_C._fft) if not n.startswith("_")]
globals().update({n: getattr(_C._fft, n) for n in _names})
__all__ = _names  # noqa: PLE0605  (a list of names)
