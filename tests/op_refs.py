"""References for the op table in plain NumPy and SciPy, all in float64.

They follow the definition and nothing else: no blocking, no fast path, no shared code.
"""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import special

Array = np.ndarray


def axes(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return the dimensions that a reduction over `dim` removes."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    return tuple(d % ndim if ndim else 0 for d in np.atleast_1d(dim)) if ndim else ()


def reduce(function: Any) -> Any:
    """Give a NumPy reduction PyTorch's arguments."""

    def reduced(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
        return function(x, axis=axes(dim, x.ndim), keepdims=keepdim)

    return reduced


def spread(function: Any) -> Any:
    """Give `numpy.var` or `numpy.std` PyTorch's arguments."""

    def spreaded(x: Array, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> Array:
        return function(x, axis=axes(dim, x.ndim), ddof=correction, keepdims=keepdim)

    return spreaded


def segment_reduce(
    x: Array,
    how: str,
    *,
    lengths: Array | None = None,
    offsets: Array | None = None,
    axis: int = 0,
    initial: float | None = None,
) -> Array:
    if lengths is not None:
        offsets = np.concatenate([np.zeros((*lengths.shape[:-1], 1), int), lengths], -1).cumsum(-1)
    assert offsets is not None

    def one(part: Array) -> Array:
        more = [] if initial is None else [np.full((1, *part.shape[1:]), initial)]
        if how == "mean":
            sums = np.sum([*part, *(m[0] for m in more)], axis=0) if len(part) or more else np.nan
            return np.broadcast_to(sums / max(len(part), 1), part.shape[1:])
        start = {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf}[how]
        return getattr(np, how)(np.concatenate([part, *more]), axis=0, initial=start)

    if axis:
        rows = [segment_reduce(r, how, offsets=o, axis=axis - 1, initial=initial)
                for r, o in zip(x, offsets)]  # fmt: skip
        return np.stack(rows)
    return np.stack([one(x[a:b]) for a, b in pairwise(offsets)])


def fake_quantize(x: Array, scale: float, zero: int, low: int, high: int) -> Array:
    return (np.clip(np.rint(x / scale) + zero, low, high) - zero) * scale


def fake_quantize_channels(
    x: Array, scale: Array, zero: Array, axis: int, low: int, high: int
) -> Array:
    shape = [1] * x.ndim
    shape[axis] = -1
    return fake_quantize(x, scale.reshape(shape), zero.reshape(shape), low, high)


def arg(function: Any) -> Any:
    """Give `numpy.argmax` or `numpy.argmin` PyTorch's arguments."""

    def found(x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
        if dim is None:
            return np.asarray(function(x))
        return np.asarray(function(x, axis=dim, keepdims=keepdim)) if x.ndim else np.asarray(0)

    return found


def extreme(best: Any, where: Any) -> Any:
    """Return values and positions of the largest or smallest along a dimension."""

    def both(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
        return best(x, axis=dim, keepdims=keepdim), where(x, axis=dim, keepdims=keepdim)

    return both


def median(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """Return the lower median and its position."""
    order = np.argsort(x, axis=dim, kind="stable")
    at = np.take(order, [(x.shape[dim] - 1) // 2], axis=dim)
    values = np.take_along_axis(x, at, dim)
    return (values, at) if keepdim else (values.squeeze(dim), at.squeeze(dim))


def running(function: Any) -> Any:
    """Return running extremes and the last position of each."""

    def scanned(x: Array, dim: int) -> tuple[Array, Array]:
        values = function.accumulate(x, axis=dim)
        places = np.arange(x.shape[dim]).reshape([-1] + [1] * (x.ndim - dim % x.ndim - 1))
        hits = np.where(x == values, places, -1)
        return values, np.maximum.accumulate(hits, axis=dim)

    return scanned


def logsumexp(x: Array, dim: Any, keepdim: bool = False) -> Array:
    return special.logsumexp(x, axis=axes(dim, x.ndim), keepdims=keepdim)


def softmax(x: Array, dim: int) -> Array:
    return special.softmax(x, axis=dim) if x.ndim else np.ones(())


def log_softmax(x: Array, dim: int) -> Array:
    return special.log_softmax(x, axis=dim) if x.ndim else np.zeros(())


def sort(x: Array, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    at = np.argsort(-x if descending else x, axis=dim, kind="stable")
    return np.take_along_axis(x, at, dim), at


def topk(x: Array, k: int, dim: int = -1, largest: bool = True) -> tuple[Array, Array]:
    values, at = sort(x, dim, largest)
    keep = range(k)
    return values.take(keep, dim), at.take(keep, dim)


def kthvalue(x: Array, k: int, dim: int = -1) -> tuple[Array, Array]:
    values, at = sort(x, dim)
    return values.take(k - 1, dim), at.take(k - 1, dim)


def put(how: str) -> Any:
    """Return scatter with one of its ways to combine, element by element."""

    def scattered(x: Array, dim: int, index: Array, src: Any) -> Array:
        out = x.copy()
        for at in np.ndindex(index.shape):
            to = list(at)
            to[dim] = index[at]
            value = src[at] if isinstance(src, np.ndarray) else src
            out[tuple(to)] = out[tuple(to)] + value if how == "add" else value
        return out

    return scattered


def along(how: str) -> Any:
    """Return index_add, index_copy or index_fill, slice by slice."""

    def placed(x: Array, dim: int, index: Array, src: Any) -> Array:
        out = np.moveaxis(x.copy(), dim, 0)
        rows = src if np.ndim(src) == 0 else np.moveaxis(src, dim, 0)
        for k, i in enumerate(index):
            value = rows if np.ndim(src) == 0 else rows[k]
            out[i] = out[i] + value if how == "add" else value
        return np.moveaxis(out, 0, dim)

    return placed


def _each(value: Any, n: int) -> tuple[int, ...]:
    return (value,) * n if isinstance(value, int) else tuple(value)


def _windows(
    x: Array, size: Any, stride: Any, padding: Any, dilation: Any = 1, fill: float = 0.0
) -> Array:
    """Return (N, C, *out, *kernel) of an (N, C, *in) array."""
    n = x.ndim - 2
    size, stride, padding, dilation = (_each(v, n) for v in (size, stride, padding, dilation))
    x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding], constant_values=fill)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, size, strict=True)]
    view = sliding_window_view(x, reach, axis=tuple(range(2, 2 + n)))
    step = tuple(slice(None, None, s) for s in stride)
    holes = tuple(slice(None, None, d) for d in dilation)
    return view[(slice(None), slice(None), *step, *holes)]


def conv(
    x: Array,
    w: Array,
    b: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    n = x.ndim - 2
    windows = _windows(x, w.shape[2:], stride, padding, dilation)
    parts = []
    for xs, ws in zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True):
        inner = [1, *range(2 + n, 2 + 2 * n)]
        y = np.tensordot(xs, ws, (inner, [1, *range(2, 2 + n)]))
        parts.append(np.moveaxis(y, -1, 1))
    y = np.concatenate(parts, 1)
    return y if b is None else y + b.reshape([-1] + [1] * n)


def conv_transpose(
    x: Array,
    w: Array,
    b: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Array:
    n = x.ndim - 2
    stride, padding, extra, dilation = (
        _each(v, n) for v in (stride, padding, output_padding, dilation)
    )
    whole = [
        (i - 1) * s + d * (k - 1) + 1 + e
        for i, s, d, k, e in zip(x.shape[2:], stride, dilation, w.shape[2:], extra, strict=True)
    ]
    y = np.zeros((x.shape[0], w.shape[1] * groups, *whole))
    per_in, per_out = x.shape[1] // groups, w.shape[1]
    for at in product(*map(range, w.shape[2:])):
        spots = tuple(
            slice(a * d, a * d + (i - 1) * s + 1, s)
            for a, d, i, s in zip(at, dilation, x.shape[2:], stride, strict=True)
        )
        for g in range(groups):
            ins, outs = slice(g * per_in, (g + 1) * per_in), slice(g * per_out, (g + 1) * per_out)
            part = np.tensordot(x[:, ins], w[(ins, slice(None), *at)], ([1], [0]))
            y[(slice(None), outs, *spots)] += np.moveaxis(part, -1, 1)
    crop = tuple(slice(p, s - p) for p, s in zip(padding, whole, strict=True))
    y = y[(slice(None), slice(None), *crop)]
    return y if b is None else y + b.reshape([-1] + [1] * n)


def _kernel_axes(x: Array) -> tuple[int, ...]:
    return tuple(range(x.ndim, 2 * x.ndim - 2))


def max_pool(
    x: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1
) -> Array:
    step = kernel_size if stride is None else stride
    n = x.ndim - 2
    windows = _windows(x, _each(kernel_size, n), step, padding, dilation, -math.inf)
    return windows.max(_kernel_axes(x))


def avg_pool(
    x: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    assert not ceil_mode
    step = kernel_size if stride is None else stride
    size = _each(kernel_size, x.ndim - 2)
    total = _windows(x, size, step, padding).sum(_kernel_axes(x))
    if count_include_pad:
        return total / math.prod(size)
    return total / _windows(np.ones_like(x), size, step, padding).sum(_kernel_axes(x))


def adaptive_avg_pool(x: Array, output_size: Any) -> Array:
    out = _each(output_size, x.ndim - 2)
    y = np.zeros((*x.shape[:2], *out))
    for at in product(*map(range, out)):
        cut = tuple(
            slice(a * i // o, -((a + 1) * i // -o))
            for a, i, o in zip(at, x.shape[2:], out, strict=True)
        )
        y[(..., *at)] = x[(..., *cut)].mean(tuple(range(2, x.ndim)))
    return y


def layer_norm(
    x: Array, shape: Any, w: Array | None = None, b: Array | None = None, eps: float = 1e-5
) -> Array:
    over = tuple(range(x.ndim - len(shape), x.ndim))
    y = (x - x.mean(over, keepdims=True)) / np.sqrt(x.var(over, keepdims=True) + eps)
    return y * (1.0 if w is None else w) + (0.0 if b is None else b)


def rms_norm(x: Array, shape: Any, w: Array | None = None, eps: float = 1e-6) -> Array:
    over = tuple(range(x.ndim - len(shape), x.ndim))
    y = x / np.sqrt((x * x).mean(over, keepdims=True) + eps)
    return y if w is None else y * w


def group_norm(
    x: Array, groups: int, w: Array | None = None, b: Array | None = None, eps: float = 1e-5
) -> Array:
    parts = x.reshape(x.shape[0], groups, -1)
    y = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + eps)
    return _affine(y.reshape(x.shape), w, b)


def _affine(y: Array, w: Array | None, b: Array | None) -> Array:
    shape = (1, -1) + (1,) * (y.ndim - 2)
    y = y if w is None else y * w.reshape(shape)
    return y if b is None else y + b.reshape(shape)


def batch_norm(
    x: Array,
    mean: Array | None,
    var: Array | None,
    w: Array | None = None,
    b: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    shape = (1, -1) + (1,) * (x.ndim - 2)
    if training or mean is None or var is None:
        over = (0, *range(2, x.ndim))
        mean, var = x.mean(over), x.var(over)
    y = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps)
    return _affine(y, w, b)


def normalize(x: Array, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Array:
    size = (np.abs(x) ** p).sum(dim, keepdims=True) ** (1 / p)
    return x / np.maximum(size, eps)


def cosine_similarity(x: Array, y: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    size = [np.maximum(np.sqrt((a * a).sum(dim)), eps) for a in (x, y)]
    return (x * y).sum(dim) / (size[0] * size[1])


def loss(each: Any) -> Any:
    """Give an elementwise loss the reductions."""

    def reduced(x: Array, y: Array, *, reduction: str = "mean", **options: Any) -> Array:
        values = each(x, y, **options)
        return {"none": lambda v: v, "sum": np.sum, "mean": np.mean}[reduction](values)

    return reduced


def smooth_l1(x: Array, y: Array, beta: float = 1.0) -> Array:
    d = np.abs(x - y)
    return np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta) if beta else d


def huber(x: Array, y: Array, delta: float = 1.0) -> Array:
    d = np.abs(x - y)
    return np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))


def bce(x: Array, y: Array) -> Array:
    return -(y * np.log(x) + (1 - y) * np.log1p(-x))


def bce_logits(x: Array, y: Array, pos_weight: Array | None = None) -> Array:
    p = 1.0 if pos_weight is None else pos_weight
    return -(p * y * special.log_expit(x) + (1 - y) * special.log_expit(-x))


def kl_div(x: Array, y: Array, log_target: bool = False) -> Array:
    return np.exp(y) * (y - x) if log_target else special.xlogy(y, y) - y * x


def nll_loss(
    logp: Array,
    target: Array,
    weight: Array | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Array:
    w = np.ones(logp.shape[1]) if weight is None else weight
    rows = np.moveaxis(logp, 1, -1).reshape(-1, logp.shape[1])
    flat = target.reshape(-1)
    keep = flat != ignore_index
    safe = np.where(keep, flat, 0)
    scale = w[safe] * keep
    each = -rows[np.arange(len(flat)), safe] * scale
    if reduction == "none":
        return each.reshape(target.shape)
    return each.sum() / scale.sum() if reduction == "mean" else each.sum()


def cross_entropy(
    x: Array,
    target: Array,
    weight: Array | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    logp = special.log_softmax(x, axis=1)
    hard = nll_loss(logp, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return hard
    # Smoothing adds the same share of every class's (weighted) loss.
    w = np.ones(x.shape[1]) if weight is None else weight
    keep = target != ignore_index
    soft = -np.moveaxis(logp, 1, -1) @ w * keep
    if reduction == "sum":
        soft = soft.sum()
    elif reduction == "mean":
        soft = soft.sum() / (w[np.where(keep, target, 0)] * keep).sum()
    return (1 - label_smoothing) * hard + label_smoothing / x.shape[1] * soft


def attention(
    q: Array, k: Array, v: Array, mask: Array | None = None, *, is_causal: bool = False
) -> Array:
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if is_causal:
        mask = np.tril(np.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return special.softmax(scores, axis=-1) @ v


def cdist(x: Array, y: Array, p: float = 2.0) -> Array:
    return (np.abs(x[..., :, None, :] - y[..., None, :, :]) ** p).sum(-1) ** (1 / p)


def unfold(x: Array, dimension: int, size: int, step: int) -> Array:
    cut = [slice(None)] * x.ndim
    cut[dimension] = slice(None, None, step)
    return sliding_window_view(x, size, axis=dimension)[tuple(cut)]


def renorm(x: Array, p: float, dim: int, maxnorm: float) -> Array:
    over = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    size = (np.abs(x) ** p).sum(over, keepdims=True) ** (1 / p)
    return np.where(size > maxnorm, x * maxnorm / (size + 1e-7), x)


def slopes(x: Any, dim: Any = None, edge_order: int = 1, spacing: Any = 1) -> Any:
    """Slopes along each dimension, as `numpy.gradient` has them."""
    dims = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    steps = spacing if isinstance(spacing, tuple) else [spacing] * len(dims)
    along = zip(dims, steps, strict=True)
    return tuple(np.gradient(x, h, axis=d, edge_order=edge_order) for d, h in along)
