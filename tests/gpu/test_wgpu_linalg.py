"""Systems of equations and factorisations of small matrices run on the GPU itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg
from scipy.linalg import lapack

import pytensorlib as torch
from pytensorlib import wgpu

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]


def matrices(n: int, count: int = 3) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((count, n, n)) + 2 * np.eye(n)


def gpu(x: np.ndarray, dtype=torch.float32):
    return torch.tensor(x).to("wgpu", dtype)


def close(got: torch.Tensor, want: np.ndarray, rtol: float = 2e-3) -> None:
    np.testing.assert_allclose(got.cpu().numpy(), want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("n", [1, 3, 40])
def test_solutions_match_numpy(n, dtype) -> None:
    a, b = matrices(n), np.random.default_rng(1).standard_normal((3, n, 2))
    rtol = 2e-3 if dtype == torch.float32 else 1e-10
    close(torch.linalg.solve(gpu(a, dtype), gpu(b, dtype)), np.linalg.solve(a, b), rtol)
    close(torch.linalg.inv(gpu(a, dtype)), np.linalg.inv(a), rtol)
    half = a / 2
    close(torch.linalg.det(gpu(half, dtype)), np.linalg.det(half), rtol * 10)
    sign, log = torch.linalg.slogdet(gpu(a, dtype))
    close(sign, np.linalg.slogdet(a)[0], rtol)
    close(log, np.linalg.slogdet(a)[1], rtol)
    square = a @ a.transpose(0, 2, 1) + np.eye(n)
    close(torch.linalg.cholesky(gpu(square, dtype)), np.linalg.cholesky(square), rtol)
    upper = np.triu(a) + 3 * np.eye(n)
    got = torch.linalg.solve_triangular(gpu(upper, dtype), gpu(b, dtype), upper=True)
    close(got, np.linalg.solve(upper, b), rtol)


def test_gradients_match_the_host() -> None:
    a = matrices(5)
    for f in (torch.linalg.inv, torch.linalg.slogdet, torch.linalg.cholesky):
        grads = []
        for device in ("cpu", "wgpu"):
            x = torch.tensor(a).to(device).requires_grad_()
            y = f(x @ x.mT)
            (y if isinstance(y, torch.Tensor) else y[1]).sum().backward()
            grads.append(x.grad.cpu().numpy())
        np.testing.assert_allclose(grads[1], grads[0], rtol=1e-8, atol=1e-10)


def test_matrices_without_a_solution_raise() -> None:
    singular = torch.zeros(2, 3, 3, device="wgpu")
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(singular)
    with pytest.raises(torch.linalg.LinAlgError, match="positive-definite"):
        torch.linalg.cholesky(singular)
    assert torch.linalg.det(singular).tolist() == [0, 0]


def test_pivots_are_those_of_partial_pivoting() -> None:
    a = np.array([[1.0, 2], [4, 3], [2, 9]])
    lu, pivots = torch.linalg.lu_factor(gpu(a))
    assert pivots.tolist() == [2, 3]
    close(lu, np.array([[4, 3], [0.5, 7.5], [0.25, 1.25 / 7.5]]), 1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 9, 40])
def test_factors_of_indefinite_matrices_are_those_of_lapack(n, dtype) -> None:
    a = matrices(n)
    a += a.transpose(0, 2, 1)
    # Blocks of two, and columns of zeros.
    a[1, range(n), range(n)] = 0
    a[2, n // 2] = a[2, :, n // 2] = 0
    wide = dtype == torch.float64
    a = a.astype(np.float64 if wide else np.float32)
    sytrf = lapack.dsytrf if wide else lapack.ssytrf
    packed, pivots, info = torch.linalg.ldl_factor_ex(gpu(a, dtype))
    for i in range(3):
        want, rows, failed = sytrf(a[i], lower=1)
        np.testing.assert_array_equal(pivots[i].cpu().numpy(), rows)
        assert info[i].item() == failed
        close(packed[i], np.tril(want), 1e-10 if wide else 2e-4)
    b = np.random.default_rng(1).standard_normal((2, n, 3))
    x = torch.linalg.ldl_solve(packed[:2], pivots[:2], gpu(b, dtype))
    if n > 1:
        want = np.linalg.solve(a[:2].astype(np.float64), b)
        close(x, want, (1e-8 if wide else 1e-3) * np.abs(want).max())


@pytest.mark.parametrize("scale", [0.01, 1.0, 20.0, 2000.0])
@pytest.mark.parametrize(
    ("n", "dtype"), [(1, "float32"), (5, "float32"), (12, "float64"), (70, "float32")]
)
def test_exponentials_match_scipy(n, dtype, scale) -> None:
    x = np.random.default_rng(0).standard_normal((3, n, n)) / n**0.5
    # Of one size and nothing that grows: what grows out of range is another matter.
    x = scale * (x - x.transpose(0, 2, 1)) + np.array([-1.0, 0.5, 0.0])[:, None, None] * np.eye(n)
    x = x.astype(dtype)
    want = np.stack([linalg.expm(m.astype(np.float64)) for m in x])
    # The condition of the exponential of what is nearly normal is the norm.
    rounding = np.finfo(dtype).eps * (16 + 4 * np.abs(x).sum(-1).max())
    close(torch.linalg.matrix_exp(gpu(x, getattr(torch, dtype))), want, rounding)


def test_exponentials_of_a_batch_take_each_its_own_squarings() -> None:
    x = np.stack([np.diag([0.1, 0.2]), np.diag([30.0, -30.0]), np.diag([-5000.0, 1.0])])
    got = torch.linalg.matrix_exp(gpu(x)).cpu().numpy()
    want = np.exp(np.diagonal(x, axis1=1, axis2=2))
    np.testing.assert_allclose(np.diagonal(got, axis1=1, axis2=2), want, rtol=1e-6)
    x[1, 0, 1] = np.inf
    spoiled = torch.linalg.matrix_exp(gpu(x)).isnan().cpu()
    assert spoiled[1].all() and not spoiled[[0, 2]].any()


@pytest.mark.parametrize(("m", "n"), [(5, 3), (60, 60), (200, 50), (3, 7)])
def test_least_squares_match_numpy(m, n) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, m, n)) + 3 * np.eye(m, n), rng.standard_normal((2, m, 2))
    want = np.stack([np.linalg.lstsq(a[i], b[i], rcond=None)[0] for i in range(2)])
    close(torch.linalg.lstsq(gpu(a), gpu(b)).solution, want)
    close(torch.linalg.lstsq(gpu(a, torch.float64), gpu(b, torch.float64)).solution, want, 1e-9)


def test_least_squares_of_dependent_columns_are_the_shortest() -> None:
    solution, _, rank, _ = torch.linalg.lstsq(gpu(np.ones((4, 3))), gpu(np.ones((4, 1))))
    close(solution, np.full((3, 1), 1 / 3), 1e-6)
    assert rank.item() == 1
