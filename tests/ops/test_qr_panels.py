"""Q R and least squares by panels of columns whose sizes differ, or are far from one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pytensorlib as torch


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "n"), [(40, 40), (70, 33), (33, 70), (300, 100), (130, 120)])
@pytest.mark.parametrize("size", [1.0, 1e-20, 1e25])
@pytest.mark.parametrize("spread", [0, 3, 30])
def test_qr_of_columns_of_all_sizes_is_right_in_each(
    m: int, n: int, size: float, spread: int, dtype: Any
) -> None:
    rng = np.random.default_rng(m + n)
    powers = rng.integers(-spread, 1, n) / (3 if dtype == np.float32 else 1)
    a = (rng.standard_normal((m, n)) * size * 10.0**powers).astype(dtype)
    q, r = (t.numpy().astype(np.float64) for t in torch.linalg.qr(torch.from_numpy(a)))
    wide, eps = a.astype(np.float64), np.finfo(dtype).eps
    lengths = np.linalg.norm(wide, axis=0)
    assert (np.tril(r, -1) == 0).all()
    # Each column by its own length; NumPy's, LAPACK's, are up to 8 eps.
    least = 1e3 * np.finfo(dtype).smallest_subnormal
    assert (np.abs(q @ r - wide).max(0) <= 16 * eps * lengths + least).all()
    assert np.abs(q.T @ q - np.eye(len(r))).max() <= 16 * eps


def test_qr_of_columns_that_repeat_or_are_zero_is_orthonormal() -> None:
    rng = np.random.default_rng(3)
    a = rng.standard_normal((90, 60)).astype(np.float32)
    a[:, 7] = a[:, 6]
    a[:, 20:24] = 0
    a[:, 0] = 0
    a[1:, 40] = 0
    q, r = (t.numpy().astype(np.float64) for t in torch.linalg.qr(torch.from_numpy(a)))
    np.testing.assert_allclose(q @ r, a, atol=2e-5)
    np.testing.assert_allclose(q.T @ q, np.eye(60), atol=2e-6)
    a[3, 30] = np.nan
    assert torch.linalg.qr(torch.from_numpy(a))[1].isnan().any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lstsq_of_a_large_matrix_is_numpys_on_any_thread(dtype: Any) -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal((220, k)).astype(dtype) for k in (120, 5))
    want = np.linalg.lstsq(a.astype(np.float64), b.astype(np.float64), rcond=None)[0]
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            found.append(torch.linalg.lstsq(torch.from_numpy(a), torch.from_numpy(b)).solution)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert np.abs(found[0].numpy() - want).max() <= 30 * np.finfo(dtype).eps * np.abs(want).max()
