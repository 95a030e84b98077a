"""Functions of ``torch.fft``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _C

_names = [n for n in vars(_C._fft) if not n.startswith("_")]
globals().update({n: getattr(_C._fft, n) for n in _names})
__all__ = _names  # noqa: PLE0605  (a list of names)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
