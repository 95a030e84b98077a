"""Scans, sorts and what follows from order run on the GPU itself: an op without a kernel raises."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import wgpu

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]

NAN, INF = float("nan"), float("inf")
DTYPES = ["float32", "float16", "int64", "int32", "uint8", "bool"]
# Short lines, lines in memory across others, and lines that take several dispatches.
SHAPES = [((5, 9), 1), ((3, 7, 2), 1), ((2, 5000), 1), ((600, 40), 0)]


def some(shape, dtype: str, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).integers(-9, 10, shape)
    if dtype == "bool":
        return x > 0
    return np.abs(x).astype(dtype) if dtype == "uint8" else x.astype(dtype)


def gpu(x: np.ndarray):
    return torch.from_numpy(x.copy()).to("wgpu")


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_is_stable_both_ways(dtype, shape, dim) -> None:
    x = some(shape, dtype)
    wide = x.astype(np.float64)
    for descending in (False, True):
        want = np.argsort(-wide if descending else wide, axis=dim, kind="stable")
        values, at = torch.sort(gpu(x), dim, descending)
        np.testing.assert_array_equal(at.cpu().numpy(), want)
        np.testing.assert_array_equal(values.cpu().numpy(), np.take_along_axis(x, want, dim))
        only = torch.argsort(gpu(x), dim=dim, descending=descending, stable=True)
        np.testing.assert_array_equal(only.cpu().numpy(), want)


def test_sort_puts_nan_last_and_takes_zeros_for_equal() -> None:
    x = gpu(np.array([NAN, 0.0, -INF, -0.0, INF, -1.0, NAN], np.float32))
    assert torch.sort(x)[1].tolist() == [2, 5, 1, 3, 4, 0, 6]
    assert torch.sort(x, descending=True)[1].tolist() == [0, 6, 4, 1, 3, 5, 2]
    assert torch.sort(torch.tensor(3.0, device="wgpu"))[1].item() == 0


@pytest.mark.parametrize("size", [8, 3000])
def test_sort_tells_64_bit_integers_apart(size) -> None:
    x = np.random.default_rng(0).integers(-(2**62), 2**62, size)
    x[:5] = [2**40, -(2**40), 2**63 - 1, -(2**63), 2**31]
    values, at = torch.sort(gpu(x))
    assert values.tolist() == sorted(x.tolist())
    np.testing.assert_array_equal(at.cpu().numpy(), np.argsort(x, kind="stable"))


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_selections_match_a_sorted_copy(dtype, shape, dim) -> None:
    x = some(shape, dtype)
    ordered, y = np.sort(x, dim), gpu(x)
    n = shape[dim]

    def holds(got, k: int) -> None:
        values, at = got[0].cpu().numpy(), np.expand_dims(got[1].cpu().numpy(), dim)
        np.testing.assert_array_equal(values, ordered.take(k, dim))
        np.testing.assert_array_equal(np.take_along_axis(x, at, dim).squeeze(dim), values)

    holds(torch.kthvalue(y, 3, dim), 2)
    holds(torch.median(y, dim), (n - 1) // 2)
    assert torch.median(y).item() == np.sort(x.ravel())[(x.size - 1) // 2]
    values, at = torch.topk(y, 4, dim)
    np.testing.assert_array_equal(values.cpu().numpy(), np.flip(ordered, dim).take(range(4), dim))
    np.testing.assert_array_equal(
        np.take_along_axis(x, at.cpu().numpy(), dim), values.cpu().numpy()
    )
    values, at = torch.mode(y, dim)
    lines = np.moveaxis(x, dim, -1).reshape(-1, n)
    for line, value, place in zip(lines, values.cpu().numpy().ravel(), at.cpu().numpy().ravel()):
        found, counts = np.unique(line, return_counts=True)
        assert value == found[counts.argmax()]
        assert place == np.flatnonzero(line == value)[-1]


def test_medians_with_nan() -> None:
    x = gpu(np.array([[3, NAN, 1, NAN, 2], [5, 4, 3, 2, 1], [NAN] * 5], np.float32))
    assert torch.median(x, 1)[1].tolist() == [1, 2, 0]
    np.testing.assert_equal(torch.median(x, 1)[0].tolist(), [NAN, 3, NAN])
    assert torch.nanmedian(x, 1)[1].tolist()[:2] == [4, 2]
    np.testing.assert_equal(torch.nanmedian(x, 1)[0].tolist(), [2, 3, NAN])
    assert torch.mode(x, 1)[1].tolist() == [2, 4, 0]


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_running_results_match_numpy(dtype, shape, dim) -> None:
    x = some(shape, dtype)
    y = gpu(x)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(torch.cumsum(y, dim).cpu().numpy(), wide.cumsum(dim), rtol=1e-5)
    signs = np.where(x > 0, 1, -1) if dtype != "uint8" else np.ones_like(x)
    got = torch.cumprod(gpu(signs.astype(dtype)), dim)
    np.testing.assert_array_equal(got.cpu().numpy(), signs.astype(np.int64).cumprod(dim))
    for f, of in ((torch.cummax, np.maximum), (torch.cummin, np.minimum)):
        values, at = f(y, dim)
        want = of.accumulate(x, dim)
        np.testing.assert_array_equal(values.cpu().numpy(), want)
        # Of equal ones the last one so far.
        places = np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.ndim)])
        last = np.maximum.accumulate(np.where(x == want, places, 0), dim)
        np.testing.assert_array_equal(at.cpu().numpy(), last)


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_logcumsumexp_matches_numpy(shape, dim) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 5
    x[0, 0] = -INF
    want = np.logaddexp.accumulate(x.astype(np.float64), dim)
    np.testing.assert_allclose(
        torch.logcumsumexp(gpu(x), dim).cpu().numpy(), want, rtol=2e-5, atol=2e-5
    )
    ends = torch.logcumsumexp(gpu(np.array([1, INF, 2, NAN, 3], np.float32)), 0)
    np.testing.assert_equal(ends.tolist()[1:], [INF, INF, NAN, NAN])


def test_gradients_of_scans_and_products_stay_on_the_gpu() -> None:
    x = np.array([[0.5, -2.0, 0.0, 3.0], [1.5, 2.0, -1.0, 4.0]], np.float32)
    for f in (
        lambda t: torch.cumprod(t, 1),
        lambda t: torch.cumsum(t, 0),
        lambda t: torch.logcumsumexp(t, 1),
        lambda t: torch.prod(t, 1),
        lambda t: torch.cummax(t, 1)[0],
        lambda t: torch.sort(t, 0)[0] ** 2,
    ):
        grads = []
        for device, dtype in (("cpu", torch.float64), ("wgpu", torch.float32)):
            t = torch.tensor(x, dtype=dtype, device=device, requires_grad=True)
            y = f(t)
            (y * torch.arange(1.0, 1 + y.numel(), device=device).reshape(y.shape)).sum().backward()
            grads.append(t.grad.cpu().numpy())
        np.testing.assert_allclose(grads[1], grads[0], rtol=1e-5, atol=1e-5)


def test_kthvalue_takes_the_equal_one_that_partitioning_finds() -> None:
    # Recorded from PyTorch.
    x = torch.tensor([3, 1, 2, 3, 3, 1, 2, 2, 0, 3], device="wgpu")
    assert [torch.kthvalue(x, k)[0].item() for k in range(1, 11)] == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    assert [torch.kthvalue(x, k)[1].item() for k in range(1, 11)] == [8, 1, 5, 7, 2, 6, 4, 0, 3, 9]


def test_order_of_nothing_is_nothing() -> None:
    x = torch.zeros(0, 3, device="wgpu")
    assert torch.sort(x, 0)[0].shape == (0, 3)
    assert torch.cumsum(x, 0).shape == (0, 3)


# A step of a line has 1024 elements, or fewer, and eight steps are one part.
@pytest.mark.parametrize(
    "shape",
    [(3,), (4, 5), (3, 255), (2, 1023), (1025,), (3, 8192), (8193,), (2, 20_001),
     (40_000, 2), (3000, 40)],
)  # fmt: skip
def test_running_results_of_integers_are_exact_at_every_length(shape) -> None:
    dim = int(np.argmax(shape))
    x = np.random.default_rng(1).integers(-(2**40), 2**40, shape)
    y = gpu(x)
    np.testing.assert_array_equal(torch.cumsum(y, dim).cpu().numpy(), x.cumsum(dim))
    top, at = torch.cummax(y, dim)
    np.testing.assert_array_equal(top.cpu().numpy(), np.maximum.accumulate(x, dim))
    np.testing.assert_array_equal(torch.gather(y, dim, at).cpu().numpy(), top.cpu().numpy())
    # The gradient of a running sum is one from the end; these fit a float32.
    small = (x % 9).astype(np.float32)
    z = gpu(small).requires_grad_()
    torch.cumsum(z, dim).backward(gpu(small))
    want = np.flip(np.flip(small, dim).cumsum(dim), dim)
    np.testing.assert_array_equal(z.grad.cpu().numpy(), want)


@pytest.mark.parametrize("size", [1, 3, 1023, 5000, 70_000])
def test_sums_into_places_are_exact_at_every_length(size) -> None:
    rng = np.random.default_rng(size)
    for places in (1, 7, size):
        x, to = rng.integers(-(2**30), 2**30, size), rng.integers(0, places, size)
        want = np.zeros(places, np.int64)
        np.add.at(want, to, x)
        got = torch.zeros(places, dtype=torch.int64, device="wgpu").scatter_add(0, gpu(to), gpu(x))
        np.testing.assert_array_equal(got.cpu().numpy(), want)


def test_long_lines_repeat_bit_for_bit() -> None:
    x = torch.randn(70_000, device="wgpu")
    first = torch.cumsum(x, 0).cpu().numpy()
    assert all((torch.cumsum(x, 0).cpu().numpy() == first).all() for _ in range(3))
    np.testing.assert_allclose(
        first, x.cpu().numpy().astype(np.float64).cumsum(), rtol=1e-4, atol=1e-3
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "dim"), [((40, 5), 0), ((3, 30, 2), 1), ((1, 4), 0), ((2, 90), 1)]
)
def test_distinct_slices_match_numpy(dtype, shape, dim) -> None:
    x = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    want = np.unique(x, axis=dim, return_inverse=True, return_counts=True)
    got = torch.unique(gpu(x), return_inverse=True, return_counts=True, dim=dim)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a.cpu().numpy(), b.reshape(a.shape))
    lines = np.moveaxis(x, dim, 0).reshape(shape[dim], -1)
    heads = np.flatnonzero(np.r_[True, (lines[1:] != lines[:-1]).any(1)])
    runs = torch.unique_consecutive(gpu(x), return_inverse=True, return_counts=True, dim=dim)
    lengths = np.diff(np.r_[heads, shape[dim]])
    each = (x.take(heads, dim), np.repeat(np.arange(len(heads)), lengths), lengths)
    for a, b in zip(runs, each, strict=True):
        np.testing.assert_array_equal(a.cpu().numpy(), b)


def test_slices_with_nan_equal_none_and_come_by_what_lies_behind() -> None:
    x = np.array([[NAN, 2], [1, NAN], [NAN, 1], [1, 3], [NAN, 2], [1, 3]], np.float32)
    values, inverse = torch.unique(gpu(x), return_inverse=True, dim=0)
    want = np.array([[1, 3], [1, NAN], [NAN, 1], [NAN, 2], [NAN, 2]], np.float32)
    np.testing.assert_array_equal(values.cpu().numpy(), want)
    assert inverse.tolist() == [3, 1, 2, 0, 4, 0]
