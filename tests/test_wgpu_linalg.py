"""Systems of equations and factorisations of small matrices run on the GPU itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import wgpu

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    wgpu.set_fallback_error(True)
    yield
    wgpu.set_fallback_error(False)


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
