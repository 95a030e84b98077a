"""Singular values and vectors, beside NumPy's in float64."""

import numpy as np
import pytest

import pytensorlib as torch

EPS = {"float32": 2.0**-23, "float64": 2.0**-52}
SIZES = [
    (1, 1),
    (1, 5),
    (5, 1),
    (2, 2),
    (3, 3),
    (7, 7),
    (8, 8),
    (9, 8),
    (8, 9),
    (16, 16),
    (17, 31),
    (33, 32),
    (64, 64),
    (65, 67),
    (70, 70),
]


def graded(rng, m, n):
    return rng.standard_normal((m, n)) * 10.0 ** -np.linspace(0, 12, n)


def low_rank(rng, m, n):
    k = max(1, min(m, n) // 3)
    return rng.standard_normal((m, k)) @ rng.standard_normal((k, n))


def repeated(rng, m, n):
    q = np.linalg.qr(rng.standard_normal((max(m, n), max(m, n))))[0][:m, :n]
    return 3.0 * q


def integers(rng, m, n):
    return rng.integers(-1, 2, (m, n)).astype(float)


KINDS = {
    "normal": lambda rng, m, n: rng.standard_normal((m, n)),
    "graded": graded,
    "graded up": lambda rng, m, n: graded(rng, m, n)[:, ::-1],
    "low rank": low_rank,
    "repeated": repeated,
    "integers": integers,
    "zero": lambda rng, m, n: np.zeros((m, n)),
    "one": lambda rng, m, n: np.ones((m, n)),
    "eye": lambda rng, m, n: np.eye(m, n),
    "triangle": lambda rng, m, n: np.tril(np.ones((m, n))),
    "shift": lambda rng, m, n: np.eye(m, n, 1),
    "large": lambda rng, m, n: 1e30 * rng.standard_normal((m, n)),
    "small": lambda rng, m, n: 1e-30 * rng.standard_normal((m, n)),
}


# Matrices that are tried at sizes that take longer, too.
LARGE = {"normal", "one", "repeated"}


def check(x, full):
    """The factors multiply to the matrix, are orthogonal, and the values are NumPy's."""
    eps, k = EPS[str(x.dtype)], min(x.shape[-2:])
    u, s, vh = (y.numpy() for y in torch.linalg.svd(torch.tensor(x), full_matrices=full))
    assert u.dtype == s.dtype == vh.dtype == x.dtype
    wide = [y.astype(np.float64) for y in (u, s, vh)]
    want = np.linalg.svd(x.astype(np.float64), compute_uv=False)
    top = max(float(want.max()), np.finfo(x.dtype).tiny)
    # Rounding grows with the root of the size.
    bound = 3.0 * eps * np.sqrt(max(x.shape)) + 4 * eps
    assert (np.diff(s) <= 0).all() and (s >= 0).all()
    assert np.abs(wide[1] - want).max() <= bound * top
    assert np.abs((wide[0][:, :k] * wide[1]) @ wide[2][:k] - x).max() <= bound * top
    for rows in (wide[0].T, wide[2]):
        # Reflectors of rows that are all alike round alike, so that it adds up.
        assert np.abs(rows @ rows.T - np.eye(len(rows))).max() <= 5 * bound
    alone = torch.linalg.svdvals(torch.tensor(x)).numpy().astype(np.float64)
    assert np.abs(alone - want).max() <= bound * top


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", EPS)
def test_svd_of_any_matrix_is_orthogonal_and_exact(kind, dtype):
    rng = np.random.default_rng(3)
    for m, n in SIZES + [(130, 130), (200, 40), (40, 200)] * (kind in LARGE):
        x = KINDS[kind](rng, m, n).astype(dtype)
        check(x, full=(m + n) % 2 == 1)


def test_svdvals_of_a_bidiagonal_matrix_are_exact_however_small():
    d = 10.0 ** -np.arange(0.0, 300.0, 25.0)
    got = torch.linalg.svdvals(torch.diag(torch.tensor(d))).numpy()
    np.testing.assert_allclose(got, d, rtol=4e-16)
    # The product of the values is that of the diagonal, and their reciprocals' squares sum to the
    # squares of the inverse: both tell the smallest value, 1e-12, alone.
    n = 40
    x = np.eye(n) - 2.0 * np.eye(n, k=-1)
    got = torch.linalg.svdvals(torch.tensor(x)).numpy()
    inverse = np.tril(2.0 ** (np.arange(n)[:, None] - np.arange(n)[None]))
    np.testing.assert_allclose((1 / got**2).sum(), (inverse**2).sum(), rtol=1e-13)
    np.testing.assert_allclose(got.prod(), 1.0, rtol=1e-13)


def test_svd_of_a_batch_is_that_of_each_matrix():
    rng = np.random.default_rng(4)
    for shape in [(5, 7, 7), (2, 3, 9, 4), (3, 4, 40)]:
        x = torch.tensor(rng.standard_normal(shape))
        flat = x.reshape(-1, *shape[-2:])
        all_of_them = [y.reshape(-1, *y.shape[x.ndim - 2 :]) for y in torch.linalg.svd(x)]
        for i, a in enumerate(flat):
            for got, want in zip(all_of_them, torch.linalg.svd(a), strict=True):
                assert torch.equal(got[i], want)


@pytest.mark.parametrize("full", [False, True])
def test_svd_of_no_rows_or_columns_is_a_basis(full):
    for m, n in [(0, 0), (0, 3), (4, 0)]:
        u, s, vh = torch.linalg.svd(torch.empty(m, n), full_matrices=full)
        assert s.shape == (0,)
        assert torch.equal(u, torch.eye(m, m if full else 0))
        assert torch.equal(vh, torch.eye(n if full else 0, n))


def test_svd_does_not_depend_on_threads():
    rng = np.random.default_rng(5)
    before = torch.get_num_threads()
    try:
        # Passes over few lines are one task; rotations are shared out sooner.
        cases = [(torch.linalg.svd, 100), (torch.linalg.svdvals, 270)]
        for call, n in cases:
            x = torch.tensor(rng.standard_normal((n, n)).astype("float32"))
            torch.set_num_threads(1)
            want = call(x)
            for threads in (2, 3):
                torch.set_num_threads(threads)
                got = call(x)
                assert all(torch.equal(g, w) for g, w in zip(got, want, strict=True))
    finally:
        torch.set_num_threads(before)
