"""Queries about Triton, which is not used here."""

from __future__ import annotations

from typing import Any

__all__ = ["has_triton", "has_triton_package"]


def has_triton(*args: Any) -> bool:
    """Return False: kernels are this package's own.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> from pytensorlib.utils._triton import has_triton
    >>> has_triton()
    False
    """
    return False


has_triton_package = has_triton_tma = has_triton_tma_device = has_triton
has_triton_experimental_host_tma = has_triton_tensor_descriptor_host_tma = has_triton
