"""Running sums of long lines against NumPy, whatever their length, type, direction and threads."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as pt

LENGTHS = [1, 511, 512, 513, 1023, 1024, 1025, 4097, 32767, 32768, 33333]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("lines", [1, 3, 5])
def test_running_sums_of_lines_equal_those_of_numpy(lines: int, n: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.standard_normal((lines, n))
    want = np.cumsum(x, 1)
    np.testing.assert_allclose(pt.from_numpy(x).cumsum(1).numpy(), want, rtol=1e-13, atol=1e-12 * n)
    single = x.astype("float32")
    want = np.cumsum(single.astype("float64"), 1)
    # Summed in float64 and rounded once.
    got = pt.from_numpy(single).cumsum(1).numpy()
    np.testing.assert_allclose(got, want, rtol=6.1e-8, atol=1e-12 * n)
    whole = rng.integers(-(2**62), 2**62, (lines, n))
    np.testing.assert_array_equal(pt.from_numpy(whole).cumsum(1).numpy(), np.cumsum(whole, 1))


@pytest.mark.parametrize("dtype", [pt.float32, pt.float64, pt.int64, pt.bfloat16])
def test_running_sums_have_the_same_bits_for_any_number_of_threads(dtype: pt.dtype) -> None:
    x = (pt.randn(40_000) * 9).to(dtype)
    before = pt.get_num_threads()
    try:
        pt.set_num_threads(1)
        one = x.cumsum(0)
        pt.set_num_threads(3)
        assert pt.equal(x.cumsum(0), one)
    finally:
        pt.set_num_threads(before)


def test_running_sums_go_on_from_infinities_and_nan() -> None:
    x = pt.ones(5000)
    x[1234], x[3456] = float("inf"), float("-inf")
    y = x.cumsum(0)
    assert pt.equal(y[:1234], pt.arange(1.0, 1235.0))
    assert bool((y[1234:3456] == float("inf")).all())
    assert bool(y[3456:].isnan().all())


@pytest.mark.parametrize("n", [700, 2048, 40_000])
def test_gradients_of_running_sums_are_sums_from_the_end(n: int) -> None:
    g = np.random.default_rng(0).standard_normal(n)
    x = pt.zeros(n, dtype=pt.float64, requires_grad=True)
    x.cumsum(0).backward(pt.from_numpy(g))
    want = np.cumsum(g[::-1])[::-1]
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-12, atol=1e-10)
