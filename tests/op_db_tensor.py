"""Rows of views, of joining and cutting, of writing to places and of types."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
from op_row import (
    FLOATS,
    LONG_SUM,
    NO_GRAD,
    Many,
    Op,
    cases,
    index,
    mask,
    once,
    view,
)
from scipy import linalg


def of_tensor(name: str, ref: Any, *calls: Any, **row: Any) -> Op:
    """Return the row of a name that only tensors have."""
    return view("Tensor." + name, ref, *calls, **{"method": False, **row})


def joined(name: str, ref: Any, *calls: Any, **row: Any) -> Op:
    return view(name, ref, *calls, **{"method": False, **row})


def embedded(x: Any, offset: int = 0) -> Any:
    """Return matrices with the last dimension on a diagonal."""
    n = x.shape[-1] + abs(offset)
    y = np.zeros((*x.shape[:-1], n, n), x.dtype)
    i = np.arange(x.shape[-1])
    y[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return y


def placed(where: Any) -> Any:
    """Return a reference that puts a source where `where` finds a view of a copy."""

    def ref(x: Any, source: Any, *args: Any) -> Any:
        y = np.array(x)
        where(y, *args)[...] = source
        return y

    return ref


def strided(y: Any, size: Any, stride: Any, offset: int = 0) -> Any:
    bytes_ = [s * y.itemsize for s in stride]
    return np.lib.stride_tricks.as_strided(y.ravel()[offset:], size, bytes_)


def diagonal(y: Any, offset: int = 0, a: int = 0, b: int = 1) -> Any:
    """Return a diagonal that can be written."""
    view = np.diagonal(y, offset, a, b)
    view.flags.writeable = True
    return view


def summed(x: Any, size: Any) -> Any:
    lead = x.ndim - len(size)
    y = x.sum(tuple(range(lead))) if lead else x
    dims = tuple(i for i, n in enumerate(size) if n == 1)
    return y.sum(dims, keepdims=True)


def split_sizes(x: Any, sizes: Any, dim: int = 0) -> Any:
    return np.split(x, np.cumsum(sizes)[:-1], dim)


VIEWS = [
    view("t", lambda x: x.T, ([3, 4],), ([3],), ([],)),
    view("adjoint", lambda x: np.swapaxes(x, -1, -2), ([3, 4],), ([2, 3, 4],)),
    view("ravel", np.ravel, ([3, 4],), ([],)),
    view("fliplr", np.fliplr, ([3, 4],)),
    view("flipud", np.flipud, ([3, 4],), ([3],)),
    joined("atleast_1d", np.atleast_1d, ([],), ([3],)),
    joined("atleast_2d", np.atleast_2d, ([],), ([3],)),
    joined("atleast_3d", np.atleast_3d, ([],), ([3],), ([3, 4],)),
    view("diag_embed", embedded, ([3],), ([2, 3], 1), ([2, 3], -1)),
    view("diagflat", lambda x, o=0: np.diagflat(x, o), ([3],), ([2, 2], 1)),
    view("hsplit", np.hsplit, ([4, 4], 2), ([4], 2), ([3, 5], (2, 3))),
    view("vsplit", np.vsplit, ([4, 4], 2), ([5, 2], (2, 3))),
    view("dsplit", np.dsplit, ([2, 2, 4], 2), ([2, 2, 5], (1, 3))),
    view("tensor_split", np.array_split, ([7], 3), ([3, 5], 2, 1), ([5], (1, 3))),
    view("split_with_sizes", split_sizes, ([5, 2], (2, 3)), ([3, 4], (1, 0, 3), 1)),
    view("unsafe_split", lambda x, n, d=0: np.split(x, range(n, x.shape[d], n), d), ([5, 2], 2),
         ([3, 4], 2, 1)),
    view("swapaxes", np.swapaxes, ([3, 4], 0, 1), ([2, 3, 4], -1, 0)),
    view("real", np.real, ([3, 4],), method=False),
    view("resolve_conj", np.array, ([3, 4],)),
    view("resolve_neg", np.array, ([3, 4],)),
    of_tensor("view", np.reshape, ([3, 4], (2, 6)), ([12], (3, -1))),
    of_tensor("view_as", lambda x, y: x.reshape(y.shape), ([3, 4], [2, 6]), fixed=(1,)),
    of_tensor("reshape_as", lambda x, y: x.reshape(y.shape), ([3, 4], [2, 6]), fixed=(1,)),
    of_tensor("expand_as", lambda x, y: np.broadcast_to(x, y.shape), ([3, 1], [2, 3, 4]),
              fixed=(1,)),
    of_tensor("repeat", lambda x, *n: np.tile(x, n), ([3, 2], 2, 3), ([3], 2, 1, 2)),
    of_tensor("sum_to_size", summed, ([3, 4], (3, 1)), ([2, 3, 4], (4,)),
              dtypes=FLOATS, **LONG_SUM),
    of_tensor("contiguous", np.array, ([3, 4],)),
    joined("broadcast_tensors", np.broadcast_arrays, ([3, 1], [4]), ([], [2, 2])),
    joined("meshgrid", lambda *x, indexing: np.meshgrid(*x, indexing=indexing),
           ([3], [4], {"indexing": "ij"}), ([3], [2], {"indexing": "xy"})),
    joined("column_stack", np.column_stack, (Many(([3], [3])),), (Many(([3, 2], [3])),), out=True),
    joined("block_diag", linalg.block_diag, ([2, 3], [1, 2]), ([2, 2], [], [3])),
    joined("cartesian_prod", lambda *x: np.array(list(product(*x))), ([2], [3]),
           ([2], [2], [3])),
    joined("combinations", lambda x, r=2: np.array(list(combinations(x, r))), ([4],), ([5], 3)),
    joined("constant_pad_nd", lambda x, p, v=0: np.pad(
           x, [(0, 0)] * (x.ndim - len(p) // 2) + [(p[i], p[i + 1]) for i in
           range(len(p) - 2, -1, -2)], constant_values=v), ([3, 4], (1, 2)),
           ([3, 4], (1, 0, 2, 1), 0.5), dtypes=FLOATS),
    joined("slice_copy", lambda x, d=0, a=None, b=None, s=1: np.take(
           x, range(x.shape[d])[a:b:s], d), ([5, 2], 0, 1, 5, 2), ([3, 4], 1, 1, 3), out=True),
    view("select_scatter", placed(lambda y, d, i: np.moveaxis(y, d, 0)[i]),
         ([3, 4], [4], 0, 1), ([3, 4], [3], 1, -1)),
    view("slice_scatter", placed(lambda y, d=0, a=None, b=None, s=1: np.moveaxis(
         np.moveaxis(y, d, 0)[a:b:s], 0, d)), ([5, 2], [3, 2], 0, 0, 5, 2),
         ([3, 4], [3, 2], 1, 1, 3)),
    view("diagonal_scatter", placed(diagonal), ([3, 4], [3]), ([3, 4], [3], 1)),
    view("as_strided_scatter", placed(strided), ([12], [3, 2], (3, 2), (3, 1)), dtypes=FLOATS),
]

TYPES = [
    of_tensor("type_as", lambda x, y: x.astype(y.dtype), ([3, 4], index(3, 2)), **NO_GRAD,
              result="int64", dtypes=("float64",)),
    *(of_tensor(name, lambda x, t=t: np.trunc(x).astype(t), ([3, 4],), **NO_GRAD,
                result=t, dtypes=("float32", "float64"))
      for name, t in [("long", "int64"), ("int", "int32"), ("short", "int16"), ("char", "int8")]),
    of_tensor("bool", lambda x: x != 0, ([3, 4],), result="bool", **NO_GRAD),
    of_tensor("byte", lambda x: x.astype(np.uint8), (index(9, 3, 4),), **NO_GRAD),
    *(of_tensor(name, np.array, ([3, 4],), dtypes=(dtype,), **NO_GRAD) for name, dtype in
      [("float", "float32"), ("double", "float64"), ("half", "float16"),
       ("bfloat16", "bfloat16")]),
    *(of_tensor(name, lambda x: x + 0j, ([3, 4],), result="complex", dtypes=(dtype,), **NO_GRAD)
      for name, dtype in [("cfloat", "float32"), ("cdouble", "float64")]),
    of_tensor("to", np.array, ([3, 4],)),
    of_tensor("cpu", np.array, ([3, 4],), dtypes=("float64",)),
]


def put_flat(x: Any, i: Any, source: Any, accumulate: bool = False) -> Any:
    y = np.array(x)
    if accumulate:
        np.add.at(y.reshape(-1), i.ravel(), source.ravel())
    else:
        y.reshape(-1)[i.ravel()] = source.ravel()
    return y


def index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    y = np.array(x)
    if accumulate:
        np.add.at(y, tuple(indices), values)
    else:
        y[tuple(indices)] = values
    return y


def masked_scatter(x: Any, m: Any, source: Any) -> Any:
    y = np.array(x)
    m = np.broadcast_to(m, y.shape)
    y[m] = source.ravel()[: m.sum()]
    return y


JOIN = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def scatter_reduce(x: Any, dim: int, i: Any, source: Any, reduce: str,
                   include_self: bool = True) -> Any:
    """Reduce the elements of a source into those that `i` names, one after another."""
    y, fresh = np.array(x), np.full(x.shape, not include_self)
    for at in np.ndindex(i.shape):
        to = (*at[:dim], i[at], *at[dim + 1:])
        y[to] = source[at] if fresh[to] else JOIN[reduce](y[to], source[at])
        fresh[to] = False
    return y


def index_reduce(x: Any, dim: int, i: Any, source: Any, reduce: str,
                 include_self: bool = True) -> Any:
    shape = [1] * x.ndim
    shape[dim] = -1
    where = np.broadcast_to(i.reshape(shape), source.shape)
    return scatter_reduce(x, dim, where, source, reduce, include_self)


def filled_diagonal(x: Any, value: float) -> Any:
    y = np.array(x)
    np.fill_diagonal(y, value)
    return y


INDEXING = [
    cases("argwhere", np.argwhere, (mask(3, 4),), (mask(5),), out=False, result="int64",
          **NO_GRAD),
    cases("nonzero_static", lambda m, size, fill_value=-1: np.concatenate(
          [np.argwhere(m), np.full((size, m.ndim), fill_value)])[:size], (mask(3, 4),
          {"size": 5}), (mask(5), {"size": 7, "fill_value": 9}), out=False, **NO_GRAD),
    cases("Tensor.nonzero_numpy", np.nonzero, (mask(3, 4),), out=False, method=False, **NO_GRAD),
    cases("index_put", index_put, ([3, 4], Many((index(3, 5), index(4, 5))), [5],
          {"accumulate": True}), ([5, 2], Many((once(5, 3),)), [3, 2]), out=False, inplace=True),
    cases("put", put_flat, ([3, 4], once(12, 5), [5]), ([3, 4], index(12, 2, 3), [2, 3], True),
          out=False, inplace=True),
    cases("masked_scatter", masked_scatter, ([3, 4], mask(3, 4), [12]),
          ([3, 4], mask(4), [3, 4]), out=False, inplace=True),
    *(cases("scatter_reduce", scatter_reduce, *(([3, 4], 0, index(3, 5, 4), [5, 4], how,
            {"include_self": own}) for own in (True, False)), inplace=True, **LONG_SUM)
      for how in JOIN),
    *(cases("index_reduce", index_reduce, *(([3, 4], 0, index(3, 5), [5, 4], how,
            {"include_self": own}) for own in (True, False)), inplace=True, **LONG_SUM)
      for how in ("prod", "amax", "amin")),
    cases("unravel_index", np.unravel_index, (index(12, 5), (3, 4)), out=False, method=False,
          **NO_GRAD),
    cases("Tensor.fill_diagonal_", filled_diagonal, ([3, 4], 1.5), ([3, 3], 2), out=False,
          method=False, call=lambda torch: lambda x, v: x.clone().fill_diagonal_(v)),
    cases("Tensor.copy_", lambda x, y: np.broadcast_to(y, x.shape), ([3, 4], [4]), out=False,
          method=False, call=lambda torch: lambda x, y: x.clone().copy_(y)),
    cases("zero_", np.zeros_like, ([3, 4],), out=False, method=False, **NO_GRAD,
          call=lambda torch: lambda x: torch.zero_(x.clone())),
]

ROWS = [*VIEWS, *TYPES, *INDEXING]
