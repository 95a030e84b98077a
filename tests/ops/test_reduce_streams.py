"""Reductions large enough to be read in several streams, against NumPy in float64."""

from collections.abc import Callable

import numpy as np
import pytest

import pytensorlib as torch

# Rows and pieces that are whole, that end early, and that are too few for all streams.
SHAPES = [(1024, 4096), (1027, 4100), (37, 140_001), (3, 2_000_000), (4_300_001,)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_large_reductions_equal_numpy_with_any_threads(
    shape: tuple[int, ...], dtype: type[np.generic]
) -> None:
    """Sums within their bound, extremes exactly, NaN kept; the same bits with one thread."""
    a = (np.random.default_rng(0).standard_normal(shape) * 100).astype(dtype)
    before = torch.get_num_threads()
    try:
        for spoilt in (False, True):
            if spoilt and dtype is np.int64:
                continue
            if spoilt:
                a.reshape(-1)[a.size // 3] = np.nan
            got = []
            for threads in (1, 2, 3):
                torch.set_num_threads(threads)
                x = torch.from_numpy(a)
                got.append([y.numpy() for y in (x.sum(-1), x.sum(), x.amax(-1), x.amin(-1))])
            for other in got[1:]:
                for y, z in zip(got[0], other, strict=True):
                    np.testing.assert_array_equal(y, z)
            rows, whole, top, low = got[0]
            error = 1e-6 if dtype is np.float32 else 1e-14
            exact = a.astype(np.float64) if dtype is np.float32 else a
            size = np.abs(exact)
            assert np.all((np.abs(rows - exact.sum(-1)) <= error * size.sum(-1)) | spoilt)
            assert spoilt or abs(whole - exact.sum()) <= error * size.sum()
            assert np.isnan(whole) == spoilt
            np.testing.assert_array_equal(np.isnan(rows), np.isnan(a).any(-1))
            np.testing.assert_array_equal(top, a.max(-1))
            np.testing.assert_array_equal(low, a.min(-1))
    finally:
        torch.set_num_threads(before)


def tree(a: np.ndarray, fold: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """Combine rows in 64 running results, then halves of them with each other."""
    lanes = a[:, :64].copy()
    for i in range(64, a.shape[1], 64):
        more = a[:, i : i + 64]
        lanes[:, : more.shape[1]] = fold(lanes[:, : more.shape[1]], more)
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = fold(lanes[:, :half], lanes[:, half:])
    return lanes[:, 0]


@pytest.mark.parametrize(
    "n", [64, 65, 71, 72, 79, 80, 81, 100, 120, 127, 128, 129, 256, 300, 320, 1000, 4095, 4096]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_rows_have_the_bits_of_64_running_results(n: int, dtype: type[np.generic]) -> None:
    a = (np.random.default_rng(n).standard_normal((7, n)) * 100).astype(dtype)
    x = torch.from_numpy(a)
    assert x.sum(1).numpy().tobytes() == tree(a, np.add).tobytes()
    # Many zeros, of both signs where there are: the first of equal numbers stays.
    a[:5] = np.where(np.random.default_rng(1).integers(0, 2, (5, n)), a[:5] * 0, 0)
    x = torch.from_numpy(a)
    assert x.amax(1).numpy().tobytes() == tree(a, lambda y, z: np.where(z > y, z, y)).tobytes()
    assert x.amin(1).numpy().tobytes() == tree(a, lambda y, z: np.where(z < y, z, y)).tobytes()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("n", [64, 67, 100, 130, 256, 1003])
def test_nan_anywhere_in_a_row_is_that_rows_alone(n: int, dtype: torch.dtype) -> None:
    clean = torch.from_numpy(np.random.default_rng(n).standard_normal((9, n))).to(dtype)
    for at in {0, 7, 63, n - 1, n - n % 64 - 1}:
        for row in range(9):
            x = clean.clone()
            x[row, at] = float("nan")
            for name in ("sum", "amax", "amin"):
                y, z = (getattr(t, name)(1) for t in (x, clean))
                assert y.isnan().tolist() == [r == row for r in range(9)], (name, at)
                assert torch.equal(y[y == y], torch.cat([z[:row], z[row + 1 :]])), (name, at)


@pytest.mark.parametrize("wide", [1, 2, 3, 4, 8, 16, 32, 48, 64, 100, 128, 256])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_narrow_columns_equal_numpy(wide: int, dtype: type[np.generic]) -> None:
    """Rows that follow each other, of which several share registers; NaN stays in its column."""
    a = (np.random.default_rng(wide).standard_normal((3001, wide)) * 100).astype(dtype)
    for spoilt in (False, True):
        if spoilt and dtype is np.int64:
            continue
        if spoilt:
            a[1234, wide // 2] = np.nan
        x = torch.from_numpy(a)
        top, low, total = x.amax(0).numpy(), x.amin(0).numpy(), x.sum(0).numpy()
        np.testing.assert_array_equal(top, a.max(0))
        np.testing.assert_array_equal(low, a.min(0))
        want = a.astype(np.float64).sum(0) if dtype is np.float32 else a.sum(0)
        bound = (1e-6 if dtype is np.float32 else 1e-14) * np.abs(a.astype(np.float64)).sum(0)
        assert np.all((np.abs(total - want) <= bound) | np.isnan(bound))
        np.testing.assert_array_equal(np.isnan(total), np.isnan(a).any(0))


@pytest.mark.parametrize("n", [63, 64, 100, 320, 4096, 4100])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rows_of_halves_are_those_of_float32_rounded_once(n: int, dtype: torch.dtype) -> None:
    a = np.random.default_rng(n).standard_normal((1027, n))
    for spoilt in (False, True):
        if spoilt:
            a[::3, n // 2] = np.nan
            a[1::3, n - 1] = -0.0
        x = torch.from_numpy(a).to(dtype)
        wide = x.float()
        for got, want in (
            (x.sum(1), wide.sum(1)),
            (x.amax(1), wide.amax(1)),
            (x.amin(1), wide.amin(1)),
            (x.sum(), wide.sum()),
        ):
            np.testing.assert_array_equal(got.float().numpy(), want.to(dtype).float().numpy())


@pytest.mark.parametrize("n", [64, 100, 320, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_with_nan_among_others(n: int, dtype: type[np.generic]) -> None:
    a = np.random.default_rng(n).standard_normal((11, n)).astype(dtype)
    a[2, n - 1] = a[5, 0] = a[6, n // 2] = np.nan
    x = torch.from_numpy(a)
    np.testing.assert_array_equal(x.amax(1).numpy(), a.max(1))
    np.testing.assert_array_equal(x.amin(1).numpy(), a.min(1))
    np.testing.assert_array_equal(np.isnan(x.sum(1).numpy()), np.isnan(a).any(1))


# Runs of these many elements next to each other, in a place of their own, and too short for one.
@pytest.mark.parametrize("run", [8, 16, 17, 49, 64, 100, 255])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32]
)
def test_runs_within_a_result(run: int, dtype: torch.dtype) -> None:
    """Sums within their bound and extremes exactly, of runs that lie apart; any threads."""
    rng = np.random.default_rng(run)
    x = torch.from_numpy(rng.standard_normal((3, 41, 5, run)) * 50).to(dtype)
    exact = x.to(torch.float64).numpy()
    error = {torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 1e-6}.get(dtype, 1e-14)
    before = torch.get_num_threads()
    try:
        for dims in ((1, 3), (0, 1, 3), (0, 3), (0, 2, 3)):
            size = np.abs(exact).sum(dims)
            got = []
            for threads in (1, 3):
                torch.set_num_threads(threads)
                got.append((x.sum(dims), x.amax(dims), x.amin(dims)))
            for y, z in zip(*got, strict=True):
                np.testing.assert_array_equal(y.double().numpy(), z.double().numpy())
            total, top, low = (y.double().numpy() for y in got[0])
            assert np.all(np.abs(total - exact.sum(dims)) <= error * size)
            np.testing.assert_array_equal(top, exact.max(dims))
            np.testing.assert_array_equal(low, exact.min(dims))
            if dtype.is_floating_point:
                y, wide = x.clone(), exact.copy()
                y[1, 40, 2, run - 1] = wide[1, 40, 2, run - 1] = float("nan")
                np.testing.assert_array_equal(y.amax(dims).double().numpy(), wide.max(dims))
                mean = wide.mean(dims)
                np.testing.assert_array_equal(
                    np.isnan(y.mean(dims).double().numpy()), np.isnan(mean)
                )
                spread = x.var(dims, correction=0).double().numpy()
                np.testing.assert_allclose(spread, exact.var(dims), rtol=10 * error)
    finally:
        torch.set_num_threads(before)
