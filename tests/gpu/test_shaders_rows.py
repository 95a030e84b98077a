"""Softmax, losses and norms in shaders, through wgpu-py, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from shader_runs import F16, close, f32, floats, rng, run


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("shape", [(3, 10, 1), (2, 70, 3)])
@pytest.mark.parametrize("keeps", [False, True])
def test_softmax_and_softmax_backward_match_numpy(log, shape, keeps):
    outer, length, inner = shape
    x = floats(*shape) * 10
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    s = e / e.sum(1, keepdims=True)
    want = np.log(s) if log else s
    size = {"LANES": 16, "ROWS": 4, "WG": 64, "LOG": log, "HELD": keeps * -(-length // 16)}
    groups = (-(-outer * inner // 4), 1, 1)
    params = [outer * inner, length, inner, 0, 0, 0, f32(-np.inf), 0]
    y = run("softmax", "f32", [np.zeros_like(x), x], params, groups, **size)[0]
    close(y, want, 1e-5)
    g = floats(*shape, seed=1)
    d = run("softmax_backward", "f32", [np.zeros_like(x), y, g], [*params[:3], 0, 0, 0], groups,
            **size)[0]  # fmt: skip
    if log:
        close(d, g - s * g.sum(1, keepdims=True), 1e-5)
    else:
        close(d, s * (g - (g * s).sum(1, keepdims=True)), 1e-5)
    if inner > 1:
        return
    # Halves in pairs.
    size |= {"PAIRS": 1, "HELD": keeps * -(-length // 32)}
    x, g = x.astype(np.float16), g.astype(np.float16)
    formats = {"X": F16, "Y": F16}
    y = run("softmax", "f32", [np.zeros_like(x), x], params, groups, **size, **formats)[0]
    close(y.astype(np.float32), want, 1e-2)
    formats = {"S": F16, "G": F16, "Y": F16}
    d = run("softmax_backward", "f32", [np.zeros_like(x), y, g], [*params[:3], 0, 0, 0], groups,
            **size, **formats)[0]  # fmt: skip
    total = (g if log else g * s).sum(1, keepdims=True)
    close(d.astype(np.float32), g - s * total if log else s * (g - total), 1e-2)


def test_nll_and_nll_backward_match_numpy():
    x, w = floats(5, 4, 3), np.abs(floats(4, seed=1))
    t = rng().integers(0, 4, (5, 3)).astype(np.int64)
    t[0, 0] = -100
    used = t != -100
    zero = np.zeros((5, 3), np.float32)
    arrays = [zero, zero, np.zeros(8, np.uint32), x, t, w]
    params = [15, 4, 3, -100, 0, 0, 0, 0, 0]
    loss, total, *_ = run("nll", "f32", arrays, params, (1, 1, 1), HAS_WEIGHT=1)
    picked = np.take_along_axis(x, np.where(used, t, 0)[:, None], 1)[:, 0]
    weight = np.where(used, w[np.where(used, t, 0)], 0)
    close(total, weight)
    close(loss, -weight * picked)
    g, divisor = np.array([2], np.float32), np.array([weight.sum()], np.float32)
    arrays = [np.zeros_like(x), g, t, w, divisor]
    params = [60, 4, 3, -100, 0, 0, 0, 0, 0, 0]
    constants = {"HAS_WEIGHT": 1, "HAS_DIVISOR": 1}
    d = run("nll_backward", "f32", arrays, params, (1, 1, 1), **constants)[0]
    want = -2 * weight[:, None] / weight.sum() * (t[:, None] == np.arange(4)[:, None])
    close(d, want)


def test_nll_target_out_of_range_is_noted():
    x, t = floats(2, 3, 1), np.array([1, 7], np.int64)
    arrays = [np.zeros(2, np.float32), np.zeros(2, np.float32), np.zeros(8, np.uint32), x, t, x]
    out = run("nll", "f32", arrays, [2, 3, 1, -100, 0, 0, 0, 4, 5], (1, 1, 1))
    assert list(out[2]) == [1, 7, 0, 3, 4, 5, 0, 0]


@pytest.mark.parametrize("lanes", [1, 4])
def test_cross_entropy_and_its_gradient_match_numpy(lanes):
    x, w = floats(5, 4, 3), np.abs(floats(4, seed=1))
    t = rng().integers(0, 4, (5, 3)).astype(np.int64)
    t[0, 0] = -100
    used, smoothing, rows = t != -100, 0.25, 64 // lanes
    kinds = {"HAS_WEIGHT": 1, "SMOOTH": 1, "LANES": lanes, "ROWS": rows, "WG": 64}
    zero = np.zeros((5, 3), np.float32)
    arrays = [zero, zero, np.stack([zero, zero], -1), np.zeros(8, np.uint32), x, t, w]
    params = [15, 4, 3, -100, f32(smoothing), 0, 0, 0, 0, 0, f32(np.inf), 4, 5]
    groups = (-(-15 // rows), 1, 1)
    losses, weights, lse, *_ = run("cross_entropy", "f32", arrays, params, groups, **kinds)
    wide = x.astype(np.float64)
    wanted = np.log(np.exp(wide).sum(1))
    lse = lse.reshape(5, 3, 2)
    close(lse[..., 0], x.max(1))
    close(lse.sum(-1), wanted, 1e-5)
    logs = wide - wanted[:, None]
    hit = (t[:, None] == np.arange(4)[:, None]).astype(np.float64)
    wc = w[:, None]
    each = -((1 - smoothing) * hit + smoothing / 4) * logs * wc
    weight = (hit * wc).sum(1)
    want = np.where(used, each.sum(1), 0)
    close(losses, want, 1e-5)
    close(weights, weight, 1e-6)
    one = np.zeros(1, np.float32)
    arrays = [one, one, losses, np.zeros(8, np.uint32), weights, t, w]
    loss, total, *_ = run("cross_entropy", "f32", arrays, params, (1, 1, 1), entry="sums",
                          MEAN=1, LANES=64, WG=64)  # fmt: skip
    close(loss, [want.sum() / weight.sum()], 1e-5)
    close(total, [weight.sum()], 1e-5)
    g = np.array([2], np.float32)
    arrays = [np.zeros_like(x), g, x, t, lse, total, w]
    params = [15, 4, 3, -100, f32(smoothing), *[0] * 8]
    d = run("cross_entropy_backward", "f32", arrays, params, groups, HAS_DIVISOR=1, **kinds)[0]
    slope = ((1 - smoothing) * hit + smoothing / 4) * wc
    want = 2 / weight.sum() * (np.exp(logs) * slope.sum(1, keepdims=True) - slope)
    close(d, np.where(used[:, None], want, 0), 1e-5)


@pytest.mark.parametrize("samples", [1, 3])
def test_norm_running_matches_numpy(samples):
    old = [floats(5), np.abs(floats(5, seed=1))]
    new = [floats(samples, 5, seed=2), np.abs(floats(samples, 5, seed=3))]
    params = [5, samples, f32(0.25), f32(1.5), 0, 0, 0, 0]
    mean, var, *_ = run("norm_running", "f32", [*old, *new], params, (1, 1, 1))
    close(mean, 0.75 * old[0] + 0.25 * new[0].mean(0))
    close(var, 0.75 * old[1] + 0.25 * 1.5 * new[1].mean(0))


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("kind", ["batch", "layer", "group"])
def test_norm_and_norm_backward_match_numpy(kind, keeps):
    x, w, b = floats(3, 4, 5, 2), floats(4, seed=1), floats(4, seed=2)
    if kind == "batch":
        axes, groups, layout = (0, 2, 3), 4, [4, 30, 10, 10, 40, 4, 1, 30]
    elif kind == "layer":
        w, b = floats(40, seed=1), floats(40, seed=2)
        axes, groups, layout = (1,), 3, [3, 40, 40, 40, 0, 1, 40, 1]
    else:
        axes, groups, layout = (2, 3), 6, [6, 20, 20, 20, 0, 2, 2, 10]
    shaped = {"batch": x, "layer": x.reshape(3, 40), "group": x.reshape(3, 2, 2, 10)}[kind]
    shaped = shaped.astype(np.float64)
    full = {"batch": (4, 1, 1), "layer": (40,), "group": (2, 2, 1)}[kind]
    mean, var = shaped.mean(axes, keepdims=True), shaped.var(axes, keepdims=True)
    hat = (shaped - mean) / np.sqrt(var + 1e-5)
    stats = [np.zeros(groups, np.float32) for _ in range(3)]
    params = [*layout, f32(1e-5), *[0] * 7]
    # The sums of channels in one part; those of batch norm are the groups'.
    channels, own = w.size, kind == "batch"
    backward = [*layout, *[0] * 6, channels, x.size // channels, 1, x.size // channels]
    constants = {"HAS_WEIGHT": 1, "LANES": 16, "ROWS": 4, "WG": 64, "HELD": 3 * keeps}
    y, m, rstd, v, *_ = run("norm", "f32", [np.zeros_like(x), *stats, x, w, b], params,
                            (-(-groups // 4), 1, 1), HAS_BIAS=1, **constants)  # fmt: skip
    close(y.ravel(), (hat * w.reshape(full) + b.reshape(full)).ravel(), 1e-5)
    close(m, mean.ravel(), 1e-5)
    close(v, var.ravel(), 1e-5)
    g = floats(3, 4, 5, 2, seed=3)
    sums = [np.zeros(channels, np.float32) for _ in range(2)]
    arrays = [np.zeros_like(x), *sums, x, g, m, rstd, w]
    columns = 8 if kind == "layer" else 1
    more = 0 if own else channels // columns
    d, sum_g, sum_gx, *_ = run("norm_backward", "f32", arrays, backward,
                               (-(-groups // 4) + more, 1, 1), OWN=own, COLUMNS=columns,
                               **constants)  # fmt: skip
    gs = g.reshape(shaped.shape).astype(np.float64)
    over = {"batch": (0, 2, 3), "layer": (0,), "group": (0, 3)}[kind]
    close(sum_g, gs.sum(over).ravel(), 1e-4)
    close(sum_gx, (gs * hat).sum(over).ravel(), 1e-4)
    gw = gs * w.reshape(full)
    rest = gw.mean(axes, keepdims=True) + hat * (gw * hat).mean(axes, keepdims=True)
    close(d.ravel(), ((gw - rest) / np.sqrt(var + 1e-5)).ravel(), 1e-5)
    if not own:
        return
    # Of a given mean and variance, which are no sums over the input.
    given, spread = floats(4, seed=4), floats(4, seed=5) ** 2 + 0.5
    arrays = [np.zeros_like(x), *sums, x, g, given, spread, w]
    d, sum_g, sum_gx, *_ = run("norm_backward", "f32", arrays, [*backward, f32(1e-5)],
                               (-(-groups // 4), 1, 1), OWN=1, GIVEN=1, **constants)  # fmt: skip
    factor = 1 / np.sqrt(spread.reshape(full) + 1e-5)
    close(d, g * w.reshape(full) * factor, 1e-5)
    close(sum_gx, (gs * (x - given.reshape(full)) * factor).sum(over), 1e-4)
