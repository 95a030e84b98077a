"""`segment_reduce`: empty segments, what is left over, derivatives, and wrong arguments."""

import math

import numpy as np
import pytest

import pytensorlib as torch

nan, inf = math.nan, math.inf
LENGTHS = torch.tensor([2, 0, 4])
HOW = ["sum", "mean", "max", "min", "prod"]


@pytest.mark.parametrize(
    ("how", "plain", "with_two", "with_less"),
    [
        ("sum", [3, 0, 18], [5, 2, 20], [1.5, -1.5, 16.5]),
        ("mean", [1.5, nan, 4.5], [2.5, 2, 5], [0.75, -1.5, 4.125]),
        ("max", [2, -inf, 6], [2, 2, 6], [2, -1.5, 6]),
        ("min", [1, inf, 3], [1, 2, 2], [-1.5, -1.5, -1.5]),
        ("prod", [2, 1, 360], [4, 2, 720], [-3, -1.5, -540]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_segments_match_recorded_results(how, plain, with_two, with_less, dtype) -> None:
    x = torch.arange(1, 7).to(dtype)
    for initial, want in ((None, plain), (2, with_two), (-1.5, with_less)):
        forms = {"lengths": LENGTHS}, {"offsets": torch.tensor([0, 2, 2, 6], dtype=torch.int32)}
        for given in forms:
            y = torch.segment_reduce(x, how, **given, initial=initial)
            assert y.dtype == dtype
            np.testing.assert_array_equal(y.double().numpy(), torch.tensor(want).to(dtype).double())


@pytest.mark.parametrize("how", HOW)
def test_nan_and_inf_reach_their_segment_alone(how: str) -> None:
    x = torch.tensor([nan, 1, 2, inf, 3])
    y = torch.segment_reduce(x, how, lengths=torch.tensor([2, 2, 1]))
    want = [nan, 2.0 if how == "min" else inf, 3.0]
    np.testing.assert_array_equal(y.numpy(), np.array(want, np.float32))
    filled = torch.segment_reduce(x[1:], how, lengths=torch.tensor([4]), initial=nan)
    assert math.isnan(filled.item())


def test_segments_of_a_view_are_those_of_its_copy() -> None:
    x = torch.randn(3, 5, 4).permute(2, 1, 0)[:, ::2]
    lengths = torch.tensor([[1, 2], [3, 0], [0, 3], [2, 1]]).repeat(1, 2)[:, ::3]
    assert lengths.stride() != (2, 1)
    y = torch.segment_reduce(x, "sum", lengths=lengths, axis=1, unsafe=True)
    want = torch.segment_reduce(
        x.contiguous(), "sum", lengths=lengths.clone(), axis=-2, unsafe=True
    )
    assert torch.equal(y, want)
    assert y.shape == (4, 2, 3)


def test_half_sums_are_as_exact_as_one_rounding() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        y = torch.segment_reduce(torch.ones(5000, dtype=dtype), "sum", lengths=torch.tensor([5000]))
        assert y.item() == torch.tensor(5000.0).to(dtype).item()


@pytest.mark.parametrize(
    ("how", "initial", "want"),
    [
        ("sum", 1.0, [1, 1, 1, 1, 100, 100, 1000, 1000, 1e4, 1e4, 1e4]),
        ("mean", None, [0.25, 0.25, 0.25, 0.25, 50, 50, 500, 500, 1e4 / 3, 1e4 / 3, 1e4 / 3]),
        ("max", None, [0, 0.5, 0.5, 0, 50, 50, 0, 1000, 0, 0, 1e4]),
        ("max", 100.0, [0] * 11),
        ("max", 3.0, [0, 0.5, 0.5, 0, 50, 50, 0, 0, 0, 0, 1e4]),
        ("min", None, [1, 0, 0, 0, 50, 50, 1000, 0, 5000, 5000, 0]),
        ("min", 0.0, [0, 0, 0, 0, 0, 0, 1000, 0, 5000, 5000, 0]),
        ("prod", None, [18, 6, 6, 9, 500, 500, 2000, 0, 0, 0, 0]),
        ("prod", 100.0, [1800, 600, 600, 900, 5e4, 5e4, 2e5, 0, 0, 0, 0]),
        ("prod", 0.0, [0] * 11),
    ],
)
def test_gradients_match_recorded_ones(how, initial, want) -> None:
    x = torch.tensor([1.0, 3, 3, 2, 5, 5, 0, 2, 0, 0, 4], requires_grad=True)
    y = torch.segment_reduce(x, how, lengths=torch.tensor([4, 0, 2, 2, 3]), initial=initial)
    y.backward(torch.tensor([1.0, 10, 100, 1000, 10000]))
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-6)


def test_equal_extremes_share_a_negative_gradient_too() -> None:
    # PyTorch gives each of them all of it.
    x = torch.tensor([3.0, 3.0, 1.0], requires_grad=True)
    torch.segment_reduce(x, "max", lengths=torch.tensor([3])).sum().neg().backward()
    assert x.grad.tolist() == [-0.5, -0.5, 0]


def test_gradient_of_nan_is_where_it_is() -> None:
    for how in ("max", "min"):
        x = torch.tensor([nan, 3.0, 3.0], requires_grad=True)
        torch.segment_reduce(x, how, lengths=torch.tensor([3])).sum().backward()
        assert x.grad.tolist() == [1, 0, 0]
    x = torch.tensor([1.0, nan, 3, 2], requires_grad=True)
    y = torch.segment_reduce(x, "prod", offsets=torch.tensor([0, 2, 4]))
    y.backward(torch.tensor([1.0, 10]))
    np.testing.assert_array_equal(x.grad.numpy(), np.array([nan, 1, 20, 30], np.float32))


def test_what_is_in_no_segment_gets_no_gradient() -> None:
    for how in HOW:
        x = torch.tensor([1.0, 3, 3, 2, 4], requires_grad=True)
        y = torch.segment_reduce(x, how, offsets=torch.tensor([1, 2, 4]))
        y.sum().backward()
        assert x.grad[0] == x.grad[4] == 0
        assert x.grad[1] == 1


def test_second_derivative_of_a_product_counts_a_zero() -> None:
    x = torch.tensor([2.0, 0.0, 5.0, 3.0], dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([3, 1])
    (first,) = torch.autograd.grad(
        torch.segment_reduce(x, "prod", lengths=lengths).sum(), x, create_graph=True
    )
    assert first.tolist() == [0, 10, 0, 1]
    (second,) = torch.autograd.grad(first[0], x, retain_graph=True)
    assert second.tolist() == [0, 5, 0, 0]
    (second,) = torch.autograd.grad(first[1], x)
    assert second.tolist() == [5, 0, 2, 0]
    y = torch.segment_reduce(torch.zeros(2, requires_grad=True), "prod", lengths=torch.tensor([2]))
    with pytest.raises(NotImplementedError, match="several zeros"):
        y.backward(create_graph=True)


def test_nothing_to_reduce() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    assert torch.segment_reduce(torch.zeros(0, 3), "sum", lengths=none).shape == (0, 3)
    y = torch.segment_reduce(torch.zeros(0, 3), "min", lengths=torch.tensor([0, 0]))
    assert y.tolist() == [[inf] * 3] * 2
    assert torch.segment_reduce(torch.zeros(2, 0), "max", lengths=torch.tensor([1, 1])).shape == (
        2,
        0,
    )
    x = torch.zeros(0, requires_grad=True)
    torch.segment_reduce(x, "sum", lengths=torch.tensor([0])).sum().backward()
    assert x.grad.shape == (0,)


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({}, RuntimeError, "Either lengths or offsets"),
        ({"indices": torch.tensor([0] * 6)}, RuntimeError, "indices based"),
        ({"lengths": torch.tensor([2, 3])}, RuntimeError, "sum to .* 6 elements, got a row of 5"),
        ({"lengths": torch.tensor([2, 5]), "unsafe": True}, RuntimeError, "got a row of 7"),
        ({"lengths": torch.tensor([2**62, 2**62, 2**62])}, RuntimeError, "sum to"),
        ({"lengths": torch.tensor([-1, 7])}, RuntimeError, "negative"),
        ({"lengths": torch.zeros(0, dtype=torch.int64)}, RuntimeError, "no segments"),
        ({"lengths": torch.tensor([2.0, 4.0])}, NotImplementedError, "Float"),
        ({"lengths": torch.tensor(6)}, RuntimeError, "last dimension of lengths"),
        ({"lengths": torch.tensor([[2, 4]])}, RuntimeError, "data.dim"),
        ({"lengths": torch.tensor([6]), "axis": 1}, IndexError, "out of range"),
        ({"offsets": torch.tensor([0, 4, 2, 6])}, RuntimeError, "segment_length >= 0"),
        ({"offsets": torch.tensor([0, 7])}, RuntimeError, "within"),
        ({"offsets": torch.tensor([-1, 6])}, RuntimeError, "within"),
        ({"offsets": torch.zeros(0, dtype=torch.int64)}, RuntimeError, "an element more"),
    ],
)
def test_wrong_segments_raise(kwargs, error, match) -> None:
    with pytest.raises(error, match=match):
        torch.segment_reduce(torch.arange(6.0), "sum", **kwargs)


def test_wrong_data_raises() -> None:
    with pytest.raises(NotImplementedError, match="Int"):
        torch.segment_reduce(torch.arange(3, dtype=torch.int32), "sum", lengths=torch.tensor([3]))
    with pytest.raises(RuntimeError, match="bogus"):
        torch.segment_reduce(torch.arange(3.0), "bogus", lengths=torch.tensor([3]))
    with pytest.raises(RuntimeError, match="before axis 1"):
        torch.segment_reduce(torch.ones(2, 3), "sum", lengths=torch.tensor([[3]]), axis=1)
    with pytest.raises(RuntimeError, match=r"data.dim\(\) >= lengths"):
        torch.segment_reduce(torch.tensor(3.0), "sum", lengths=torch.tensor([1]))


@pytest.mark.parametrize("how", HOW)
def test_gpu_equals_cpu_with_gradients_and_long_segments(how: str) -> None:
    if not torch.wgpu.is_available():
        pytest.skip("no adapter")
    lengths = torch.tensor([[0, 700, 1, 99], [300, 0, 500, 0]])
    x = torch.randn(2, 800, 3) * 0.1 + 1
    results = []
    for device in ("cpu", "wgpu"):
        t = x.to(device).detach().requires_grad_()
        y = torch.segment_reduce(t, how, lengths=lengths.to(device), axis=1, initial=0.5)
        (y * torch.arange(1, 4).to(device)).sum().backward()
        results.append((y.detach().cpu(), t.grad.cpu()))
    for ours, want in zip(results[1], results[0]):
        torch.testing.assert_close(ours, want, rtol=2e-4, atol=2e-4)
