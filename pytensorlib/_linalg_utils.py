"""Small functions of matrices that PyTorch's own code shares."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ._absent.removed import eig, lstsq, matrix_rank, solve, symeig

__all__ = [
    "basis",
    "bform",
    "eig",
    "get_floating_dtype",
    "is_sparse",
    "lstsq",
    "matmul",
    "matrix_rank",
    "qform",
    "solve",
    "symeig",
]
_symeig = symeig


def is_sparse(A: Any) -> bool:
    """Return whether a tensor is a list of coordinates."""
    if isinstance(A, pt.Tensor):
        return bool(A.layout == pt.sparse_coo)
    raise TypeError(f"expected Tensor but got {type(A)}")


def get_floating_dtype(A: Any) -> Any:
    """Return a tensor's type, or float32 where its numbers are no floats of 16 bits or more."""
    floats = (pt.float16, pt.float32, pt.float64)
    return A.dtype if A.dtype in floats else pt.float32


def matmul(A: Any, B: Any) -> Any:
    """Return the product of matrices; None is the identity."""
    if A is None:
        return B
    return pt.sparse.mm(A, B) if is_sparse(A) else pt.matmul(A, B)


def bform(X: Any, A: Any, Y: Any) -> Any:
    """Return X^T A Y; None is the identity."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Any, S: Any) -> Any:
    """Return S^T A S; None is the identity."""
    return bform(S, A, S)


def basis(A: Any) -> Any:
    """Return orthonormal columns that span those of a matrix."""
    return pt.linalg.qr(A).Q
