"""Variances, standard deviations, covariances and correlations: PyTorch's answers, or NumPy's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pytensorlib as torch


@pytest.mark.parametrize("correction", [-5, -1, -0.5, 0, 1])
@pytest.mark.parametrize("root", [False, True])
def test_spread_of_nothing_is_nan_whatever_the_correction(correction: float, root: bool) -> None:
    f = torch.std if root else torch.var
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f(torch.zeros(0), correction=correction).isnan()
        assert f(torch.zeros(2, 0, dtype=torch.float64), 1, correction=correction).isnan().all()
        assert f(torch.zeros(2, 0), 0, correction=correction).shape == (0,)
    assert torch.var(torch.tensor([1.0, 3.0]), correction=-2).item() == 0.5


def test_correlation_of_large_integers_does_not_wrap() -> None:
    x = torch.tensor([[1, 2**63 - 1, 9], [50, 2, 5]])
    want = np.corrcoef(x.double().numpy())[0, 1]
    strided = torch.zeros(2, 6, dtype=torch.int64)[:, ::2].copy_(x)
    for t in (x, strided):
        assert torch.corrcoef(t)[0, 1].item() == pytest.approx(want, rel=1e-5)


def test_cov_of_one_number_leaves_it_alone() -> None:
    # PyTorch subtracts the mean in its argument.
    x = torch.tensor(3.0)
    assert torch.cov(x, fweights=torch.tensor([2])).item() == 0
    assert x.item() == 3


inf, nan = float("inf"), float("nan")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_spread_of_large_numbers_does_not_overflow(dtype: torch.dtype) -> None:
    x = torch.tensor([[1e30, -1e30, 2e30], [1.0, 2.0, 4.0]], dtype=dtype)
    want = np.std(x.double().numpy(), axis=1, ddof=1)
    got = torch.std(x, 1)
    torch.testing.assert_close(got.double(), torch.tensor(want), rtol=1e-2, atol=0)
    assert torch.isinf(torch.var(x, 1)[0])  # the square of it is out of range


def test_spread_keeps_nan_and_inf() -> None:
    assert torch.std(torch.tensor([1.0, inf])).isnan()
    assert torch.var(torch.tensor([1.0, nan, 2.0])).isnan()
