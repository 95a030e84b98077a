"""Functions of ``torch.special``."""

from __future__ import annotations

from . import _C

_names = [n for n in vars(_C._special) if not n.startswith(("_", "special_"))]
globals().update({n: getattr(_C._special, n) for n in _names})
__all__ = _names  # noqa: PLE0605  (a list of names)
