"""Sparse matrices by rows; what is expected is PyTorch's answer unless said otherwise."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import pytensorlib as torch


def sample() -> Any:
    return torch.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 9.0], (2, 3))


def parts(x: Any) -> Any:
    return x.crow_indices().tolist(), x.col_indices().tolist(), x.values().tolist(), tuple(x.shape)


WANTED = ([0, 1, 2], [2, 0], [3.0, 9.0], (2, 3))


def test_matrix_by_rows_is_a_layout_of_its_own() -> None:
    x = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3)).to_sparse_csr()
    assert parts(x) == parts(sample()) == WANTED
    assert (x.is_sparse, x.is_sparse_csr, x._nnz()) == (False, True, 2)
    assert x.layout is torch.sparse_csr and x.type() == "torch.sparse_csr.FloatTensor"
    assert not torch.eye(2).is_sparse_csr and not torch.eye(2).to_sparse().is_sparse_csr
    assert torch.eye(2).to_sparse(layout=torch.sparse_csr).is_sparse_csr
    assert torch.zeros(2, 2, layout=torch.sparse_csr).is_sparse_csr
    assert torch.zeros_like(x).is_sparse_csr and torch.zeros_like(x)._nnz() == 0
    assert torch.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 9.0]).shape == (2, 3)
    assert torch.zeros(0, 3).to_sparse_csr().crow_indices().tolist() == [0]


def test_matrix_by_rows_prints_as_in_pytorch() -> None:
    assert repr(sample().requires_grad_()) == (
        "tensor(crow_indices=tensor([0, 1, 2]),\n"
        "       col_indices=tensor([2, 0]),\n"
        "       values=tensor([3., 9.]), size=(2, 3), nnz=2, layout=torch.sparse_csr,\n"
        "       requires_grad=True)"
    )
    assert repr(torch.zeros(2, 3).to_sparse_csr()) == (
        "tensor(crow_indices=tensor([0, 0, 0]),\n"
        "       col_indices=tensor([], size=(0,)),\n"
        "       values=tensor([], size=(0,)), size=(2, 3), nnz=0,\n"
        "       layout=torch.sparse_csr)"
    )


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (([1, 2], [0], [1.0]), r"`crow_indices\[..., 0\] == 0` is not satisfied"),
        (([0, 1, 3], [0, 1], [1.0, 2.0]), r"`crow_indices\[..., -1\] == nnz` is not satisfied"),
        (([0, 2, 1, 2], [0, 1], [1.0, 2.0]), r"`0 <= crow_indices\[..., 1:\] - crow_indices"),
        (([0, 1], [5], [1.0], (1, 3)), "`0 <= col_indices < ncols` is not satisfied"),
        (([0, 1], [0], [1.0, 2.0]), r"col_indices.shape\[-1\] must be equal to nnz \(=2\)"),
        (([0, 1], [0], [1.0], (2, 3)), r"number of rows \+ 1 \(=3\), but got 2"),
        (([], [], []), "negative dimension"),
    ],
)
def test_rows_that_are_none_of_a_matrix_raise(args: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        torch.sparse_csr_tensor(*args)


def test_places_need_no_order_where_nobody_asks_for_checks() -> None:
    x = torch.sparse_csr_tensor([0, 2, 3], [1, 0, 1], [1.0, 2.0, 3.0], (2, 2))
    assert x.to_dense().tolist() == [[2.0, 1.0], [0.0, 3.0]]
    assert (x @ torch.tensor([1.0, 10.0])).tolist() == [12.0, 30.0]
    assert x.to_sparse_csc().row_indices().tolist() == [0, 0, 1]
    with torch.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match="sorted"):
        torch.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0])


def test_matrices_by_rows_and_others_become_each_other() -> None:
    x = sample()
    assert x.to_dense().tolist() == [[0.0, 0.0, 3.0], [9.0, 0.0, 0.0]]
    assert x.to_sparse().layout is torch.sparse_coo and x.to_sparse_csr() is x
    assert x.to_sparse_coo().is_coalesced()
    assert parts(x.clone()) == parts(copy.deepcopy(x)) == parts(x.detach()) == WANTED
    assert x.double().is_sparse_csr and (2 * x).is_sparse_csr and (x + x).is_sparse_csr
    assert torch.sparse.mm(x, x.t().to_sparse_csr()).is_sparse_csr
    assert x.t().layout is torch.sparse_csc
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.ones(2).to_sparse_csr()
    for name in ("crow_indices", "col_indices"):
        with pytest.raises(RuntimeError, match="sparse row compressed tensor layout"):
            getattr(torch.ones(2, 2).to_sparse(), name)()


def test_matrices_by_rows_are_pickled_as_in_pytorch() -> None:
    file = io.BytesIO()
    torch.save(sample(), file)
    file.seek(0)
    assert parts(torch.load(file)) == WANTED
    assert parts(pickle.loads(pickle.dumps(sample()))) == WANTED


def test_products_combine_rows_in_several_ways() -> None:
    x = torch.sparse_coo_tensor([[0, 2, 2], [1, 0, 1]], [2.0, -1.0, 3.0], (3, 2)).to_sparse_csr()
    y = torch.tensor([[1.0, 4.0], [2.0, -1.0]])
    ways = {
        "sum": [[4.0, -2.0], [0.0, 0.0], [5.0, -7.0]],
        "mean": [[4.0, -2.0], [0.0, 0.0], [2.5, -3.5]],
        "amax": [[4.0, -2.0], [0.0, 0.0], [6.0, -3.0]],
        "amin": [[4.0, -2.0], [0.0, 0.0], [-1.0, -4.0]],
        "prod": [[4.0, -2.0], [0.0, 0.0], [-6.0, 12.0]],
    }
    for way, want in ways.items():
        assert torch.sparse.mm(x, y, way).tolist() == want
    with pytest.raises(RuntimeError, match="reduce argument must be either sum"):
        torch.sparse.mm(x, y, "median")


@pytest.mark.parametrize("way", ["sum", "mean", "amax"])
def test_gradients_flow_to_values_and_dense_operands(way: str) -> None:
    columns, starts = [1, 0, 1], [0, 1, 1, 3]

    def f(values: Any, y: Any) -> Any:
        return torch.sparse.mm(torch.sparse_csr_tensor(starts, columns, values, (3, 2)), y, way)

    values = torch.tensor([2.0, -1.0, 3.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([[1.0, 4.0], [2.0, -1.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, (values, y))


def test_gradient_of_a_leaf_by_rows_is_by_rows() -> None:
    x = sample().requires_grad_()
    (x @ torch.ones(3, 2)).sum().backward()
    assert parts(x.grad) == ([0, 1, 2], [2, 0], [2.0, 2.0], (2, 3))


def test_sums_along_dimensions_of_matrices_by_rows() -> None:
    x = sample()
    assert parts(x.sum(0, keepdim=True)) == ([0, 2], [0, 2], [9.0, 3.0], (1, 3))
    assert parts(x.sum(1, keepdim=True)) == ([0, 1, 2], [0, 0], [3.0, 9.0], (2, 1))
    assert parts(x.sum((0, 1), keepdim=True)) == ([0, 1], [0], [12.0], (1, 1))
    assert parts(torch._sparse_csr_sum(x, [0], True)) == ([0, 2], [0, 2], [9.0, 3.0], (1, 3))
    twice = torch.tensor([[0.0, 4.0], [0.0, 5.0]]).to_sparse_csr()
    assert parts(torch._sparse_csr_prod(twice, [0], True)) == ([0, 1], [1], [20.0], (1, 2))
    with pytest.raises(RuntimeError, match="CSR tensors with keepdim=False is unsupported"):
        torch._sparse_csr_sum(x, [0])
