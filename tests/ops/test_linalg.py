"""Factorisations and distances around the sizes where their algorithms change, against NumPy."""

import math

import numpy as np
import pytest

import pytensorlib as torch

L = torch.linalg
SIZES = [1, 3, 8, 9, 16, 17, 32, 33, 40]
DTYPES = [np.float32, np.float64]


def matrix(rng, dtype, *shape):
    return rng.standard_normal(shape).astype(dtype)


def close(got, want, dtype, size=1.0):
    """Whether the largest difference is a small multiple of the type's precision."""
    got, want = (np.asarray(v.numpy() if hasattr(v, "numpy") else v, float) for v in (got, want))
    assert got.shape == want.shape
    bound = 64 * np.finfo(dtype).eps * max(got.shape, default=1) * size
    assert np.abs(got - want).max(initial=0.0) <= bound * max(1.0, np.abs(want).max(initial=0.0))


def t(x):
    return torch.from_numpy(np.ascontiguousarray(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_square_factorisations_give_the_matrix_back(dtype, n, batch):
    rng = np.random.default_rng(n)
    a = matrix(rng, dtype, *batch, n, n) + 3 * np.sqrt(n).astype(dtype) * np.eye(n, dtype=dtype)
    b = matrix(rng, dtype, *batch, n, 5)
    wide = a.astype(float)
    close(L.solve(t(a), t(b)), np.linalg.solve(wide, b), dtype)
    close(L.inv(t(a)), np.linalg.inv(wide), dtype)
    sign, log = L.slogdet(t(a))
    close(sign, np.linalg.slogdet(wide)[0], dtype)
    close(log, np.linalg.slogdet(wide)[1], dtype, n)
    p, lower, upper = (v.numpy().astype(float) for v in L.lu(t(a)))
    close(p @ lower @ upper, a, dtype)
    spd = wide @ np.swapaxes(wide, -1, -2)
    close(L.cholesky(t(spd.astype(dtype))), np.linalg.cholesky(spd), dtype, 8)
    symmetric = (wide + np.swapaxes(wide, -1, -2)).astype(dtype)
    w, v = (v.numpy().astype(float) for v in L.eigh(t(symmetric)))
    close(w, np.linalg.eigvalsh(symmetric.astype(float)), dtype)
    close(v * w[..., None, :] @ np.swapaxes(v, -1, -2), symmetric, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 4), (16, 16), (20, 17), (17, 40), (64, 5)])
@pytest.mark.parametrize("full", [False, True])
def test_orthogonal_factorisations_give_the_matrix_back(dtype, shape, full):
    a = matrix(np.random.default_rng(7), dtype, *shape)
    k = min(shape)
    q, r = (v.numpy().astype(float) for v in L.qr(t(a), mode="complete" if full else "reduced"))
    close(q @ r, a, dtype)
    close(q.T @ q, np.eye(q.shape[1]), dtype)
    assert (np.tril(r, -1) == 0).all()
    u, s, vh = (v.numpy().astype(float) for v in L.svd(t(a), full_matrices=full))
    close(s, np.linalg.svd(a.astype(float), compute_uv=False), dtype)
    close(L.svdvals(t(a)), s, dtype)
    close((u[:, :k] * s) @ vh[:k], a, dtype)
    close(u.T @ u, np.eye(u.shape[1]), dtype)
    close(vh @ vh.T, np.eye(vh.shape[0]), dtype)


@pytest.mark.parametrize("n", [3, 40])
def test_singular_input_is_reported_as_by_lapack(n):
    ones = torch.ones(n, n)
    with pytest.raises(L.LinAlgError, match="diagonal element 2 is zero"):
        L.inv(ones)
    with pytest.raises(L.LinAlgError, match="singular"):
        L.solve(ones, torch.ones(n, 1))
    with pytest.raises(L.LinAlgError, match="minor of order 2"):
        L.cholesky(ones)
    with pytest.raises(L.LinAlgError, match="non-finite"):
        L.svd(torch.full((n, n), float("inf")))
    assert L.det(ones) == 0
    assert L.lu_factor_ex(ones).info == 2
    assert L.cholesky_ex(-ones).info == 1
    lu, pivots, _ = L.lu_factor_ex(torch.zeros(n, n))
    assert (lu == 0).all() and pivots.tolist() == list(range(1, n + 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [10, 70, 250])
def test_zero_column_is_named_whatever_is_factored(n, dtype):
    a = torch.randn(n, n, dtype=dtype)
    a[:, 5] = 0
    b = torch.ones(n, 1, dtype=dtype)
    assert [L.lu_factor_ex(a).info, L.inv_ex(a).info, L.solve_ex(a, b).info] == [6] * 3


@pytest.mark.parametrize("name", ["solve", "inv", "det", "qr", "eigh", "svd", "cholesky"])
def test_empty_matrices_give_empty_results(name):
    args = [torch.zeros(2, 0, 0)] + [torch.zeros(2, 0, 3)] * (name == "solve")
    y = getattr(L, name)(*args)
    first = y if isinstance(y, torch.Tensor) else y[0]
    assert first.shape[0] == 2
    assert name != "det" or (first == 1).all()


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("sizes", [(3, 5, 4), (30, 70, 9)])
def test_cdist_and_its_gradient_are_those_of_the_norm(p, sizes):
    rng = np.random.default_rng(3)
    m, n, w = sizes
    x, y = rng.standard_normal((2, m, w)), rng.standard_normal((n, w))
    tx, ty = t(x).requires_grad_(), t(y).requires_grad_()
    d = torch.cdist(tx, ty, p)
    difference = x[:, :, None] - y
    want = np.linalg.norm(difference, p, axis=-1)
    assert np.allclose(d.detach().numpy(), want)
    g = rng.standard_normal(want.shape)
    gx, gy = torch.autograd.grad(d, (tx, ty), t(g))
    size = np.abs(difference)
    if p == 0:
        slope = 0 * difference
    elif p == np.inf:
        slope = np.sign(difference) * (size == want[..., None])
    else:
        slope = np.sign(difference) * size ** (p - 1) / want[..., None] ** (p - 1)
    assert np.allclose(gx.numpy(), (slope * g[..., None]).sum(2))
    assert np.allclose(gy.numpy(), -(slope * g[..., None]).sum((0, 1)))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_pdist_is_the_upper_triangle_of_cdist(p):
    x = t(np.random.default_rng(4).standard_normal((70, 6))).requires_grad_()
    i, j = torch.triu_indices(70, 70, 1)
    d, all_of_them = torch.pdist(x, p), torch.cdist(x, x.detach(), p)
    assert torch.allclose(d, all_of_them[i, j])
    few = x[:5].detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: torch.pdist(x, p), few)
    assert torch.autograd.gradgradcheck(lambda x: torch.pdist(x, p), few)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(192, 192), (300, 210), (210, 300), (513, 513), (800, 200)])
def test_lu_of_large_matrices_is_theirs_with_any_number_of_threads(shape, dtype):
    rng = np.random.default_rng(0)
    a = rng.normal(size=shape).astype(dtype)
    b = rng.normal(size=(shape[0], 150)).astype(dtype)
    near = 40 * max(shape) * np.finfo(dtype).eps
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            x = torch.from_numpy(a)
            results = [*torch.linalg.lu(x), torch.linalg.lu_factor(x)[0]]
            if shape[0] == shape[1]:
                results += [torch.linalg.solve(x, torch.from_numpy(b))]
                results += [torch.linalg.solve(x, torch.from_numpy(b[:, 0])), torch.linalg.inv(x)]
                results += [*torch.linalg.slogdet(x)]
            found.append([y.numpy() for y in results])
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(np.array_equal(y, z) for y, z in zip(found[0], other, strict=True))
    p, lower, upper, packed = (y.astype(np.float64) for y in found[0][:4])
    np.testing.assert_allclose(p @ lower @ upper, a, 0, near)
    np.testing.assert_array_equal(p.sum(0), 1)
    # Rows were exchanged for the largest element.
    assert np.abs(lower).max() <= 1
    k = min(shape)
    np.testing.assert_array_equal(np.triu(packed)[:k], upper)
    np.testing.assert_array_equal(np.tril(packed, -1)[:, :k], np.tril(lower, -1))
    if shape[0] == shape[1]:
        many, one, inverse, sign, log = found[0][4:]
        size = np.linalg.norm(a, 2)
        for x, want in ((many, b), (one, b[:, 0]), (inverse, np.eye(len(a)))):
            error = np.abs(a.astype(np.float64) @ x - want).max()
            assert error < near * size * np.abs(x).max()
        wanted = np.linalg.slogdet(a.astype(np.float64))
        assert sign == wanted[0] and abs(log - wanted[1]) < near * abs(wanted[1])


@pytest.mark.parametrize("pivots", [[1], [1, 2], [1, 2, 3, 3], []])
def test_lu_solve_with_too_many_or_too_few_pivots_raises(pivots: list[int]) -> None:
    at = torch.tensor(pivots, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="Number of pivots"):
        torch.linalg.lu_solve(torch.eye(3), at, torch.ones(3, 2))
    with pytest.raises(RuntimeError, match="Number of pivots"):
        torch.lu_solve(torch.ones(3, 2), torch.eye(3), at)


def test_nuclear_norm_of_many_matrices_wants_its_dimensions() -> None:
    x = torch.ones(2, 2, 2)
    for f in (lambda: torch.norm(x, "nuc"), lambda: x.norm("nuc")):
        with pytest.raises(RuntimeError, match="dim must be a 2-tuple"):
            f()
    torch.testing.assert_close(torch.norm(x, "nuc", dim=(1, 2)), torch.tensor([2.0, 2.0]))


INF, NAN = math.inf, math.nan


def test_triangular_solve_gives_back_coefficients_of_every_system() -> None:
    a = torch.tensor([[[2.0, 1.0], [0.0, 4.0]]], requires_grad=True)
    c = torch.triangular_solve(torch.ones(3, 2, 1), a)[1]
    assert c.shape == (3, 2, 2)
    (g,) = torch.autograd.grad(c.sum(), a)
    assert g.tolist() == [[[3, 3], [3, 3]]]


def test_solve_ex_reports_each_matrix_once() -> None:
    a = torch.stack([torch.eye(2), torch.zeros(2, 2)])
    assert torch.linalg.solve_ex(a, torch.ones(3, 2, 2, 1))[1].tolist() == [0, 1]
    assert torch.linalg.solve_ex(torch.eye(2), torch.ones(3, 2, 1))[1].tolist() == 0
    assert torch.linalg.solve_ex(torch.eye(2), torch.ones(0, 2, 1))[1].tolist() == 0
    assert torch.linalg.solve_ex(torch.eye(2)[None], torch.ones(3, 2, 1))[1].tolist() == [0]


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(torch.float32, s) for s in (2e38, 1e30, 1e-30, 1e-42)]
    + [(torch.float64, 1e307)]
    + [(torch.float64, 1e-290)],
)
def test_decompositions_near_the_ends_of_the_type_hold(dtype: torch.dtype, scale: float) -> None:
    a = np.array([[1.0, 0.25, 0.5], [0.125, 0.5, 0.25], [0.25, 0.0, 0.75]])
    x = torch.tensor(a * scale, dtype=dtype)
    a = x.double().numpy() / scale  # what the type holds
    loose = 3e-3 if scale == 1e-42 else 1e-5
    want = np.linalg.svd(a, compute_uv=False)
    u, s, vh = (t.double().numpy() for t in torch.linalg.svd(x))
    np.testing.assert_allclose(s / scale, want, rtol=loose)
    np.testing.assert_allclose((u * (s / scale)) @ vh, a, atol=loose)
    np.testing.assert_allclose(torch.linalg.svdvals(x).double().numpy() / scale, want, rtol=loose)
    low = np.tril(a) + np.tril(a, -1).T
    got = torch.linalg.eigvalsh(x).double().numpy() / scale
    np.testing.assert_allclose(got, np.linalg.eigvalsh(low), atol=loose)
    w, v = (t.double().numpy() for t in torch.linalg.eigh(x))
    np.testing.assert_allclose((v * (w / scale)) @ v.T, low, atol=loose)


def rows_of(m: int, n: int) -> np.ndarray:
    return np.random.default_rng(m * 31 + n).standard_normal((2, m, n))


@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (5, 3), (1, 4), (4, 1), (0, 2), (2, 0)])
def test_lu_of_any_shape_has_its_gradient(shape: tuple[int, int]) -> None:
    x = torch.tensor(rows_of(*shape), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: torch.linalg.lu(x)[1:], x)
    assert torch.autograd.gradcheck(lambda x: torch.linalg.lu_factor(x)[0], x)
    if min(shape) > 1:
        assert torch.autograd.gradgradcheck(lambda x: torch.linalg.lu_factor(x)[0], x)


@pytest.mark.parametrize("p", [1, 2, 0.5, 3, INF])
def test_renorm_scales_slices_down_to_the_norm(p: float) -> None:
    a = rows_of(3, 4) * [[[0.1]], [[4.0]]]
    for dim in (0, 1, -1):
        others = tuple(d for d in range(3) if d != dim % 3)
        size = np.abs(a)
        norm = size.max(others, keepdims=True)
        if p != INF:
            norm = (size**p).sum(others, keepdims=True) ** (1 / p)
        want = a * np.where(norm > 1.5, 1.5 / (norm + 1e-7), 1)
        x = torch.tensor(a, requires_grad=True)
        np.testing.assert_allclose(torch.renorm(x, p, dim, 1.5).detach().numpy(), want)
        np.testing.assert_allclose(x.detach().clone().renorm_(p, dim, 1.5).numpy(), want)
        assert torch.autograd.gradcheck(lambda x, dim=dim: torch.renorm(x, p, dim, 1.5), x)
    assert torch.renorm(torch.ones(2, 3).half(), p, 0, 1).dtype == torch.float16
    for bad in ((-1, 0, 1), (p, 0, -1)):
        with pytest.raises(RuntimeError, match="renorm"):
            torch.renorm(torch.ones(2, 3), *bad)
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        torch.renorm(torch.ones(3), p, 0, 1)


inf, nan = float("inf"), float("nan")


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, inf, -inf])
def test_norm_of_one_element_is_its_size(p: float) -> None:
    x = torch.tensor([[1e30], [-1e-30], [0.0]], requires_grad=True)
    y = torch.linalg.vector_norm(x, p, dim=1)
    assert y.tolist() == x.detach().abs().squeeze(1).tolist()
    y.sum().backward()
    assert x.grad.squeeze(1).tolist() == [1, -1, 0]


def test_norm_of_bytes_tells_of_their_type_before_dimensions() -> None:
    x = torch.zeros(2, 2, dtype=torch.uint8)
    for norm in (torch.frobenius_norm, lambda x, dim: torch.linalg.vector_norm(x, 2, dim)):
        for dim in (5, (0, 0), (0, 1)):
            with pytest.raises(RuntimeError, match="Expected a floating point or complex.*Byte"):
                norm(x, dim)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3)])
def test_matrix_norms_of_no_elements_are_zero_or_there_is_no_least(shape: tuple[int, ...]) -> None:
    x, batch = torch.ones(shape), shape[:-2]
    for order in (inf, 1, 2, "fro", "nuc"):
        y = torch.linalg.matrix_norm(x, order, keepdim=True)
        assert y.shape == (*batch, 1, 1)
        assert not y.any()
    columns, rows = -1, -inf  # norms of them: sums of each, of which there may be some
    for order in {columns, rows, -2} - {columns if shape[-1] else 0, rows if shape[-2] else 0}:
        with pytest.raises(IndexError, match="non-zero size"):
            torch.linalg.matrix_norm(x, order)


@pytest.mark.parametrize("order", [None, 1, -1, 2, -2, inf, -inf])
def test_condition_number_of_no_elements_is_zero(order: float | None) -> None:
    for shape in ((0, 0), (0, 3), (2, 0, 3)):
        y = torch.linalg.cond(torch.ones(shape, dtype=torch.complex128), order)
        assert y.dtype == torch.float64
        assert y.tolist() == np.zeros(shape[:-2]).tolist()
    with pytest.raises(RuntimeError, match="invalid norm type: 3"):
        torch.linalg.cond(torch.ones(0, 0), 3)


CROSS = [((5, 3, 4), (5, 3, 4), 1), ((3, 7), (3, 7), 0), ((1, 3), (6, 3), 1)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.complex64])
@pytest.mark.parametrize(("a", "b", "dim"), CROSS)
def test_cross_along_any_dimension_of_any_type(
    a: tuple[int, ...], b: tuple[int, ...], dim: int, dtype: torch.dtype
) -> None:
    generator = np.random.default_rng(1)
    x, y = (torch.tensor(generator.integers(-9, 9, shape)).to(dtype) for shape in (a, b))
    want = np.cross(*(np.moveaxis(v.numpy(), dim, -1) for v in (x, y)))
    got = torch.linalg.cross(x, y, dim=dim)
    assert got.is_contiguous()
    assert got.tolist() == np.moveaxis(want, -1, dim).tolist()
    # As it lies in memory across, and with gradients.
    across = x.mT.contiguous().mT
    assert torch.linalg.cross(across, y, dim=dim).tolist() == got.tolist()
    if dtype == torch.float64:
        leaves = [x.requires_grad_(), y.requires_grad_()]
        assert torch.autograd.gradcheck(lambda u, v: torch.linalg.cross(u, v, dim=dim), leaves)


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_inverse_of_a_singular_matrix_is_refused(upper: bool) -> None:
    for one, where in ((torch.eye(3), ""), (torch.eye(3).expand(2, 3, 3), "Batch element 1")):
        singular = one.clone()
        singular[..., 1, 1][-1 if one.dim() > 2 else ...] = 0
        with pytest.raises(torch.linalg.LinAlgError, match=f"{where}.*diagonal element 2 is zero"):
            torch.cholesky_inverse(singular, upper=upper)
    assert torch.equal(torch.cholesky_inverse(torch.eye(3)), torch.eye(3))
