"""Reductions and scans whose `out=` is of another type, and of nothing."""

import math

import numpy as np
import pytest

import pytensorlib as torch


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("out", [torch.float32, torch.float64])
def test_half_into_wider_out_accumulates_in_its_type(dtype, out) -> None:
    x = (torch.arange(300) / 7).to(dtype)
    exact = x.double().numpy()

    def into(f, *args):
        to = torch.empty(0, dtype=out)
        assert f(*args, out=to) is to
        assert to.dtype == out
        return to.double().numpy()

    # Float32 sums of 300 numbers below 43; a half result would be off by 2^-11 and more.
    close = {"rtol": 2e-6, "atol": 0}
    np.testing.assert_allclose(into(torch.cumsum, x, 0), np.cumsum(exact), **close)
    np.testing.assert_allclose(into(torch.sum, x, 0), exact.sum(), **close)
    np.testing.assert_allclose(into(torch.nansum, x, 0), exact.sum(), **close)
    np.testing.assert_allclose(into(torch.mean, x, 0), exact.mean(), **close)
    y = (torch.arange(30) / 7 + 0.3).to(dtype)
    exact = y.double().numpy()
    np.testing.assert_allclose(into(torch.cumprod, y, 0), np.cumprod(exact), **close)
    np.testing.assert_allclose(into(torch.prod, y, 0), np.prod(exact), **close)


@pytest.mark.parametrize("name", ["sum", "nansum", "mean", "prod", "cumsum", "cumprod"])
def test_out_of_another_type_than_dtype_says_is_refused(name: str) -> None:
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="dtype double"):
        getattr(torch, name)(x, 0, dtype=torch.float64, out=torch.empty(0))


def test_integers_reduce_into_the_type_of_out() -> None:
    x = torch.arange(7)
    assert torch.sum(x, 0, out=torch.empty((), dtype=torch.bool)).item() is True
    wrapped = torch.cumsum(x * 20, 0, out=torch.empty(0, dtype=torch.uint8))
    assert wrapped.tolist() == [0, 20, 60, 120, 200, 44, 164]
    assert torch.sum(x, 0, out=torch.empty((), dtype=torch.float64)).item() == 21.0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_adaptive_mean_of_nothing_to_one_is_nan(n: int) -> None:
    pool = getattr(torch.nn.functional, f"adaptive_avg_pool{n}d")
    for batch in ((2,), (1, 2)):
        x = torch.ones(*batch, *[2] * (n - 1), 0, requires_grad=True)
        y = pool(x, 1)
        assert y.shape == (*batch, *[1] * n)
        assert all(math.isnan(v) for v in y.flatten().tolist())
        y.sum().backward()
        assert x.grad.shape == x.shape
        with pytest.raises(RuntimeError, match="non-zero size"):
            pool(x, 2)
    with pytest.raises(RuntimeError, match="non-zero size"):
        getattr(torch.nn.functional, f"adaptive_max_pool{n}d")(x, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_lgamma_of_one_and_two_is_zero(dtype) -> None:
    for n in (1, 40):
        x = torch.tensor([1.0, 2.0] * n, dtype=dtype)
        assert x.lgamma().tolist() == [0.0, 0.0] * n
    if dtype == torch.float32:
        near = np.float32([1, 1, 2, 2]) + np.float32([-1, 2, -1, 2]) * np.float32(2**-23)
        # -0.5772 (x - 1) and 0.4228 (x - 2), to the first order.
        want = [
            -0.5772157 * (v - 1) if v < 1.5 else 0.4227843 * (v - 2) for v in near.astype(float)
        ]
        got = torch.from_numpy(near).lgamma().double().numpy()
        np.testing.assert_allclose(got, want, rtol=1e-6)
