"""Functions of sparse tensors as functions of their values, for `gradcheck`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C


def is_sparse(value: Any) -> bool:
    """Return whether a value is a sparse tensor of any layout."""
    return isinstance(value, _C.Tensor) and value._is_any_sparse


def _made_again(x: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return a sparse tensor's values, and what makes such a tensor of values."""
    x = x.detach()
    shape, layout = tuple(x.shape), x.layout
    if x.is_sparse:
        indices, known = x._indices(), x.is_coalesced()
        if not known and x.coalesce()._nnz() < x._nnz():
            # Of a coordinate that occurs twice the sum alone has a gradient.
            x = x.coalesce()
            indices, known = x._indices(), True

        def of_list(values: Any) -> Any:
            return _C._sparse_coo_tensor(indices, values, shape, is_coalesced=known)

        return x._values(), of_list
    if layout in (_C.sparse_csr, _C.sparse_bsr):
        starts, plain = x.crow_indices(), x.col_indices()
    else:
        starts, plain = x.ccol_indices(), x.row_indices()

    def of_lines(values: Any) -> Any:
        return _C._sparse_compressed_tensor(starts, plain, values, shape, layout)

    return x.values(), of_lines


def apart(func: Callable[..., Any], inputs: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function and inputs in which values stand for sparse tensors that require grad."""
    given = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
    if not any(is_sparse(x) and x.requires_grad for x in given):
        return func, given
    makers: list[Any] = []
    dense: list[Any] = []
    for x in given:
        if is_sparse(x) and x.requires_grad:
            values, made = _made_again(x)
            dense.append(values.clone().requires_grad_())
            makers.append(made)
        else:
            dense.append(x)
            makers.append(None)

    def whole(*parts: Any) -> Any:
        args = [p if made is None else made(p) for p, made in zip(parts, makers, strict=True)]
        return func(*args)

    return whole, tuple(dense)


def densified(func: Callable[..., Any], masked: bool = True) -> Callable[..., Any]:
    """Return a function whose sparse results are made dense."""

    def dense(y: Any) -> Any:
        if isinstance(y, (list, tuple)):
            return tuple(map(dense, y))
        return y.to_dense(masked_grad=masked) if is_sparse(y) else y

    return lambda *args: dense(func(*args))
