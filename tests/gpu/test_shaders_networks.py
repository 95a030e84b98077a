"""Shaders of attention and recurrent layers through wgpu-py against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from shader_runs import close, f32, floats, fmt, rng, run

TANH, RELU, GRU, LSTM = range(4)


def attention_case(ahead):
    """Returns shapes, operands and what NumPy makes of them in float64: one batch, causal.

    Two heads of queries share one of keys; query 0 is that many rows ahead of key 0.
    """
    q, k = floats(2, 11, 5), floats(1, 13, 5, seed=1)
    v, g = floats(1, 13, 3, seed=2), floats(2, 11, 3, seed=3)
    mask = floats(11, 13, seed=4)
    wide = [t.astype(np.float64) for t in (q, k, v, g)]
    scores = 0.4 * wide[0] @ wide[1].swapaxes(1, 2) + mask
    scores[:, np.arange(11)[:, None] + ahead < np.arange(13)] = -np.inf
    # What sees nothing has weights of zero.
    top = np.maximum(scores.max(2, keepdims=True), -3e38)
    p = np.exp(scores - top)
    total = p.sum(2, keepdims=True)
    inverse = np.where(total > 0, 1 / np.maximum(total, 1e-30), 0)
    p *= inverse
    y = p @ wide[2]
    dp = wide[3] @ wide[2].swapaxes(1, 2)
    ds = p * (dp - (dp * p).sum(2, keepdims=True)) * 0.4
    dq = ds @ wide[1]
    dk = (ds.swapaxes(1, 2) @ wide[0]).sum(0, keepdims=True)
    dv = (p.swapaxes(1, 2) @ wide[3]).sum(0, keepdims=True)
    stats = np.concatenate([top, inverse], 2).astype(np.float32)
    return (q, k, v, g, mask), (y, stats, dq, dk, dv)


def attention_params(planes, tiles, ahead):
    """Returns the parameter block: strides along batch, heads, rows and components of each."""
    shapes = [(2, 11, 5), (1, 13, 5), (1, 13, 3), (1, 11, 13), (2, 11, 3), (2, 11, 3)]
    shapes += [(2, 11, 5), (1, 13, 5), (1, 13, 3)]
    step = [s for _, rows, width in shapes for s in (0, rows * width, width, 1)]
    # The mask is one for all heads.
    step[13] = 0
    head = [11, 13, 2, 2, 5, 3, planes, tiles, f32(0.4), f32(1), 0, 1, 0, 0, 0, 0]
    return [*head, *step, *[0] * 9, ahead % 2**32, 0, 0]


# Rows of a tile and of the one that passes by, and the rows and columns of invocations.
@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("tile", [(8, 8, 8, 2), (16, 16, 8, 4), (8, 16, 4, 4)])
@pytest.mark.parametrize("ahead", [0, 3, -4])
def test_attention_and_its_gradients_match_numpy(tile, rolled, ahead):
    (q, k, v, g, mask), (y, stats, dq, dk, dv) = attention_case(ahead)
    kinds = dict(zip(("TX", "TZ", "ROWS", "COLUMNS"), tile, strict=True))
    kinds |= {"MASK": 1, "CAUSAL": 1, "D": 5, "ROLLED": rolled}
    tiles = -(-11 // tile[0])
    arrays = [np.zeros(y.shape, np.float32), np.zeros(stats.shape, np.float32), q, k, v, mask]
    params = attention_params(2, tiles, ahead)
    got, found, *_ = run("attention", "f32", arrays, params, (2 * tiles, 1, 1), **kinds)
    close(got, y, 1e-5)
    close(found, stats, 1e-5)
    like = [np.zeros(d.shape, np.float32) for d in (dq, dk, dv)]
    sums = np.zeros((2, 11), np.float32)
    inputs = [q, k, v, got, g, found, mask]
    out = run("attention_backward", "f32", [like[0], sums, *inputs], params, (2 * tiles, 1, 1),
              entry="queries", **kinds)  # fmt: skip
    close(out[0], dq, 1e-5)
    close(out[1], (y * g).sum(2), 1e-5)
    tiles = -(-13 // tile[0])
    params = attention_params(1, tiles, ahead)
    inputs[3] = out[1]
    out = run("attention_backward", "f32", [like[1], like[2], *inputs], params, (tiles, 1, 1),
              entry="keys", **kinds)  # fmt: skip
    close(out[0], dk, 1e-5)
    close(out[1], dv, 1e-5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell(kind, x, own, h, c):
    """Returns a step's state, cell state or recurrent product, and gates."""
    if kind == LSTM:
        i, f, n, o = np.split(x + own, 4, 1)
        i, f, n, o = sigmoid(i), sigmoid(f), np.tanh(n), sigmoid(o)
        new = f * c + i * n
        return o * np.tanh(new), new, np.concatenate([i, f, n, o], 1)
    if kind == GRU:
        (xr, xz, xn), (r, z, n) = np.split(x, 3, 1), np.split(own, 3, 1)
        a, b = sigmoid(xr + r), sigmoid(xz + z)
        m = np.tanh(xn + a * n)
        return (h - m) * b + m, n, np.concatenate([a, b, m], 1)
    total = x + own
    return (np.tanh(total) if kind == TANH else np.maximum(total, 0)), h, total


@pytest.mark.parametrize("kind", [TANH, RELU, GRU, LSTM])
def test_recurrent_step_and_its_gradient_match_numpy(kind):
    gates, n, width = {TANH: 1, RELU: 1, GRU: 3, LSTM: 4}[kind], 3, 18
    x, w = floats(2 * n, gates * width), floats(gates * width, width, seed=1) * 0.3
    h0, c0, b = floats(n, width, seed=2), floats(n, width, seed=3), floats(gates * width, seed=4)
    kinds = {"CELL": kind, "GATES": gates}
    blocks = 2
    y, own, kept = np.zeros((2 * n, width), np.float32), np.zeros((2 * n, width), np.float32), x
    want = []
    h, c = h0.astype(np.float64), c0.astype(np.float64)
    for t in range(2):
        params = [n, width, t * n, 0, n if t else 0, blocks, 0, 0, 0, 0]
        y, kept, own, *_ = run("rnn", "f32", [y, kept, own, h0, c0, w, b], params,
                               (blocks, 1, 1), HAS_BIAS=1, KEEP=1, **kinds)  # fmt: skip
        h, c, g = cell(kind, x[t * n : (t + 1) * n], h @ w.T + b, h, c)
        want.append((h, c, g))
        close(y[t * n : (t + 1) * n], h, 1e-5)
        if kind in (GRU, LSTM):
            close(own[t * n : (t + 1) * n], c, 1e-5)
            close(kept[t * n : (t + 1) * n], g, 1e-5)

    # Slopes of a sum of all states by central differences of the input's share of the gates.
    weight = floats(2 * n, width, seed=5).astype(np.float64)

    def loss(x):
        h, c, total = h0.astype(np.float64), c0.astype(np.float64), 0.0
        for t in range(2):
            h, c, _ = cell(kind, x[t * n : (t + 1) * n], h @ w.T + b, h, c)
            total += (h * weight[t * n : (t + 1) * n]).sum()
        return total

    slopes, carried = np.zeros_like(x), np.zeros((n, width), np.float32)
    first = c0 if kind == LSTM else h0
    for t in (1, 0):
        params = [n, width, t * n, 0, n if t else 0, n, 0 if t else n, blocks, 0, 0, 0]
        arrays = [slopes, carried, kept, own, y, first, w, weight.astype(np.float32)]
        slopes, carried, *_ = run("rnn_backward", "f32", arrays, params, (blocks, 1, 1), **kinds)
    wide, eps = x.astype(np.float64), 1e-5
    for place in [(0, 0), (1, 7), (2, gates * width - 1), (3, 5), (5, gates * width - 2)]:
        up, down = wide.copy(), wide.copy()
        up[place] += eps
        down[place] -= eps
        close(slopes[place], (loss(up) - loss(down)) / (2 * eps), 2e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_mended_product_leaves_hidden_terms_out_where_it_is_not_finite(dtype: type) -> None:
    planes, rows, terms, columns = 2, 3, 5, 4
    a = floats(planes, rows, terms, seed=1).astype(dtype)
    b = floats(planes, terms, columns, seed=2).astype(dtype)
    hidden = rng(3).random((planes, rows, terms)) < 0.4
    hidden[0, 0, :2] = [True, False]
    b[0, 0, 1], b[1, 3, 2] = np.nan, np.inf
    a[hidden] = 0
    with np.errstate(invalid="ignore"):
        product = (a.astype("f4") @ b.astype("f4")).astype(dtype)
    seen = [
        [[sum(a[p, r, t] * np.float32(b[p, t, c]) for t in range(terms) if not hidden[p, r, t])
          for c in range(columns)] for r in range(rows)] for p in range(planes)
    ]  # fmt: skip
    want = np.where(np.isfinite(product), product, np.array(seen, dtype))
    params = [product.size, rows, columns, terms, rows * terms, terms, 1, 0]
    params += [terms * columns, columns, 1, 0, rows * terms, terms, 1, 0, 0, 0, 0, 0]
    arrays = [np.zeros_like(product), product, a, b, hidden.view(np.uint8)]
    formats = {"X": fmt(product), "Y": fmt(product), "WORDS": int(dtype is np.float16)}
    got = run("mended", "f32", arrays, params, (1, 1, 1), **formats)[0]
    assert np.isfinite(got[0, 0]).all() and not np.isfinite(product[0, 0, 1])
    # Two roundings to float16, or the order of five float32 terms.
    np.testing.assert_allclose(got, want, rtol=2e-3 if dtype is np.float16 else 1e-6, atol=1e-6)
