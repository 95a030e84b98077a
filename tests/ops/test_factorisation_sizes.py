"""Factorisations around the sizes where another algorithm takes over, and of hard matrices."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import linalg

DTYPES = [torch.float32, torch.float64]


def symmetric(kind: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    wilkinson = np.diag(np.abs(np.arange(n) - (n - 1) / 2.0)) + np.eye(n, k=1) + np.eye(n, k=-1)
    return {
        "random": lambda: (lambda a: a + a.T)(rng.standard_normal((n, n))),
        "zero": lambda: np.zeros((n, n)),
        "ones": lambda: np.ones((n, n)),
        "diagonal": lambda: np.diag(rng.standard_normal(n)),
        "equal": lambda: q @ np.diag(np.arange(n) // 4 * 1.0) @ q.T,
        "graded": lambda: q @ np.diag(10.0 ** -np.linspace(0, 30, n)) @ q.T,
        "wilkinson": lambda: wilkinson,
        "swapped": lambda: np.eye(n)[::-1].copy(),
        "small": lambda: np.diag(np.full(n - 1, 1e-30), 1) + np.diag(np.full(n - 1, 1e-30), -1),
    }[kind]()


KINDS = ["random", "zero", "ones", "diagonal", "equal", "graded", "wilkinson", "swapped", "small"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 3, 9, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_eigh_makes_the_matrix_again(kind: str, n: int, dtype: torch.dtype) -> None:
    a = torch.tensor(symmetric(kind, n), dtype=dtype)
    exact = a.double().numpy()
    w, v = (x.double().numpy() for x in linalg.eigh(a))
    want = np.linalg.eigvalsh(exact)
    bound = 8 * n**0.5 * torch.finfo(dtype).eps
    size = np.abs(want).max()
    assert np.abs(w - want).max() <= bound * size
    assert np.abs(linalg.eigvalsh(a).double().numpy() - want).max() <= bound * size
    assert np.abs((v * w) @ v.T - exact).max() <= bound * size
    assert np.abs(v.T @ v - np.eye(n)).max() <= bound


@pytest.mark.parametrize("n", [192, 193])
def test_eigh_of_either_algorithm_is_orthogonal(n: int) -> None:
    a = torch.tensor(symmetric("random", n))
    w, v = (x.numpy() for x in linalg.eigh(a))
    size = np.abs(w).max()
    np.testing.assert_allclose((v * w) @ v.T, a.numpy(), rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(v.T @ v, np.eye(n), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(33, 33), (50, 20), (20, 50), (70, 33), (40, 1), (1, 40), (65, 65)]
)
def test_qr_makes_the_matrix_again(shape: tuple[int, int], dtype: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    a = torch.tensor(rng.standard_normal(shape), dtype=dtype)
    bound = 16 * torch.finfo(dtype).eps
    for mode, height in (("reduced", min(shape)), ("complete", shape[0])):
        q, r = (x.double().numpy() for x in linalg.qr(a, mode=mode))
        assert q.shape == (shape[0], height)
        assert r.shape == (height, shape[1])
        assert np.array_equal(r, np.triu(r))
        np.testing.assert_allclose(q @ r, a.double().numpy(), rtol=0, atol=bound * 8)
        np.testing.assert_allclose(q.T @ q, np.eye(height), rtol=0, atol=bound)


def test_qr_of_columns_that_are_missing_has_an_orthogonal_factor() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 40))
    a[:, 5] = 0
    q, r = (x.numpy() for x in linalg.qr(torch.tensor(a)))
    np.testing.assert_allclose(q @ r, a, rtol=0, atol=1e-13)
    np.testing.assert_allclose(q.T @ q, np.eye(40), rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("driver", ["gelsy", "gels", "gelsd"])
@pytest.mark.parametrize("shape", [(2, 6, 4), (50, 30), (70, 33)])
def test_lstsq_of_independent_columns_is_numpys(shape, driver: str, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    a = torch.tensor(rng.standard_normal(shape), dtype=dtype)
    b = torch.tensor(rng.standard_normal((*shape[:-1], 3)), dtype=dtype)
    found = linalg.lstsq(a, b, driver=driver)
    want = np.linalg.pinv(a.double().numpy()) @ b.double().numpy()
    bound = 200 * torch.finfo(dtype).eps
    np.testing.assert_allclose(found.solution.double().numpy(), want, rtol=0, atol=bound)
    if driver != "gels":
        assert found.rank.tolist() == np.full(shape[:-2], shape[-1]).tolist()


@pytest.mark.parametrize("gap", [1e-3, 1e-13, 1e-17])
def test_lstsq_tells_a_rank_near_the_limit_by_singular_values(gap: float) -> None:
    rng = np.random.default_rng(0)
    u = np.linalg.qr(rng.standard_normal((30, 10)))[0]
    v = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    a = u @ np.diag([1.0] * 9 + [gap]) @ v
    b = rng.standard_normal((30, 2))
    found = linalg.lstsq(torch.tensor(a), torch.tensor(b), driver="gelsy")
    want, _, rank, _ = np.linalg.lstsq(a, b, rcond=30 * np.finfo(float).eps)
    assert found.rank.item() == rank == (9 if gap < 1e-14 else 10)
    # The error that rounding of A makes, and no more.
    bound = 1e-14 / gap if rank == 10 else 1e-12
    size = np.abs(want).max()
    np.testing.assert_allclose(found.solution.numpy(), want, rtol=0, atol=bound * size)


def general(kind: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    return {
        "random": lambda: rng.standard_normal((n, n)),
        "rotation": lambda: np.linalg.qr(rng.standard_normal((n, n)))[0],
        "cycle": lambda: np.roll(np.eye(n), 1, axis=0),
        "triangle": lambda: np.triu(rng.standard_normal((n, n))),
        "jordan": lambda: np.eye(n, k=1) + 2 * np.eye(n),
        "pairs": lambda: np.kron(np.eye(n // 2 + 1), [[1.0, 2.0], [-2.0, 1.0]])[:n, :n],
        "low": lambda: np.outer(rng.standard_normal(n), rng.standard_normal(n)),
        "zero": lambda: np.zeros((n, n)),
        # Some of its columns have nothing to reflect, between others that do.
        "blocks": lambda: np.kron(np.eye(n // 6 + 1), rng.standard_normal((6, 6)))[:n, :n],
        "huge": lambda: 1e30 * rng.standard_normal((n, n)),
        "tiny": lambda: 1e-30 * rng.standard_normal((n, n)),
        # Columns of very different lengths.
        "graded": lambda: rng.standard_normal((n, n)) * np.logspace(0, -12, n),
    }[kind]()


GENERAL = ["random", "rotation", "cycle", "triangle", "jordan", "pairs", "low"]
GENERAL += ["zero", "blocks", "huge", "tiny", "graded"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 3, 5, 12, 35, 64, 159])
@pytest.mark.parametrize("kind", GENERAL)
def test_eig_gives_vectors_that_the_matrix_stretches(kind: str, n: int, dtype: torch.dtype) -> None:
    a = torch.tensor(general(kind, n), dtype=dtype)
    w, v = (x.numpy().astype(complex) for x in linalg.eig(a))
    exact = a.double().numpy()
    bound = 20 * n**0.5 * torch.finfo(dtype).eps * max(np.linalg.norm(exact, 2), 1e-30)
    assert np.abs(exact @ v - v * w).max() <= bound
    np.testing.assert_allclose(
        np.linalg.norm(v, axis=0), 1, rtol=0, atol=8 * torch.finfo(dtype).eps
    )
    # Their sum and that of their squares are known without finding them.
    values = linalg.eigvals(a).numpy().astype(complex)
    for found in (w, values):
        assert abs(found.sum() - np.trace(exact)) <= bound * n
        assert abs((found**2).sum() - np.trace(exact @ exact)) <= bound * n * np.abs(w).max() * 4


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 9, 16, 17, 32])
def test_small_systems_of_a_batch_are_numpys(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((6, n, n)) + 3 * np.eye(n), rng.standard_normal((6, n, 2))
    x, y = torch.tensor(a), torch.tensor(b)
    np.testing.assert_allclose(
        linalg.solve(x, y).numpy(), np.linalg.solve(a, b), rtol=1e-9, atol=1e-11
    )
    np.testing.assert_allclose(linalg.inv(x).numpy(), np.linalg.inv(a), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(linalg.det(x).numpy(), np.linalg.det(a), rtol=1e-10)
    p, lower, upper = (t.numpy() for t in linalg.lu(x))
    np.testing.assert_allclose(p @ lower @ upper, a, rtol=0, atol=1e-13 * n)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(192, 192), (193, 200), (207, 207), (257, 250), (300, 450)])
@pytest.mark.parametrize("kind", ["random", "graded", "exchanged", "large"])
def test_lu_by_panels_makes_the_matrix_again(
    kind: str, shape: tuple[int, int], dtype: torch.dtype
) -> None:
    (m, n), k = shape, min(shape)
    rng = np.random.default_rng(m * n)
    a = rng.standard_normal(shape)
    if kind == "graded":
        a *= 10.0 ** -np.linspace(0, 6, m)[:, None]
    elif kind == "exchanged":
        # Each pivot lies in another row, and ties take the first.
        a = np.eye(m, n)[::-1] * 4 + np.sign(a) / m
    elif kind == "large":
        # Pivots whose inverses are denormal.
        a = a / (50 * m) + np.eye(m, n)
        a *= 2.0 ** (127 if dtype == torch.float32 else 1023) / np.abs(a).max()
    x = torch.tensor(a, dtype=dtype)
    exact = x.double().numpy()
    p, lower, upper = (t.double().numpy() for t in linalg.lu(x))
    scale = np.abs(exact).max(axis=1)[:, None]
    growth = max(1.0, np.abs(upper).max() / np.abs(exact).max())
    eps = torch.finfo(dtype).eps
    left = p @ lower @ (upper / scale.max()) - exact / scale.max()
    bound = 4 * k**0.5 * eps * (growth if kind != "graded" else growth * scale / scale.max() * 8)
    assert (np.abs(left) <= bound).all()
    assert np.abs(lower).max() <= 1 + eps
    threads = torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            for got, want in zip(linalg.lu_factor(x), linalg.lu_factor(x.clone()), strict=True):
                assert torch.equal(got, want)
            packed = linalg.lu_factor(x)[0].double().numpy()
            assert np.array_equal(np.triu(packed)[:k], upper[:k])
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("dtype", DTYPES)
def test_determinant_and_solution_of_a_large_system(dtype: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    for n in (200, 256, 333):
        a = rng.standard_normal((n, n)) / n**0.5
        x = torch.tensor(a, dtype=dtype)
        exact = x.double().numpy()
        b = torch.tensor(rng.standard_normal((n, 3)), dtype=dtype)
        y = linalg.solve(x, b).double().numpy()
        eps = torch.finfo(dtype).eps
        left = np.abs(exact @ y - b.double().numpy()).max()
        assert left <= 4 * n**0.5 * eps * np.abs(y).max() * np.abs(exact).sum(1).max()
        sign, log = (v.item() for v in linalg.slogdet(x))
        want = np.linalg.slogdet(exact)
        assert sign == want[0]
        assert abs(log - want[1]) <= 50 * n * eps
