"""`fake_quantize_per_tensor_affine` and its form for channels: results, gradients, errors."""

import math

import numpy as np
import pytest

import pytensorlib as torch

quantize = torch.fake_quantize_per_tensor_affine
channels = torch.fake_quantize_per_channel_affine
X = [0.05, 0.15, 0.25, -0.05, -0.15, -0.25, 10.0, -10.0, 0.35]
SCALE, ZERO = torch.tensor(0.1), torch.tensor(3, dtype=torch.int32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_results_match_recorded_ones(dtype: torch.dtype) -> None:
    x = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 3.5, 30.0, -30.0]).to(dtype)
    for zero, want in ((1, [0, 2, 2, 0, -2, 4, 6, -9]), (0, [0, 2, 2, 0, -2, 4, 7, -8])):
        y = quantize(x, 1.0, zero, -8, 7)
        assert y.dtype == dtype
        assert y.tolist() == want
        assert quantize(x, torch.tensor([1.0]), torch.tensor(zero), -8, 7).tolist() == want


def test_ties_are_those_of_the_product_with_the_inverse_in_float32() -> None:
    want = {
        0: [0, 0.2, 0.2, 0, 0, 0, 10, 0, 0.4],
        3: [0, 0.2, 0.2, 0, -0.2, -0.2, 10, -0.3, 0.4],
    }
    for zero, values in want.items():
        y = quantize(torch.tensor(X), 0.1, zero, 0, 255)
        np.testing.assert_allclose(y.numpy(), np.float32(values), rtol=1e-6)
        assert torch.equal(y, quantize(torch.tensor(X), SCALE, torch.tensor(zero), 0, 255))
    assert quantize(torch.tensor([0.05, 1.234567]).half(), 0.1, 0, 0, 255)[1] == 1.2001953125
    assert quantize(torch.tensor([0.05, 1.234567]).bfloat16(), 0.1, 0, 0, 255)[1] == 1.203125


def test_scale_keeps_its_digits_beside_halves() -> None:
    x = (torch.arange(-200, 200) / 16).half()
    for tensor in (x, x[333]):
        y = quantize(tensor, SCALE, ZERO, -128, 127)
        assert y.dtype == torch.float16
        assert torch.equal(y, quantize(tensor, 0.1, 3, -128, 127))


def test_infinities_are_held_and_nan_is_the_lowest() -> None:
    x = torch.tensor([math.inf, -math.inf, math.nan, 1e30, -1e30])
    assert quantize(x, 0.5, 2, 1, 9).tolist() == [3.5, -0.5, -0.5, 3.5, -0.5]
    assert quantize(torch.tensor([0.0, 1.0, -1.0]), 0.0, 0, 0, 5).tolist() == [0, 0, 0]


def test_gradient_passes_where_nothing_was_held() -> None:
    for form in ((0.1, 3, 0, 20), (SCALE, ZERO, 0, 20)):
        x = torch.tensor([*X, math.nan], requires_grad=True)
        y = quantize(x, *form)
        y.backward(torch.full((10,), 2.0))
        assert x.grad.tolist() == [2, 2, 2, 2, 2, 2, 0, 0, 2, 0]
    assert y.grad_fn.name() == "FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0"
    g = torch.ones(10, requires_grad=True)
    (d,) = torch.autograd.grad(quantize(x, 0.1, 3, 0, 20), x, g, create_graph=True)
    (back,) = torch.autograd.grad(d.sum(), g)
    assert back.tolist() == [1, 1, 1, 1, 1, 1, 0, 0, 1, 0]


def test_layout_follows_the_input() -> None:
    x = torch.randn(4, 3).t()
    assert quantize(x, 0.1, 0, -128, 127).stride() == (1, 3)
    assert quantize(torch.zeros(0, 2), 0.1, 0, 0, 1).shape == (0, 2)


def test_wrong_arguments_raise() -> None:
    x = torch.tensor(X)
    with pytest.raises(RuntimeError, match="`quant_min` should be less than or equal"):
        quantize(x, 0.1, 0, 6, 5)
    with pytest.raises(RuntimeError, match="`quant_min` should be less than or equal"):
        quantize(x, SCALE, ZERO, 6, 5)
    for zero in (-1, 9):
        with pytest.raises(RuntimeError, match="`zero_point` must be between"):
            quantize(x, 0.1, zero, 0, 5)
    with pytest.raises(NotImplementedError, match="Int"):
        quantize(x.int(), 0.1, 0, 0, 5)
    with pytest.raises(NotImplementedError, match="Int"):
        quantize(x.int(), SCALE, ZERO, 0, 5)
    with pytest.raises(RuntimeError, match="2 elements"):
        quantize(x, torch.ones(2), ZERO, 0, 5)
    with pytest.raises(RuntimeError, match="argument 'scale'"):
        quantize(x, torch.tensor(0.1, requires_grad=True), ZERO, 0, 5)
    with pytest.raises(TypeError):
        quantize(x, 0.1, 0.5, 0, 5)


def test_gpu_equals_cpu() -> None:
    if not torch.wgpu.is_available():
        pytest.skip("no adapter")
    x = torch.randn(3, 70) * 4
    x[0, :3] = torch.tensor([math.nan, math.inf, -math.inf])
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        # Of a power of two the products and ties are exact.
        for scale, zero in ((0.25, 3), (torch.tensor(0.25), ZERO)):
            here = x.to(dtype).detach().requires_grad_()
            there = here.detach().to("wgpu").requires_grad_()
            y, z = (quantize(t, scale, zero, -8, 7) for t in (here, there))
            assert torch.equal(y, z.cpu())
            y.sum().backward()
            z.sum().backward()
            assert torch.equal(here.grad, there.grad.cpu())


ROW = [0.05, 0.15, 0.25, -0.05, -0.15, 10.0, -10.0, math.nan]
# Two channels of ROW with scales 0.1 and 0.5, for integers from 0 to 20.
RECORDED = {
    torch.int32: ([0, 3], [[0, 0.2, 0.2, 0, 0, 2, 0, 0], [0, 0, 0, 0, 0, 8.5, -1.5, -1.5]]),
    torch.float32: (
        [0.5, 3.2],
        [
            [0.05, 0.15, 0.25, -0.05, -0.05, 1.95, -0.05, -0.05],
            [-0.1, 0.4, 0.4, -0.1, -0.1, 8.4, -1.6, -1.6],
        ],
    ),
}


@pytest.mark.parametrize("kind", RECORDED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_results_for_channels_match_recorded_ones(kind, dtype) -> None:
    zero, want = RECORDED[kind]
    x = torch.tensor([ROW, ROW], dtype=torch.float64).to(dtype)
    scale, zero = torch.tensor([0.1, 0.5]), torch.tensor(zero, dtype=kind)
    for axis, y in ((0, x), (1, x.t())):
        got = channels(y, scale, zero, axis, 0, 20)
        assert got.dtype is dtype and got.stride() == y.stride()
        rtol = 1e-3 if dtype is torch.float16 else 1e-6
        np.testing.assert_allclose((got.t() if axis else got).double().numpy(), want, rtol, 1e-12)
    again = channels(x.reshape(2, 4, 2), scale, zero, 0, 0, 20).reshape(2, 8)
    np.testing.assert_allclose(again.double().numpy(), want, rtol, 1e-12)
    wide = channels(x[1:].double(), scale[1:], zero[1:], 0, 0, 20)
    assert wide.dtype is torch.float64
    np.testing.assert_allclose(wide.numpy(), want[1:], 1e-6)


def test_each_channel_is_what_the_form_for_tensors_gives() -> None:
    x = torch.linspace(-3, 3, 60).reshape(3, 4, 5)
    scale, zero = torch.tensor([0.1, 0.3, 0.7, 1.1]), torch.tensor([1, 0, 5, 9]).int()
    y = channels(x, scale, zero, 1, 0, 9)
    for i in range(4):
        assert torch.equal(y[:, i], quantize(x[:, i], scale[i], zero[i], 0, 9))


def test_gradient_of_channels_passes_where_nothing_was_held() -> None:
    x = torch.tensor([ROW, ROW], requires_grad=True)
    scale, zero = torch.tensor([0.1, 0.5]), torch.tensor([0, 3]).int()
    y = channels(x, scale, zero, 0, 0, 20)
    assert y.grad_fn.name() == "FakeQuantizePerChannelAffineCachemaskBackward0"
    y.backward(torch.full_like(y, 2))
    assert x.grad.tolist() == [[2, 2, 2, 2, 0, 0, 0, 0], [2, 2, 2, 2, 2, 0, 0, 0]]
    half = x.detach().half().requires_grad_()
    channels(half, scale, zero, 0, 0, 20).sum().backward()
    assert half.grad.dtype is torch.float16 and half.grad[1, 0].item() == 1
    g = torch.ones(2, 8, requires_grad=True)
    (d,) = torch.autograd.grad(channels(x, scale, zero, 0, 0, 20), x, g, create_graph=True)
    (back,) = torch.autograd.grad(d.sum(), g)
    assert back.tolist() == (x.grad / 2).tolist()


def test_wrong_arguments_for_channels_raise() -> None:
    x, scale, zero = torch.ones(2, 3), torch.ones(3), torch.zeros(3, dtype=torch.int32)
    for args, told in [
        ((x, torch.ones(2), zero, 1, 0, 1), "need to have the same dimensions"),
        ((x, torch.ones(2), zero[:2], 1, 0, 1), "not consistent with input tensor"),
        ((x, scale[:, None], zero, 1, 0, 1), "scale should be a 1-D tensor"),
        ((x, scale, zero[:, None], 1, 0, 1), "zero point should be a 1-D tensor"),
        ((x, scale, zero, -1, 0, 1), "`axis` must be between 0 and number of dimensions"),
        ((x, scale, zero, 2, 0, 1), "`axis` must be between 0 and number of dimensions"),
        ((x, scale, zero, 1, 2, 1), "`quant_min` should be less than or equal"),
        ((x, scale, zero + 5, 1, 0, 1), "`zero_point` must be between"),
        ((x, scale.double(), zero, 1, 0, 1), "Scale must be Float or BFloat16, found Double"),
        ((x, scale, zero.long(), 1, 0, 1), "Zero-point must be Int32, Float or Half, found Long"),
        ((x, torch.ones(3, requires_grad=True), zero, 1, 0, 1), "argument 'scale'"),
        ((torch.tensor(1.0), scale[:1], zero[:1], 0, 0, 1), "`axis` must be between"),
    ]:
        with pytest.raises(RuntimeError, match=told):
            channels(*args)
    for bad in (x.int(), x.to(torch.float8_e5m2)):
        with pytest.raises(NotImplementedError, match="not implemented for"):
            channels(bad, scale, zero, 1, 0, 1)
    assert channels(torch.zeros(0, 3), scale, zero, 1, 0, 1).shape == (0, 3)


def test_gpu_equals_cpu_for_channels() -> None:
    if not torch.wgpu.is_available():
        pytest.skip("no adapter")
    x = torch.randn(3, 7, 5) * 4
    x[0, 0, :3] = torch.tensor([math.nan, math.inf, -math.inf])
    scale, zero = torch.tensor([0.25, 1.0, 0.5]), torch.tensor([3, 0, -2]).int()
    for dtype in (torch.float32, torch.float16):
        here = x.to(dtype).detach().requires_grad_()
        there = here.detach().to("wgpu").requires_grad_()
        y = channels(here, scale, zero, 0, -8, 7)
        z = channels(there, scale.to("wgpu"), zero.to("wgpu"), 0, -8, 7)
        assert torch.equal(y, z.cpu())
        y.sum().backward()
        z.sum().backward()
        assert torch.equal(here.grad, there.grad.cpu())
