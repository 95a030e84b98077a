"""Private functions of sparse tensors that libraries call."""

from __future__ import annotations

from typing import Any

from .. import _C


def _coalesce(input: Any) -> Any:
    """Return a sparse tensor that has each coordinate once, in order."""
    return input.coalesce()


def _convert_indices_from_coo_to_csr(
    input: Any, size: int, *, out_int32: bool = False, out: Any = None
) -> Any:
    """Return where each of `size` rows begins and, last, ends, of the rows of entries in order."""
    counts = _C.bincount(input, minlength=size) if input.numel() else _C.zeros(size)
    starts = _C.zeros((size + 1,), dtype=_C.int64, device=input.device)
    starts[1:] = counts.cumsum(0)
    starts = starts.int() if out_int32 else starts
    return starts if out is None else out.copy_(starts)


def _convert_indices_from_csr_to_coo(
    crow_indices: Any,
    col_indices: Any,
    *,
    out_int32: bool = False,
    transpose: bool = False,
    out: Any = None,
) -> Any:
    """Return rows and columns of entries, of where rows begin and of the columns in them."""
    lines = _C.arange(crow_indices.shape[-1] - 1, device=crow_indices.device)
    counts = crow_indices.long().diff()
    if crow_indices.dim() > 1:
        rows = _C.stack([_C.repeat_interleave(lines, c) for c in counts.reshape(-1, len(lines))])
        rows = rows.reshape(-1)
        each = crow_indices.shape[:-1]
        batch = _C.cartesian_prod(*(_C.arange(n) for n in each)).reshape(-1, len(each)).t()
        batch = batch.repeat_interleave(col_indices.shape[-1], 1)
        fronts = list(batch)
    else:
        rows, fronts = _C.repeat_interleave(lines, counts), []
    both = [rows, col_indices.long().reshape(-1)]
    found = _C.stack([*fronts, *(both[::-1] if transpose else both)])
    found = found.int() if out_int32 else found
    return found if out is None else out.copy_(found)


def _sparse_sum(input: Any, dim: Any = None, *, dtype: Any = None) -> Any:
    """Return the sum of a sparse tensor's elements, of all or along dimensions."""
    return _C.sum(input, dtype=dtype) if dim is None else _C.sum(input, dim, dtype=dtype)


def _sparse_csr_sum(input: Any, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the sum of a matrix by rows along dimensions, which stay with size 1."""
    return _along(input, dim, keepdim, dtype, "sum")


def _sparse_csr_prod(input: Any, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the product of a matrix by rows along dimensions, of its entries alone."""
    return _along(input, dim, keepdim, dtype, "prod")


def _along(input: Any, dim: Any, keepdim: bool, dtype: Any, reduce: str) -> Any:
    if input.layout != _C.sparse_csr:
        raise RuntimeError(
            "Currently the only compressed sparse format supported for sums along dimensions is "
            f"CSR, but got layout {input.layout}"
        )
    if not keepdim:
        raise RuntimeError(
            "reduction operations on CSR tensors with keepdim=False is unsupported: ask for "
            "keepdim=True"
        )
    if dtype is None and not (input.dtype.is_floating_point or input.dtype.is_complex):
        dtype = _C.int64
    coo = input.to_sparse()
    values = coo.values() if dtype is None else coo.values().to(dtype)
    dims = {d % 2 for d in ((dim,) if isinstance(dim, int) else dim)}
    row, column = (_C.zeros_like(x) if d in dims else x for d, x in enumerate(coo.indices()))
    shape = tuple(1 if d in dims else n for d, n in enumerate(input.shape))
    place = row * shape[1] + column
    found, at = _C.unique(place, return_inverse=True)
    if reduce == "sum":
        values = _C.zeros_like(values[: len(found)]).index_add(0, at, values)
    else:
        values = _C.ones_like(values[: len(found)]).index_reduce(0, at, values, "prod")
    indices = _C.stack([found // max(1, shape[1]), found % max(1, shape[1])])
    return _C._sparse_coo_tensor(indices, values, shape, is_coalesced=True).to_sparse_csr()


def _sparse_sparse_matmul(self: Any, other: Any) -> Any:
    """Return the product of two sparse matrices."""
    return _C.mm(self, other)
