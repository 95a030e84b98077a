"""Conversions of results, as PyTorch's reference functions call them."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def _maybe_convert_to_dtype(a: Any, dtype: Any) -> Any:
    """Return tensors, numbers and lists of them as another type; None stays."""
    import pytensorlib as pt

    from . import dtype_to_type

    if isinstance(a, pt.Tensor):
        return a if a.dtype == dtype else a.to(dtype)
    if isinstance(a, (bool, int, float, complex)):
        return dtype_to_type(dtype)(a)
    if isinstance(a, (list, tuple)):
        return tuple(_maybe_convert_to_dtype(x, dtype) for x in a)
    if a is None:
        return None
    raise ValueError(
        f"Received unsupported type {type(a)}. Expected TensorLike, Number, or Sequence."
    )
