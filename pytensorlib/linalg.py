"""Functions of ``torch.linalg``."""

from __future__ import annotations

from . import _C

_names = [n for n in vars(_C._linalg) if not n.startswith(("_", "linalg_"))]
globals().update({n: getattr(_C._linalg, n) for n in _names})
__all__ = _names  # noqa: PLE0605  (a list of names)

from ._errors import LinAlgError  # noqa: E402

__all__ += ["LinAlgError"]
