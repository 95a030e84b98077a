"""The parts of sparse tensors, as they are printed and written to files."""

from __future__ import annotations

from typing import Any

from .. import _C

# Layouts of matrices whose lines are told by where they begin.
COMPRESSED = (_C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc)


def sparse_parts(x: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the names of the tensors that a sparse tensor is made of, and these."""
    if x.layout not in COMPRESSED:
        return ("indices", "values"), (x._indices(), x._values())
    if x.layout in (_C.sparse_csr, _C.sparse_bsr):
        return (
            ("crow_indices", "col_indices", "values"),
            (x.crow_indices(), x.col_indices(), x._values()),
        )
    return (
        ("ccol_indices", "row_indices", "values"),
        (x.ccol_indices(), x.row_indices(), x._values()),
    )


def sparse_tensor(layout: Any, parts: Any, size: Any, known: bool | None, check: bool) -> Any:
    """Return the sparse tensor of such parts, whose numbers are looked at where `check` says so."""
    if layout in COMPRESSED:
        starts, plain, values = parts
        # Order within lines is no matter of safety.
        return _C._sparse_compressed_tensor(
            starts, plain, values, size, layout, check_invariants=None if check else False
        )
    indices, values = parts
    return _C._sparse_coo_tensor(indices, values, size, is_coalesced=known, check_invariants=check)
