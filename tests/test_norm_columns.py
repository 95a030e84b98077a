"""`batch_norm` of short planes, whose channels are summed side by side, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib.nn import functional as F

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2, torch.float16: 2e-3}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("inner", [1, 5])
@pytest.mark.parametrize("channels", [3, 70])
@pytest.mark.parametrize("n", [3, 4, 7, 9, 64])
def test_channels_of_short_planes_have_numpys_statistics_and_gradients(
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
    for got, want in zip((y, x.grad, w.grad, b.grad), wants, strict=True):
        scale = TOLERANCE[dtype] * max(1, abs(want).max())
        np.testing.assert_allclose(got.detach().double().numpy(), want, rtol=0, atol=scale)
