"""Factorisations of matrices without full rank, by putting the matrix together again."""

import numpy as np
import pytest

import pytensorlib as torch

L = torch.linalg
DTYPES = [np.float32, np.float64]
SIZES = [2, 17, 31, 32, 33, 48, 64, 96]


def low_rank(n):
    """Matrices with about as many rows as n, by name."""
    rng = np.random.default_rng(n)
    normal = rng.standard_normal
    repeated = normal((2 * n, n))
    repeated[:, n // 2 :] = repeated[:, : n - n // 2]
    column = np.zeros((n, n))
    column[:, -1] = 1
    return {
        "half": normal((n, n // 2)) @ normal((n // 2, n)),
        "three": normal((n, 3)) @ normal((3, n)),
        "integers": np.round(normal((n, n // 4))) @ np.round(normal((n // 4, n))),
        "tall": repeated,
        "wide": repeated.T,
        "square": repeated[:n],
        "ones": np.ones((n, n)),
        "tall ones": np.ones((2 * n, n)),
        "zeros": np.zeros((n, n)),
        "one column": column,
        "every third": np.diag(np.arange(n) % 3 == 0).astype(float),
        "full": normal((n, n)),
    }


def matrices():
    return [
        pytest.param(a.astype(dtype), id=f"{name}-{n}-{np.dtype(dtype)}")
        for n in SIZES
        for name, a in low_rank(n).items()
        for dtype in DTYPES
    ]


def tensor(a):
    return torch.from_numpy(np.ascontiguousarray(a))


def arrays(tensors):
    return [v.numpy().astype(float) for v in tensors]


def small(rest, a, scale=None):
    """Whether `rest` is rounding of numbers as large as those of `a`."""
    assert np.isfinite(rest).all()
    scale = np.linalg.norm(a.astype(float), 2) if scale is None else scale
    bound = 4 * np.finfo(a.dtype).eps * max(a.shape) * scale
    assert np.abs(rest).max(initial=0.0) <= bound


def orthogonal(q, a):
    small(q.T @ q - np.eye(q.shape[1]), a, 1.0)


@pytest.mark.parametrize("a", matrices())
def test_factors_of_low_rank_give_the_matrix_back(a):
    x, wide = tensor(a), a.astype(float)
    values = np.linalg.svd(wide, compute_uv=False)
    u, s, vh = arrays(L.svd(x, full_matrices=False))
    small(u * s @ vh - wide, a)
    orthogonal(u, a)
    orthogonal(vh.T, a)
    small(s - values, a)
    small(L.svdvals(x).numpy() - values, a)
    assert int(L.matrix_rank(x)) == np.linalg.matrix_rank(a)
    small(float(L.matrix_norm(x, "nuc")) - values.sum(), a, max(values.sum(), 1e-30))
    for mode in ("reduced", "complete"):
        q, r = arrays(L.qr(x, mode=mode))
        small(q @ r - wide, a)
        orthogonal(q, a)
        assert (np.tril(r, -1) == 0).all()
    p, lower, upper = arrays(L.lu(x))
    small(p @ lower @ upper - wide, a, 8 * max(1.0, np.abs(upper).max()))
    if a.shape[0] == a.shape[1]:
        for symmetric in (a + a.T, (wide @ wide.T).astype(a.dtype)):
            w, v = arrays(L.eigh(tensor(symmetric)))
            small(v * w @ v.T - symmetric, symmetric)
            orthogonal(v, a)
            small(w - np.linalg.eigvalsh(symmetric.astype(float)), symmetric)


@pytest.mark.parametrize("n", [6, 40, 90])
def test_pseudo_inverse_of_low_rank_agrees_with_numpy(n):
    a = low_rank(n)["half"]
    inverse = L.pinv(tensor(a), rtol=1e-9).numpy()
    np.testing.assert_allclose(inverse, np.linalg.pinv(a, rcond=1e-9), atol=1e-9)


@pytest.mark.parametrize("n", [4, 32, 33, 80])
def test_cholesky_of_a_matrix_that_is_not_definite_raises(n):
    a = np.eye(n)
    a[n - 1, n - 1] = -1e-3
    with pytest.raises(L.LinAlgError, match=f"order {n} is not positive-definite"):
        L.cholesky(tensor(a))
    assert int(L.cholesky_ex(tensor(a)).info) == n
    # The last pivot of ones is zero.
    with pytest.raises(L.LinAlgError, match="order 2 is not positive-definite"):
        L.cholesky(torch.ones(n, n))
    assert float(L.det(torch.ones(n, n))) == 0.0
    with pytest.raises(L.LinAlgError, match="singular"):
        L.inv(torch.ones(n, n))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_qr_of_what_is_not_finite_is_not_finite(dtype, bad):
    a = np.ones((64, 40), dtype)
    a[3, 5] = bad
    q, r = L.qr(tensor(a))
    assert not np.isfinite(r.numpy()).all() and not np.isfinite(q.numpy()).all()


def sparse_matrix(n, m, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, m)) * (rng.random((n, m)) < 0.3)
    return torch.tensor(x)


@pytest.mark.parametrize("shape", [(17, 4), (4, 17), (9, 9)])
@pytest.mark.parametrize("kind", ["sparse_coo", "sparse_csr"])
def test_low_rank_of_sparse_matrices_is_that_of_dense_ones(shape, kind):
    dense = sparse_matrix(*shape, seed=3)
    sparse = dense.to_sparse(layout=getattr(torch, kind))
    rank = min(shape)
    want = np.linalg.svd(dense.numpy())[1]
    u, s, v = torch.svd_lowrank(sparse, q=rank, niter=3)
    np.testing.assert_allclose(s.numpy(), want, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(((u * s) @ v.mT).numpy(), dense.numpy(), atol=1e-8)
    centred = dense.numpy() - dense.numpy().mean(0)
    u, s, v = torch.pca_lowrank(sparse, q=rank, niter=3)
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(centred)[1], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(((u * s) @ v.mT).numpy(), centred, atol=1e-8)
    row = torch.ones(1, shape[1], dtype=torch.float64)
    s = torch.svd_lowrank(sparse, q=rank, niter=3, M=row)[1]
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(dense.numpy() - 1)[1], rtol=1e-7, atol=1e-8)


def test_extreme_eigenvalues_of_a_sparse_matrix():
    x = sparse_matrix(30, 30, seed=5)
    x = x @ x.mT
    want = np.linalg.eigvalsh(x.numpy())[::-1][:3]
    for kind in (torch.sparse_coo, torch.sparse_csr):
        e, v = torch.lobpcg(x.to_sparse(layout=kind), k=3)
        np.testing.assert_allclose(e.numpy(), want, rtol=1e-6)
        np.testing.assert_allclose((x @ v).numpy(), (v * e).numpy(), atol=1e-4)
