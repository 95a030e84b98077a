"""Normalisation over rows and planes in vectors: lengths around them, types and weights."""

from typing import Any

import numpy as np
import pytest

import pytensorlib as pt
import pytensorlib.nn.functional as F

Array = np.ndarray[Any, Any]
# Of results and of gradients, beside the largest of each: some 30 and 90 roundings of the type that
# is computed in; half types round once more, by 2^-8 and 2^-11.
TOLERANCE = {"float32": 2e-6, "float64": 1e-14, "bfloat16": 1e-2, "float16": 2e-3}
# A vector has 2 to 16 lanes, four of them are a step, 64 steps a sum, and 2048 elements are taken
# together; rows beyond 4096 have their mean corrected.
LENGTHS = [1, 2, 3, 7, 15, 16, 17, 31, 63, 64, 65, 127, 129, 300, 1023, 1024, 2047, 2049, 4096]
LENGTHS += [4609]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def reference(
    x: Array, g: Array, w: Array | None, b: Array | None, *, centered: bool, eps: float
) -> tuple[Array, Array, Array, Array]:
    """Return y, dx, dw and db; x is (rows, channels, inner), and a row is normalised whole."""
    over = (1, 2)
    mean = x.mean(over, keepdims=True) if centered else np.zeros((len(x), 1, 1))
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(over, keepdims=True) + eps)
    normal = (x - mean) * rstd
    scale = np.ones((1, x.shape[1], 1)) if w is None else w[None, :, None]
    y = normal * scale + (0 if b is None else b[None, :, None])
    gw = g * scale
    along = (gw * normal).mean(over, keepdims=True)
    mid = gw.mean(over, keepdims=True) if centered else 0
    return y, rstd * (gw - mid - normal * along), (g * normal).sum((0, 2)), g.sum((0, 2))


def close(got: Any, want: Array, dtype: str, times: float = 1) -> None:
    bound = TOLERANCE[dtype] * times
    got = got.detach().to(pt.float64).numpy().reshape(want.shape)
    np.testing.assert_allclose(got, want, rtol=bound, atol=bound * max(1, np.abs(want).max()))


def given(x: Array, dtype: str) -> Any:
    return pt.tensor(x).to(getattr(pt, dtype)).requires_grad_()


def exact(t: Any) -> Array:
    return np.asarray(t.detach().to(pt.float64).numpy())


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("affine", ["neither", "weight", "bias", "both"])
@pytest.mark.parametrize("n", LENGTHS)
def test_rows_of_any_length_match_float64(n: int, affine: str, dtype: str) -> None:
    rows = 11
    x, g = given(numbers(rows, n) + 3, dtype), given(numbers(n, rows).T, dtype)
    w = given(numbers(n, 1)[:, 0] + 1, dtype) if affine in ("weight", "both") else None
    b = given(numbers(1, n)[0], dtype) if affine in ("bias", "both") else None
    y = F.layer_norm(x, (n,), w, b, 1e-3)
    y.backward(g)
    plain = [None if t is None else exact(t) for t in (w, b)]
    want = reference(exact(x)[:, :, None], exact(g)[:, :, None], *plain, centered=True, eps=1e-3)
    # Of one element the variance is 0, and eps makes 30 of each error.
    times = 40 if n < 4 else 4
    close(y, want[0][:, :, 0], dtype, times)
    close(x.grad, want[1][:, :, 0], dtype, times)
    for t, grad in zip((w, b), want[2:], strict=True):
        if t is not None:
            close(t.grad, grad, dtype, times)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", LENGTHS)
def test_rms_of_rows_of_any_length_matches_float64(n: int, dtype: str) -> None:
    x, g, w = (given(v, dtype) for v in (numbers(5, n), numbers(n, 5).T, numbers(n, 1)[:, 0]))
    y = F.rms_norm(x, (n,), w, 1e-3)
    y.backward(g)
    row, grad = (exact(t)[:, :, None] for t in (x, g))
    want = reference(row, grad, exact(w), None, centered=False, eps=1e-3)
    close(y, want[0], dtype, 4)
    # Of one element the gradient is what two nearly equal terms leave.
    close(x.grad, want[1], dtype, 20)
    close(w.grad, want[2], dtype, 4)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("inner", [2, 7, 15, 16, 33, 64, 200])
def test_groups_and_channels_of_any_plane_match_float64(inner: int, dtype: str) -> None:
    n, channels, groups = 3, 6, 2
    x, g = given(numbers(n, channels, inner) - 2, dtype), given(numbers(channels, n, inner), dtype)
    g = g.detach().transpose(0, 1)
    w, b = given(numbers(channels) + 1, dtype), given(numbers(channels, 1)[:, 0], dtype)
    F.group_norm(x, groups, w, b, 1e-3).backward(g)
    each = channels // groups
    plain = [exact(t) for t in (w, b)]
    dw, db = np.zeros(channels), np.zeros(channels)
    for k in range(groups):
        part = slice(k * each, (k + 1) * each)
        of = [exact(x)[:, part], exact(g)[:, part], *(p[part] for p in plain)]
        y, dx, dw[part], db[part] = reference(*of, centered=True, eps=1e-3)
        close(F.group_norm(x, groups, w, b, 1e-3)[:, part], y, dtype, 4)
        close(x.grad[:, part], dx, dtype, 8)
    close(w.grad, dw, dtype, 4)
    close(b.grad, db, dtype, 4)
    # Batch norm: each channel over samples and plane.
    x.grad = None
    normal = F.batch_norm(x, None, None, w, b, True, 0.1, 1e-3)
    normal.backward(g)
    for c in range(channels):
        of = [exact(t)[:, c].reshape(1, 1, -1) for t in (x, g)]
        want = reference(*of, *(p[c : c + 1] for p in plain), centered=True, eps=1e-3)
        close(normal[:, c], want[0].reshape(n, inner), dtype, 4)
        close(x.grad[:, c], want[1].reshape(n, inner), dtype, 8)


def test_zeros_keep_their_sign_without_weight_and_bias() -> None:
    """Nothing is added where there is no bias: -0 stays -0."""
    x = pt.tensor([[-0.0, 0.0, -0.0] * 7])
    got = F.rms_norm(x, (21,), eps=1.0)
    assert pt.signbit(got).tolist() == pt.signbit(x).tolist()
