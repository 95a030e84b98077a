"""Exponentials of matrices large enough for products of their own type, against float64's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import pytensorlib as torch

linalg = pytest.importorskip("scipy.linalg")
Matrix = NDArray[np.float64] | NDArray[np.complex128]


def matrices(n: int) -> dict[str, Matrix]:
    """Matrices of several kinds and norms, among them far from normal."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n))
    jordan = np.diag(np.full(n - 1, 50.0), 1) - np.eye(n)
    return {
        "any": a,
        "small": a * 1e-4,
        "middle": a / n,
        "turning": a - a.T,
        "positive": np.abs(a) * (3 / n),
        "decaying": -a @ a.T / n,
        "triangle": np.triu(a, 1),
        "jordan": jordan if n < 70 else jordan / 10,
        "complex": (a + 1j * rng.standard_normal((n, n))) / n**0.5,
    }


@pytest.mark.parametrize("n", [2, 63, 64, 90])
@pytest.mark.parametrize("kind", matrices(3))
def test_matrix_exponential_is_that_of_float64(n: int, kind: str) -> None:
    a = matrices(n)[kind]
    # SciPy itself leaves 1e-12 of what is far from normal.
    for narrow, close in ((False, 3e-12), (True, 1e-5)):
        given = (
            a.astype(np.result_type(np.complex64 if a.dtype.kind == "c" else np.float32))
            if narrow
            else a
        )
        want = linalg.expm(given.astype(a.dtype))
        got = torch.linalg.matrix_exp(torch.from_numpy(given))
        assert got.numpy().dtype == given.dtype
        assert np.abs(got.numpy() - want).max() <= close * np.abs(want).max()


def test_matrix_exponential_of_what_squares_to_nothing_is_exact() -> None:
    for size in (1e-30, 1.0, 3e4, 1e30):
        for n in (2, 64):
            x = np.zeros((n, n), np.float32)
            x[0, n - 1] = size
            assert np.array_equal(torch.matrix_exp(torch.from_numpy(x)), np.eye(n) + x)


def test_matrix_exponential_of_a_batch_is_that_of_each_and_of_any_thread() -> None:
    rng = np.random.default_rng(5)
    sizes = np.array([1e-5, 0.1, 1, 30, 1e3])[:, None, None]
    batch = torch.from_numpy((rng.standard_normal((5, 80, 80)) / 80 * sizes).astype(np.float32))
    threads = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            results.append(torch.matrix_exp(batch).numpy())
            results.append(np.stack([torch.matrix_exp(a.mT.contiguous().mT) for a in batch]))
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_matrix_exponential_of_a_large_matrix_that_is_not_finite_is_nan() -> None:
    for bad in (np.nan, np.inf):
        x = torch.zeros(70, 70)
        x[3, 5] = bad
        assert torch.matrix_exp(x).isnan().all()
