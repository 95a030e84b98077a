"""Factorisations and distances around the sizes where their algorithms change, against NumPy."""

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
