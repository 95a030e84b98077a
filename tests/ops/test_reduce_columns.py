"""Reductions whose kept elements lie side by side: any length, NaN and signed zeros anywhere."""

import numpy as np
import pytest

import pytensorlib as torch


@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 64, 1024, 1057])
@pytest.mark.parametrize("width", [1, 7, 64, 513])
def test_columns_of_any_length_and_width_equal_numpy(length: int, width: int) -> None:
    rng = np.random.default_rng(length * width)
    for dtype in (np.float32, np.float64):
        a = rng.standard_normal((length, width)).astype(dtype)
        x = torch.from_numpy(a)
        np.testing.assert_array_equal(x.amax(0).numpy(), a.max(0))
        np.testing.assert_array_equal(x.amin(0).numpy(), a.min(0))
        rtol, atol = (1e-5, 1e-4) if dtype == np.float32 else (1e-13, 1e-13)
        np.testing.assert_allclose(x.sum(0).numpy(), a.astype(np.float64).sum(0), rtol, atol)
        spoilt = a.copy()
        spoilt[rng.integers(length), ::2] = np.nan
        spoilt[rng.integers(length), 1::3] = np.inf
        x = torch.from_numpy(spoilt)
        np.testing.assert_array_equal(x.amax(0).numpy(), spoilt.max(0))
        np.testing.assert_array_equal(x.amin(0).numpy(), spoilt.min(0))
        np.testing.assert_array_equal(x.T.contiguous().amax(1).numpy(), spoilt.max(0))
        want = np.nansum(spoilt.astype(np.float64), 0)
        np.testing.assert_allclose(x.nansum(0).numpy(), want, rtol, atol)


@pytest.mark.parametrize("shape", [(2, 40), (40, 2), (3, 70), (70, 3)])
def test_extremes_of_zeros_are_the_first(shape: tuple[int, int]) -> None:
    for first in (0.0, -0.0):
        a = np.full(shape, -first, dtype=np.float32)
        a[0] = first
        x = torch.from_numpy(a)
        assert (np.signbit(x.amax(0).numpy()) == np.signbit(np.float32(first))).all()
        assert (np.signbit(x.amin(0).numpy()) == np.signbit(np.float32(first))).all()


def test_running_results_of_lines_a_page_apart_equal_numpy() -> None:
    rng = np.random.default_rng(0)
    for rows in (1, 3, 4, 5, 9):
        a = rng.integers(-9, 9, (rows, 1024)).astype(np.float32)
        x = torch.from_numpy(a)
        np.testing.assert_array_equal(x.cumsum(1).numpy(), a.cumsum(1))
        np.testing.assert_array_equal(x.cummax(1)[0].numpy(), np.maximum.accumulate(a, 1))
        flat = torch.from_numpy(np.tile(a.reshape(-1), 40)).cumsum(0).numpy()
        np.testing.assert_array_equal(flat, np.tile(a.reshape(-1), 40).astype(np.float64).cumsum())


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8]
)
@pytest.mark.parametrize("length", [1, 3, 4, 5, 31, 33, 100, 1057])
def test_columns_of_narrow_and_whole_numbers(length: int, dtype: torch.dtype) -> None:
    for width in (1, 7, 16, 40, 513):
        rng = np.random.default_rng(length * width)
        x = torch.from_numpy(rng.integers(0, 100, (length, width))).to(dtype)
        a = x.to(torch.float64 if dtype.is_floating_point else torch.int64).numpy()
        np.testing.assert_array_equal(x.amax(0).double().numpy(), a.max(0))
        np.testing.assert_array_equal(x.amin(0).double().numpy(), a.min(0))
        # Whole numbers, whose sums are exact, and the result is rounded once.
        want = torch.from_numpy(a.sum(0)).to(dtype if dtype.is_floating_point else torch.int64)
        np.testing.assert_array_equal(x.sum(0).double().numpy(), want.double().numpy())
        between = x[:, None].expand(length, 3, width).transpose(0, 1)
        np.testing.assert_array_equal(between.sum(1).double().numpy()[2], want.double().numpy())
        if dtype.is_floating_point:
            x[rng.integers(length), ::2] = float("nan")
            a = x.double().numpy()
            np.testing.assert_array_equal(x.amax(0).double().numpy(), a.max(0))
            np.testing.assert_array_equal(x.sum(0).isnan().numpy(), np.isnan(a).any(0))
