"""Rows of layers: pools, resampling, losses, norms and recurrence, by their definitions."""

from __future__ import annotations

import functools
import math
from itertools import product
from typing import Any

import numpy as np
import op_refs as R
from op_row import (
    LONG_SUM,
    NN_SUM,
    Many,
    Op,
    cases,
    distinct,
    functional,
    index,
    positive,
    probability,
    quiet,
)
from scipy import special

EACH = [{"reduction": how} for how in ("none", "sum", "mean")]
ENUM = (0, 2, 1)
NONE_SUM_MEAN = ("none", "mean", "sum")


def adaptive_max(x: Any, output_size: Any) -> Any:
    """Return the largest of each part, and where it is in its plane."""
    out = R._each(output_size, x.ndim - 2)
    y = np.zeros((*x.shape[:2], *out))
    where = np.zeros(y.shape, np.int64)
    places = np.arange(math.prod(x.shape[2:])).reshape(x.shape[2:])
    for at in product(*map(range, out)):
        cut = tuple(slice(a * i // o, -((a + 1) * i // -o))
                    for a, i, o in zip(at, x.shape[2:], out, strict=True))
        part = x[(..., *cut)].reshape(*x.shape[:2], -1)
        y[(..., *at)] = part.max(-1)
        where[(..., *at)] = places[cut].ravel()[part.argmax(-1)]
    return y, where


def max_pool_indices(x: Any, size: Any) -> Any:
    """Return the largest of each window without overlap, and where it is in its plane."""
    return adaptive_max(x, [n // s for n, s in
                            zip(x.shape[2:], R._each(size, x.ndim - 2), strict=True)])


def lp_pool(x: Any, p: float, size: Any, stride: Any = None) -> Any:
    n = x.ndim - 2
    step = size if stride is None else stride
    return (R._windows(x, R._each(size, n), step, 0) ** p).sum(R._kernel_axes(x)) ** (1 / p)


def matrix_of(n: int, m: int, mode: str, corners: bool) -> Any:
    """Return the matrix that resamples n elements to m."""
    scale = (n - 1) / (m - 1) if corners and m > 1 else 0.0 if corners else n / m
    a = np.zeros((m, n))
    for i in range(m):
        at = i * scale if corners else (i + 0.5) * scale - 0.5
        if mode == "nearest":
            a[i, min(int(i * n / m), n - 1)] = 1
        elif mode == "nearest-exact":
            a[i, min(int((i + 0.5) * n / m), n - 1)] = 1
        elif mode == "bicubic":
            for k in range(math.floor(at) - 1, math.floor(at) + 3):
                a[i, min(max(k, 0), n - 1)] += cubic(abs(at - k))
        else:
            at = max(at, 0.0)
            low = min(math.floor(at), n - 1)
            a[i, low] += 1 - (at - low)
            a[i, min(low + 1, n - 1)] += at - low
    return a


def cubic(t: float, a: float = -0.75) -> float:
    """Return Keys' cubic convolution kernel."""
    if t < 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return ((t - 5) * t + 8) * t * a - 4 * a if t < 2 else 0.0


def deprecated(name: str) -> Any:
    return lambda torch: functools.partial(quiet, getattr(torch.nn.functional, name))


def interpolate(x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool = False) -> Any:
    n = x.ndim - 2
    if size is None:
        size = [math.floor(i * s) for i, s in
                zip(x.shape[2:], np.broadcast_to(scale_factor, n), strict=True)]
    for d, m in enumerate(R._each(size, n), 2):
        a = matrix_of(x.shape[d], m, mode, align_corners)
        x = np.moveaxis(np.tensordot(a, x, (1, d)), 0, d)
    return x


def grid_sample(x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool = False) -> Any:
    """Sample planes at points by the two elements on each side, zero outside."""
    n = grid.shape[-1]
    sizes = np.array(x.shape[2:][::-1])
    at = (grid + 1) / 2 * (sizes - 1) if align_corners else ((grid + 1) * sizes - 1) / 2
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    low = np.floor(at).astype(int)
    for corner in product((0, 1), repeat=n):
        i = low + corner
        w = np.prod(np.where(corner, at - low, 1 - (at - low)), -1)
        w = w * np.all((i >= 0) & (i < sizes), -1)
        i = np.clip(i, 0, sizes - 1)
        for b in range(x.shape[0]):
            where = tuple(i[b][..., k] for k in range(n))[::-1]
            y[b] += w[b] * x[b][(slice(None), *where)]
    return y


def affine_grid(theta: Any, size: Any, align_corners: bool = False) -> Any:
    axes = []
    for n in size[2:]:
        ends = np.linspace(-1, 1, n)
        axes.append(ends if align_corners else ends * (n - 1) / n)
    points = np.stack([*np.meshgrid(*axes, indexing="ij")][::-1] + [np.ones(size[2:])], -1)
    return np.einsum("...k,bik->b...i", points, theta)


def unfold(x: Any, kernel: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    w = R._windows(x, R._each(kernel, 2), stride, padding, dilation)
    w = w.transpose(0, 1, 4, 5, 2, 3)
    return w.reshape(x.shape[0], x.shape[1] * w.shape[2] * w.shape[3], -1)


def fold(x: Any, output_size: Any, kernel: Any) -> Any:
    """Add patches at stride 1, each where it belongs."""
    h, w = output_size
    k = R._each(kernel, 2)
    patches = x.reshape(x.shape[0], -1, *k, h - k[0] + 1, w - k[1] + 1)
    y = np.zeros((x.shape[0], patches.shape[1], h, w))
    for i, j in product(range(k[0]), range(k[1])):
        y[:, :, i:i + patches.shape[4], j:j + patches.shape[5]] += patches[:, :, i, j]
    return y


def unpooled(x: Any, where: Any, size: Any) -> Any:
    y = np.zeros((*x.shape[:2], *size))
    flat = y.reshape(*x.shape[:2], -1)
    np.put_along_axis(flat, where.reshape(*x.shape[:2], -1), x.reshape(*x.shape[:2], -1), -1)
    return y


def spots(channels: int, out: tuple[int, ...], size: tuple[int, ...]) -> Any:
    """Return places to unpool to, no two alike in a plane."""
    def make(rng: np.random.Generator) -> Any:
        whole, n = math.prod(size), math.prod(out)
        return np.stack([rng.permutation(whole)[:n].reshape(out) for _ in range(channels)])[None]

    return make


def shuffled(x: Any, groups: int) -> Any:
    y = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    return np.swapaxes(y, 1, 2).reshape(x.shape)


def pixel_unshuffle(x: Any, r: int) -> Any:
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
    return y.reshape(n, c * r * r, h // r, w // r)


POOLS = [
    functional("adaptive_avg_pool1d", R.adaptive_avg_pool, ([2, 3, 7], 3)),
    functional("adaptive_avg_pool3d", R.adaptive_avg_pool, ([1, 2, 3, 4, 5], (2, 3, 2))),
    functional("avg_pool3d", R.avg_pool, ([1, 2, 4, 4, 4], 2), ([1, 1, 3, 4, 3], 2, 1, 1)),
    *(functional(f"adaptive_max_pool{n}d", lambda x, s: adaptive_max(x, s)[0], call,
                 fill=distinct) for n, call in enumerate(
          [([2, 3, 7], 3), ([1, 2, 5, 4], (2, 3)), ([1, 1, 3, 4, 4], (2, 2, 3))], 1)),
    *(functional(f"adaptive_max_pool{n}d_with_indices", adaptive_max, call, fill=distinct)
      for n, call in enumerate(
          [([2, 3, 7], 3), ([1, 2, 5, 4], (2, 3)), ([1, 1, 3, 4, 4], (2, 2, 3))], 1)),
    *(functional(f"max_pool{n}d_with_indices", max_pool_indices, call, fill=distinct)
      for n, call in enumerate(
          [([2, 3, 6], 3), ([1, 2, 4, 6], 2), ([1, 1, 4, 4, 2], 2)], 1)),
    *(functional(f"lp_pool{n}d", lp_pool, call, fill=lambda rng, *s: positive(*s)(rng), **LONG_SUM)
      for n, call in enumerate(
          [([2, 3, 7], 2.0, 3), ([1, 2, 4, 4], 3.0, 2, 1), ([1, 1, 4, 4, 4], 2.0, 2)], 1)),
    functional("max_unpool1d", lambda x, i, k: unpooled(x, i, (6,)),
               ([1, 2, 3], spots(2, (3,), (6,)), 2)),
    functional("max_unpool2d", lambda x, i, k: unpooled(x, i, (4, 4)),
               ([1, 2, 2, 2], spots(2, (2, 2), (4, 4)), 2)),
    functional("max_unpool3d", lambda x, i, k: unpooled(x, i, (2, 4, 2)),
               ([1, 2, 1, 2, 1], spots(2, (1, 2, 1), (2, 4, 2)), 2)),
    functional("fold", fold, ([1, 8, 6], (3, 4), 2), ([2, 6, 4], (4, 3), (3, 2))),
    functional("pixel_unshuffle", pixel_unshuffle, ([1, 2, 4, 6], 2)),
    functional("channel_shuffle", shuffled, ([2, 6, 3], 2), ([1, 4, 2, 2], 2)),
    functional("native_channel_shuffle", shuffled, ([2, 6, 3], 2)),
    functional("conv_transpose3d", R.conv_transpose, ([1, 2, 2, 3, 2], [2, 2, 2, 2, 2], [2], 2),
               **NN_SUM),
    functional("conv_tbc", lambda x, w, b, pad=0: np.moveaxis(R.conv(
               np.moveaxis(x, 0, 2), np.moveaxis(w, (0, 1, 2), (2, 1, 0)), b, 1, pad), 2, 0),
               ([5, 2, 3], [3, 3, 4], [4], 1), **NN_SUM),
    cases("convolution", lambda x, w, b, s, p, d, t, o, g: R.conv(x, w, b, s, p, d, g),
          ([1, 2, 5, 5], [4, 1, 3, 3], [4], (1, 2), (1, 1), (1, 1), False, (0, 0), 2), out=False,
          method=False, **NN_SUM),
]

def padded(parts: Any, batch_first: bool = False) -> Any:
    n = max(len(x) for x in parts)
    y = np.stack([np.pad(x, [(0, n - len(x))] + [(0, 0)] * (x.ndim - 1)) for x in parts])
    return y if batch_first else np.swapaxes(y, 0, 1)


RESAMPLING = [
    functional("interpolate", interpolate, ([1, 2, 5], 7), ([1, 2, 3, 4], (5, 3)),
               ([1, 2, 2, 3, 2], None, 2), ([1, 1, 3, 4], (5, 7), None, "nearest-exact"),
               ([1, 2, 5], 8, None, "linear"), ([1, 2, 5], 8, None, "linear", True),
               ([1, 2, 3, 4], (5, 7), None, "bilinear"), ([1, 1, 2, 3, 2], 4, None, "trilinear"),
               ([1, 2, 3, 4], (5, 2), None, "bilinear", True),
               ([1, 2, 4, 5], (7, 6), None, "bicubic"), **NN_SUM),
    functional("upsample", interpolate, ([1, 2, 3, 4], 6),
               ([1, 2, 3, 4], None, 2, "bilinear", True), **NN_SUM, call=deprecated("upsample")),
    functional("upsample_nearest", interpolate, ([1, 2, 3, 4], 6),
               call=deprecated("upsample_nearest")),
    functional("upsample_bilinear", lambda x, size: interpolate(x, size, None, "bilinear", True),
               ([1, 2, 3, 4], 6), **NN_SUM, call=deprecated("upsample_bilinear")),
    functional("grid_sample", grid_sample, ([2, 2, 3, 4], [2, 3, 2, 2], "bilinear", "zeros", False),
               ([1, 2, 3, 4], [1, 2, 3, 2], "bilinear", "zeros", True),
               ([1, 1, 2, 3, 3], [1, 2, 2, 1, 3], "bilinear", "zeros", False),
               twice=False, **NN_SUM),
    functional("affine_grid", affine_grid, ([2, 2, 3], (2, 1, 3, 4), False),
               ([1, 2, 3], (1, 1, 3, 2), True), ([1, 3, 4], (1, 1, 2, 3, 2), False), **NN_SUM),
    cases("nn.utils.rnn.pad_sequence", padded, (Many(([3, 2], [1, 2])), True),
          (Many(([2], [4], [1])),), out=False, method=False),
    functional("embedding_bag", lambda i, w, offsets=None, mode="mean": np.stack([
               {"sum": np.sum, "mean": np.mean, "max": np.max}[mode](w[part], 0) for part in (
                   i if offsets is None else np.split(i, offsets[1:]))]),
               *[(index(5, 3, 2), [5, 4], {"mode": how}) for how in ("sum", "mean")],
               (index(5, 7), [5, 4], lambda rng: np.array([0, 3]), {"mode": "sum"}), **NN_SUM),
]


def with_dims(y: Any, n: int, dim: int) -> Any:
    shape = [1] * n
    shape[dim] = -1
    return y.reshape(shape)


def local_response(x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75,
                   k: float = 1.0) -> Any:
    squares = np.pad(x * x, [(0, 0), (size // 2, (size - 1) // 2)] + [(0, 0)] * (x.ndim - 2))
    sums = sum(squares[:, i:i + x.shape[1]] for i in range(size))
    return x / (k + alpha * sums / size) ** beta


def native_layer_norm(x: Any, shape: Any, w: Any, b: Any, eps: float) -> Any:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    return (x - mean) * rstd * w + b, mean, rstd


def native_group_norm(x: Any, w: Any, b: Any, n: int, c: int, hw: int, groups: int,
                      eps: float) -> Any:
    parts = x.reshape(n, groups, -1)
    mean, rstd = parts.mean(-1), 1 / np.sqrt(parts.var(-1) + eps)
    y = ((parts - mean[..., None]) * rstd[..., None]).reshape(x.shape)
    return y * with_dims(w, x.ndim, 1) + with_dims(b, x.ndim, 1), mean, rstd


def native_batch_norm(x: Any, w: Any, b: Any, m: Any, v: Any, train: bool, momentum: float,
                      eps: float) -> Any:
    axes = (0, *range(2, x.ndim))
    mean, rstd = x.mean(axes), 1 / np.sqrt(x.var(axes) + eps)
    y = (x - with_dims(mean, x.ndim, 1)) * with_dims(rstd * w, x.ndim, 1)
    return y + with_dims(b, x.ndim, 1), mean, rstd


NORMS = [
    functional("local_response_norm", local_response, ([2, 5, 3], 3), ([1, 4, 2, 2], 2, 0.1),
               **LONG_SUM),
    functional("softmin", lambda x, dim: R.softmax(-x, dim), ([3, 4], 1), ([3, 4], 0)),
    cases("native_layer_norm", native_layer_norm, ([3, 4], (4,), [4], [4], 1e-5), out=False,
          method=False, **LONG_SUM),
    cases("native_group_norm", native_group_norm, ([2, 4, 3], [4], [4], 2, 4, 3, 2, 1e-5),
          out=False, method=False, **LONG_SUM),
    cases("native_batch_norm", native_batch_norm, ([4, 3, 2], [3], [3], None, None, True, 0.1,
          1e-5), out=False, method=False, **LONG_SUM),
]


def p_distance(a: Any, b: Any, p: float = 2.0, eps: float = 1e-6) -> Any:
    return (np.abs(a - b + eps) ** p).sum(-1) ** (1 / p)


def pdist(x: Any, p: float = 2.0) -> Any:
    i, j = np.triu_indices(x.shape[0], 1)
    return (np.abs(x[i] - x[j]) ** p).sum(-1) ** (1 / p)


def signs(*shape: int) -> Any:
    return lambda rng: np.where(rng.random(shape) < 0.5, 1, -1)


def cosine(a: Any, b: Any) -> Any:
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def poisson_nll(x: Any, t: Any, log_input: bool = True, eps: float = 1e-8) -> Any:
    return np.exp(x) - t * x if log_input else x - t * np.log(x + eps)


def gaussian_nll(x: Any, t: Any, var: Any) -> Any:
    return 0.5 * (np.log(var) + (x - t) ** 2 / var)


def multi_margin(x: Any, t: Any, p: int = 1, margin: float = 1.0) -> Any:
    right = np.take_along_axis(x, t[:, None], 1)
    each = np.maximum(0, margin - right + x) ** p
    np.put_along_axis(each, t[:, None], 0, 1)
    return each.sum(1) / x.shape[1]


def multilabel_margin(x: Any, t: Any) -> Any:
    y = np.zeros(x.shape[0])
    for b in range(x.shape[0]):
        labels = [int(k) for k in t[b][: list(t[b]).index(-1) if -1 in t[b] else None]]
        rest = [k for k in range(x.shape[1]) if k not in labels]
        y[b] = sum(max(0, 1 - (x[b, i] - x[b, j])) for i in labels for j in rest) / x.shape[1]
    return y


def ctc(log_probs: Any, targets: Any, ins: Any, outs: Any) -> Any:
    """Sum over every path of symbols that collapses to the target; blank is 0."""
    losses = []
    for b, (steps, n) in enumerate(zip(ins, outs, strict=True)):
        want, total = tuple(targets[b][:n]), -np.inf
        for path in product(range(log_probs.shape[2]), repeat=int(steps)):
            kept = [s for i, s in enumerate(path) if s and (i == 0 or path[i - 1] != s)]
            if tuple(kept) == want:
                total = np.logaddexp(total, sum(log_probs[i, b, s] for i, s in enumerate(path)))
        losses.append(-total)
    return np.array(losses)


def triplet(a: Any, p: Any, n: Any, margin: float = 1.0, power: float = 2.0) -> Any:
    return np.maximum(0, margin + p_distance(a, p, power) - p_distance(a, n, power))


def loss(name: str, each: Any, *args: Any, **row: Any) -> Op:
    return functional(name, reduced(each), *[(*args, how) for how in EACH], **{**NN_SUM, **row})


def reduced(each: Any) -> Any:
    def ref(*args: Any, reduction: str = "mean", **kwargs: Any) -> Any:
        y = each(*args, **kwargs)
        return {"none": y, "sum": y.sum(), "mean": y.mean()}[reduction]

    return ref


LOSSES = [
    functional("pairwise_distance", p_distance, ([3, 4], [3, 4]), ([3, 4], [3, 4], 3.0), **NN_SUM),
    functional("pdist", pdist, ([4, 3],), ([3, 2], 1.0), twice=False, **NN_SUM),
    loss("cosine_embedding_loss", lambda a, b, y: np.where(y > 0, 1 - cosine(a, b),
         np.maximum(0, cosine(a, b))), [3, 4], [3, 4], signs(3)),
    loss("hinge_embedding_loss", lambda x, y: np.where(y > 0, x, np.maximum(0, 1 - x)), [3, 4],
         signs(3, 4)),
    loss("margin_ranking_loss", lambda a, b, y: np.maximum(0, -y * (a - b)), [5], [5], signs(5)),
    loss("poisson_nll_loss", poisson_nll, [3, 4], positive(3, 4), fixed=(1,)),
    loss("gaussian_nll_loss", gaussian_nll, [3, 4], [3, 4], positive(3, 4)),
    loss("multi_margin_loss", multi_margin, [3, 5], index(5, 3), twice=False),
    loss("multilabel_margin_loss", multilabel_margin, [2, 4],
         lambda rng: np.array([[3, 0, -1, 1], [2, -1, 0, 0]]), twice=False),
    loss("multilabel_soft_margin_loss", lambda x, y: -(y * special.log_expit(x) + (1 - y)
         * special.log_expit(-x)).mean(-1), [3, 4], probability(3, 4), fixed=(1,)),
    loss("triplet_margin_loss", triplet, [3, 4], [3, 4], [3, 4]),
    functional("triplet_margin_with_distance_loss", reduced(triplet), ([3, 4], [3, 4], [3, 4]),
               **NN_SUM),
    functional("linear_cross_entropy", lambda x, w, t: R.cross_entropy(x @ w.T, t),
               ([3, 4], [5, 4], index(5, 3)), **NN_SUM),
    # The gradient is that of what log_softmax gives.
    functional("ctc_loss", lambda x, t, i, o, reduction: ctc(R.log_softmax(x, -1), t, i, o).sum(),
               ([4, 2, 3], lambda rng: np.array([[1, 2], [2, 2]]), (4, 3), (2, 1),
                {"reduction": "sum"}), twice=False, call=lambda torch: lambda x, *a, **k:
               torch.nn.functional.ctc_loss(x.log_softmax(-1), *a, **k), scale=30,
               why="a sum over paths"),
]


def lstm_step(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any = 0, d: Any = 0) -> Any:
    i, f, g, o = np.split(x @ w.T + h @ u.T + b + d, 4, -1)
    c = special.expit(f) * c + special.expit(i) * np.tanh(g)
    return special.expit(o) * np.tanh(c), c


def gru_step(x: Any, h: Any, w: Any, u: Any, b: Any = 0, d: Any = 0) -> Any:
    xr, xz, xn = np.split(x @ w.T + b, 3, -1)
    hr, hz, hn = np.split(h @ u.T + d, 3, -1)
    z = special.expit(xz + hz)
    return (1 - z) * np.tanh(xn + special.expit(xr + hr) * hn) + z * h


def plain_step(act: Any) -> Any:
    return lambda x, h, w, u, b=0, d=0: act(x @ w.T + h @ u.T + b + d)


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def layer(step: Any) -> Any:
    """Run one layer of a step over the first dimension."""
    def ref(x: Any, h: Any, params: Any, *rest: Any) -> Any:
        state, ys = h[0], []
        for row in x:
            state = step(row, state, *params)
            ys.append(state)
        return np.stack(ys), state[None]

    return ref


def lstm_layer(x: Any, hx: Any, params: Any, *rest: Any) -> Any:
    h, c, ys = hx[0][0], hx[1][0], []
    for row in x:
        h, c = lstm_step(row, h, c, *params)
        ys.append(h)
    return np.stack(ys), h[None], c[None]


OPTIONS = (True, 1, 0.0, False, False, False)
RNN = {"out": False, "method": False, **LONG_SUM}


def cell(name: str, step: Any, gates: int) -> Op:
    return cases(name, step, ([2, 3], [2, 4], [4 * gates, 3], [4 * gates, 4], [4 * gates],
                 [4 * gates]), **RNN)


def recurrent(name: str, step: Any, gates: int) -> Op:
    weights = Many(([4 * gates, 3], [4 * gates, 4], [4 * gates], [4 * gates]))
    return cases(name, layer(step), ([3, 2, 3], [1, 2, 4], weights, *OPTIONS), **RNN)


RECURRENT = [
    cell("rnn_tanh_cell", plain_step(np.tanh), 1),
    cell("rnn_relu_cell", plain_step(relu), 1),
    cell("gru_cell", gru_step, 3),
    cases("lstm_cell", lambda x, hx, *p: lstm_step(x, *hx, *p),
          ([2, 3], Many(([2, 4], [2, 4])), [16, 3], [16, 4], [16], [16]), **RNN),
    recurrent("rnn_tanh", plain_step(np.tanh), 1),
    recurrent("rnn_relu", plain_step(relu), 1),
    recurrent("gru", gru_step, 3),
    cases("lstm", lstm_layer, ([3, 2, 3], Many(([1, 2, 4], [1, 2, 4])),
          Many(([16, 3], [16, 4], [16], [16])), *OPTIONS), **RNN),
]

ROWS = [*POOLS, *RESAMPLING, *NORMS, *LOSSES, *RECURRENT]
