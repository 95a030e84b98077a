"""Activations: what they give at NaN and infinity, and what they draw."""

from __future__ import annotations

import math

import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F

inf, nan = float("inf"), float("nan")


def test_hardtanh_passes_the_gradient_of_nan_everywhere() -> None:
    # PyTorch's vector code stops it, its code for the last elements does not.
    x = torch.full((99,), nan, requires_grad=True)
    F.hardtanh(x).sum().backward()
    assert x.grad is not None
    assert x.grad.eq(1).all()


INF, NAN = math.inf, math.nan


def values(t: torch.Tensor) -> list[float]:
    return t.detach().reshape(-1).tolist()


@pytest.mark.parametrize("bounds", [(NAN, 1.0), (-1.0, NAN)])
def test_hardtanh_of_a_bound_that_is_nan_is_nan(bounds: tuple[float, float]) -> None:
    assert all(map(math.isnan, values(F.hardtanh(torch.tensor([1.0, -2.0, INF]), *bounds))))


def test_rrelu_draws_a_number_for_each_element_below_zero_only() -> None:
    torch.manual_seed(0)
    x = torch.tensor([1.0, -1.0, 2.0, -1.0, -1.0], requires_grad=True)
    y = F.rrelu(x, training=True)
    want = [1.0, -0.3271, 2.0, -0.2725, -0.2207]  # PyTorch 2.13 under this seed
    torch.testing.assert_close(y.detach(), torch.tensor(want), rtol=0, atol=1e-4)
    y.sum().backward()
    slopes = [1.0, 0.3271, 1.0, 0.2725, 0.2207]
    torch.testing.assert_close(x.grad, torch.tensor(slopes), rtol=0, atol=1e-4)
