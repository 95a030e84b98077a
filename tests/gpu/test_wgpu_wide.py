"""Layers and losses in float64 run on the GPU itself, by ops where kernels are of float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import wgpu
from pytensorlib.nn import functional as F

pytestmark = pytest.mark.skipif(
    not (wgpu.is_available() and wgpu.get_device_properties()["float64"]), reason="no float64"
)


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    wgpu.set_fallback_error(True)
    yield
    wgpu.set_fallback_error(False)


def some(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape) * 3 + 1


def normal(x: np.ndarray, axes: tuple[int, ...], centered: bool = True) -> np.ndarray:
    x = x - x.mean(axes, keepdims=True) * centered
    return x / np.sqrt((x**2).mean(axes, keepdims=True) + 1e-5)


W, B = some(6, seed=1), some(6, seed=2)
CHANNELS = (None, slice(None), None)
LAYERS: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "layer": (
        lambda x, w, b: F.layer_norm(x, (6,), w, b),
        normal(some(4, 5, 6), (2,)) * W + B,
    ),
    "rms": (lambda x, w, b: F.rms_norm(x, (6,), w, 1e-5), normal(some(4, 5, 6), (2,), False) * W),
    "group": (
        lambda x, w, b: F.group_norm(x.mT, 2, w, b).mT,
        normal(some(4, 5, 2, 3), (1, 3)).reshape(4, 5, 6) * W + B,
    ),
    "batch": (
        lambda x, w, b: F.batch_norm(x.mT, None, None, w, b, True).mT,
        normal(some(4, 5, 6), (0, 1)) * W + B,
    ),
    "instance": (
        lambda x, w, b: F.instance_norm(x.mT, None, None, w, b).mT,
        normal(some(4, 5, 6), (1,)) * W + B,
    ),
    "given": (
        lambda x, w, b: F.batch_norm(x.mT, w.detach(), b.detach() ** 2, w, b).mT,
        (some(4, 5, 6) - W) / np.sqrt(B**2 + 1e-5) * W + B,
    ),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_normalisation_and_its_gradients_in_float64(kind: str) -> None:
    layer, want = LAYERS[kind]
    y = layer(*(torch.tensor(v).to("wgpu") for v in (some(4, 5, 6), W, B)))
    np.testing.assert_allclose(y.cpu().numpy(), want, rtol=1e-11, atol=1e-11)
    grads = []
    for device in ("cpu", "wgpu"):
        leaves = [torch.tensor(v).to(device).requires_grad_() for v in (some(4, 5, 6), W, B)]
        (layer(*leaves) ** 3).sum().backward()
        grads.append([t.grad.cpu().numpy() for t in leaves if t.grad is not None])
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-8)


def test_groups_without_variance_become_zeros_where_eps_is_none() -> None:
    for dtype in (torch.float32, torch.float64):
        x = torch.stack([torch.full((4,), 2.0), torch.arange(4.0)]).to("wgpu", dtype)[None]
        y = F.instance_norm(x, eps=0.0).cpu().numpy()[0]
        np.testing.assert_array_equal(y[0], 0)
        np.testing.assert_allclose(y[1], normal(np.arange(4.0), (0,)), rtol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_likelihood_and_its_gradient_in_float64(reduction: str, weighted: bool) -> None:
    x, t = some(3, 5, 2), np.array([[4, 0], [1, -100], [3, 3]])
    x[1, 0, 1] = -np.inf  # of an ignored place, and of no target elsewhere
    w = np.abs(some(5, seed=1)) if weighted else np.ones(5)
    each = np.zeros((3, 2))
    slope = np.zeros_like(x)
    for n, d in np.ndindex(3, 2):
        if t[n, d] >= 0:
            each[n, d] = -w[t[n, d]] * x[n, t[n, d], d]
            slope[n, t[n, d], d] = -w[t[n, d]]
    total = w[t[t >= 0]].sum()
    want = {"none": each, "sum": each.sum(), "mean": each.sum() / total}[reduction]
    leaf = torch.tensor(x).to("wgpu").requires_grad_()
    weight = torch.tensor(w).to("wgpu") if weighted else None
    y = F.nll_loss(leaf, torch.tensor(t).to("wgpu"), weight, reduction=reduction)
    np.testing.assert_allclose(y.detach().cpu().numpy(), want, rtol=1e-12)
    y.sum().backward()
    slope /= total if reduction == "mean" else 1
    np.testing.assert_allclose(leaf.grad.cpu().numpy(), slope, rtol=1e-12)


def test_target_out_of_range_raises_in_float64() -> None:
    x = torch.zeros(2, 3, dtype=torch.float64, device="wgpu")
    with pytest.raises(IndexError):
        F.nll_loss(x, torch.tensor([1, 3], device="wgpu")).item()
