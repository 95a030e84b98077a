"""Eigenvectors of symmetric matrices that are large enough to be divided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pytensorlib as torch

Matrix = NDArray[np.float64]


def matrices(n: int) -> dict[str, Matrix]:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n))
    a = a + a.T
    q = np.linalg.qr(a)[0]
    half, i = n // 2, np.arange(n)
    beside = np.eye(n, k=1) + np.eye(n, k=-1)
    return {
        "any": a,
        "large": a * 1e30,
        "tiny": a * 1e-30,
        "rank three": (q[:, :3] * [1.0, 2.0, 3.0]) @ q[:, :3].T,
        "projection": q[:, :half] @ q[:, :half].T,
        "nearly one value": (q * (1 + 1e-9 * rng.standard_normal(n))) @ q.T,
        "two values": (q * np.where(i < half, 1.0, -1.0)) @ q.T,
        "graded": (q * np.logspace(0, -30, n)) @ q.T,
        "identity": np.eye(n),
        "nothing": np.zeros((n, n)),
        "diagonal": np.diag(rng.standard_normal(n)),
        "blocks": np.kron(np.eye(n // 4 + 1), np.ones((4, 4)))[:n, :n],
        "pairs that meet": np.diag(np.abs(i - half).astype(float)) + beside,
        "second differences": 2 * np.eye(n) - beside,
    }


# The reduction of the largest takes its rows in parts.
SIZES = [(n, kind) for n in (65, 97, 130) for kind in matrices(4)]
SIZES += [(541, "any"), (541, "nearly one value")]


@pytest.mark.parametrize(("n", "kind"), SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eigenvectors_are_orthonormal_and_make_the_matrix(n: int, kind: str, dtype: Any) -> None:
    a = matrices(n)[kind].astype(dtype)
    a = np.tril(a) + np.tril(a, -1).T
    wide = a.astype(np.float64)
    exact = np.linalg.eigvalsh(wide)
    values, vectors = (t.numpy() for t in torch.linalg.eigh(torch.from_numpy(a)))
    assert values.dtype == vectors.dtype == dtype
    w, v = values.astype(np.float64), vectors.astype(np.float64)
    size, eps = np.abs(exact).max(), np.finfo(dtype).eps
    assert (np.diff(w) >= 0).all()
    # Of PyTorch 2.13's, in float32, the first two are up to 27 eps, 37 of the largest; NumPy has no
    # more than n eps.
    most = 16 * eps * size if n < 200 else 37 * eps * size
    assert np.abs(w - exact).max() <= most * (1 if dtype == np.float32 else 4)
    assert np.abs(wide @ v - v * w).max() <= most
    assert np.abs(v.T @ v - np.eye(n)).max() <= n * eps


def test_eigenvectors_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(1)
    threads = torch.get_num_threads()
    try:
        for n, dtype in ((100, np.float64), (200, np.float32), (541, np.float32)):
            a = rng.standard_normal((n, n)).astype(dtype)
            results = []
            for count in (1, 2, 5):
                torch.set_num_threads(count)
                results.append([t.numpy() for t in torch.linalg.eigh(torch.from_numpy(a))])
            for w, v in results[1:]:
                np.testing.assert_array_equal(w, results[0][0])
                np.testing.assert_array_equal(v, results[0][1])
    finally:
        torch.set_num_threads(threads)


def test_eigenvectors_read_the_lower_triangle_and_refuse_nan() -> None:
    rng = np.random.default_rng(2)
    a = rng.standard_normal((90, 90))
    v = torch.linalg.eigh(torch.from_numpy(a))[1]
    other = torch.from_numpy(np.tril(a) + np.triu(rng.standard_normal((90, 90)), 1))
    assert torch.equal(torch.linalg.eigh(other)[1], v)
    a[80, 3] = np.nan
    with pytest.raises(torch.linalg.LinAlgError, match="failed to converge|NaN"):
        torch.linalg.eigh(torch.from_numpy(a))
