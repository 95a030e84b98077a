"""Sparse tensors: lists of coordinates and values, and the functions that are made for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _C
from ._tensor import _SCALARS

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "softmax",
    "spdiags",
    "sum",
]


def sparse_coo_tensor(
    indices: Any,
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
        Integers of shape (sparse dimensions, entries). A single argument is the size of a tensor
        without entries.
    values : array_like
        Of shape (entries, dense dimensions...).
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
        Has no effect: coordinates are always checked.
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
    if values is None:
        size, lead = (indices, len(indices)) if size is None else (size, len(size))
        indices = _C.empty((lead, 0), dtype=_C.int64, device=device)
        values = _C.empty((0,), dtype=dtype, device=device)
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
    found = _C._sparse_coo_tensor(indices, values, size, is_coalesced=is_coalesced)
    return found.requires_grad_() if requires_grad else found


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """Return a sparse matrix of its rows: where each begins, its columns and their values.

    Parameters
    ----------
    crow_indices : array_like
        Integers of shape (rows + 1): where the entries of each row begin and, last, end.
    col_indices : array_like
        Integers of shape (entries), rising in each row.
    values : array_like
        Of shape (entries).
    size : sequence of int, optional
        The shape; the least that has all columns where it is not given.
    dtype : dtype, optional
        That of `values` otherwise.
    device : device, optional
        That of `values` otherwise.
    pin_memory : bool, default False
        Has no effect.
    requires_grad : bool, default False
        Whether to record what is done with the result.
    check_invariants : bool, optional
        Has no effect: coordinates are always checked.

    Returns
    -------
    Tensor
        Of layout `torch.sparse_csr`.

    Raises
    ------
    RuntimeError
        The numbers are not those of a matrix of this size.

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
    given = (crow_indices, col_indices)
    starts, columns = (
        x if isinstance(x, _C.Tensor) else _C.tensor(x, dtype=_C.int64) for x in given
    )
    starts, columns = starts.to("cpu", _C.int64), columns.to("cpu", _C.int64)
    if starts.dim() != 1 or columns.dim() != 1 or len(starts) == 0:
        raise RuntimeError(
            "crow_indices and col_indices must be vectors, the first of which has an element more "
            f"than there are rows; got shapes {tuple(starts.shape)} and {tuple(columns.shape)}"
        )
    counts = starts.diff()
    if starts[0] != 0 or starts[-1] != len(columns) or bool((counts < 0).any()):
        raise RuntimeError(
            f"crow_indices must begin with 0, not fall and end with the number of entries, "
            f"{len(columns)}; got {starts}"
        )
    if size is None:
        size = (len(counts), int(columns.max()) + 1 if len(columns) else 0)
    size = tuple(size)
    if len(size) != 2 or size[0] != len(counts):
        raise RuntimeError(
            f"crow_indices.shape must be (rows + 1), of size {size}; got {tuple(starts.shape)}"
        )
    rows = _C.repeat_interleave(_C.arange(len(counts)), counts)
    try:
        found = sparse_coo_tensor(
            _C.stack([rows, columns]),
            values,
            size,
            dtype=dtype,
            device=device,
            is_coalesced=True,
        )
    except RuntimeError as error:
        raise RuntimeError(
            "col_indices must lie in the matrix and rise in each row, one for each of values: "
            f"{error}"
        ) from error
    found = found.to_sparse_csr()
    return found.requires_grad_() if requires_grad else found


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
    reduce : {"sum", "mean", "amax", "amin"}, optional
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
    if reduce not in ("mean", "amax", "amin"):
        raise RuntimeError(
            f"sparse.mm: reduce must be one of sum, mean, amax and amin, got {reduce!r}"
        )
    if not mat1._is_any_sparse or mat2._is_any_sparse:
        raise RuntimeError(f"sparse.mm: reduce={reduce!r} wants a sparse and a dense matrix")
    mat1 = mat1.coalesce()
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


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """Return the sum of a sparse tensor's elements, of all or along dimensions.

    Parameters
    ----------
    input : Tensor
        Sparse.
    dim : int or sequence of int, optional
        Along what to sum; all dimensions where it is not given.
    dtype : dtype, optional
        Of the result; integers are summed in int64.

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
    return _C.sum(input, dim, dtype=dtype)


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
        `torch.sparse_coo`.

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
    if layout not in (None, _C.sparse_coo):
        raise RuntimeError(f"spdiags: expected layout torch.sparse_coo, got {layout}")
    if diagonals.dim() == 1:
        diagonals = diagonals.unsqueeze(0)
    offsets = offsets.reshape(-1)
    if diagonals.dim() != 2 or len(shape) != 2:
        raise RuntimeError(
            f"spdiags: expected rows and the sizes of a matrix, got {tuple(diagonals.shape)} and "
            f"{tuple(shape)}"
        )
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
    return _C._sparse_coo_tensor(indices, diagonals[inside], tuple(shape))


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


class check_sparse_tensor_invariants:  # noqa: N801  (PyTorch's name)
    """A switch of checks of coordinates, which here are always made.

    As a ``with`` block or a decorator it changes nothing but what `is_enabled` says.

    Parameters
    ----------
    enable : bool, default True
        Whether to check.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """Return what was asked for last.

        Returns
        -------
        bool
            False at first.
        """
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Ask for checks."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Ask for no checks; coordinates are checked all the same."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        self._before.append(self.is_enabled())
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *error: object) -> None:
        check_sparse_tensor_invariants._enabled = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        from functools import wraps

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """Return a `gradcheck` that takes functions of sparse tensors.

    Inputs that are sparse are taken apart into their values, which it varies, and results that are
    sparse are made dense.

    Parameters
    ----------
    gradcheck : function
        Such as `torch.autograd.gradcheck`.

    Returns
    -------
    function
        With the same parameters, and ``masked``, which is accepted: entries alone are varied.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    >>> x = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
    >>> check(lambda x: x @ torch.ones(2, 2, dtype=torch.float64), (x,))
    True
    """

    def checked(func: Any, inputs: Any, **kwargs: Any) -> bool:
        kwargs.pop("masked", None)
        given = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
        apart: list[Any] = []
        makers: list[Any] = []
        for x in given:
            if isinstance(x, _C.Tensor) and x._is_any_sparse:
                x = x.detach().coalesce() if not x.requires_grad else x.coalesce()
                apart.append(x.values().detach().requires_grad_(x.requires_grad))
                makers.append((x.indices(), tuple(x.shape)))
            else:
                apart.append(x)
                makers.append(None)

        def dense(y: Any) -> Any:
            if isinstance(y, (list, tuple)):
                return type(y)(map(dense, y))
            return y.to_dense() if isinstance(y, _C.Tensor) and y._is_any_sparse else y

        def whole(*parts: Any) -> Any:
            args = [
                p if m is None else _C._sparse_coo_tensor(m[0], p, m[1], is_coalesced=True)
                for p, m in zip(parts, makers, strict=True)
            ]
            return dense(func(*args))

        return gradcheck(whole, tuple(apart), **kwargs)

    return checked


class _OldClass(type):
    """The class of classes from before layouts: a sparse tensor is an instance of its type's."""

    dtype: Any

    def __call__(cls, *args: Any) -> Any:
        if args and isinstance(args[0], _C.Tensor):
            return sparse_coo_tensor(*args)
        sizes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
        return _C.zeros(tuple(sizes) or (0,), dtype=cls.dtype, layout=_C.sparse_coo)

    def __instancecheck__(cls, obj: Any) -> bool:
        sparse = isinstance(obj, _C.Tensor) and obj.is_sparse
        return sparse and obj.dtype == cls.dtype and obj.is_cpu


_DOC = """Make a sparse tensor on the CPU; `torch.sparse_coo_tensor` of an older name.

Parameters
----------
*args : int or Tensor
    Sizes of a tensor of {0} without entries; or coordinates, values and, optionally, a size.

Returns
-------
Tensor
    As of `torch.sparse_coo_tensor`.

Raises
------
RuntimeError
    A coordinate lies outside of the size, or the shapes do not fit each other.

Examples
--------
>>> import pytensorlib as torch
>>> x = torch.sparse.{1}(2, 3)
>>> x.type(), isinstance(x, torch.sparse.{1})
('torch.sparse.{1}', True)
"""

for _name, _scalar in _SCALARS.items():
    if _scalar in "Float Double Half BFloat16 Long Int Short Char Byte".split():
        globals()[f"{_scalar}Tensor"] = _OldClass(
            f"{_scalar}Tensor",
            (),
            {
                "__module__": __name__,
                "__doc__": _DOC.format(_name, f"{_scalar}Tensor"),
                "dtype": getattr(_C, _name),
            },
        )
