"""Sparse tensors: lists of coordinates and values, and matrices by rows or columns."""

from __future__ import annotations

from ._functions import addmm, log_softmax, mm, sampled_addmm, softmax, spdiags, sum
from ._gradcheck import as_sparse_gradcheck
from ._invariants import check_sparse_tensor_invariants
from ._make import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from ._old import CLASSES

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]

globals().update(CLASSES)
