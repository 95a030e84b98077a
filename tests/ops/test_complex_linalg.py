"""Factorisations of complex matrices, beside NumPy's and by what they must satisfy."""

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib.autograd import gradcheck

RNG = np.random.default_rng(5)
SIZES = [1, 2, 5, 16, 17, 70]
EPS = {"complex64": 1e-4, "complex128": 1e-11}


def matrix(*shape: int, dtype: str = "complex128") -> np.ndarray:
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)


def hermitian(*shape: int, dtype: str = "complex128") -> np.ndarray:
    a = matrix(*shape, dtype=dtype)
    return a + a.conj().swapaxes(-1, -2)


def positive(*shape: int, dtype: str = "complex128") -> np.ndarray:
    a = matrix(*shape, dtype=dtype)
    return a @ a.conj().swapaxes(-1, -2) + np.eye(shape[-1], dtype=dtype)


def near(found: torch.Tensor, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    size = max(1.0, np.abs(expected).max(initial=0.0))
    assert np.abs(found.numpy() - expected).max(initial=0.0) < EPS[str(expected.dtype)] * size


def both(t: torch.Tensor) -> torch.Tensor:
    return t.conj().transpose(-1, -2)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("n", SIZES)
def test_systems_inverses_and_determinants_are_those_of_numpy(n: int, dtype: str) -> None:
    a, b = matrix(3, n, n, dtype=dtype), matrix(3, n, 2, dtype=dtype)
    x = torch.from_numpy(a)
    exact = np.linalg.solve(a.astype("complex128"), b.astype("complex128")).astype(dtype)
    near(torch.linalg.solve(x, torch.from_numpy(b)), exact)
    exact = np.linalg.inv(a.astype("complex128")).astype(dtype)
    near(torch.linalg.inv(x), exact)
    sign, log = np.linalg.slogdet(a.astype("complex128"))
    found = torch.linalg.slogdet(x)
    near(found.sign, sign.astype(dtype))
    assert found.logabsdet.dtype == x.real.dtype
    np.testing.assert_allclose(found.logabsdet.numpy(), log, rtol=1e-4)
    if n < 20:
        near(torch.linalg.det(x), np.linalg.det(a.astype("complex128")).astype(dtype))
    p, low, high = torch.linalg.lu(x)
    near(p @ low @ high, a)
    packed, pivots = torch.linalg.lu_factor(x)
    for left in (True, False):
        right = torch.from_numpy(b if left else b.swapaxes(-1, -2).copy())
        for adjoint in (True, False):
            y = torch.linalg.lu_solve(packed, pivots, right, left=left, adjoint=adjoint)
            m = both(x) if adjoint else x
            near(m @ y if left else y @ m, right.numpy())


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("n", SIZES)
def test_factors_multiply_to_the_matrix(n: int, dtype: str) -> None:
    h, s = positive(2, n, n, dtype=dtype), hermitian(2, n, n, dtype=dtype)
    low = torch.linalg.cholesky(torch.from_numpy(h))
    near(low @ both(low), h)
    assert not low.triu(1).any()
    high = torch.linalg.cholesky(torch.from_numpy(h), upper=True)
    near(both(high) @ high, h)
    near(torch.cholesky_inverse(low), np.linalg.inv(h))
    for uplo in "LU":
        w, v = torch.linalg.eigh(torch.from_numpy(s), UPLO=uplo)
        near(v @ (w.unsqueeze(-1) * both(v)), s)
        near(both(v) @ v, np.broadcast_to(np.eye(n, dtype=dtype), (2, n, n)))
        exact = np.linalg.eigvalsh(s.astype("complex128")).astype(w.numpy().dtype)
        np.testing.assert_allclose(w.numpy(), exact, rtol=1e-4, atol=1e-4)
    a = matrix(2, n, n, dtype=dtype)
    w, v = torch.linalg.eig(torch.from_numpy(a))
    near(torch.from_numpy(a) @ v - v * w.unsqueeze(-2), np.zeros((2, n, n), dtype))
    np.testing.assert_allclose(v.abs().square().sum(-2).numpy(), 1, rtol=1e-4)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3), (17, 40), (40, 17), (0, 3), (3, 0)])
def test_orthogonal_factors_multiply_to_the_matrix(shape: tuple[int, int], dtype: str) -> None:
    a = matrix(*shape, dtype=dtype)
    x = torch.from_numpy(a)
    for mode in ("reduced", "complete"):
        q, r = torch.linalg.qr(x, mode=mode)
        near(q @ r, a)
        near(both(q) @ q, np.eye(q.shape[1], dtype=dtype))
        # LAPACK's diagonal is real.
        assert not r.tril(-1).any() and not torch.diagonal(r).imag.any()
    for full in (False, True):
        u, s, vh = torch.linalg.svd(x, full_matrices=full)
        k = min(shape)
        near((u[:, :k] * s) @ vh[:k], a)
        near(both(u) @ u, np.eye(u.shape[1], dtype=dtype))
        near(vh @ both(vh), np.eye(vh.shape[0], dtype=dtype))
        np.testing.assert_allclose(
            s.numpy(), np.linalg.svd(a, compute_uv=False) if k else [], rtol=1e-3, atol=1e-5
        )
    y = torch.linalg.pinv(x)
    near(x @ y @ x, a)
    if min(shape):
        c = matrix(shape[0], 3, dtype=dtype)
        packed, tau = torch.geqrf(x)
        q = torch.linalg.qr(x, mode="complete")[0]
        near(torch.ormqr(packed, tau, torch.from_numpy(c)), (q @ torch.from_numpy(c)).numpy())
        turned = torch.ormqr(packed, tau, torch.from_numpy(c), transpose=True)
        near(turned, (both(q) @ torch.from_numpy(c)).numpy())
        if shape[0] >= shape[1]:
            best = np.linalg.lstsq(a, c, rcond=None)[0]
            near(torch.linalg.lstsq(x, torch.from_numpy(c)).solution, best.astype(dtype))


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("n", [65, 129, 300])
def test_factors_of_large_matrices_are_near_to_rounding(n: int, dtype: str) -> None:
    # LAPACK's residuals are of some roundings of the norms.
    bound = 8 * n**0.5 * np.finfo(dtype).eps
    norm = np.linalg.norm

    def residual(found: np.ndarray, expected: np.ndarray, *sizes: np.ndarray) -> None:
        wide = found.astype("complex128") - expected
        assert norm(wide) <= bound * np.prod([norm(x) for x in sizes])

    a, b, h = matrix(n, n, dtype=dtype), matrix(n, 37, dtype=dtype), positive(n, n, dtype=dtype)
    t = torch.from_numpy(a)
    wide = a.astype("complex128")
    x = torch.linalg.solve(t, torch.from_numpy(b)).numpy()
    residual(wide @ x, b, a, x)
    y = torch.linalg.inv(t).numpy()
    residual(wide @ y, np.eye(n), a, y)
    p, low, high = (f.numpy() for f in torch.linalg.lu(t))
    residual(p.astype("complex128") @ low @ high, a, low, high)
    assert np.abs(low).max() <= 1.5 and not np.triu(low - np.eye(n)).any()
    low = torch.linalg.cholesky(torch.from_numpy(h)).numpy()
    residual(low.astype("complex128") @ low.conj().T, h, h)
    for shape in ((n, n), (n + 70, n), (n, n + 70)):
        c = matrix(*shape, dtype=dtype)
        q, r = (f.numpy() for f in torch.linalg.qr(torch.from_numpy(c)))
        residual(q.astype("complex128") @ r, c, c)
        residual(q.conj().T.astype("complex128") @ q, np.eye(min(shape)), q)
    w, v = (f.numpy() for f in torch.linalg.eigh(torch.from_numpy(h)))
    residual(v.astype("complex128") * w @ v.conj().T, h, h)
    residual(v.conj().T.astype("complex128") @ v, np.eye(n), v)
    assert not v[0].imag.any()
    only = torch.linalg.eigvalsh(torch.from_numpy(h)).numpy()
    assert np.abs(only - np.linalg.eigvalsh(h.astype("complex128"))).max() <= bound * norm(h)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("n", [3, 20, 90, 150])
def test_triangles_are_solved_without_what_is_beside_them(n: int, dtype: str) -> None:
    a = matrix(n, n, dtype=dtype) / n + 2 * np.eye(n, dtype=dtype)
    for columns in (1, 40, 130):
        b = matrix(n, columns, dtype=dtype)
        for upper in (False, True):
            for unit in (False, True):
                kept = (np.triu if upper else np.tril)(a, 0)
                given = np.where(kept == 0, np.nan, a).astype(dtype)
                if unit:
                    given[np.arange(n), np.arange(n)] = np.nan
                    kept[np.arange(n), np.arange(n)] = 1
                x = torch.linalg.solve_triangular(
                    torch.from_numpy(given), torch.from_numpy(b), upper=upper, unitriangular=unit
                )
                near(x, np.linalg.solve(kept.astype("complex128"), b).astype(dtype))


def test_large_matrices_tell_what_they_lack() -> None:
    a = matrix(90, 90)
    a[:, 40] = 0
    assert torch.linalg.inv_ex(torch.from_numpy(a)).info == 41
    assert torch.linalg.lu_factor_ex(torch.from_numpy(a)).info == 41
    h = positive(90, 90)
    h[50, 50] = -1
    assert torch.linalg.cholesky_ex(torch.from_numpy(h)).info == 51
    h[50, 50] = np.nan
    assert torch.linalg.cholesky_ex(torch.from_numpy(h)).info == 51
    a = matrix(90, 90)
    a[3, 70] = np.inf
    assert not torch.linalg.inv(torch.from_numpy(a)).isfinite().all()


def test_factors_do_not_depend_on_the_number_of_threads() -> None:
    a, h = (torch.from_numpy(f(330, 330, dtype="complex64")) for f in (matrix, positive))
    calls = [
        lambda: torch.linalg.inv(a),
        lambda: torch.linalg.cholesky(h),
        lambda: torch.linalg.qr(a)[0],
        lambda: torch.linalg.eigh(h)[1],
        lambda: torch.linalg.solve_triangular(h, a, upper=True),
    ]
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append([call() for call in calls])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(x, y) for x, y in zip(found[0], other, strict=True))


def test_singular_matrices_are_told() -> None:
    a = matrix(4, 4)
    a[:, 2] = 1j * a[:, 0]
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(torch.from_numpy(np.where(np.arange(4) == 2, 0, a)))
    assert abs(torch.linalg.det(torch.from_numpy(a)).item()) < 1e-12
    with pytest.raises(torch.linalg.LinAlgError, match="order 2 is not positive-definite"):
        torch.linalg.cholesky(torch.tensor([[1, 2j], [-2j, 1]]))
    zeros = torch.zeros(20, 20, dtype=torch.complex64)
    assert torch.linalg.inv_ex(zeros).info == 1
    assert torch.linalg.slogdet(zeros).logabsdet == -torch.inf


def test_numbers_at_the_ends_of_the_range() -> None:
    for unit in (1e-200, 1e200):
        a = hermitian(6, 6)
        w = torch.linalg.eigvalsh(torch.from_numpy(a * unit)).numpy()
        np.testing.assert_allclose(w / unit, np.linalg.eigvalsh(a), rtol=1e-9)
        s = torch.linalg.svd(torch.from_numpy(a * unit)).S.numpy()
        np.testing.assert_allclose(s / unit, np.linalg.svd(a, compute_uv=False), rtol=1e-9)
        q, r = torch.linalg.qr(torch.from_numpy(a * unit))
        np.testing.assert_allclose((q @ (r / unit)).numpy(), a, atol=1e-12)


H = torch.linalg


def turn(x):
    """The product of the singular vectors, in which their phases cancel."""
    u, _, vh = H.svd(x, False)
    return u @ vh


GRADIENTS = {
    "solve": lambda a, b: H.solve(a, b),
    "solve right": lambda a, b: H.solve(a, b.mT, left=False),
    "inv": lambda a, b: H.inv(a),
    "det": lambda a, b: H.det(a),
    "slogdet": lambda a, b: H.slogdet(a),
    "cholesky": lambda a, b: H.cholesky(a @ both(a) + torch.eye(4)),
    "cholesky_inverse": lambda a, b: torch.cholesky_inverse(H.cholesky(a @ both(a))),
    "eigh": lambda a, b: (H.eigh(a + both(a))[0], H.eigh(a + both(a))[1].abs()),
    "eig": lambda a, b: (H.eig(a)[0], H.eig(a)[1].abs()),
    "svd": lambda a, b: (H.svd(b, False)[0].abs(), H.svd(b, False)[1], H.svd(b, False)[2].abs()),
    "phases": lambda a, b: turn(b),
    "wide svd": lambda a, b: turn(b.mT),
    "qr": lambda a, b: H.qr(b),
    "wide qr": lambda a, b: H.qr(b.mT),
    "lu": lambda a, b: H.lu(b)[1:],
    "lu without exchanges": lambda a, b: H.lu(b, pivot=False)[1:],
    "lu_factor": lambda a, b: H.lu_factor(a)[0],
    "triangular": lambda a, b: H.solve_triangular(a, b, upper=True),
    "pinv": lambda a, b: H.pinv(b),
    "lstsq": lambda a, b: H.lstsq(b, a).solution,
    "householder": lambda a, b: H.householder_product(b, a[0, :2]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_differences(name: str) -> None:
    rng = np.random.default_rng(11)
    leaf = lambda *s: torch.from_numpy(  # noqa: E731
        rng.standard_normal(s) + 1j * rng.standard_normal(s)
    ).requires_grad_()
    assert gradcheck(GRADIENTS[name], (leaf(4, 4), leaf(4, 2)))


def test_the_gradient_of_a_singular_determinant() -> None:
    a = torch.tensor([[1 + 1j, 2.0], [2 + 2j, 4.0]], dtype=torch.complex128, requires_grad=True)
    torch.linalg.det(a).real.backward()
    # The conjugates of the cofactors.
    expected = torch.tensor([[4.0, -2 + 2j], [-2.0, 1 - 1j]], dtype=torch.complex128)
    assert torch.allclose(a.grad, expected)
