"""Sparse matrices by lines, of numbers and of blocks; what is expected is PyTorch's answer."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import pytensorlib as torch

DENSE = [[0.0, 0.0, 3.0, 1.0], [9.0, 0.0, 0.0, 0.0], [0.0] * 4, [0.0, 2.0, 0.0, 0.0]]
NAMES = ["csr", "csc", "bsr", "bsc"]
# Lines, places in them and values of the matrix above.
PARTS: dict[str, Any] = {
    "csr": ([0, 2, 3, 3, 4], [2, 3, 0, 1], [3.0, 1.0, 9.0, 2.0]),
    "csc": ([0, 1, 2, 3, 4], [1, 3, 0, 0], [9.0, 2.0, 3.0, 1.0]),
    "bsr": ([0, 2, 3], [0, 1, 0], [[[0, 0], [9, 0]], [[3, 1], [0, 0]], [[0, 0], [0, 2]]]),
    "bsc": ([0, 2, 3], [0, 1, 0], [[[0, 0], [9, 0]], [[0, 0], [0, 2]], [[3, 1], [0, 0]]]),
}


def layout(name: str) -> Any:
    return getattr(torch, f"sparse_{name}")


def options(name: str) -> dict[str, Any]:
    blocks = {"blocksize": (2, 2)} if name[0] == "b" else {}
    return {"layout": layout(name)} | blocks


def sample(name: str, **kwargs: Any) -> Any:
    return torch.tensor(DENSE, **kwargs).to_sparse(**options(name))


def parts(x: Any) -> Any:
    rows = x.layout in (torch.sparse_csr, torch.sparse_bsr)
    lines = (x.crow_indices(), x.col_indices()) if rows else (x.ccol_indices(), x.row_indices())
    return tuple(t.tolist() for t in (*lines, x.values()))


@pytest.mark.parametrize("name", NAMES)
def test_matrix_becomes_lines_and_dense_again(name: str) -> None:
    x = sample(name)
    assert x.layout is layout(name) and parts(x) == PARTS[name]
    assert (
        str(x.layout) == f"torch.sparse_{name}" and pickle.loads(pickle.dumps(x.layout)) is x.layout
    )
    assert x.to_dense().tolist() == DENSE
    assert (x._nnz(), x.sparse_dim(), x.dense_dim()) == (len(PARTS[name][1]), 2, 0)
    assert (x.is_sparse, x.is_sparse_csr) == (False, name == "csr")
    method = getattr(torch.tensor(DENSE), f"to_sparse_{name}")
    assert parts(method((2, 2)) if name[0] == "b" else method()) == PARTS[name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", NAMES)
def test_layouts_become_each_other(name: str, other: str) -> None:
    x = sample(name)
    if name[0] == "b" and other[0] != "b":
        text = (
            f"sparse_compressed_to_sparse_{other}: expected SparseCsr or SparseCsc layout but got"
        )
        with pytest.raises(RuntimeError, match=text):
            x.to_sparse(**options(other))
        return
    assert parts(x.to_sparse(**options(other))) == PARTS[other]


@pytest.mark.parametrize("name", NAMES)
def test_lines_and_coordinates_become_each_other(name: str) -> None:
    x = sample(name)
    coo = x.to_sparse()
    assert coo.layout is torch.sparse_coo and coo.to_dense().tolist() == DENSE
    back = torch.tensor(DENSE).to_sparse().to_sparse(**options(name))
    assert parts(back) == PARTS[name]
    with pytest.raises(RuntimeError, match="with sparse_dim argument !=2 is not supported"):
        x.to_sparse(1)
    assert x.to_sparse(2).to_dense().tolist() == DENSE
    assert x.to_sparse(layout=torch.strided).tolist() == DENSE


@pytest.mark.parametrize("name", NAMES)
def test_tensor_is_made_of_lines(name: str) -> None:
    starts, plain, values = PARTS[name]
    make = getattr(torch, f"sparse_{name}_tensor")
    assert make(starts, plain, values, (4, 4), dtype=torch.float32).to_dense().tolist() == DENSE
    assert make(starts, plain, torch.tensor(values)).shape == (4, 4)
    general = torch.sparse_compressed_tensor(starts, plain, values, (4, 4), layout=layout(name))
    assert parts(general) == PARTS[name]
    lines = torch.tensor(starts, dtype=torch.int32)
    narrow = make(lines, torch.tensor(plain, dtype=torch.int32), torch.tensor(values), (4, 4))
    first = narrow.crow_indices() if name[2] == "r" else narrow.ccol_indices()
    assert first.dtype == torch.int32 and first.data_ptr() == lines.data_ptr()
    with pytest.raises(RuntimeError, match=f"sparse_{name}_tensor: layout must be Sparse"):
        make(starts, plain, values, layout=torch.sparse_coo)


def test_compressed_tensor_wants_a_layout() -> None:
    text = "sparse_compressed_tensor expected sparse compressed tensor layout but got "
    with pytest.raises(RuntimeError, match=text + "none"):
        torch.sparse_compressed_tensor([0, 1], [0], [1.0], (1, 1))
    with pytest.raises(RuntimeError, match=text + "Sparse"):
        torch.sparse_compressed_tensor([0, 1], [0], [1.0], (1, 1), layout=torch.sparse_coo)


FAULTS: list[tuple[Any, Any, Any, str]] = [
    ([1, 1, 2], [0, 1], (2, 2), "`{c}[..., 0] == 0` is not satisfied."),
    ([0, 1, 3], [0, 1], (2, 2), "`{c}[..., -1] == nnz` is not satisfied."),
    (
        [0, 3, 2],
        [0, 1],
        (2, 2),
        "`0 <= {c}[..., 1:] - {c}[..., :-1] <= {across}` is not satisfied.",
    ),
    ([0, 1, 2], [0, 5], (2, 2), "`0 <= {p} < {across}` is not satisfied."),
    ([0, 1, 2], [0, -1], (2, 2), "`0 <= {p} < {across}` is not satisfied."),
    ([0, 2, 2], [1, 0], (2, 2), "are sorted and distinct along the last dimension values` is not"),
    ([0, 2, 2], [1, 1], (2, 2), "are sorted and distinct along the last dimension values` is not"),
    ([0, 1, 2], [0, 1], (2, 2, 2), "tensor dimensionality must be sum of batch, base, and dense "),
    ([0, 1, 2], [0, 1, 1], (2, 2), "{p}.shape[-1] must be equal to nnz (=2) as defined by values"),
    ([[0, 1, 2]], [0, 1], (2, 2), "{c} and {p} dimensionalities must be equal but got 2 and 1"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", FAULTS)
def test_lines_that_are_none_of_a_matrix_raise(name: str, fault: Any) -> None:
    starts, plain, size, text = fault
    values = torch.tensor([1.0, 2.0])
    values = values.reshape(2, 1, 1) if name[0] == "b" else values
    rows = name[2] == "r"
    text = text.format(
        c="crow_indices" if rows else "ccol_indices",
        p="col_indices" if rows else "row_indices",
        across="ncols" if rows else "nrows",
    )
    given = (torch.tensor(starts), torch.tensor(plain), values, size)
    with pytest.raises(RuntimeError) as error:
        torch.sparse_compressed_tensor(*given, layout=layout(name), check_invariants=True)
    assert text in str(error.value)
    with pytest.raises(RuntimeError) as error:
        torch._validate_sparse_compressed_tensor_args(*given, layout(name))
    assert text in str(error.value)
    with pytest.raises(RuntimeError) as error:
        getattr(torch, f"_validate_sparse_{name}_tensor_args")(*given)
    assert text in str(error.value)


def test_types_and_blocks_that_do_not_fit_raise() -> None:
    starts, plain, ones = torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2)
    with pytest.raises(RuntimeError, match="must have the same dtype, bot got Int and Long"):
        torch.sparse_csr_tensor(starts.int(), plain, ones, (2, 2))
    with pytest.raises(RuntimeError, match="dtype must be Int or Long, but got Short"):
        torch.sparse_csr_tensor(starts.short(), plain.short(), ones, (2, 2))
    with pytest.raises(RuntimeError, match=r"number of columns \+ 1 \(=4\), but got 3"):
        torch.sparse_csc_tensor(starts, plain, ones, (2, 3))
    with pytest.raises(
        RuntimeError, match=r"tensor shape\[0\] \(=3\) must be divisible with block"
    ):
        torch.sparse_bsr_tensor([0, 1], [0], torch.ones(1, 2, 2), (3, 2))
    with pytest.raises(RuntimeError, match=r"number of row blocks \+ 1 \(=3\), but got 2"):
        torch.sparse_bsr_tensor([0, 1], [0], torch.ones(1, 2, 2), (4, 2))


TEXTS: list[tuple[str, dict[str, Any], str]] = [
    ("bsr", {}, "dense_to_sparse: conversion from Strided to SparseBsr without blocksize argument"),
    ("csr", {"blocksize": (2, 2)}, "conversion from Strided to SparseCsr with blocksize argument"),
    ("bsr", {"blocksize": (3, 2)}, r"tensor sparse size \(4,4\) must be divisible by given block"),
    ("bsr", {"blocksize": (0, 2)}, r"blocksize needs to be positive, but got \[0, 2\]"),
    ("bsr", {"blocksize": (2,)}, "blocksize needs to be a tuple of size 2, but got 1"),
    ("csc", {"dense_dim": 1}, r"dense_dim argument must be in \[0,0\] range, but 1 is given"),
]


@pytest.mark.parametrize(("name", "given", "text"), TEXTS)
def test_conversions_that_do_not_fit_raise(name: str, given: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        torch.tensor(DENSE).to_sparse(layout=layout(name), **given)


def test_conversions_keep_blocks_and_dimensions() -> None:
    blocks = sample("bsr")
    with pytest.raises(
        RuntimeError, match=r"with blocksize changed from \[2, 2\] to \[1, 1\] is not"
    ):
        blocks.to_sparse_bsc((1, 1))
    with pytest.raises(RuntimeError, match="SparseCsr with dense_dim argument given is not supp"):
        sample("csc").to_sparse_csr(dense_dim=0)
    deep = torch.ones(2, 4, 4).to_sparse()
    with pytest.raises(RuntimeError, match=r"for input tensors with sparse_dim\(\)!=2 is not supp"):
        deep.to_sparse_csr()
    batch = torch.ones(2, 4, 4).to_sparse_csr()
    with pytest.raises(RuntimeError, match="to SparseBsr for batched inputs is not supported"):
        batch.to_sparse_bsr((2, 2))
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.ones(3).to_sparse_csc()


@pytest.mark.parametrize("name", NAMES)
def test_batches_and_values_with_dimensions(name: str) -> None:
    eyes = torch.stack([torch.eye(4), 2 * torch.eye(4)])
    batch = eyes.to_sparse(**options(name))
    assert torch.equal(batch.to_dense(), eyes) and torch.equal(batch[1].to_dense(), eyes[1])
    assert torch.equal(batch.to_sparse().to_dense(), eyes) and batch.sum().item() == 12.0
    other = {"csr": "csc", "csc": "csr", "bsr": "bsc", "bsc": "bsr"}[name]
    assert batch.transpose(1, 2).layout is layout(other)
    with pytest.raises(RuntimeError, match="can only transpose dimensions of the same type"):
        batch.transpose(0, 1)
    with pytest.raises(RuntimeError, match="selecting sparse dimensions is not supported for batc"):
        batch.select(1, 0)
    rows = torch.eye(4).unsqueeze(-1).repeat(1, 1, 3)
    hybrid = rows.to_sparse(dense_dim=1, **options(name))
    assert torch.equal(hybrid.to_dense(), rows) and hybrid.dense_dim() == 1
    assert torch.equal(hybrid.select(2, 0).to_dense(), torch.eye(4))
    eyes[0, 0, 3] = 5.0
    with pytest.raises(
        RuntimeError, match="Expect the same number of specified elements per batch"
    ):
        eyes.to_sparse(**options(name))


@pytest.mark.parametrize("name", NAMES)
def test_transpose_is_told_by_the_other_lines(name: str) -> None:
    x = sample(name)
    other = {"csr": "csc", "csc": "csr", "bsr": "bsc", "bsc": "bsr"}[name]
    for y in (x.t(), x.transpose(0, 1), x.T):
        assert y.layout is layout(other)
        assert torch.equal(y.to_dense(), torch.tensor(DENSE).t())
    assert torch.equal(x.t().t().to_dense(), torch.tensor(DENSE))


@pytest.mark.parametrize("name", NAMES)
def test_lines_of_other_layouts_are_refused(name: str) -> None:
    x, title = sample(name), f"Sparse{name.capitalize()}"
    wrong = ("ccol_indices", "row_indices") if name[2] == "r" else ("crow_indices", "col_indices")
    for method in wrong:
        with pytest.raises(RuntimeError, match=f"compressed tensor layout but got {title}"):
            getattr(x, method)()
    for method in ("indices", "coalesce", "is_coalesced"):
        text = f"{method} expected sparse coordinate tensor layout but got {title}"
        with pytest.raises(RuntimeError, match=text):
            getattr(x, method)()
    with pytest.raises(TypeError, match=f"can't convert {title} layout tensor to numpy"):
        x.numpy()
    copied = torch.crow_indices_copy(x) if name[2] == "r" else torch.ccol_indices_copy(x)
    assert copied.tolist() == PARTS[name][0]


def test_lines_print_as_in_pytorch() -> None:
    assert repr(sample("csc")) == (
        "tensor(ccol_indices=tensor([0, 1, 2, 3, 4]),\n"
        "       row_indices=tensor([1, 3, 0, 0]),\n"
        "       values=tensor([9., 2., 3., 1.]), size=(4, 4), nnz=4,\n"
        "       layout=torch.sparse_csc)"
    )
    assert repr(torch.eye(2).to_sparse_bsr((2, 2))) == (
        "tensor(crow_indices=tensor([0, 1]),\n"
        "       col_indices=tensor([0]),\n"
        "       values=tensor([[[1., 0.],\n"
        "                       [0., 1.]]]), size=(2, 2), nnz=1,\n"
        "       layout=torch.sparse_bsr)"
    )


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_copied_and_written_to_files(name: str) -> None:
    x = sample(name)
    for y in (x.clone(), x.detach(), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.layout is x.layout and parts(y) == PARTS[name]
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    assert parts(torch.load(file)["x"]) == PARTS[name]
    assert x.to(torch.float64).dtype == torch.float64 and x.double().layout is x.layout
    copied = x.clone()
    copied.values().zero_()
    assert parts(x) == PARTS[name] and copied.to_dense().sum() == 0
    assert x.detach().values().data_ptr() == x.values().data_ptr()
    assert parts(torch.ones_like(x).copy_(x)) == PARTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_tensors_like_one_of_lines(name: str) -> None:
    x = sample(name)
    zeros = torch.zeros_like(x)
    assert zeros.layout is x.layout and zeros._nnz() == 0 and zeros.shape == x.shape
    ones = torch.ones_like(x)
    assert parts(ones)[:2] == PARTS[name][:2] and bool((ones.values() == 1).all())
    assert parts(torch.empty_like(x, dtype=torch.float64))[:2] == PARTS[name][:2]
    if name[0] == "b":
        with pytest.raises(RuntimeError, match=r"expected sparse compressed \(non-block\) tensor"):
            torch.zeros(2, 4, layout=x.layout)
        return
    empty = torch.zeros(2, 4, layout=x.layout)
    assert (empty.layout, empty._nnz(), empty.to_dense().sum()) == (x.layout, 0, 0)
    assert x.new_zeros((2, 3)).layout is x.layout and x.new_empty((2, 3)).shape == (2, 3)


@pytest.mark.parametrize("name", NAMES)
def test_products_and_functions_are_those_of_dense_matrices(name: str) -> None:
    x, d = sample(name), torch.tensor(DENSE)
    ones = torch.arange(12.0).reshape(4, 3)
    assert torch.equal(x @ ones, d @ ones) and torch.equal(ones.t() @ x, ones.t() @ d)
    assert torch.equal(x @ ones[:, 0], d @ ones[:, 0])
    assert torch.equal(torch.addmm(ones, x, ones, beta=2), 2 * ones + d @ ones)
    both = x @ x
    assert both.layout is torch.sparse_csr and torch.equal(both.to_dense(), d @ d)
    for f in (torch.sin, torch.neg, torch.relu, torch.sqrt, lambda x: x * 2, torch.tanh):
        y = f(x)
        assert y.layout is x.layout and torch.equal(y.to_dense(), f(d))
    total = x + x
    assert total.layout is x.layout and torch.equal(total.to_dense(), 2 * d)
    assert torch.equal(d + x, 2 * d)
    assert (x * x).layout is x.layout and torch.equal((x * x).to_dense(), d * d)
    assert torch.equal((x * d).to_dense(), d * d) and x.sum() == 15.0
    y = x.clone()
    y.sin_()
    assert torch.equal(y.to_dense(), d.sin())


@pytest.mark.parametrize("name", NAMES)
def test_masks_take_values_at_places(name: str) -> None:
    x, d = sample(name), torch.arange(16.0).reshape(4, 4)
    got = d.sparse_mask(x)
    assert got.layout is x.layout and parts(got)[:2] == PARTS[name][:2]
    keep = torch.ones_like(x).to_dense() > 0
    assert torch.equal(got.to_dense(), torch.where(keep, d, 0))
    assert torch.equal(got.sparse_mask(x).to_dense(), got.to_dense())
    assert torch.equal(d.to_sparse().sparse_mask(x).to_dense(), got.to_dense())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [torch.float64, torch.complex128])
def test_gradients_flow_through_lines(name: str, kind: Any) -> None:
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    x = sample(name, dtype=kind).requires_grad_()
    y = torch.tensor([[1.0, 2], [-1, 3], [0.5, 1], [2, 2]], dtype=kind, requires_grad=True)
    assert check(lambda x, y: x @ y, (x, y))
    assert check(lambda x: x * 2 + x, (x,))
    assert check(lambda x: x.t().to_dense() ** 2, (x,))
    assert check(lambda x: x.to_sparse().coalesce().values() ** 2, (x,))
    assert check(lambda x: x.values() ** 2, (x,))
    for other in NAMES:
        if name[0] != "b" or other[0] == "b":
            assert check(lambda x, other=other: x.to_sparse(**options(other)), (x,))
    dense = torch.tensor(DENSE, dtype=kind, requires_grad=True)
    assert torch.autograd.gradcheck(lambda d: x.detach() * 2 @ d, (dense,))
    (dense.to_sparse(**options(name)).values() ** 2).real.sum().backward()
    assert torch.equal(dense.grad, 2 * dense.detach())


@pytest.mark.parametrize("name", NAMES)
def test_gradient_of_a_leaf_has_its_layout(name: str) -> None:
    x = sample(name).requires_grad_()
    (x @ torch.ones(4, 2)).sum().backward()
    assert x.grad.layout is x.layout and parts(x.grad)[:2] == PARTS[name][:2]
    assert bool((x.grad.values() == 2).all())
    (x @ torch.ones(4, 2)).sum().backward()
    assert bool((x.grad.values() == 4).all())


def test_sampled_product_has_the_entries_of_its_input() -> None:
    x = sample("csr", dtype=torch.float64).requires_grad_()
    a = torch.arange(8.0, dtype=torch.float64).reshape(4, 2).requires_grad_()
    b = (torch.arange(8.0, dtype=torch.float64).reshape(2, 4) - 3).requires_grad_()
    got = torch.sparse.sampled_addmm(x, a, b, beta=0.5, alpha=2)
    want = 0.5 * x.to_dense() + 2 * (a @ b) * (x.to_dense() != 0)
    assert got.layout is torch.sparse_csr
    torch.testing.assert_close(got.to_dense(), want)
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    assert check(torch.sparse.sampled_addmm, (x, a, b))
    with pytest.raises(RuntimeError, match="Expected self to have"):
        torch.sparse.sampled_addmm(a @ b, a, b)


def test_comparison_of_sparse_tensors_tells_what_differs() -> None:
    x, y = sample("csr"), sample("csr")
    y.values()[1] += 1
    torch.testing.assert_close(x, x.clone())
    with pytest.raises(AssertionError, match="Sparse CSR values are not close!\n\nMismatched elem"):
        torch.testing.assert_close(x, y)
    with pytest.raises(
        AssertionError, match="number of specified values in sparse CSR tensors does"
    ):
        torch.testing.assert_close(x, torch.ones(4, 4).to_sparse_csr())
    with pytest.raises(AssertionError, match="Sparse COO indices are not equal!"):
        torch.testing.assert_close(torch.eye(2).to_sparse(), torch.eye(2).flip(0).to_sparse())
    torch.testing.assert_close(x, x.to_dense(), check_layout=False)


def test_diagonals_are_made_in_other_layouts() -> None:
    for name in ("csr", "csc"):
        got = torch.sparse.spdiags(torch.ones(1, 3), torch.tensor([0]), (3, 3), layout(name))
        assert got.layout is layout(name) and torch.equal(got.to_dense(), torch.eye(3))
