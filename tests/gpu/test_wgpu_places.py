"""Writing to places, windows, patches, norms and convolutions on the GPU itself: an op without a
kernel raises. References are the CPU's results in float64, or NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import wgpu
from pytensorlib.nn import functional as F

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def same_as_host(f: Callable, *inputs: np.ndarray, rtol: float = 1e-4) -> None:
    """Compares a function and its gradients in float32 on the GPU with float64 on the CPU."""
    found = []
    for device, dtype in (("cpu", torch.float64), ("wgpu", torch.float32)):
        x = [torch.tensor(t).to(device, dtype).requires_grad_() for t in inputs]
        y = f(*x)
        weight = torch.tensor(normal(*y.shape, seed=9)).to(device, dtype)
        (y * weight).sum().backward()
        found.append([y.detach().cpu().numpy(), *(t.grad.cpu().numpy() for t in x)])
    for want, got in zip(*found):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * 10)


# Few places, many that meet, one for each.
MANY = [(3000, 3000), (3000, 7), (70_000, 2), (50, 20)]


@pytest.mark.parametrize(("n", "size"), MANY)
def test_sums_into_places_match_numpy(n, size) -> None:
    at = np.random.default_rng(0).integers(0, size, n)
    v = np.random.default_rng(1).integers(-9, 10, (n, 3))
    index = torch.tensor(at).to("wgpu")
    want = np.zeros((size, 3), np.int64)
    np.add.at(want, at, v)
    for dtype in (torch.float32, torch.int64, torch.int32):
        values = torch.tensor(v).to("wgpu", dtype)
        zeros = torch.zeros(size, 3, dtype=dtype, device="wgpu")
        wide = index[:, None].expand(n, 3)
        for got in (
            zeros.index_add(0, index, values),
            zeros.scatter_add(0, wide, values),
            zeros.index_put((index,), values, accumulate=True),
            zeros.t().contiguous().index_add(1, index, values.t()).t(),
            zeros.scatter_reduce(0, wide, values, "sum"),
        ):
            np.testing.assert_array_equal(got.cpu().numpy(), want)


@pytest.mark.parametrize(("n", "size"), MANY)
def test_the_last_of_those_that_meet_stays(n, size) -> None:
    at = np.random.default_rng(0).integers(0, size, n)
    for dtype in (torch.float32, torch.float16, torch.uint8, torch.int64, torch.bool):
        v = torch.arange(n).remainder(100).to(dtype)
        want = torch.zeros(size, dtype=dtype).numpy()
        want[at] = v.numpy()
        zeros, index = torch.zeros(size, dtype=dtype, device="wgpu"), torch.tensor(at).to("wgpu")
        for got in (zeros.scatter(0, index, v.to("wgpu")), zeros.index_put((index,), v.to("wgpu"))):
            np.testing.assert_array_equal(got.cpu().numpy(), want)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize(("n", "size"), [(40, 9), (2500, 900)])
def test_scatter_reduce_matches_the_host(how, include_self, n, size) -> None:
    at = np.random.default_rng(0).integers(0, size, (n, 2))

    def f(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        index = torch.tensor(at).to(x.device)
        return x.scatter_reduce(0, index, v, how, include_self=include_self)

    same_as_host(f, normal(size, 2), normal(n, 2, seed=1))


def test_embedding_gradients_skip_the_padding() -> None:
    at = np.random.default_rng(0).integers(0, 300, 4000)
    same_as_host(
        lambda w: F.embedding(torch.tensor(at).to(w.device), w, padding_idx=3), normal(300, 5)
    )


def test_sums_into_places_repeat_bit_for_bit() -> None:
    index = torch.tensor(np.random.default_rng(0).integers(0, 50, 20_000)).to("wgpu")
    v = torch.randn(20_000, 4, device="wgpu")
    zeros = torch.zeros(50, 4, device="wgpu")
    first = zeros.index_add(0, index, v).cpu()
    assert all(torch.equal(zeros.index_add(0, index, v).cpu(), first) for _ in range(3))


def test_a_place_out_of_range_among_many_raises_at_the_next_read() -> None:
    index = torch.zeros(3000, dtype=torch.int64, device="wgpu")
    index[1234] = 8
    y = torch.zeros(8, device="wgpu").scatter_add(0, index, torch.ones(3000, device="wgpu"))
    with pytest.raises(RuntimeError, match="index 8 is out of bounds for dimension with size 8"):
        y.cpu()


def test_places_of_no_dimension_and_of_bool() -> None:
    zero = torch.tensor(0, device="wgpu")
    x = torch.tensor(3.0, device="wgpu")
    assert x.gather(0, zero).item() == 3
    assert x.scatter(0, zero, torch.tensor(5.0, device="wgpu")).item() == 5
    b = torch.tensor([False, True, False], device="wgpu")
    index = torch.tensor([0, 0, 1], device="wgpu")
    assert b.scatter_add(0, index, b).tolist() == [True, True, False]


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, np.inf, -np.inf])
def test_norms_match_numpy(p) -> None:
    x = normal(4, 7, 3)
    x[1, 2] = 0
    for dim in (1, (0, 2)):
        got = torch.linalg.vector_norm(torch.tensor(x).to("wgpu", torch.float32), p, dim=dim)
        flat = np.moveaxis(x, dim, tuple(range(len(np.atleast_1d(dim)))))
        flat = flat.reshape(-1, *np.delete(x.shape, dim))
        want = np.linalg.norm(flat.reshape(len(flat), -1), p, axis=0)
        np.testing.assert_allclose(got.cpu().numpy().ravel(), want, rtol=1e-5)
    if p > 1:
        same_as_host(lambda t: torch.linalg.vector_norm(t, p, dim=1), normal(4, 7, 3))


def test_similarities_and_normalized_rows_match_the_host() -> None:
    same_as_host(lambda a, b: F.cosine_similarity(a, b, dim=1), normal(4, 5), normal(4, 5, seed=1))
    same_as_host(lambda a: F.normalize(a, dim=1), normal(4, 5))
    # Their squares are infinite.
    huge = torch.full((2, 4), 1e30, device="wgpu")
    assert F.cosine_similarity(huge, -huge).tolist() == [-1, -1]


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_pads_match_the_host(mode) -> None:
    same_as_host(lambda x: F.pad(x, (1, 2, 2, -1), mode=mode), normal(2, 3, 5, 6))
    numbers = torch.arange(12).reshape(1, 3, 4)
    got = F.pad(numbers.to("wgpu"), (2, 1), mode=mode)
    np_mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    want = np.pad(numbers.numpy(), ((0, 0), (0, 0), (2, 1)), mode=np_mode)
    np.testing.assert_array_equal(got.cpu().numpy(), want)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_interpolations_match_the_host(mode) -> None:
    for size in ((7, 3), (5, 12)):
        same_as_host(
            lambda x, size=size: F.interpolate(x, size=size, mode=mode), normal(2, 3, 5, 6)
        )


def test_volumes_match_the_host() -> None:
    x = normal(2, 3, 4, 5, 6)
    same_as_host(lambda t: F.interpolate(t, scale_factor=1.7, mode="trilinear"), x)
    same_as_host(lambda t: F.avg_pool3d(t, 2, padding=1), x)
    same_as_host(lambda t: F.adaptive_avg_pool3d(t, (2, 3, 2)), x)
    same_as_host(lambda t: F.max_pool3d(t, 2, padding=1, stride=(1, 2, 1)), x)
    same_as_host(lambda t: F.adaptive_max_pool2d(t, (3, 2)), normal(2, 3, 7, 6))
    same_as_host(lambda t: F.adaptive_max_pool1d(t, 3), normal(2, 3, 7))
    same_as_host(
        lambda t: F.max_unpool2d(*F.max_pool2d(t, 2, return_indices=True), 2), normal(2, 3, 4, 6)
    )


def test_patches_and_strided_views_match_the_host() -> None:
    same_as_host(lambda x: F.unfold(x, (2, 3), padding=1, stride=2), normal(2, 3, 6, 7))
    same_as_host(lambda x: F.fold(x, (6, 7), (2, 3), padding=1, stride=2), normal(2, 18, 16))
    same_as_host(lambda x: x.unfold(0, 3, 1) * 2, normal(9))
    same_as_host(lambda x: torch.as_strided(x * 1, (3, 4), (2, 1)), normal(12))


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_of_volumes_match_the_host(groups) -> None:
    how = {"stride": (2, 1, 2), "padding": (1, 0, 1), "dilation": (1, 2, 1), "groups": groups}
    w, b = normal(6, 4 // groups, 3, 2, 2, seed=1), normal(6, seed=2)
    same_as_host(lambda *t: F.conv3d(*t, **how), normal(2, 4, 6, 7, 5), w, b)
    w = normal(4, 6 // groups, 3, 2, 2, seed=1)
    more = {**how, "output_padding": (1, 0, 1)}
    same_as_host(lambda *t: F.conv_transpose3d(*t, **more), normal(2, 4, 3, 4, 3), w, b)


def test_transposed_convolution_with_more_places_than_its_kernel_reaches_matches_the_host() -> None:
    x, b = normal(2, 3, 12), normal(2, seed=2)
    # A kernel of one element, and results beyond what it reaches.
    w = normal(3, 2, 1, seed=1)
    same_as_host(lambda *t: F.conv_transpose1d(*t, dilation=3, output_padding=2), x, w, b)
    same_as_host(lambda *t: F.conv_transpose1d(*t, stride=4, output_padding=3), x, w, b)
    # A dilation that shares a factor with the stride leaves whole classes of places without a tap.
    w = normal(3, 2, 3, seed=1)
    same_as_host(lambda *t: F.conv_transpose1d(*t, stride=6, dilation=4, padding=3), x, w, b)


def test_transposed_convolution_multiplies_no_zeros_that_the_stride_puts_between() -> None:
    w = torch.tensor([[[math.inf, 1.0, 1.0]]])
    y = F.conv_transpose1d(torch.tensor([[[2.0, 3.0]]]).to("wgpu"), w.to("wgpu"), stride=2)
    assert y[0, 0, :4].tolist() == [math.inf, 2.0, math.inf, 3.0]


def test_a_long_product_with_a_bias_stays_on_the_gpu_and_matches_float64() -> None:
    x, w, b = normal(1, 2500, 4, 4), normal(3, 2500, 2, 2, seed=1), normal(3, seed=2)
    y = F.conv2d(*(torch.tensor(v).to("wgpu") for v in (x, w, b)))
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (2, 2), (2, 3))
    want = np.einsum("nchwij,ocij->nohw", windows, w) + b[:, None, None]
    np.testing.assert_allclose(y.cpu().numpy(), want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_convolutions_of_other_types_match_the_host(dtype) -> None:
    for f, shape, kernel in (
        (F.conv1d, (2, 4, 9), (6, 2, 3)),
        (F.conv2d, (2, 4, 7, 6), (6, 2, 3, 2)),
        (F.conv_transpose2d, (2, 4, 5, 4), (4, 3, 3, 2)),
    ):
        x, w = (torch.tensor(normal(*s) * 9).to(dtype) for s in (shape, kernel))
        got = f(x.to("wgpu"), w.to("wgpu"), stride=2, padding=1, groups=2).cpu()
        torch.testing.assert_close(
            got, f(x, w, stride=2, padding=1, groups=2), rtol=1e-12, atol=1e-12
        )


def test_a_product_summed_over_its_batch_matches_numpy() -> None:
    c, a, b = normal(3, 4), normal(5, 3, 2, seed=1), normal(5, 2, 4, seed=2)
    same_as_host(lambda *t: torch.addbmm(*t, beta=0.5, alpha=2.0), c, a, b)


def test_means_of_float64_stay_on_the_gpu() -> None:
    x = normal(30, 4)
    y = torch.tensor(x, device="wgpu")
    np.testing.assert_allclose(y.mean(0).cpu().numpy(), x.mean(0), rtol=1e-14)
    np.testing.assert_allclose(y.var(0).cpu().numpy(), x.var(0, ddof=1), rtol=1e-13)
    np.testing.assert_allclose(torch.exp(y).cpu().numpy(), np.exp(x), rtol=1e-15)
    np.testing.assert_allclose((y.abs() ** 1.5).cpu().numpy(), np.abs(x) ** 1.5, rtol=1e-15)


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_samples_at_a_grid_match_the_host(mode, border, corners) -> None:
    grid = np.random.default_rng(1).uniform(-1.5, 1.5, (2, 4, 3, 2))
    how = {"mode": mode, "padding_mode": border, "align_corners": corners}
    same_as_host(lambda x, at: F.grid_sample(x, at, **how), normal(2, 3, 5, 6), grid, rtol=1e-3)


def test_samples_of_a_volume_match_the_host() -> None:
    grid = np.random.default_rng(1).uniform(-1.2, 1.2, (2, 4, 3, 2, 3))
    same_as_host(
        lambda x, at: F.grid_sample(x, at, align_corners=False),
        normal(2, 3, 4, 5, 6),
        grid,
        rtol=1e-3,
    )


def test_gradients_of_rows_by_how_often_they_are_asked_for() -> None:
    at = np.array([0, 3, 3, 1, 3, 0])
    same_as_host(
        lambda w: F.embedding(torch.tensor(at).to(w.device), w, scale_grad_by_freq=True),
        normal(5, 4),
    )


def test_scatter_multiplies_by_a_number() -> None:
    x, at = torch.arange(1.0, 7, device="wgpu").view(2, 3), torch.tensor([[2, 0]], device="wgpu")
    y = x.scatter(1, at, 10, reduce="multiply")
    assert y.tolist() == [[10, 2, 30], [4, 5, 6]]


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes_are_resized_on_the_gpu(mode, antialias) -> None:
    x = np.random.default_rng(0).integers(0, 256, (2, 3, 21, 34)).astype(np.uint8)
    for size in ((21, 34), (40, 50), (9, 13), (21, 7), (64, 34), (1, 1)):
        for corners in (False, True):

            def f(t, *size, corners=corners):
                return F.interpolate(
                    t, size=size, mode=mode, align_corners=corners, antialias=antialias
                )

            got = f(torch.from_numpy(x).to("wgpu"), *size).cpu()
            assert got.dtype == torch.uint8
            # Recorded PyTorch holds the CPU to its bits.
            assert torch.equal(got, f(torch.from_numpy(x), *size))
            # In float64, rounded after the rows. Weights of 14 digits may round one the other way,
            # of which the columns take at most 1.5 times.
            rows = f(torch.from_numpy(x).double(), 21, size[1]).add(0.5).floor().clamp(0, 255)
            exact = f(rows, *size).clamp(0, 255)
            assert (got.double() - exact).abs().max() <= 0.5 + 0.1 + 1.5
