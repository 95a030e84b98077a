"""`batch_norm` of planes of any length, which are summed in different ways, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib.nn import functional as F

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2, torch.float16: 2e-3}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("n", "channels", "inner"),
    [
        *((n, c, inner) for inner in (1, 5) for c in (3, 70) for n in (3, 4, 7, 9, 64)),
        # Vectors and what is left of them; samples beyond those whose lanes are joined at once.
        *((n, c, inner) for inner in (15, 16, 17, 33, 49, 95) for c in (3, 9) for n in (1, 2, 35)),
        *((2, c, inner) for inner in (1023, 1024, 1025, 1031) for c in (3, 9)),
    ],
)
def test_channels_have_numpys_statistics_and_gradients(
    n: int, channels: int, inner: int, dtype: torch.dtype
) -> None:
    rng = np.random.default_rng(n * channels + inner)
    shape = (n, channels, inner) if inner > 1 else (n, channels)
    axes = (0, 2)[: len(shape) - 1]

    def given(*sizes: int) -> tuple[torch.Tensor, np.ndarray]:
        t = torch.tensor(rng.standard_normal(sizes) + 3).to(dtype).requires_grad_()
        return t, t.detach().double().numpy()

    (x, x_), (w, w_), (b, b_) = given(*shape), given(channels), given(channels)
    dy, dy_ = given(*shape)
    y = F.batch_norm(x, None, None, w, b, True, eps=1e-5)
    y.backward(dy.detach())

    def wide(v: np.ndarray) -> np.ndarray:
        return v.reshape(1, channels, *[1] * (len(shape) - 2))

    deviation = np.sqrt(x_.var(axes) + 1e-5)
    normal = (x_ - wide(x_.mean(axes))) / wide(deviation)
    db, dw = dy_.sum(axes), (dy_ * normal).sum(axes)
    count = n * inner
    dx = (dy_ - wide(db) / count - normal * wide(dw) / count) * wide(w_ / deviation)
    wants = (normal * wide(w_) + wide(b_), dx, dw, db)
    # Sums are as exact as their terms, which may be much larger.
    terms = [abs(dy_ * v).sum(axes).max() / 10 for v in (normal, np.ones(1))]
    results = zip((y, x.grad, w.grad, b.grad), wants, (0, 0, *terms), strict=True)
    for got, want, size in results:
        scale = TOLERANCE[dtype] * max(1, abs(want).max(), size)
        np.testing.assert_allclose(got.detach().double().numpy(), want, rtol=0, atol=scale)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("inner", [1, 4, 15, 16, 31, 50, 1100])
def test_given_statistics_scale_and_shift_planes_of_any_length(
    inner: int, dtype: torch.dtype
) -> None:
    rng = np.random.default_rng(inner)

    def given(*sizes: int) -> tuple[torch.Tensor, np.ndarray]:
        t = torch.tensor(rng.uniform(0.5, 2, sizes)).to(dtype)
        return t, t.double().numpy()

    (x, x_), (mean, mean_), (var, var_) = given(3, 10, inner), given(10), given(10)
    (w, w_), (b, b_), (dy, dy_) = given(10), given(10), given(3, 10, inner)
    x.requires_grad_()
    y = F.batch_norm(x, mean, var, w, b, False, eps=1e-5)
    y.backward(dy)
    slope = (w_ / np.sqrt(var_ + 1e-5))[:, None]
    atol = 4 * TOLERANCE[dtype]
    want = (x_ - mean_[:, None]) * slope + b_[:, None]
    np.testing.assert_allclose(y.detach().double().numpy(), want, rtol=0, atol=atol)
    np.testing.assert_allclose(x.grad.double().numpy(), dy_ * slope, rtol=0, atol=atol)


@pytest.mark.parametrize("inner", [20, 49, 1000, 2000])
def test_deviations_from_a_large_mean_are_exact(inner: int) -> None:
    rng = np.random.default_rng(inner)
    # The first sample is far from the others.
    x = (rng.standard_normal((20, 16, inner)) * 0.1 + 1000).astype(np.float32)
    x[0] = 0
    var = torch.ones(16)
    F.batch_norm(torch.from_numpy(x), torch.zeros(16), var, training=True, momentum=1.0)
    want = x.astype(np.float64).var((0, 2), ddof=1)
    np.testing.assert_allclose(var.numpy(), want, rtol=1e-6)
