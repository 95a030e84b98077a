"""Short names of element types."""

from __future__ import annotations

import pytensorlib as pt

__all__ = ["dtype_abbrs"]

_KINDS = {"uint": "u", "int": "i", "float": "f", "complex": "c"}
dtype_abbrs = {
    getattr(pt, f"{kind}{bits}"): f"{short}{bits}"
    for kind, short in _KINDS.items()
    for bits in (8, 16, 32, 64, 128)
    if hasattr(pt, f"{kind}{bits}")
}
dtype_abbrs |= {pt.bfloat16: "bf16", pt.bool: "b8"}
dtype_abbrs |= {
    getattr(pt, f"float8_{form}"): f"f8{form}"
    for form in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")
    if hasattr(pt, f"float8_{form}")
}
