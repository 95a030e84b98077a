"""ONNX for layers of networks."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytensorlib as pt

from ._graph import Value
from ._layout import between
from ._reductions import reduce
from ._rows import row


def spatial(value: Any, n: int) -> list[Any]:
    """Return a parameter for each of n dimensions."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * n if len(values) == 1 else values


@row("conv1d", "conv2d", "conv3d")
def _conv(
    c: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    return convolution(c, x, weight, bias, stride, padding, dilation, False, 0, groups)


@row("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(
    c: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    return convolution(c, x, weight, bias, stride, padding, dilation, True, output_padding, groups)


@row("convolution", "_convolution")
def convolution(
    c: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, *flags: Any,
) -> Any:  # fmt: skip
    """Write a convolution."""
    n = weight.rank - 2
    single = x.rank == n + 1  # without a batch
    source = c.op("Unsqueeze", x, c.ints([0])) if single else x
    options: dict[str, Any] = {
        "strides": spatial(stride, n), "dilations": spatial(dilation, n), "group": groups,
        "kernel_shape": [weight.known(d + 2) for d in range(n)],
    }  # fmt: skip
    if padding in ("same", ["same"]):
        total = [
            d * (k - 1) for d, k in zip(options["dilations"], options["kernel_shape"], strict=True)
        ]
        options["pads"] = [t // 2 for t in total] + [t - t // 2 for t in total]
    else:
        pads = [0] * n if padding == "valid" else spatial(padding, n)
        options["pads"] = pads * 2
    if transposed:
        options["output_padding"] = spatial(output_padding, n)
    made = c.op("ConvTranspose" if transposed else "Conv", source, weight, bias, **options)
    return c.op("Squeeze", made, c.ints([0])) if single else made


def batched(c: Any, x: Any, n: int) -> tuple[Any, bool]:
    """Return images with a batch, and whether it was added."""
    return (c.op("Unsqueeze", x, c.ints([0])), True) if x.rank == n + 1 else (x, False)


def unbatched(c: Any, made: Any, added: bool) -> Any:
    return c.op("Squeeze", made, c.ints([0])) if added else made


def max_pool(c: Any, x: Any, n: int, args: tuple[Any, ...], indices: bool) -> Any:
    filled: tuple[Any, ...] = (None, None, 0, 1, False)
    kernel, stride, padding, dilation, ceil = (*args, *filled[len(args) :])
    source, added = batched(c, x, n)
    options = {
        "kernel_shape": spatial(kernel, n),
        "strides": spatial(stride if stride not in (None, []) else kernel, n),
        "pads": spatial(padding, n) * 2,
        "dilations": spatial(dilation, n),
        "ceil_mode": int(ceil),
    }
    if not indices:
        return unbatched(c, c.op("MaxPool", source, **options), added)
    values, places = c.op("MaxPool", source, n=2, **options)
    # ONNX counts places over all images and channels, PyTorch in each.
    spots = c.op("Mod", places, c.op("ReduceProd", c.op("Shape", source, start=2), keepdims=0))
    return [unbatched(c, values, added), unbatched(c, spots, added)]


def _pools() -> None:
    from ._rows import ROWS

    for n in (1, 2, 3):

        def plain(c: Any, x: Any, *args: Any, n: int = n) -> Any:
            return max_pool(c, x, n, args, False)

        def both(c: Any, x: Any, *args: Any, n: int = n) -> Any:
            return max_pool(c, x, n, args, True)

        def average(
            c: Any, x: Any, kernel: Any, stride: Any = None, padding: Any = 0, ceil: bool = False,
            include: bool = True, divisor: Any = None, n: int = n,
        ) -> Any:  # fmt: skip
            source, added = batched(c, x, n)
            sizes = spatial(kernel, n)
            made = c.op(
                "AveragePool", source, kernel_shape=sizes,
                strides=spatial(stride if stride not in (None, []) else kernel, n),
                pads=spatial(padding, n) * 2, ceil_mode=int(ceil), count_include_pad=int(include),
            )  # fmt: skip
            if divisor is not None:
                made = c.op("Mul", made, c.constant(math.prod(sizes) / divisor, x.dtype))
            return unbatched(c, made, added)

        def adaptive(c: Any, x: Any, size: Any, n: int = n) -> Any:
            return adaptive_pool(c, x, spatial(size, n), n, "AveragePool", "ReduceMean")

        def adaptive_max(c: Any, x: Any, size: Any, n: int = n) -> Any:
            sizes = spatial(size, n)
            if any(user.users for user in c.at.users if user.args[1:] == (1,)):
                return adaptive_places(c, x, sizes, n)
            return [adaptive_pool(c, x, sizes, n, "MaxPool", "ReduceMax"), None]

        ROWS[f"max_pool{n}d"], ROWS[f"max_pool{n}d_with_indices"] = plain, both
        ROWS[f"avg_pool{n}d"] = average
        ROWS[f"adaptive_avg_pool{n}d"] = ROWS[f"_adaptive_avg_pool{n}d"] = adaptive
        ROWS[f"adaptive_max_pool{n}d"] = adaptive_max


_pools()


def adaptive_pool(c: Any, x: Any, size: list[Any], n: int, pool: str, whole: str) -> Any:
    """Write a pool to a size: by windows that are all alike, or in pieces."""
    dims = list(range(x.rank - n, x.rank))
    size = [x.known(d) if s is None else s for d, s in zip(dims, size, strict=True)]
    if all(s == 1 for s in size):
        return c.op(whole, x, c.ints(dims), keepdims=1)
    have = [x.known(d) for d in dims]
    if any(h is None for h in have):
        raise c.error(c.at, f"the size of its input is open and its result is {size}")
    if all(h % s == 0 for h, s in zip(have, size, strict=True)):
        kernel = [h // s for h, s in zip(have, size, strict=True)]
        source, added = batched(c, x, n)
        return unbatched(c, c.op(pool, source, kernel_shape=kernel, strides=kernel), added)
    made: Any = x
    for d, h, s in zip(dims, have, size, strict=True):
        pieces = []
        for i in range(s):
            low, high = i * h // s, -(-(i + 1) * h // s)
            value = made if isinstance(made, Value) else Value(made, x.dtype, x.shape)
            part = between(c, value, d, low, high)
            pieces.append(c.op(whole, part, c.ints([d]), keepdims=1))
        made = pieces[0] if s == 1 else c.op("Concat", *pieces, axis=d)
    return made


def adaptive_places(c: Any, x: Any, size: list[Any], n: int) -> list[Any]:
    """Write a pool to a size with the places of the largest: each window by itself."""
    have = [x.known(d) for d in range(x.rank - n, x.rank)]
    size = [h if s is None else s for h, s in zip(have, size, strict=True)]
    if None in have or math.prod(size) > 256:
        raise c.error(c.at, "the places of the largest are used, and its windows are many or open")
    lead = c.op("Shape", x, end=x.rank - n)
    flat = c.op("Reshape", x, c.op("Concat", lead, c.ints([-1]), axis=0))
    places = pt.arange(math.prod(have)).view(have)
    found = []
    for at in itertools.product(*(range(s) for s in size)):
        window = tuple(
            slice(i * h // s, -(-(i + 1) * h // s)) for i, h, s in zip(at, have, size, strict=True)
        )
        inside = c.constant(places[window].reshape(-1).tolist())
        values = c.op("Gather", flat, inside, axis=-1)
        largest = c.op("ArgMax", values, axis=-1, keepdims=1)
        found.append(c.op("Gather", inside, largest, axis=0))
    spots = c.op("Concat", *found, axis=-1)
    shape = c.op("Concat", lead, c.ints(size), axis=0)
    made = c.op("GatherElements", flat, spots, axis=-1)
    return [c.op("Reshape", made, shape), c.op("Reshape", spots, shape)]


@row("batch_norm")
def _batch_norm(
    c: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float,
    eps: float, cudnn: bool = False,
) -> Any:  # fmt: skip
    if mean is None:
        return batch_statistics(c, x, weight, bias, eps)[0]
    if training:
        raise c.error(c.at, "it takes statistics of its batch; call eval() on the module first")
    n = mean.known(0)
    weight = c.constant([1.0] * n, x.dtype) if weight is None else weight
    bias = c.constant([0.0] * n, x.dtype) if bias is None else bias
    return c.op("BatchNormalization", x, weight, bias, mean, var, epsilon=float(eps))


def batch_statistics(c: Any, x: Any, weight: Any, bias: Any, eps: float) -> list[Any]:
    """Normalize channels by their own mean and variance; return these, too."""
    dims = c.ints([d for d in range(x.rank) if d != 1])
    mean = c.op("ReduceMean", x, dims, keepdims=1)
    away = c.op("Sub", x, mean)
    made, scale = _scaled(c, x, away, dims, eps)
    made = affine(c, made, x, weight, bias)
    return [made, c.op("Squeeze", mean, dims), c.op("Squeeze", scale, dims)]


def _scaled(c: Any, x: Any, away: Any, dims: Any, eps: float) -> tuple[Any, Any]:
    """Return what is left of a mean over its deviation, and one over that."""
    spread = c.op("ReduceMean", c.op("Mul", away, away), dims, keepdims=1)
    scale = c.op("Reciprocal", c.op("Sqrt", c.op("Add", spread, c.constant(float(eps), x.dtype))))
    return c.op("Mul", away, scale), scale


@row("native_batch_norm")
def _native_batch_norm(
    c: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> Any:
    if mean is None:
        return batch_statistics(c, x, w, b, eps)
    made = _batch_norm(c, x, w, b, mean, var, training, momentum, eps)
    empty = c.constant([], x.dtype)
    return [made, empty, empty]


@row("_native_batch_norm_legit_no_training")
def _legit(c: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, momentum: float, eps: float) -> Any:
    made = _batch_norm(c, x, w, b, mean, var, False, momentum, eps)
    return [made, made, made]


def affine(c: Any, made: Any, x: Any, weight: Any, bias: Any) -> Any:
    """Scale and move channels."""
    shape = c.ints([-1, *[1] * (x.rank - 2)])
    if weight is not None:
        made = c.op("Mul", made, c.op("Reshape", weight, shape))
    return made if bias is None else c.op("Add", made, c.op("Reshape", bias, shape))


@row("instance_norm")
def _instance_norm(
    c: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, use_input: bool, momentum: float,
    eps: float, cudnn: bool = False,
) -> Any:  # fmt: skip
    if not use_input:
        return _batch_norm(c, x, weight, bias, mean, var, False, momentum, eps)
    n = x.known(1)
    weight = c.constant([1.0] * n, x.dtype) if weight is None else weight
    bias = c.constant([0.0] * n, x.dtype) if bias is None else bias
    return c.op("InstanceNormalization", x, weight, bias, epsilon=float(eps))


@row("group_norm")
def _group_norm(
    c: Any, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn: bool = True,
) -> Any:  # fmt: skip
    rows = c.op("Reshape", x, c.ints([0, groups, -1]))
    ones, zeros = c.constant([1.0] * groups, x.dtype), c.constant([0.0] * groups, x.dtype)
    made = c.op("InstanceNormalization", rows, ones, zeros, epsilon=float(eps))
    return affine(c, c.op("Reshape", made, c.op("Shape", x)), x, weight, bias)


@row("native_group_norm")
def _native_group_norm(
    c: Any, x: Any, w: Any, b: Any, n: Any, ch: Any, hxw: Any, groups: int, eps: float
) -> Any:
    made = _group_norm(c, x, groups, w, b, eps)
    rows, last = c.op("Reshape", x, c.ints([0, groups, -1])), c.ints([2])
    mean = c.op("ReduceMean", rows, last, keepdims=1)
    _, scale = _scaled(c, x, c.op("Sub", rows, mean), last, eps)
    return [made, c.op("Squeeze", mean, last), c.op("Squeeze", scale, last)]


@row("layer_norm")
def _layer_norm(
    c: Any, x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn: bool = True,
) -> Any:  # fmt: skip
    if weight is None:
        weight = c.op("Expand", c.constant(1.0, x.dtype), c.ints(shape))
    return c.op("LayerNormalization", x, weight, bias, axis=-len(shape), epsilon=float(eps))


@row("native_layer_norm")
def _native_layer_norm(c: Any, x: Any, shape: Any, w: Any, b: Any, eps: float) -> Any:
    made = _layer_norm(c, x, shape, w, b, eps)
    dims = c.ints(list(range(-len(shape), 0)))
    mean = c.op("ReduceMean", x, dims, keepdims=1)
    return [made, mean, _scaled(c, x, c.op("Sub", x, mean), dims, eps)[1]]


@row("rms_norm", "_fused_rms_norm")
def _rms_norm(c: Any, x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    eps = pt.finfo(x.dtype).eps if eps is None else eps
    dims = list(range(-len(shape), 0))
    square = reduce(c, "ReduceMean", c.op("Mul", x, x), dims, True, x.rank)
    scale = c.op("Sqrt", c.op("Add", square, c.constant(float(eps), x.dtype)))
    made = c.op("Div", x, scale)
    made = made if weight is None else c.op("Mul", made, weight)
    return [made, scale] if "_fused" in str(c.at.target) else made


@row("embedding")
def _embedding(
    c: Any, weight: Any, indices: Any, padding_idx: int = -1, scale: bool = False,
    sparse: bool = False,
) -> Any:  # fmt: skip
    return c.op("Gather", weight, indices, axis=0)


@row("scaled_dot_product_attention")
def _attention(
    c: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    width = q.known(-1)
    scale = 1 / math.sqrt(width) if scale is None else scale
    if enable_gqa and k.known(-3) != q.known(-3):
        times = q.known(-3) // k.known(-3)
        k, v = (_repeated(c, t, times) for t in (k, v))
    order = list(range(q.rank))
    order[-1], order[-2] = order[-2], order[-1]
    factor = c.constant(math.sqrt(scale), q.dtype)
    keys = c.op("Mul", c.op("Transpose", k, perm=order), factor)
    scores = c.op("MatMul", c.op("Mul", q, factor), keys)
    if is_causal:
        n, m = (c.op("Shape", t, start=t.rank - 2, end=t.rank - 1) for t in (q, k))
        seen = c.op("Expand", c.constant(1.0, q.dtype), c.op("Concat", n, m, axis=0))
        seen = c.op("Greater", c.op("Trilu", seen, upper=0), c.constant(0.5, q.dtype))
        scores = c.op("Where", seen, scores, c.constant(float("-inf"), q.dtype))
    if attn_mask is not None and attn_mask.dtype is pt.bool:
        hidden = c.constant(float("-inf"), q.dtype)
        scores = c.op("Where", attn_mask, scores, hidden)
        weights = c.op("Softmax", scores, axis=-1)
        # A row that sees nothing gives zeros, not NaN.
        weights = c.op("Where", c.op("IsNaN", weights), c.constant(0.0, q.dtype), weights)
    else:
        if attn_mask is not None:
            scores = c.op("Add", scores, attn_mask)
        weights = c.op("Softmax", scores, axis=-1)
    return c.op("MatMul", weights, v)


def _repeated(c: Any, t: Any, times: int) -> Any:
    """Repeat heads of keys and values for grouped queries."""
    dim = t.rank - 3
    wide = c.op("Unsqueeze", t, c.ints([dim + 1]))
    tiled = c.op("Tile", wide, c.ints([times if d == dim + 1 else 1 for d in range(t.rank + 1)]))
    sizes = [-1 if d == dim else c.size(t, d) for d in range(t.rank)]
    shape = [s * times if type(s) is int and d == dim else s for d, s in enumerate(t.shape)]
    return Value(c.op("Reshape", tiled, c.ints(sizes)), t.dtype, shape)


_GATES = {
    "lstm": (4, [0, 3, 1, 2]),
    "gru": (3, [1, 0, 2]),
    "rnn_tanh": (1, [0]),
    "rnn_relu": (1, [0]),
}


@row("lstm", "gru", "rnn_tanh", "rnn_relu")
def _recurrent(
    c: Any, x: Any, hx: Any, weights: Any, biases: bool, layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    kind = str(c.at.target).split(".")[1]
    if isinstance(weights, bool):
        raise c.error(c.at, "its input is a packed sequence")
    if train and dropout and layers > 1:
        raise c.error(c.at, "it has dropout; call eval() on the module first")
    gates, order = _GATES[kind]
    directions = 2 if bidirectional else 1
    states = list(hx) if kind == "lstm" else [hx]
    unbatched_ = x.rank == 2
    at: Any = x
    if unbatched_:
        at = c.op("Unsqueeze", at, c.ints([1]))
        states = [c.op("Unsqueeze", s, c.ints([1])) for s in states]
    elif batch_first:
        at = c.op("Transpose", at, perm=[1, 0, 2])
    hidden = hx[0].known(-1) if kind == "lstm" else hx.known(-1)
    per = 4 if biases else 2
    if len(weights) != layers * directions * per:
        raise c.error(c.at, "its states are projected")
    finals: list[list[Any]] = [[] for _ in states]
    for layer in range(layers):
        packs: list[list[Any]] = [[], [], []]
        for d in range(directions):
            group = weights[(layer * directions + d) * per :][:per]
            packs[0].append(_ordered(c, group[0], gates, order, hidden))
            packs[1].append(_ordered(c, group[1], gates, order, hidden))
            if biases:
                both = [_ordered(c, b, gates, order, hidden) for b in group[2:]]
                packs[2].append(c.op("Concat", *both, axis=0))
        w, r, b = (_together(c, p) for p in packs)
        first = [between_rows(c, s, layer * directions, directions) for s in states]
        options: dict[str, Any] = {"hidden_size": hidden}
        if bidirectional:
            options["direction"] = "bidirectional"
        if kind == "gru":
            options["linear_before_reset"] = 1
        if kind == "rnn_relu":
            options["activations"] = ["Relu"] * directions
        name = {"lstm": "LSTM", "gru": "GRU"}.get(kind, "RNN")
        made = c.op(name, at, w, r, b, None, *first, n=1 + len(states), **options)
        for i, state in enumerate(made[1:]):
            finals[i].append(state)
        at = made[0]
        if directions == 1:
            at = c.op("Squeeze", at, c.ints([1]))
        else:
            at = c.op("Reshape", c.op("Transpose", at, perm=[0, 2, 1, 3]), c.ints([0, 0, -1]))
    ends = [f[0] if len(f) == 1 else c.op("Concat", *f, axis=0) for f in finals]
    if unbatched_:
        at = c.op("Squeeze", at, c.ints([1]))
        ends = [c.op("Squeeze", e, c.ints([1])) for e in ends]
    elif batch_first:
        at = c.op("Transpose", at, perm=[1, 0, 2])
    return [at, *ends]


def _ordered(c: Any, w: Any, gates: int, order: list[int], hidden: int) -> Any:
    """Return weights with their gates in ONNX's order."""
    if gates == 1:
        return w
    rows = c.op("Split", w, n=gates, axis=0, num_outputs=gates)
    return c.op("Concat", *(rows[i] for i in order), axis=0)


def _together(c: Any, packs: list[Any]) -> Any:
    if not packs:
        return None
    rows = [c.op("Unsqueeze", p, c.ints([0])) for p in packs]
    return rows[0] if len(rows) == 1 else c.op("Concat", *rows, axis=0)


def between_rows(c: Any, state: Any, start: int, n: int) -> Any:
    return c.op("Slice", state, c.ints([start]), c.ints([start + n]), c.ints([0]))


@row("pad", "constant_pad_nd")
def _pad(c: Any, x: Any, pad: Any, mode: Any = "constant", value: Any = None) -> Any:
    if not isinstance(mode, str):
        mode, value = "constant", mode
    n = len(pad) // 2
    before, after = [0] * (x.rank - n), [0] * (x.rank - n)
    before += list(pad[0::2])[::-1]
    after += list(pad[1::2])[::-1]
    kind = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[
        mode
    ]
    fill = c.operand(0 if value is None else value, x.dtype) if kind == "constant" else None
    return c.op("Pad", x, c.ints([*before, *after]), fill, mode=kind)


@row("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def _reflect(c: Any, x: Any, pad: Any) -> Any:
    return _pad(c, x, pad, "reflect")


@row("replication_pad1d", "replication_pad2d", "replication_pad3d")
def _replicate(c: Any, x: Any, pad: Any) -> Any:
    return _pad(c, x, pad, "replicate")


def _places_of(mode: str, corners: Any) -> str:
    if mode == "nearest":
        return "asymmetric"
    # Not "pytorch_half_pixel", which takes the first element where there is one result.
    return "align_corners" if corners else "half_pixel"


def _factors(scales: tuple[Any, ...]) -> Any:
    """Return the factors of a form that takes a list or one for each dimension."""
    if len(scales) == 1 and isinstance(scales[0], list):
        return scales[0]
    return list(scales) if scales and all(isinstance(s, float) for s in scales) else None


def resized(c: Any, x: Any, size: Any, scales: Any, mode: str, corners: Any) -> Any:
    rounding = {"nearest_mode": "floor"} if mode == "nearest" else {}
    if mode == "nearest-exact":  # the element whose middle is nearest, the later of two
        mode, how = "nearest", "half_pixel"
        rounding = {"nearest_mode": "round_prefer_ceil"}
    else:
        how = _places_of(mode, corners)
    options = {"mode": mode, "coordinate_transformation_mode": how, **rounding}
    if mode == "cubic":
        options["cubic_coeff_a"] = -0.75  # type: ignore[assignment]
    if scales is not None:
        factors = c.constant([1.0, 1.0, *(float(s) for s in scales)], pt.float32)
        return c.op("Resize", x, None, factors, None, **options)
    sizes = c.ints([c.size(x, 0), c.size(x, 1), *size])
    return c.op("Resize", x, None, None, sizes, **options)


@row("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
def _nearest(c: Any, x: Any, size: Any, *scales: Any) -> Any:
    factors = _factors(scales)
    return resized(c, x, size, factors, "nearest", None)


@row(*(f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)))
def _nearest_exact(c: Any, x: Any, size: Any, *scales: Any) -> Any:
    factors = _factors(scales)
    return resized(c, x, size, factors, "nearest-exact", None)


@row("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
def _linear(c: Any, x: Any, size: Any, corners: bool = False, *scales: Any) -> Any:
    factors = _factors(scales)
    return resized(c, x, size, factors, "linear", corners)


@row("upsample_bicubic2d")
def _cubic(c: Any, x: Any, size: Any, corners: bool = False, *scales: Any) -> Any:
    factors = _factors(scales)
    return resized(c, x, size, factors, "cubic", corners)


@row("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def _grid_sampler(c: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
    names = ("linear", "nearest", "cubic") if c.opset >= 20 else ("bilinear", "nearest", "bicubic")
    if x.rank == 5 and c.opset < 20:
        raise c.error(c.at, "volumes need version 20")
    return c.op(
        "GridSample", x, grid, mode=names[mode], align_corners=int(corners),
        padding_mode=("zeros", "border", "reflection")[padding],
    )  # fmt: skip


@row("pixel_shuffle")
def _pixel_shuffle(c: Any, x: Any, factor: int) -> Any:
    return c.op("DepthToSpace", x, blocksize=factor, mode="CRD")


@row("pixel_unshuffle")
def _pixel_unshuffle(c: Any, x: Any, factor: int) -> Any:
    n, ch, h, w = c.sizes(x)
    if not all(type(s) is int for s in (ch, h, w)):
        raise c.error(c.at, "the sizes of its input are open")
    wide = c.op("Reshape", x, c.ints([n, ch, h // factor, factor, w // factor, factor]))
    moved = c.op("Transpose", wide, perm=[0, 1, 3, 5, 2, 4])
    return c.op("Reshape", moved, c.ints([n, ch * factor * factor, h // factor, w // factor]))


@row("channel_shuffle")
def _channel_shuffle(c: Any, x: Any, groups: int) -> Any:
    sizes = c.sizes(x)
    wide = c.op("Reshape", x, c.ints([sizes[0], groups, sizes[1] // groups, *sizes[2:]]))
    order = [0, 2, 1, *range(3, x.rank + 1)]
    return c.op("Reshape", c.op("Transpose", wide, perm=order), c.op("Shape", x))


@row("im2col")
def _im2col(c: Any, x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    ch = x.known(1)
    kh, kw = spatial(kernel, 2)
    # A convolution with one weight of one for each place of a window.
    eye = pt.eye(kh * kw, dtype=x.dtype).reshape(kh * kw, 1, kh, kw).repeat(ch, 1, 1, 1)
    made = c.op(
        "Conv", x, c.constant(eye.tolist(), x.dtype), group=ch, strides=spatial(stride, 2),
        pads=spatial(padding, 2) * 2, dilations=spatial(dilation, 2),
    )  # fmt: skip
    return c.op("Reshape", made, c.ints([0, ch * kh * kw, -1]))


@row("affine_grid_generator")
def _affine_grid(c: Any, theta: Any, size: Any, corners: bool) -> Any:
    if c.opset < 20:
        raise c.error(c.at, "it needs version 20")
    return c.op("AffineGrid", theta, c.ints(size), align_corners=int(corners))


def _cell(c: Any, x: Any, state: Any, weights: Any) -> tuple[Any, Any]:
    """Return what a cell computes of its input and of its state."""
    w, r, bw, br = (*weights, None, None)[:4]
    sides = []
    for value, weight, bias in ((x, w, bw), (state, r, br)):
        made = c.op("MatMul", value, c.op("Transpose", weight, perm=[1, 0]))
        sides.append(made if bias is None else c.op("Add", made, bias))
    return sides[0], sides[1]


@row("lstm_cell")
def _lstm_cell(c: Any, x: Any, hx: Any, *weights: Any) -> Any:
    a, b = _cell(c, x, hx[0], weights)
    i, f, g, o = c.op("Split", c.op("Add", a, b), n=4, axis=-1, num_outputs=4)
    kept = c.op("Mul", c.op("Sigmoid", f), hx[1])
    cell = c.op("Add", kept, c.op("Mul", c.op("Sigmoid", i), c.op("Tanh", g)))
    return [c.op("Mul", c.op("Sigmoid", o), c.op("Tanh", cell)), cell]


@row("gru_cell")
def _gru_cell(c: Any, x: Any, hx: Any, *weights: Any) -> Any:
    a, b = (c.op("Split", v, n=3, axis=-1, num_outputs=3) for v in _cell(c, x, hx, weights))
    reset, update = (c.op("Sigmoid", c.op("Add", a[i], b[i])) for i in (0, 1))
    new = c.op("Tanh", c.op("Add", a[2], c.op("Mul", reset, b[2])))
    return c.op("Add", new, c.op("Mul", update, c.op("Sub", hx, new)))


@row("rnn_tanh_cell", "rnn_relu_cell")
def _rnn_cell(c: Any, x: Any, hx: Any, *weights: Any) -> Any:
    a, b = _cell(c, x, hx, weights)
    return c.op("Relu" if "relu" in str(c.at.target) else "Tanh", c.op("Add", a, b))
