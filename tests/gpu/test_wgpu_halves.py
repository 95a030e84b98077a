"""Results of two bytes and of one on the GPU: invocations that own whole words change no bit.

What kernels compute in float32 they give in it too: rounded, that is what they have to give in a
half type, wherever the elements lie.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import wgpu
from pytensorlib.nn import functional as F

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]

HALVES = ["float16", "bfloat16"]


def some(*shape: int, seed: int = 0) -> Any:
    x = np.random.default_rng(seed).normal(0, 1, shape)
    return torch.tensor(x, dtype=torch.float32).to("wgpu")


def index(n: int, *shape: int) -> Any:
    return torch.tensor(np.random.default_rng(n).integers(0, n, shape)).to("wgpu")


def bits(t: Any) -> Any:
    return t.detach().contiguous().cpu().view(torch.int16).numpy()


Call = Callable[..., Any]
# Of x and w, both with gradients.
LAYERS: dict[str, tuple[Call, tuple[int, ...], tuple[int, ...]]] = {
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), (2, 6, 10, 8), (9, 6, 3, 3)),
    "conv2d of odd planes": (lambda x, w: F.conv2d(x, w), (2, 6, 9, 9), (9, 6, 3, 3)),
    "conv2d in steps": (lambda x, w: F.conv2d(x, w, None, 2, 1), (2, 5, 9, 12), (7, 5, 3, 3)),
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=2), (3, 5, 31), (8, 5, 5)),
    "conv3d": (lambda x, w: F.conv3d(x, w, padding=1), (2, 5, 4, 5, 6), (6, 5, 3, 3, 3)),
    "conv_transpose2d": (
        lambda x, w: F.conv_transpose2d(x, w, None, 2, 1),
        (2, 6, 5, 7),
        (6, 7, 3, 3),
    ),
    "depthwise": (lambda x, w: F.conv2d(x, w, padding=1, groups=6), (2, 6, 7, 9), (6, 1, 3, 3)),
    "depthwise in steps": (
        lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 6),
        (3, 6, 7, 9),
        (6, 1, 3, 3),
    ),
    "max_pool2d": (lambda x, w: F.max_pool2d(x, 3, 2, 1) * w, (2, 3, 9, 11), (1,)),
    "max_pool2d of pairs": (lambda x, w: F.max_pool2d(x, 2) * w, (2, 3, 8, 12), (1,)),
    "max_pool3d": (lambda x, w: F.max_pool3d(x, 2) * w, (2, 3, 4, 5, 6), (1,)),
    "avg_pool2d": (lambda x, w: F.avg_pool2d(x, 3, 2, 1) * w, (1, 3, 9, 11), (1,)),
    "adaptive_avg_pool2d": (lambda x, w: F.adaptive_avg_pool2d(x, (3, 5)) * w, (3, 3, 9, 8), (1,)),
    "adaptive_max_pool2d": (lambda x, w: F.adaptive_max_pool2d(x, 3) * w, (1, 3, 7, 8), (1,)),
    "nearest": (lambda x, w: F.interpolate(x, scale_factor=2) * w, (1, 3, 5, 7), (1,)),
    "linear": (lambda x, w: F.interpolate(x, 11, mode="linear") * w, (3, 3, 7), (1,)),
    "sum of rows": (lambda x, w: x.sum(1) * w, (7, 9), (1,)),
    "sum of columns": (lambda x, w: x.sum(0) * w, (9, 77), (1,)),
    "mean of long rows": (lambda x, w: x.mean(1) * w, (5, 700), (1,)),
    "mean of planes": (lambda x, w: x.mean((0, 2)) * w, (3, 5, 6), (1,)),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("first", [0, 1])
def test_layers_round_what_float32_gives(name: str, dtype: str, first: int) -> None:
    call, x_shape, w_shape = LAYERS[name]
    half = getattr(torch, dtype)
    # Samples from `first` on: they begin where samples of an odd size have it.
    x = some(x_shape[0] + 1, *x_shape[1:]).to(half)[first:][: x_shape[0]]
    w = (
        some(*w_shape, seed=1).to(half)
        if w_shape != (1,)
        else torch.ones(1, device="wgpu").to(half)
    )

    def run(dtype: Any, g: Any = None) -> list[Any]:
        a, b = (t.to(dtype).detach().requires_grad_() for t in (x, w))
        y = call(a, b)
        y.backward(torch.ones_like(y) if g is None else g.to(dtype))
        return [t.detach().to(half) for t in (y, a.grad) + ((b.grad,) if len(w_shape) > 1 else ())]

    for got, want in zip(run(half), run(torch.float32), strict=True):
        np.testing.assert_array_equal(bits(got), bits(want))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("shape", [(5, 7), (6, 8), (1, 9), (64, 33), (3, 300)])
def test_reductions_round_what_float32_gives(shape: Any, first: int, dtype: str) -> None:
    half = getattr(torch, dtype)
    x = some(2, *shape).to(half)[first]
    for dim in (0, 1):
        for f in ("sum", "mean", "amax", "amin", "prod", "logsumexp"):
            got, want = (getattr(t, f)(dim) for t in (x, x.float()))
            if f != "logsumexp":
                np.testing.assert_array_equal(bits(got), bits(want.to(half)), f)
        # What follows runs where the sum is stored.
        got, want = (t.sum(dim).relu() for t in (x, x.float()))
        np.testing.assert_array_equal(bits(got), bits(want.to(half)))


@pytest.mark.parametrize("dtype", [*HALVES, "uint8", "bool", "int16"])
@pytest.mark.parametrize("width", [1, 4, 7, 10])
def test_elements_that_are_picked_are_those_of_the_host(width: int, dtype: str) -> None:
    x = (some(9, width) * 5).abs().to(getattr(torch, dtype))
    at, grid = index(9, 5), index(9, 3, width)
    calls: dict[str, Call] = {
        "index_select": lambda x, at, grid: x.index_select(0, at),
        "index": lambda x, at, grid: x[at],
        "rows": lambda x, at, grid: x[1:][at - 1],
        "gather": lambda x, at, grid: x.gather(0, grid),
        "take": lambda x, at, grid: x.take(at),
        "flip": lambda x, at, grid: x.flip(0, 1),
        "roll": lambda x, at, grid: x.roll((2, 1), (0, 1)),
        "cat": lambda x, at, grid: torch.cat([x, x[:, : width // 2], x], 1),
        "stack": lambda x, at, grid: torch.stack([x, x], 1),
        "pad": lambda x, at, grid: F.pad(x, (2, 2, 1, 0)),
        "pad by one": lambda x, at, grid: F.pad(x, (1, 0)),
        "expand": lambda x, at, grid: x[:, None].expand(9, 3, width).contiguous(),
    }
    for name, call in calls.items():
        got = call(x, at, grid).cpu()
        want = call(x.cpu(), at.cpu(), grid.cpu())
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.float().numpy(), want.float().numpy(), name)


@pytest.mark.parametrize("dtype", [*HALVES, "uint8"])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_what_lies_beside_a_result_stays(first: int, n: int, dtype: str) -> None:
    x = (some(n, 3) * 9).abs().to(getattr(torch, dtype))
    at = index(3 * n, n)
    for call in (
        lambda out: torch.take(x, at, out=out),
        lambda out: torch.index_select(x[:, 1], 0, at % n, out=out),
        lambda out: torch.gather(x, 1, at[:, None] % 3, out=out[:, None]),
        lambda out: torch.amax(x, 1, out=out),
    ):
        y = torch.full((n + 8,), 77, dtype=x.dtype, device="wgpu")
        call(y[first : first + n])
        whole = torch.empty(n, dtype=x.dtype, device="wgpu")
        call(whole)
        want = np.full(n + 8, 77.0)
        want[first : first + n] = whole.float().cpu().numpy()
        np.testing.assert_array_equal(y.float().cpu().numpy(), want)


@pytest.mark.parametrize("dtype", HALVES)
def test_results_that_are_not_contiguous_are_those_of_float32(dtype: str) -> None:
    half = getattr(torch, dtype)
    x = some(6, 5, 8).to(half)
    y = torch.full((8, 12), 3.0, device="wgpu").to(half)
    for out in (y[:6, 2:10], y[1:7, 1:9], y.t()[:6, :8], y[:6, ::1][:, 4:]):
        before = y.clone()
        torch.sum(x, 1, out=out)
        np.testing.assert_array_equal(bits(out), bits(x.float().sum(1).to(half)))
        out.copy_(before.as_strided(out.shape, out.stride(), out.storage_offset()))
        np.testing.assert_array_equal(bits(y), bits(before))
