"""Constructors of sparse tensors."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._invariants import check_sparse_tensor_invariants


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Any:
    """Return a sparse tensor of coordinates and their values.

    Where a coordinate occurs more than once, the element is the sum of its values. Memory is shared
    with `values` that are a tensor of the same dtype and device, and gradients flow to them.

    Parameters
    ----------
    indices : array_like
        Integers of shape (sparse dimensions, entries). A single argument, or `size` alone, is the
        size of a tensor without entries.
    values : array_like
        Of shape (entries, dense dimensions...); a number stands for one entry.
    size : sequence of int, optional
        The shape; the least that has all coordinates where it is not given.
    dtype : dtype, optional
        That of `values` otherwise.
    device : device, optional
        That of `values` otherwise.
    pin_memory : bool, default False
        Has no effect.
    requires_grad : bool, default False
        Whether to record what is done with the result.
    check_invariants : bool, optional
        Whether to check coordinates now, as `check_sparse_tensor_invariants` says by default. Each
        use checks them again.
    is_coalesced : bool, optional
        Whether coordinates are in row-major order and each is there once, which is checked.

    Returns
    -------
    Tensor
        Of layout `torch.sparse_coo`.

    Raises
    ------
    RuntimeError
        A coordinate lies outside of `size`, or the shapes do not fit each other.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> x
    tensor(indices=tensor([[0, 1, 1],
                           [2, 0, 2]]),
           values=tensor([3., 4., 5.]),
           size=(2, 3), nnz=3, layout=torch.sparse_coo)
    >>> x @ torch.ones(3)
    tensor([3., 9.])
    """
    if indices is None and (values is not None or size is None):
        raise TypeError(
            "sparse_coo_tensor() received an invalid combination of arguments - expected indices "
            "and "
            "values, or a size alone"
        )
    if values is None:
        size = tuple(indices if size is None else size)
        indices = _C.empty((len(size), 0), dtype=_C.int64, device=device)
        values = _C.empty((0,), dtype=dtype, device=device)
        is_coalesced = True
    if not isinstance(values, _C.Tensor):
        values = _C.tensor(values, dtype=dtype, device=device)
    elif dtype is not None or device is not None:
        values = values.to(device=device, dtype=dtype)
    if not isinstance(indices, _C.Tensor):
        indices = _C.tensor(indices, device=values.device)
        if indices.numel() == 0:
            indices = indices.to(_C.int64)
    if indices.is_floating_point():
        indices = indices.to(_C.int64)
    if size is not None:
        size = tuple(size)
    found = _C._sparse_coo_tensor(
        indices,
        values,
        size,
        is_coalesced=is_coalesced,
        check_invariants=check_sparse_tensor_invariants._asked(check_invariants) is not False,
    )
    return found.requires_grad_() if requires_grad else found


def _compressed(
    parts: tuple[Any, Any, Any],
    size: Any,
    layout: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
    check_invariants: bool | None,
) -> Any:
    """Make a sparse tensor of lines, places in them and values."""
    starts, plain, values = parts
    if not isinstance(values, _C.Tensor):
        values = _C.tensor(values, dtype=dtype, device=device)
    elif dtype is not None or device is not None:
        values = values.to(device=device, dtype=dtype)
    starts, plain = (
        x if isinstance(x, _C.Tensor) else _C.tensor(x, dtype=_C.int64) for x in (starts, plain)
    )
    found = _C._sparse_compressed_tensor(
        starts.to(values.device),
        plain.to(values.device),
        values,
        None if size is None else tuple(size),
        layout,
        check_invariants=check_sparse_tensor_invariants._asked(check_invariants),
    )
    return found.requires_grad_() if requires_grad else found


def _of_layout(name: str, layout: Any, wanted: Any) -> Any:
    """Return the one layout that a function makes."""
    if layout not in (None, wanted):
        titles = {_C.strided: "Strided", _C.sparse_coo: "Sparse"}
        titles |= {
            getattr(_C, f"sparse_{end}"): f"Sparse{end.capitalize()}"
            for end in ("csr", "csc", "bsr", "bsc")
        }
        raise RuntimeError(
            f"{name}: layout must be {titles[wanted]} but got {titles.get(layout, layout)}"
        )
    return wanted


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """Return a sparse matrix of its rows: where each begins, their columns and their values.

    There may be batches of matrices with as many entries each, and values with dimensions of their
    own.

    Parameters
    ----------
    crow_indices : array_like
        Integers of shape (batch..., rows + 1): where the entries of each row begin and, last, end.
    col_indices : array_like
        Integers of shape (batch..., entries), rising in each row.
    values : array_like
        Of shape (batch..., entries, dense dimensions...).
    size : sequence of int, optional
        The shape; the least that has all columns where it is not given.
    dtype : dtype, optional
        That of `values` otherwise.
    layout : layout, optional
        No other than `torch.sparse_csr`.
    device : device, optional
        That of `values` otherwise.
    pin_memory : bool, default False
        Has no effect.
    requires_grad : bool, default False
        Whether to record what is done with the result.
    check_invariants : bool, optional
        Whether to check the numbers now, as `check_sparse_tensor_invariants` says by default; where
        nobody says so, all is checked but order. Each use checks them again.

    Returns
    -------
    Tensor
        Of layout `torch.sparse_csr`.

    Raises
    ------
    RuntimeError
        Shapes or numbers are not those of a matrix of this size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 9.0], (2, 3))
    >>> x
    tensor(crow_indices=tensor([0, 1, 2]),
           col_indices=tensor([2, 0]),
           values=tensor([3., 9.]), size=(2, 3), nnz=2, layout=torch.sparse_csr)
    >>> x @ torch.ones(3)
    tensor([3., 9.])
    """
    return _compressed(
        (crow_indices, col_indices, values),
        size,
        _of_layout("sparse_csr_tensor", layout, _C.sparse_csr),
        dtype,
        device,
        requires_grad,
        check_invariants,
    )


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """Return a sparse matrix of its columns: where each begins, their rows and their values.

    There may be batches of matrices with as many entries each, and values with dimensions of their
    own.

    Parameters
    ----------
    ccol_indices : array_like
        Integers of shape (batch..., columns + 1): where the entries of each column begin and,
        last, end.
    row_indices : array_like
        Integers of shape (batch..., entries), rising in each column.
    values : array_like
        Of shape (batch..., entries, dense dimensions...).
    size : sequence of int, optional
        The shape; the least that has all rows where it is not given.
    dtype : dtype, optional
        That of `values` otherwise.
    layout : layout, optional
        No other than `torch.sparse_csc`.
    device : device, optional
        That of `values` otherwise.
    pin_memory : bool, default False
        Has no effect.
    requires_grad : bool, default False
        Whether to record what is done with the result.
    check_invariants : bool, optional
        Whether to check the numbers now, as `check_sparse_tensor_invariants` says by default; where
        nobody says so, all is checked but order. Each use checks them again.

    Returns
    -------
    Tensor
        Of layout `torch.sparse_csc`.

    Raises
    ------
    RuntimeError
        Shapes or numbers are not those of a matrix of this size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.sparse_csc_tensor([0, 1, 1, 2], [1, 0], [9.0, 3.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [9., 0., 0.]])
    """
    return _compressed(
        (ccol_indices, row_indices, values),
        size,
        _of_layout("sparse_csc_tensor", layout, _C.sparse_csc),
        dtype,
        device,
        requires_grad,
        check_invariants,
    )


def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """Return a sparse matrix of its rows of blocks: where each begins, their columns and the
    blocks.

    There may be batches of matrices with as many blocks each, and values with dimensions of their
    own.

    Parameters
    ----------
    crow_indices : array_like
        Integers of shape (batch..., rows of blocks + 1): where the blocks of each row of blocks
        begin and, last, end.
    col_indices : array_like
        Integers of shape (batch..., blocks), rising in each row of blocks.
    values : array_like
        Of shape (batch..., blocks, height, width, dense dimensions...).
    size : sequence of int, optional
        The shape; the least that has all columns where it is not given.
    dtype : dtype, optional
        That of `values` otherwise.
    layout : layout, optional
        No other than `torch.sparse_bsr`.
    device : device, optional
        That of `values` otherwise.
    pin_memory : bool, default False
        Has no effect.
    requires_grad : bool, default False
        Whether to record what is done with the result.
    check_invariants : bool, optional
        Whether to check the numbers now, as `check_sparse_tensor_invariants` says by default; where
        nobody says so, all is checked but order. Each use checks them again.

    Returns
    -------
    Tensor
        Of layout `torch.sparse_bsr`.

    Raises
    ------
    RuntimeError
        Shapes or numbers are not those of a matrix of this size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0], [3.0, 4.0]]], (2, 4)).to_dense()
    tensor([[0., 0., 1., 2.],
            [0., 0., 3., 4.]])
    """
    return _compressed(
        (crow_indices, col_indices, values),
        size,
        _of_layout("sparse_bsr_tensor", layout, _C.sparse_bsr),
        dtype,
        device,
        requires_grad,
        check_invariants,
    )


def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """Return a sparse matrix of its columns of blocks: where each begins, their rows and the
    blocks.

    There may be batches of matrices with as many blocks each, and values with dimensions of their
    own.

    Parameters
    ----------
    ccol_indices : array_like
        Integers of shape (batch..., columns of blocks + 1): where the blocks of each column of
        blocks begin and, last, end.
    row_indices : array_like
        Integers of shape (batch..., blocks), rising in each column of blocks.
    values : array_like
        Of shape (batch..., blocks, height, width, dense dimensions...).
    size : sequence of int, optional
        The shape; the least that has all rows where it is not given.
    dtype : dtype, optional
        That of `values` otherwise.
    layout : layout, optional
        No other than `torch.sparse_bsc`.
    device : device, optional
        That of `values` otherwise.
    pin_memory : bool, default False
        Has no effect.
    requires_grad : bool, default False
        Whether to record what is done with the result.
    check_invariants : bool, optional
        Whether to check the numbers now, as `check_sparse_tensor_invariants` says by default; where
        nobody says so, all is checked but order. Each use checks them again.

    Returns
    -------
    Tensor
        Of layout `torch.sparse_bsc`.

    Raises
    ------
    RuntimeError
        Shapes or numbers are not those of a matrix of this size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.sparse_bsc_tensor([0, 0, 1], [0], [[[1.0, 2.0], [3.0, 4.0]]], (2, 4)).to_dense()
    tensor([[0., 0., 1., 2.],
            [0., 0., 3., 4.]])
    """
    return _compressed(
        (ccol_indices, row_indices, values),
        size,
        _of_layout("sparse_bsc_tensor", layout, _C.sparse_bsc),
        dtype,
        device,
        requires_grad,
        check_invariants,
    )


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """Return a sparse matrix of a compressed layout: its lines, the places in them and the values.

    Parameters
    ----------
    compressed_indices : array_like
        Integers of shape (batch..., lines + 1): where the entries of each line begin and, last,
        end.
    plain_indices : array_like
        Integers of shape (batch..., entries), rising in each line.
    values : array_like
        Of shape (batch..., entries, block sizes..., dense dimensions...).
    size : sequence of int, optional
        The shape; the least that has all places where it is not given.
    dtype : dtype, optional
        That of `values` otherwise.
    layout : layout
        `torch.sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`.
    device : device, optional
        That of `values` otherwise.
    pin_memory : bool, default False
        Has no effect.
    requires_grad : bool, default False
        Whether to record what is done with the result.
    check_invariants : bool, optional
        Whether to check the numbers now, as `check_sparse_tensor_invariants` says by default; where
        nobody says so, all is checked but order. Each use checks them again.

    Returns
    -------
    Tensor
        Of that layout.

    Raises
    ------
    RuntimeError
        Shapes or numbers are not those of a matrix of this size, or there is no such layout.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.sparse_compressed_tensor([0, 1], [1], [5.0], (1, 2), layout=torch.sparse_csr)
    >>> x.to_dense()
    tensor([[0., 5.]])
    """
    return _compressed(
        (compressed_indices, plain_indices, values),
        size,
        layout,
        dtype,
        device,
        requires_grad,
        check_invariants,
    )
