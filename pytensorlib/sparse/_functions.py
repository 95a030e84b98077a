"""Functions for sparse tensors only."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._tensor.constructors import _scalar_name


def mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """Return the product of two matrices of which one or both are sparse.

    Rows are summed in the order of their entries, whatever the number of threads. Differentiable in
    both; the gradient of a sparse matrix has its coordinates.

    Parameters
    ----------
    mat1 : Tensor
        (n, m).
    mat2 : Tensor
        (m, p), of the same dtype.
    reduce : {"sum", "prod", "mean", "amax", "amin"}, optional
        How the products of a row are combined; all but the sum want a sparse `mat1` and a dense
        `mat2`.

    Returns
    -------
    Tensor
        (n, p), sparse where both are; zeros in rows without entries.

    Raises
    ------
    RuntimeError
        Shapes or dtypes do not fit, or there is no such `reduce`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> torch.sparse.mm(x, torch.ones(2, 3))
    tensor([[2., 2., 2.],
            [0., 0., 0.]])
    """
    if reduce in (None, "sum"):
        return _C.mm(mat1, mat2)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if not mat1._is_any_sparse or mat2._is_any_sparse:
        raise RuntimeError(f"sparse.mm: reduce={reduce!r} wants a sparse and a dense matrix")
    mat1 = mat1.to_sparse().coalesce()
    row, column = mat1.indices()
    if reduce == "mean":
        counts = _C.zeros((mat1.shape[0],), dtype=_C.int64, device=row.device)
        counts = counts.index_add(0, row, _C.ones_like(row)).clamp(min=1)
        return _C.mm(mat1, mat2) / counts.unsqueeze(1).to(mat2.dtype)
    terms = mat1.values().unsqueeze(1) * mat2.index_select(0, column)
    start = _C.zeros((mat1.shape[0], mat2.shape[1]), dtype=terms.dtype, device=terms.device)
    places = row.unsqueeze(1).expand(terms.shape)
    return start.scatter_reduce(0, places, terms, reduce, include_self=False)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: float = 1.0, alpha: float = 1.0) -> Any:
    """Return ``beta * mat + alpha * (mat1 @ mat2)`` for a sparse `mat1`.

    Parameters
    ----------
    mat : Tensor
        Broadcasts to the product; not read where `beta` is 0.
    mat1 : Tensor
        (n, m), sparse.
    mat2 : Tensor
        (m, p), of the same dtype.
    beta, alpha : float, default 1
        The factors of `mat` and of the product.

    Returns
    -------
    Tensor
        (n, p).

    Raises
    ------
    RuntimeError
        Shapes or dtypes do not fit.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> torch.sparse.addmm(torch.ones(2, 2), x, torch.ones(2, 2), beta=10)
    tensor([[12., 12.],
            [10., 10.]])
    """
    return _C.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(
    input: Any, mat1: Any, mat2: Any, *, beta: float = 1.0, alpha: float = 1.0, out: Any = None
) -> Any:
    """Return ``beta * input + alpha * (mat1 @ mat2)`` where a sparse matrix has entries.

    Of the product no other elements are computed.

    Parameters
    ----------
    input : Tensor
        (n, p), or a batch, of layout `torch.sparse_csr`.
    mat1 : Tensor
        (n, m), dense.
    mat2 : Tensor
        (m, p), dense.
    beta, alpha : float, default 1
        The factors of `input` and of the product.
    out : Tensor, optional
        Of the layout and shape of `input`: what is written to.

    Returns
    -------
    Tensor
        With the entries of `input`.

    Raises
    ------
    RuntimeError
        Layouts, shapes or dtypes do not fit.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.eye(2).to_sparse_csr()
    >>> torch.sparse.sampled_addmm(x, torch.ones(2, 3), torch.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if input.layout != _C.sparse_csr:
        raise RuntimeError(
            f"sampled_addmm: Expected self to have layout torch.sparse_csr, but got {input.layout}"
        )
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        if mat.layout != _C.strided:
            raise RuntimeError(
                f"sampled_addmm: Expected {name} to have strided layout, but got {mat.layout}"
            )
        if mat.dim() < 2:
            raise RuntimeError(
                f"sampled_addmm: Expected {name} to be a matrix, got {mat.dim()}-D tensor"
            )
    for (name, a), (other, b) in (
        (("mat1", mat1), ("mat2", mat2)),
        (("self", input), ("mat1", mat1)),
    ):
        if a.dtype != b.dtype:
            raise RuntimeError(
                f"sampled_addmm: Expected {name} and {other} to have the same dtype, but got "
                f"{_scalar_name(a.dtype)} and {_scalar_name(b.dtype)}"
            )
    *batch, n, p = input.shape
    if mat1.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(
            "sampled_addmm: mat1 and mat2 shapes cannot be multiplied "
            f"({mat1.shape[-2]}x{mat1.shape[-1]} and {mat2.shape[-2]}x{mat2.shape[-1]})"
        )
    if mat1.shape[-2] != n:
        raise RuntimeError("sampled_addmm: self.shape[-2] must match mat1.shape[-2]")
    if mat2.shape[-1] != p:
        raise RuntimeError("sampled_addmm: self.shape[-1] must match mat2.shape[-1]")
    if not list(mat1.shape[:-2]) == list(mat2.shape[:-2]) == batch:
        raise RuntimeError(
            "sampled_addmm: Expected self, mat1 and mat2 to have the same batch dimensions, got "
            f"{batch}, {list(mat1.shape[:-2])} and {list(mat2.shape[:-2])}"
        )
    if batch:
        product = (mat1 @ mat2).sparse_mask(input.detach()).values()
    else:
        row, column = input.detach().to_sparse().indices()
        rows, columns = mat1.index_select(0, row), mat2.t().index_select(0, column)
        product = (rows * columns).sum(1)
    values = alpha * product
    if beta != 0:
        values = beta * input.values() + values
    found = _C._sparse_compressed_tensor(
        input.crow_indices(), input.col_indices(), values, tuple(input.shape), _C.sparse_csr
    )
    return found if out is None else out.copy_(found)


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """Return the sum of a sparse tensor's elements, of all or along dimensions.

    Parameters
    ----------
    input : Tensor
        Sparse.
    dim : int or sequence of int, optional
        Along what to sum; all dimensions where it is not given.
    dtype : dtype, optional
        Of the result; without `dim`, integers are summed in int64.

    Returns
    -------
    Tensor
        Sparse where a dimension with coordinates is left, dense otherwise.

    Raises
    ------
    IndexError
        `dim` is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([[0.0, 2.0], [1.0, 3.0]]).to_sparse()
    >>> torch.sparse.sum(x), torch.sparse.sum(x, dim=0).to_dense()
    (tensor(6.), tensor([1., 5.]))
    """
    if dim is None:
        return _C.sum(input, dtype=dtype)
    return _C.sum(input, dim, dtype=dtype or input.dtype)


def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """Return a sparse matrix that has rows of a tensor along its diagonals.

    Column ``j`` of a diagonal has element ``j`` of its row.

    Parameters
    ----------
    diagonals : Tensor
        (k, n), or (n) for one diagonal.
    offsets : Tensor
        (k), int64: 0 is the main diagonal, positive numbers are above it; none twice.
    shape : (int, int)
        Of the result.
    layout : layout, optional
        `torch.sparse_coo`, which is the default, `torch.sparse_csr` or `torch.sparse_csc`.

    Returns
    -------
    Tensor
        Sparse.

    Raises
    ------
    RuntimeError
        The arguments do not fit each other.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0, 1]), (3, 3)).to_dense()
    tensor([[1., 1., 0.],
            [0., 1., 1.],
            [0., 0., 1.]])
    """
    if layout not in (None, _C.sparse_coo, _C.sparse_csr, _C.sparse_csc):
        raise RuntimeError(
            "Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got "
            f"{'Strided' if layout == _C.strided else layout}"
        )
    if diagonals.dim() not in (1, 2):
        raise RuntimeError(
            f"Diagonals must be vector or matrix, got shape {tuple(diagonals.shape)}"
        )
    if len(shape) != 2:
        raise RuntimeError(f"Output shape must be 2d, got {tuple(shape)}")
    if offsets.dim() > 1:
        raise RuntimeError(f"Offsets must be scalar or vector, got shape {tuple(offsets.shape)}")
    if offsets.dtype != _C.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype}")
    if diagonals.dim() == 1:
        diagonals = diagonals.unsqueeze(0)
    offsets = offsets.reshape(-1)
    if len(offsets) != len(diagonals):
        raise RuntimeError(
            f"Number of diagonals ({len(diagonals)}) does not match the number of offsets "
            f"({len(offsets)})"
        )
    if len(set(offsets.tolist())) != len(offsets):
        raise RuntimeError(f"Offset tensor contains duplicate values: {offsets.tolist()}")
    column = _C.arange(diagonals.shape[1], device=diagonals.device).expand(diagonals.shape)
    row = column - offsets.unsqueeze(1)
    inside = (row >= 0) & (row < shape[0]) & (column < shape[1])
    indices = _C.stack([row[inside], column[inside]])
    found = _C._sparse_coo_tensor(indices, diagonals[inside], tuple(shape))
    return found if layout is None else found.to_sparse(layout=layout)


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Return the softmax of a sparse tensor, where what has no entry counts as minus infinity.

    Parameters
    ----------
    input : Tensor
        Sparse, of a floating dtype or one that `dtype` says.
    dim : int
        Along what values are made to sum to 1.
    dtype : dtype, optional
        What `input` is converted to first.

    Returns
    -------
    Tensor
        Sparse, with the coordinates of `input`, coalesced.

    Raises
    ------
    IndexError
        `dim` is out of range.
    NotImplementedError
        The dtype is no floating one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], [1.0, 1.0, 5.0])
    >>> torch.sparse.softmax(x, 1).values()
    tensor([0.5000, 0.5000, 1.0000])
    """
    return _C._sparse_softmax(input, dim, dtype=dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Return the logarithm of `softmax` of a sparse tensor.

    Parameters
    ----------
    input : Tensor
        Sparse, of a floating dtype or one that `dtype` says.
    dim : int
        Along what the exponentials sum to 1.
    dtype : dtype, optional
        What `input` is converted to first.

    Returns
    -------
    Tensor
        Sparse, with the coordinates of `input`, coalesced.

    Raises
    ------
    IndexError
        `dim` is out of range.
    NotImplementedError
        The dtype is no floating one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], [1.0, 1.0, 5.0])
    >>> torch.sparse.log_softmax(x, 1).values()
    tensor([-0.6931, -0.6931,  0.0000])
    """
    return _C._sparse_log_softmax(input, dim, dtype=dtype)
