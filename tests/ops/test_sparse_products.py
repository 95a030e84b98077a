"""Products, sums and gradients of sparse tensors, and optimizers with sparse gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch

gradcheck = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
INDICES = [[0, 1, 1], [2, 0, 0]]


def sample(**options: Any) -> Any:
    return torch.sparse_coo_tensor(INDICES, [3.0, 4.0, 5.0], (2, 3), **options)


def matrix(n: int, m: int, dtype: Any, seed: int, share: float = 0.3) -> Any:
    """Return a sparse matrix whose coordinates are in no order and may occur twice."""
    rng = np.random.default_rng(seed)
    count = max(1, int(n * m * share))
    indices = np.stack([rng.integers(0, n, count), rng.integers(0, m, count)])
    values = torch.tensor(rng.integers(-4, 5, count)).to(dtype)
    if dtype.is_complex:
        values = values * (1 + 2j)
    return torch.sparse_coo_tensor(torch.tensor(indices), values, (n, m))


def dense(n: int, m: int, dtype: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    x = torch.tensor(rng.integers(-4, 5, (n, m))).to(dtype)
    return x * (2 - 1j) if dtype.is_complex else x


TYPES = "float32 float64 float16 bfloat16 complex64 complex128 int8 int32 int64 uint8".split()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", [(3, 4, 5), (1, 7, 1), (40, 30, 17), (5, 3, 0), (0, 3, 2)])
def test_products_are_those_of_dense_matrices(dtype: str, sizes: tuple[int, int, int]) -> None:
    kind = getattr(torch, dtype)
    n, m, p = sizes
    a = matrix(n, m, kind, 1) if n else torch.zeros(n, m, dtype=kind).to_sparse()
    b = dense(m, p, kind, 2)
    # Small integers: the sums are exact in every type.
    want = torch.tensor(a.to_dense().to(torch.complex128).numpy() @ b.to(torch.complex128).numpy())
    want = want if kind.is_complex else want.real
    want = want.to(torch.int64).to(kind) if dtype == "uint8" else want.to(kind)
    for got in (a @ b, torch.mm(a, b), torch.sparse.mm(a, b), torch.spmm(a, b), a.matmul(b)):
        assert not got.is_sparse and got.dtype == kind
        assert torch.equal(got, want)
    assert torch.equal(a.coalesce() @ b, want)
    assert torch.equal((b.t() @ a.t()).t(), want)
    assert torch.equal(a @ b.t().contiguous().t(), want)
    sparse = torch.sparse.mm(a, b.to_sparse())
    assert sparse.is_sparse and sparse.is_coalesced() and torch.equal(sparse.to_dense(), want)
    if p:
        assert torch.equal(a @ b[:, 0], want[:, 0])
        assert torch.equal(a.mv(b[:, 0]), want[:, 0])


def test_products_of_bool_and_of_mixed_types_raise() -> None:
    x = torch.eye(2).to_sparse()
    with pytest.raises(NotImplementedError, match="'Bool'"):
        x.bool() @ torch.ones(2, 2, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="same dtype"):
        x @ torch.ones(2, 2, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        x @ torch.ones(3, 2)
    with pytest.raises(RuntimeError, match=r"Argument #3 \(dense\): Expected dim 0 size 2, got 3"):
        torch.sparse.mm(x, torch.ones(3, 2))
    with pytest.raises(RuntimeError, match="mat1 dtype Double does not match mat2 dtype Float"):
        torch.sparse.mm(x.double(), x)
    with pytest.raises(RuntimeError, match=r"mv: expected self\.size\(-1\) == vec\.size\(-1\)"):
        x.mv(torch.ones(3))
    with pytest.raises(RuntimeError, match="mv: two tensor dim should be 2 and 1, but got Sparse"):
        x.mv(torch.ones(2, 1))
    with pytest.raises(RuntimeError, match="coordinates in all dimensions"):
        torch.ones(2, 2).to_sparse(1) @ torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="reduce argument must be either"):
        torch.sparse.mm(x, torch.ones(2, 2), "median")


def test_addmm_and_its_relatives() -> None:
    x, ones = sample(), torch.ones(3, 2)
    want = [[3.5, 3.5], [6.5, 6.5]]
    base = torch.ones(2, 2)
    assert torch.addmm(base, x, ones, beta=2, alpha=0.5).tolist() == want
    assert torch.sparse.addmm(base, x, ones, beta=2, alpha=0.5).tolist() == want
    assert base.addmm_(x, ones, beta=2, alpha=0.5).tolist() == want
    out = torch.empty(2, 2)
    assert torch.mm(x, ones, out=out) is out and out.tolist() == [[3.0, 3.0], [9.0, 9.0]]
    rows = torch.hspmm(x, ones)
    assert (rows.indices().tolist(), rows.values().tolist()) == ([[0, 1]], [[3, 3], [9, 9]])
    assert torch.smm(x, ones).to_dense().tolist() == [[3.0, 3.0], [9.0, 9.0]]
    both = torch.addmm(torch.eye(2).to_sparse(), x, x.t())
    assert both.is_sparse and both.to_dense().tolist() == [[10.0, 0.0], [0.0, 82.0]]


def test_sums_of_products_of_old_names() -> None:
    x, ones, eye = sample(), torch.ones(3, 2), torch.eye(2).to_sparse()
    # PyTorch's entries, in one list where it has several for a coordinate.
    want = [[11.0, 9.0], [27.0, 29.0]]
    assert torch.sspaddmm(eye, x, ones, beta=2, alpha=3).to_dense().tolist() == want
    assert eye.sspaddmm(x, ones).is_sparse
    assert torch.saddmm(torch.eye(2), x, ones, beta=2, alpha=3).tolist() == want
    assert torch.hsmm(x, ones).is_sparse
    assert torch.equal(torch.hsmm(x, ones).to_dense(), x @ ones)
    for name in ("spmm", "dsmm"):
        assert torch.equal(getattr(torch, name)(x, ones), x @ ones)
        with pytest.raises(RuntimeError, match="expected a sparse matrix"):
            getattr(torch, name)(ones, ones.t())


def test_norms_are_of_coalesced_entries() -> None:
    x = sample()
    assert abs(x.norm().item() - 90**0.5) < 1e-5
    assert (x.norm(1).item(), torch.norm(x, float("inf")).item()) == (12.0, 9.0)
    assert abs(x.norm(-1).item() - 2.25) < 1e-6 and abs(x.norm(2, (0, 1)).item() - 90**0.5) < 1e-5
    with pytest.raises(RuntimeError, match="norm_sparse currently does not support keepdim=True"):
        x.norm(2, None, True)
    with pytest.raises(
        RuntimeError, match="currently only supports full reductions, so 'dim' must"
    ):
        x.norm(2, 0)


def test_batches_of_sparse_matrices() -> None:
    a = torch.tensor(np.random.default_rng(3).integers(-1, 2, (4, 3, 5)).astype("float64"))
    b = torch.tensor(np.random.default_rng(4).integers(-3, 4, (4, 5, 2)).astype("float64"))
    for got in (torch.bmm(a.to_sparse(), b), a.to_sparse() @ b):
        assert torch.equal(got, a @ b)
    with pytest.raises(RuntimeError, match="bmm_sparse: Tensor 'mat2' must be dense"):
        torch.bmm(b.mT, a.mT.to_sparse())
    with pytest.raises(RuntimeError, match=r"'self.size\(2\)' and 'mat2.size\(1\)' must match"):
        torch.bmm(a.to_sparse(), b[:, 1:])
    x = a[0].to_sparse()
    assert torch.equal(
        torch.ones(2, 4, 3, dtype=torch.float64) @ x,
        torch.ones(2, 4, 3, dtype=torch.float64) @ a[0],
    )
    wide = torch.nn.functional.linear(torch.ones(2, 5, dtype=torch.float64), x, a.new_ones(3))
    assert torch.equal(wide, a[0].sum(1).expand(2, 3) + 1)
    sums = torch.addmv(torch.ones(3, dtype=torch.float64), x, b[0, :, 0], beta=2, alpha=3)
    assert torch.equal(sums, 2 + 3 * a[0] @ b[0, :, 0])


def test_sums_are_independent_of_the_number_of_threads() -> None:
    a, b = matrix(300, 200, torch.float32, 5), torch.rand(200, 65)
    before = torch.get_num_threads()
    try:
        got = []
        for n in (1, 2, 4):
            torch.set_num_threads(n)
            got.append(a @ b)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(got[0], got[1]) and torch.equal(got[0], got[2])


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "add alpha": lambda x, y: torch.add(x, y, alpha=3),
    "scaled": lambda x, y: 2 * x + y / 4 - (y * 3),
    "neg": lambda x, y: -x,
    "abs": lambda x, y: abs(y),
    "pow": lambda x, y: x**2,
    "sin": lambda x, y: x.sin(),
    "relu": lambda x, y: torch.relu(y),
    "sqrt": lambda x, y: (x * x).sqrt(),
    "t": lambda x, y: (x + y).t(),
    "transpose": lambda x, y: x.transpose(0, 1),
    "T": lambda x, y: x.T,
    "permute": lambda x, y: x.permute(1, 0),
    "unsqueeze": lambda x, y: x.unsqueeze(1),
    "cat": lambda x, y: torch.cat([x, y], 1),
    "stack": lambda x, y: torch.stack([x, y], 1),
    "select": lambda x, y: x[1],
    "select last": lambda x, y: x.select(-1, 2),
    "index_select": lambda x, y: x.index_select(0, torch.tensor([2, 0, 2])),
    "index_select 1": lambda x, y: x.index_select(1, torch.tensor([1, 1])),
    "sum": lambda x, y: x.sum(),
    "sum 0": lambda x, y: x.sum(0),
    "sum 1": lambda x, y: x.sum(1, keepdim=True),
    "to": lambda x, y: x.to(torch.float32),
}


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("lead", [1, 2])
def test_arithmetic_is_that_of_dense_tensors(name: str, lead: int) -> None:
    f = ARITHMETIC[name]
    if lead == 1 and name in ("t", "transpose", "T", "permute"):
        with pytest.raises(RuntimeError, match="can't transpose sparse and dense"):
            f(torch.eye(3).to_sparse(1), torch.eye(3).to_sparse(1))
        return
    a, b = matrix(4, 3, torch.float64, 6), matrix(4, 3, torch.float64, 7)
    want = f(a.to_dense(), b.to_dense())
    if lead == 1:
        a, b = a.to_dense().to_sparse(1), b.to_dense().to_sparse(1)
    for x, y in ((a, b), (a.coalesce(), b.coalesce())):
        got = f(x, y)
        torch.testing.assert_close(got.to_dense(), want)


def test_sparse_and_dense_operands_mix() -> None:
    a, b = matrix(4, 3, torch.float64, 8), dense(4, 3, torch.float64, 9)
    want = a.to_dense()
    assert torch.equal(b + a, b + want) and torch.equal(b - a, b - want)
    # PyTorch refuses these two; the sums are what they are in the other order.
    assert torch.equal(a + b, b + want) and torch.equal(a - b, want - b)
    assert (a * b).is_sparse and torch.equal((a * b).to_dense(), want * b)
    assert torch.equal((b[0] * a).to_dense(), want * b[0])
    target = b.clone()
    assert target.add_(a, alpha=2) is target and torch.equal(target, b + 2 * want)
    turned = b.t().contiguous().t()
    assert torch.equal(turned.add_(a), b + want)
    assert torch.equal(a.mul(torch.tensor(3.0)).to_dense(), want * 3)
    with pytest.raises(RuntimeError, match="Sparse division requires a scalar"):
        a / b
    with pytest.raises(RuntimeError, match="expected sizes of 'self' and 'other' to match, but"):
        a + matrix(3, 4, torch.float64, 8)
    with pytest.raises(RuntimeError, match="same density, but 'self' has 2 sparse dimensions"):
        a + want.to_sparse(1)


def test_operators_with_assignment_write_to_sparse_tensors() -> None:
    d = sample().to_dense()
    x = seen = sample()
    x += sample()
    assert x is seen and torch.equal(x.to_dense(), 2 * d)
    x -= sample()
    x *= sample()
    assert torch.equal(x.to_dense(), d * d)
    x /= 2
    x *= torch.tensor(4.0)
    assert x is seen and torch.equal(x.to_dense(), 2 * d * d)
    dense = torch.ones(2, 3)
    dense += sample()
    assert torch.equal(dense, 1 + d)
    dense *= sample()
    assert not dense.is_sparse and torch.equal(dense, (1 + d) * d)
    whole, leaf = sample().long(), sample(requires_grad=True)
    with pytest.raises(RuntimeError, match="Can't convert result type Float to output Long"):
        whole += sample()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf += sample()


def test_products_of_sparse_tensors_broadcast_values_alone() -> None:
    a = torch.arange(24.0).reshape(2, 3, 4).to_sparse(2)
    b = torch.arange(6.0).reshape(2, 3, 1).to_sparse(2)
    assert torch.equal((a * b).to_dense(), a.to_dense() * b.to_dense())
    row = torch.ones(1, 3).to_sparse()
    with pytest.raises(RuntimeError, match="expects sparse inputs with equal dimensionality, numb"):
        sample() * row
    assert torch.equal(
        (sample() * torch.tensor(2.0).to_sparse()).to_dense(), 2 * sample().to_dense()
    )
    large = sample() * torch.ones(2, 2, 3)
    assert large.shape == (2, 2, 3) and torch.equal(large.to_dense()[1], sample().to_dense())
    with pytest.raises(
        RuntimeError, match=r"The size of tensor a \(\d\) must match the size of te"
    ):
        sample() * torch.ones(3, 3)
    wide = torch._sparse_broadcast_to(row, (2, 3))
    assert torch.equal(wide.to_dense(), torch.ones(2, 3)) and wide._nnz() == 6
    with pytest.raises(
        RuntimeError, match="does not broadcast over the requested shape of length 3"
    ):
        torch._sparse_broadcast_to(torch.ones(2).to_sparse(), (2, 3))


def test_functions_in_place_want_each_coordinate_once() -> None:
    for name in "abs asin atan ceil erf expm1 floor log1p sign sin sqrt tanh relu".split():
        with pytest.raises(RuntimeError, match=f"{name}_ requires coalesced input"):
            getattr(sample(), f"{name}_")()
        whole = sample().coalesce()
        getattr(whole, f"{name}_")()
        torch.testing.assert_close(
            whole.to_dense(), getattr(sample().to_dense(), name)(), equal_nan=True
        )
    with pytest.raises(RuntimeError, match="asin_ requires coalesced input"):
        sample().short().asin_()
    negative = sample().neg_()
    assert negative._nnz() == 3 and torch.equal(negative.to_dense(), -sample().to_dense())


def test_joined_tensors_are_alike() -> None:
    with pytest.raises(
        RuntimeError, match=r"All tensors must have the same shape: \[2, 3\].*\[2, 4\]"
    ):
        torch.cat([sample(), torch.ones(2, 4).to_sparse()])
    with pytest.raises(
        RuntimeError, match="must have the same sparse_dim and dense_dim: 2, 0, but"
    ):
        torch.cat([sample(), torch.ones(2, 3).to_sparse(1)])
    with pytest.raises(RuntimeError, match="but a dense tensor was found at position 1"):
        torch.cat([sample(), torch.ones(2, 3)])


def test_powers_keep_zeros_or_raise() -> None:
    x = sample()
    assert torch.equal(x.pow(2).to_dense(), x.to_dense() ** 2)
    with pytest.raises(RuntimeError, match=r"add\(sparse, dense\) is not supported"):
        x - 2
    with pytest.raises(RuntimeError, match="pow: cannot raise to zeroth power on sparse tensor"):
        x.pow(0)


def test_gradients_of_sparse_inputs_are_checked_by_their_values() -> None:
    check = torch.autograd.gradcheck
    a = torch.rand(2, 2, dtype=torch.float64, requires_grad=True)
    b = torch.rand(2, 2, dtype=torch.float64).to_sparse().requires_grad_()
    assert check(lambda x, y: x * y.coalesce().to_dense(), (a, b))
    assert check(lambda x: x.to_dense(masked_grad=True), (b,), masked=True, fast_mode=True)
    with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
        check(lambda x: x * 2, (b,))
    assert torch.autograd.gradgradcheck(lambda x, y: (x @ y) @ y, (b, a))

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    assert not check(lambda x: Wrong.apply(x.to_dense()), (b,), raise_exception=False)


def test_integer_sums_are_int64() -> None:
    x = torch.tensor([[1, 0], [2, 3]], dtype=torch.int32).to_sparse()
    assert x.sum().item() == 6 and x.sum().dtype == torch.int64
    assert x.sum(0).dtype == torch.int64 and x.sum(0).to_dense().tolist() == [3, 3]
    assert torch.sparse.sum(x, dtype=torch.float64).dtype == torch.float64
    # Along dimensions `sparse.sum` keeps the type.
    assert torch.sparse.sum(x, 0).dtype == torch.int32


def test_softmax_counts_what_has_no_entry_as_minus_infinity() -> None:
    x = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 5.0]], dtype=torch.float64)
    for dim in (0, 1):
        e = np.where(x.numpy() == 0, 0, np.exp(x.numpy()))
        want = e / np.where(x.numpy() == 0, 1, e.sum(dim, keepdims=True))
        got = torch.sparse.softmax(x.to_sparse(), dim)
        np.testing.assert_allclose(got.to_dense().numpy(), want, rtol=1e-12)
        log = torch.sparse.log_softmax(x.to_sparse(), dim)
        np.testing.assert_allclose(log.values().exp().numpy(), got.values().numpy(), rtol=1e-12)
        whole = torch.sparse.softmax(x.to_sparse(1), 1).to_dense()
        np.testing.assert_allclose(whole.numpy(), torch.softmax(x, 1).numpy(), rtol=1e-12)
    assert torch.sparse.softmax(x.to_sparse(), 1, dtype=torch.float32).dtype == torch.float32


GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "mm": lambda x, y: x @ y,
    "mm from the left": lambda x, y: y.t() @ x.t(),
    "sparse mm": lambda x, y: x @ x.t(),
    "mv": lambda x, y: x @ y[:, 0],
    "addmm": lambda x, y: torch.addmm(y[:2], x, y, beta=2, alpha=3),
    "to_dense": lambda x, y: x.to_dense() ** 2,
    "coalesce": lambda x, y: x.coalesce().values() ** 2,
    "add": lambda x, y: x + 2 * x,
    "dense add": lambda x, y: y[:2].repeat(1, 2)[:, :3] + x,
    "mul": lambda x, y: x * x,
    "dense mul": lambda x, y: x * y.t(),
    "sin": lambda x, y: x.sin(),
    "pow": lambda x, y: x**2,
    "sum": lambda x, y: x.sum(0),
    "sum all": lambda x, y: x.sum() ** 2,
    "t": lambda x, y: x.t() @ y[:2],
    "softmax": lambda x, y: torch.sparse.softmax(x, 1),
    "log_softmax": lambda x, y: torch.sparse.log_softmax(x, 0),
    "index_select": lambda x, y: x.index_select(0, torch.tensor([1, 1])),
    "select": lambda x, y: x[1],
    "cat": lambda x, y: torch.cat([x, x], 0),
    "sparse_mask": lambda x, y: y.t().sparse_mask(x) * x,
    "to_sparse": lambda x, y: y.to_sparse() * 2,
    "hspmm": lambda x, y: torch.hspmm(x, y),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("kind", [torch.float64, torch.complex128])
def test_gradients_are_right(name: str, kind: Any) -> None:
    if kind.is_complex and "softmax" in name:
        return
    f = GRADIENTS[name]
    values = torch.tensor([0.5, -2.0, 1.5, 3.0], dtype=torch.float64).to(kind)
    y = torch.tensor([[1.0, 2.0], [-1.0, 0.5], [2.0, -3.0]], dtype=torch.float64).to(kind)
    if kind.is_complex:
        values, y = values * (1 + 0.5j), y * (0.5 - 1j)
    y.requires_grad_()
    x = torch.sparse_coo_tensor([[0, 0, 1, 1], [0, 2, 1, 2]], values, (2, 3), requires_grad=True)
    assert gradcheck(f, (x, y))

    def of_values(v: Any, y: Any) -> Any:
        got = f(torch.sparse_coo_tensor([[1, 0, 1, 1], [0, 2, 0, 2]], v, (2, 3)), y)
        return got.to_dense()

    # One coordinate twice, in no order.
    assert torch.autograd.gradcheck(of_values, (values.requires_grad_(), y))


def test_second_derivatives_of_products() -> None:
    values = torch.tensor([0.5, -2.0, 1.5], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([[1.0, 2.0], [-1.0, 0.5], [2.0, -3.0]], dtype=torch.float64)

    def f(v: Any, y: Any) -> Any:
        return torch.sparse_coo_tensor(INDICES, v, (2, 3)) @ y

    assert torch.autograd.gradgradcheck(f, (values, y.requires_grad_()))


def test_gradient_of_a_sparse_leaf_is_sparse() -> None:
    x = sample(requires_grad=True)
    (x @ torch.ones(3, 2)).sum().backward()
    assert x.grad.is_sparse and x.grad.is_coalesced()
    assert (x.grad.indices().tolist(), x.grad.values().tolist()) == ([[0, 1], [2, 0]], [2.0, 2.0])
    (x @ torch.ones(3, 2)).sum().backward()
    assert x.grad.to_dense().tolist() == [[0.0, 0.0, 4.0], [4.0, 0.0, 0.0]]
    unmasked = sample(requires_grad=True)
    unmasked.to_dense(masked_grad=False).sum().backward()
    assert unmasked.grad._nnz() == 6


def test_gradient_of_dense_elements_that_are_there() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]], requires_grad=True)
    x.to_sparse().to_dense().sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_a_graph_network_learns_its_edges_and_weights() -> None:
    torch.manual_seed(0)
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    weight = torch.ones(5, requires_grad=True)
    layer = torch.nn.Linear(3, 2)
    x, target = torch.randn(4, 3), torch.randn(4, 2)
    optimizer = torch.optim.Adam([weight, *layer.parameters()], lr=0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        adjacency = torch.sparse_coo_tensor(edges, weight, (4, 4))
        loss = ((torch.sparse.mm(adjacency, layer(x)) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    assert not weight.grad.is_sparse and (weight != 1).all()


def test_embedding_gives_sparse_gradients() -> None:
    table = torch.nn.Embedding(4, 2, sparse=True, padding_idx=1)
    numbers = torch.tensor([[0, 1], [2, 0]])
    table(numbers).sum().backward()
    grad = table.weight.grad
    assert (grad._indices().tolist(), grad._values().tolist()) == ([[0, 2, 0]], [[1.0, 1.0]] * 3)
    assert grad.shape == (4, 2) and not grad.is_coalesced()
    table(numbers).sum().backward()
    assert table.weight.grad.to_dense().tolist() == [[4, 4], [0, 0], [2, 2], [0, 0]]
    bag = torch.nn.EmbeddingBag(4, 2, sparse=True, mode="mean")
    bag(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 2])).sum().backward()
    grad = bag.weight.grad
    assert (grad._indices().tolist(), grad._values().tolist()) == ([[0, 1, 2, 0]], [[0.5, 0.5]] * 4)


def test_sparse_and_dense_gradients_add_up() -> None:
    weight = torch.zeros(3, 1, requires_grad=True)
    embedding = torch.nn.functional.embedding
    (embedding(torch.tensor([1]), weight, sparse=True).sum() + weight.sum()).backward()
    assert weight.grad.tolist() == [[1.0], [2.0], [1.0]]
    embedding(torch.tensor([1]), weight, sparse=True).sum().backward()
    assert weight.grad.tolist() == [[1.0], [3.0], [1.0]]
    weight.grad = None
    embedding(torch.tensor([1]), weight, sparse=True).sum().backward()
    weight.sum().backward()
    assert weight.grad.to_dense().tolist() == [[1.0], [2.0], [1.0]]
    assert weight.grad.zero_().to_dense().tolist() == [[0.0]] * 3


def trained(optimizer: Callable[..., Any], sparse: bool, **options: Any) -> Any:
    weight = torch.nn.Parameter(torch.arange(8.0).reshape(4, 2) / 8)
    steps = optimizer([weight], **options)
    for numbers in ([0, 2, 0], [1], [2, 2, 3]):
        rows = torch.nn.functional.embedding(torch.tensor(numbers), weight, sparse=sparse)
        steps.zero_grad()
        (rows**2).sum().backward()
        assert weight.grad.is_sparse == sparse
        steps.step()
    return weight.detach()


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (torch.optim.SGD, {"lr": 0.1}),
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
        (torch.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1}),
    ],
)
def test_optimizers_step_alike_with_sparse_gradients(optimizer: Any, options: Any) -> None:
    got, want = (trained(optimizer, sparse, **options) for sparse in (True, False))
    torch.testing.assert_close(got, want)


def test_momentum_of_sparse_gradients_does_not_grow() -> None:
    buffer = sample()
    for _ in range(5):
        buffer.mul_(0.5).add_(sample())
    assert buffer._nnz() == 2


def test_sparse_adam_updates_the_rows_that_have_gradients() -> None:
    got = trained(torch.optim.SparseAdam, True, lr=0.1)
    # Recorded from PyTorch 2.13.
    want = [
        [0.0, 0.0250001],
        [0.1755864, 0.3005863],
        [0.3153455, 0.4406894],
        [0.6861187, 0.8111187],
    ]
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        trained(torch.optim.SparseAdam, False)
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients"):
        trained(torch.optim.Adam, True)


def test_hooks_and_copies_of_sparse_gradients() -> None:
    weight = torch.zeros(3, 1, requires_grad=True)
    seen = []
    weight.register_hook(lambda g: seen.append(g.is_sparse))
    rows = torch.nn.functional.embedding(torch.tensor([1]), weight, sparse=True)
    (grad,) = torch.autograd.grad(rows.sum(), weight, create_graph=True)
    assert seen == [True] and grad.is_sparse
    rows = torch.nn.functional.embedding(torch.tensor([1, 2]), weight, sparse=True)
    rows.sum().backward()
    weight.grad.mul_(0.5)
    assert weight.grad.to_dense().tolist() == [[0.0], [0.5], [0.5]]
