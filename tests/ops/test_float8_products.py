"""Products of matrices of float8 with scales, beside NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib.nn.functional import ScalingType, SwizzleType, scaled_mm

WHOLE, ROWS = ScalingType.TensorWise, ScalingType.RowWise


@pytest.fixture
def pair():
    a = (torch.arange(512.0).reshape(16, 32) / 100).to(torch.float8_e4m3fn)
    b = (torch.arange(512.0).reshape(16, 32) / 50 - 3).to(torch.float8_e4m3fn).t()
    return a, b


def exact(a, b):
    return np.array(a.tolist()) @ np.array(b.tolist())


def test_recorded_results(pair):
    two = torch.tensor(2.0)
    want = {
        torch.float32: [-51.5703125, -38.45703125, -25.8076171875, -13.1025390625],
        torch.bfloat16: [-51.5, -38.5, -25.75, -13.125],
        torch.float16: [-51.5625, -38.46875, -25.8125, -13.1015625],
        torch.float8_e4m3fn: [-52.0, -40.0, -26.0, -13.0],
        torch.float8_e5m2: [-48.0, -40.0, -24.0, -14.0],
    }
    for dtype, values in want.items():
        for y in (
            scaled_mm(*pair, two, WHOLE, two, WHOLE, output_dtype=dtype),
            torch._scaled_mm(*pair, two, two, out_dtype=dtype),
        ):
            assert y.dtype is dtype and y.shape == (16, 16)
            assert y.flatten()[:4].tolist() == values
    assert scaled_mm(*pair, two, WHOLE, two, WHOLE).dtype is torch.bfloat16
    assert torch._scaled_mm(*pair, two, two).dtype is torch.float8_e4m3fn


def test_scales_of_rows_and_a_bias(pair):
    a, b = pair[0], pair[1][:, :5]
    of_a, of_b = torch.arange(1.0, 17).reshape(16, 1), torch.tensor([[1.0, 0.5, 2.0, 4.0, 0.25]])
    bias = torch.arange(5.0)
    want = exact(a, b) * of_a.numpy() * of_b.numpy() + bias.numpy()
    y = scaled_mm(
        a, b, [of_a], [ROWS], [of_b], [ROWS], SwizzleType.NO_SWIZZLE,
        bias=bias, output_dtype=torch.float32,
    )  # fmt: skip
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-6)
    y = torch._scaled_mm(a, b, of_a, of_b, bias=bias.bfloat16(), out_dtype=torch.float32)
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-6)
    mixed = scaled_mm(a, b.to(torch.float8_e5m2), of_a, ROWS, of_b, ROWS, None, None, None, None)
    assert mixed.dtype is torch.float8_e4m3fn


def test_gradients_reach_scales_and_bias(pair):
    a, b = pair
    scale = torch.tensor(0.5, requires_grad=True)
    scaled_mm(
        a, b, scale, WHOLE, torch.tensor(1.0), WHOLE, output_dtype=torch.float32
    ).sum().backward()
    np.testing.assert_allclose(scale.grad.item(), exact(a, b).sum(), rtol=1e-6)


def test_other_configurations_raise(pair):
    a, b = pair
    one = torch.tensor(1.0)
    for args in [
        (a.float(), b.float(), one, WHOLE, one, WHOLE),
        (a, b, one.double(), WHOLE, one, WHOLE),
        (a, b, torch.ones(2), WHOLE, one, WHOLE),
        (a, b, one, WHOLE, one, ROWS),
        (a, b, torch.ones(16), ROWS, torch.ones(16), ROWS),
        (a, b, torch.ones(16, 1), ScalingType.BlockWise1x32, torch.ones(1, 16), 3),
        (a, b, one, WHOLE, one, WHOLE, SwizzleType.SWIZZLE_32_4_4),
    ]:
        with pytest.raises(ValueError, match="Invalid scaling configuration"):
            scaled_mm(*args)
    with pytest.raises(ValueError, match="one level of scales"):
        scaled_mm(a, b, [one, one], [WHOLE, WHOLE], [one], [WHOLE])
    with pytest.raises(RuntimeError, match="must be matrices that fit"):
        scaled_mm(a, b[1:], one, WHOLE, one, WHOLE)
