"""Kernels that work in blocks: sizes around the blocks, strides and types, against formulas."""

import itertools
from typing import Any

import numpy as np
import pytest

import pytensorlib as pt
import pytensorlib.nn.functional as F

Array = np.ndarray[Any, Any]
TOLERANCE = {"float32": 2e-5, "float64": 1e-11, "bfloat16": 3e-2, "float16": 4e-3}


def random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def strided(x: Array, dtype: str, transposed: bool) -> Any:
    t = pt.tensor(x).to(getattr(pt, dtype))
    t = t.transpose(-1, -2).contiguous().transpose(-1, -2) if transposed else t
    return t.detach().requires_grad_()


def close(got: Any, want: Array, dtype: str, times: float = 1) -> None:
    bound = TOLERANCE[dtype] * times
    got = got.detach().to(pt.float64).numpy()
    np.testing.assert_allclose(got, want, rtol=bound, atol=bound * max(1, np.abs(want).max()))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("rows", "keys", "width", "causal", "group", "mask"),
    [
        (1, 1, 1, False, 1, None),
        (5, 3, 8, True, 1, None),
        (64, 64, 64, True, 1, None),
        (65, 63, 17, False, 2, None),
        (63, 129, 16, False, 1, "bool"),
        (130, 65, 33, True, 2, None),
        (300, 70, 32, False, 1, "float"),
    ],
)
def test_attention_in_tiles_matches_formula(
    rows: int, keys: int, width: int, causal: bool, group: int, mask: str | None, dtype: str
) -> None:
    heads = 2 * group
    arrays = [
        random(2, heads, rows, width),
        random(2, 2, keys, width + 0),
        random(2, 2, keys, width) + 1,
        random(2, heads, rows, width) - 1,
    ]
    tensors = [strided(x, dtype, i % 2 == 0) for i, x in enumerate(arrays)]
    q, k, v, g = (t.detach().to(pt.float64).numpy() for t in tensors)
    extra: Any = np.zeros((rows, keys))
    given = None
    if mask == "bool":
        keep = random(rows, keys) > -0.5
        keep[0] = False
        extra, given = np.where(keep, 0.0, -np.inf), pt.tensor(keep)
    elif mask == "float":
        given = pt.tensor(random(heads, 1, keys)).to(tensors[0].dtype)
        extra = given.to(pt.float64).numpy()
    if causal:
        extra = np.where(np.arange(keys) <= np.arange(rows)[:, None], 0.0, -np.inf)
    y = F.scaled_dot_product_attention(
        *tensors[:3], attn_mask=given, is_causal=causal, scale=0.3, enable_gqa=group > 1
    )
    wide_k, wide_v = k.repeat(group, 1), v.repeat(group, 1)
    s = 0.3 * q @ wide_k.swapaxes(-1, -2) + extra
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(top), top, 0.0))
    p = e / np.maximum(e.sum(-1, keepdims=True), 1e-300)
    close(y, p @ wide_v, dtype)
    d = g @ wide_v.swapaxes(-1, -2)
    d = p * (d - (d * p).sum(-1, keepdims=True)) * 0.3

    def joined(x: Array) -> Array:
        return x.reshape(2, 2, group, keys, width).sum(2)

    wanted = (d @ wide_k, joined(d.swapaxes(-1, -2) @ q), joined(p.swapaxes(-1, -2) @ g))
    for got, want in zip(pt.autograd.grad(y, tensors[:3], tensors[3].detach()), wanted):
        close(got, want, dtype, 8)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("rows", "keys"),
    [(1, 1), (16, 16), (17, 15), (64, 10), (10, 64), (63, 80), (100, 100), (200, 129), (129, 300)],
)
def test_causal_attention_is_that_of_its_mask_bit_for_bit(rows: int, keys: int, dtype: str) -> None:
    # The mask computes all of the tiles that the diagonal crosses; what is hidden adds zeros.
    arrays = [random(2, 3, n, 24) for n in (rows, keys, keys, rows)]
    q, k, v, g = (strided(x, dtype, False) for x in arrays)
    mask = pt.ones(rows, keys, dtype=pt.bool).tril()
    found = []
    for how in ({"is_causal": True}, {"attn_mask": mask}):
        y = F.scaled_dot_product_attention(q, k, v, **how)
        found.append([y.detach(), *pt.autograd.grad(y, (q, k, v), g.detach())])
    for causal, masked in zip(*found):
        assert pt.equal(causal, masked)


def test_attention_without_keys_or_with_nan_is_zero_or_nan() -> None:
    q = pt.randn(1, 2, 5, 8)
    assert (F.scaled_dot_product_attention(q, q[:, :, :0], q[:, :, :0]) == 0).all()
    k = q.clone()
    k[0, 0, 3, 0] = float("nan")
    y = F.scaled_dot_product_attention(q, k, q, is_causal=True)
    assert y[0, 0, 3:].isnan().all() and not y[0, 0, :3].isnan().any()
    assert not y[0, 1].isnan().any()


def test_attention_gradient_has_a_gradient() -> None:
    q, k, v = (pt.randn(1, 2, 3, 4, dtype=pt.float64, requires_grad=True) for _ in range(3))
    attend = F.scaled_dot_product_attention
    assert pt.autograd.gradcheck(lambda *x: attend(*x, is_causal=True), (q, k, v))
    assert pt.autograd.gradgradcheck(lambda *x: attend(*x, is_causal=True), (q, k, v))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation"),
    [
        ((8, 8), (2, 2), (2, 2), (0, 0), (1, 1)),
        ((5, 25), (2, 2), (2, 2), (0, 0), (1, 1)),
        ((4, 41), (2, 2), (2, 2), (0, 0), (1, 1)),
        ((7, 33), (3, 3), (2, 2), (1, 1), (1, 1)),
        ((9, 70), (2, 4), (3, 1), (1, 2), (2, 3)),
        ((17, 16), (3, 2), (1, 5), (0, 0), (1, 2)),
        # Steps of one to three without padding along the width, dilation, large windows.
        ((6, 30), (3, 3), (1, 1), (0, 0), (1, 1)),
        ((7, 40), (3, 3), (2, 2), (1, 0), (1, 1)),
        ((5, 60), (2, 4), (1, 3), (0, 0), (1, 1)),
        ((6, 44), (2, 3), (2, 2), (0, 0), (2, 2)),
        ((9, 62), (2, 5), (2, 3), (1, 0), (1, 2)),
        ((20, 45), (17, 16), (1, 2), (0, 0), (1, 1)),
    ],
)
def test_max_pool_matches_windows(
    size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, dtype: str
) -> None:
    x = np.round(random(2, 3, *size) * 2)
    if dtype != "int64":
        x[0, 0, 2, 3] = np.nan
        x[1, 2, :3] = -np.inf
    t = pt.tensor(x).to(getattr(pt, dtype))
    if dtype != "int64":
        t.requires_grad_()
    args = (kernel, stride, padding, dilation)
    y, at = F.max_pool2d(t, *args, return_indices=True)
    plain = F.max_pool2d(t, *args)
    assert pt.equal(y.nan_to_num(9), plain.nan_to_num(9))
    dx = np.zeros_like(x)
    for n, c, i, j in itertools.product(*map(range, y.shape)):
        best, place = -np.inf, None
        for a, b in itertools.product(range(kernel[0]), range(kernel[1])):
            r = i * stride[0] - padding[0] + a * dilation[0]
            s = j * stride[1] - padding[1] + b * dilation[1]
            if 0 <= r < size[0] and 0 <= s < size[1]:
                now = x[n, c, r, s]
                if place is None or now > best or np.isnan(now):
                    best, place = now, (r, s)
        assert place is not None
        assert at[n, c, i, j].item() == place[0] * size[1] + place[1]
        np.testing.assert_equal(float(y[n, c, i, j].item()) + 0.0, float(best) + 0.0)
        dx[n, c, place[0], place[1]] += 1
    if dtype != "int64":
        got = pt.autograd.grad(plain.sum(), t)[0]
        np.testing.assert_array_equal(got.to(pt.float32).numpy(), dx)


@pytest.mark.parametrize("grad", [False, True])
def test_max_pool_whose_windows_step_over_the_input_stays_inside(grad: bool) -> None:
    x = pt.randn(1, 2, 1, 7, requires_grad=grad)
    y, at = F.max_pool2d(x, (3, 2), (4, 3), (1, 0), (2, 2), True, return_indices=True)
    # Every window lies in the padding: the least value, from nowhere.
    assert (at == -1).all()
    assert (y == -float("inf")).all()
    plain = F.max_pool2d(x, (3, 2), (4, 3), (1, 0), (2, 2), True)
    assert pt.equal(plain, y)
    if grad:
        assert pt.equal(pt.autograd.grad(plain.sum(), x)[0], pt.zeros_like(x))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(5, 70), (4, 3, 15), (3, 2, 16), (6, 9, 4, 5), (40, 8, 33)])
def test_batch_norm_matches_formula(shape: Any, dtype: str) -> None:
    x, g = strided(random(*shape) + 3, dtype, True), strided(random(*shape) - 1, dtype, False)
    w = pt.tensor(random(shape[1])).to(x.dtype).requires_grad_()
    y = F.batch_norm(x, None, None, w, None, True)
    a, b, k = (t.detach().to(pt.float64).numpy() for t in (x, g, w))
    over = (0, *range(2, len(shape)))
    k = k.reshape(1, -1, *[1] * (len(shape) - 2))
    rstd = 1 / np.sqrt(a.var(over, keepdims=True) + 1e-5)
    n = (a - a.mean(over, keepdims=True)) * rstd
    close(y, n * k, dtype, 4)
    mean = b.mean(over, keepdims=True), (b * n).mean(over, keepdims=True)
    dx, dw = pt.autograd.grad(y, (x, w), g.detach())
    close(dx, k * rstd * (b - mean[0] - n * mean[1]), dtype, 8)
    close(dw, (b * n).sum(over), dtype, 8)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_embedding_gradient_adds_rows(dtype: str) -> None:
    table = pt.zeros(50, 33, dtype=getattr(pt, dtype), requires_grad=True)
    at = np.random.default_rng(3).integers(0, 50, 200)
    g = pt.tensor(random(200, 33)).to(table.dtype)
    got = pt.autograd.grad(F.embedding(pt.tensor(at), table, padding_idx=4), table, g)[0]
    want = np.zeros((50, 33))
    np.add.at(want, at, g.to(pt.float64).numpy())
    want[4] = 0
    close(got, want, dtype, 2)


@pytest.mark.parametrize("shape", [(64, 10), (3, 1), (17, 32), (5, 33), (1, 7)])
@pytest.mark.parametrize("log", [False, True])
def test_softmax_of_short_rows_matches_formula(shape: Any, log: bool) -> None:
    x = random(*shape) * 9
    x[0, 0] = -np.inf
    y = (F.log_softmax if log else F.softmax)(pt.tensor(x), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        wide = x.astype(np.float64)
        e = np.exp(wide - wide.max(1, keepdims=True))
        want = e / e.sum(1, keepdims=True)
        want = np.log(want) if log else want
    np.testing.assert_allclose(y.numpy(), want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    ("size", "out"), [((5, 16), (9, 40)), ((20, 33), (40, 66)), ((9, 50), (4, 20))]
)
def test_bilinear_matches_formula(size: Any, out: Any) -> None:
    x = random(2, 3, *size)

    def matrix(n: int, m: int) -> Array:
        at = np.maximum((np.arange(m) + 0.5) * n / m - 0.5, 0)
        low = np.floor(at).astype(int)
        w = np.zeros((m, n))
        np.add.at(w, (np.arange(m), low), 1 - (at - low))
        np.add.at(w, (np.arange(m), np.minimum(low + 1, n - 1)), at - low)
        return w

    want = matrix(size[0], out[0]) @ x @ matrix(size[1], out[1]).T
    got = F.interpolate(pt.tensor(x), size=out, mode="bilinear", align_corners=False)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("width", [1, 31, 32, 33, 70])
def test_embedding_bag_matches_formula(width: int, dtype: str) -> None:
    table = pt.tensor(random(40, width)).to(getattr(pt, dtype)).requires_grad_()
    at = np.random.default_rng(1).integers(0, 40, 300)
    starts = np.array([0, 5, 5, 90, 299, 300])
    bags = list(itertools.pairwise([*starts, 300]))
    wide = table.detach().to(pt.float64).numpy()
    g = pt.tensor(random(len(starts), width)).to(table.dtype)
    each = g.to(pt.float64).numpy()
    k = pt.tensor(random(300)).to(table.dtype)
    for mode, weights in (("sum", None), ("mean", None), ("max", None), ("sum", k)):
        y = F.embedding_bag(
            pt.tensor(at), table, pt.tensor(starts), mode=mode, per_sample_weights=weights
        )
        want, grad = np.zeros((len(starts), width)), np.zeros_like(wide)
        for b, (low, high) in enumerate(bags):
            if low == high:
                continue
            rows = wide[at[low:high]]
            if mode == "max":
                first = rows.argmax(0)
                want[b] = rows.max(0)
                np.add.at(grad, (at[low:high][first], np.arange(width)), each[b])
                continue
            by = (
                np.ones(high - low) if weights is None else weights.to(pt.float64).numpy()[low:high]
            )
            by = by / (high - low if mode == "mean" else 1)
            want[b] = by @ rows
            np.add.at(grad, at[low:high], np.outer(by, each[b]))
        close(y, want, dtype, 4)
        close(pt.autograd.grad(y, table, g)[0], grad, dtype, 4)


def test_embedding_bag_takes_the_last_nan_for_the_largest() -> None:
    table = pt.tensor([[1.0, np.nan], [np.nan, 2.0], [3.0, np.nan]])
    y, _, _, at = pt.embedding_bag(table, pt.tensor([0, 1, 2]), pt.tensor([0]), mode=2)
    assert y.isnan().tolist() == [[True, True]]
    assert at.tolist() == [[1, 2]]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_nearest_grid_sample_matches_formula(corners: bool, padding: str, dtype: str) -> None:
    x = pt.tensor(random(2, 3, 9, 11)).to(getattr(pt, dtype))
    grid = pt.tensor(random(2, 30, 20, 2) * 1.2).to(x.dtype)
    grid[0, 0, 0] = np.nan
    grid[1, 2, 3, 0] = np.inf
    y = F.grid_sample(x, grid, "nearest", padding, align_corners=corners).to(pt.float64).numpy()
    a, b = (t.to(pt.float64).numpy() for t in (x, grid))
    step = (
        (lambda v: pt.tensor(v).to(x.dtype).to(pt.float64).numpy())
        if dtype != "float64"
        else np.asarray
    )
    places = []
    for d, n in enumerate((11, 9)):
        scale, shift = ((n - 1) / 2, 0.0) if corners else (n / 2, 0.5)
        v = b[..., d]
        if "float16" in dtype:
            v = step(step(step(v + 1) * scale) - shift)
        else:
            v = (v + 1) * scale - shift
        if padding == "reflection":
            low, span = (0.0, n - 1.0) if corners else (-0.5, float(n))
            with np.errstate(invalid="ignore"):
                far = np.abs(v - low)
                odd = np.floor(far / span) % 2 != 0
                v = np.where(odd, span - far % span, far % span) + low
        if padding != "zeros":
            v = np.where(v > 0, np.minimum(v, n - 1), 0)
        places.append(np.round(v))
    (u, v), want = places, np.zeros((2, 3, 30, 20))
    for n, i, j in itertools.product(range(2), range(30), range(20)):
        if 0 <= u[n, i, j] < 11 and 0 <= v[n, i, j] < 9:
            want[n, :, i, j] = a[n, :, int(v[n, i, j]), int(u[n, i, j])]
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8", "bool"])
def test_runs_of_equal_elements_are_those_of_their_neighbours(dtype: str) -> None:
    x = np.random.default_rng(2).integers(0, 2, (3, 67)).astype(np.float32)
    if dtype in ("float32", "bfloat16"):
        x[1, 5:8] = np.nan
        x[2, :4] = [0.0, -0.0, 0.0, -0.0]
    t = pt.tensor(x).to(getattr(pt, dtype))
    y, run, length = pt.unique_consecutive(t, return_inverse=True, return_counts=True)
    flat = t.to(pt.float64).numpy().reshape(-1)
    first = np.concatenate([[True], ~(flat[1:] == flat[:-1])])
    assert y.dtype == t.dtype
    np.testing.assert_array_equal(y.to(pt.float64).numpy(), flat[first])
    np.testing.assert_array_equal(run.numpy(), np.cumsum(first).reshape(x.shape) - 1)
    np.testing.assert_array_equal(length.numpy(), np.diff([*np.flatnonzero(first), flat.size]))
    empty = pt.unique_consecutive(t[:0], return_inverse=True, return_counts=True)
    assert [e.shape for e in empty] == [(0,), (0, 67), (0,)]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 3, 4, 7, 100])
def test_products_of_complex_numbers_match_formula(n: int, dtype: str) -> None:
    x, y = (random(n, k).astype(np.float64) @ [1, 1j, 2, -1j] for k in (4, 4))
    y = y[::-1] * 1j
    a, b = (pt.tensor(v.copy()).to(getattr(pt, dtype)) for v in (x, y))
    want = a.to(pt.complex128).numpy() * b.to(pt.complex128).numpy()
    bound = 1e-6 if dtype == "complex64" else 1e-14
    np.testing.assert_allclose((a * b).to(pt.complex128).numpy(), want, rtol=bound, atol=bound)
    a.mul_(b)
    np.testing.assert_allclose(a.to(pt.complex128).numpy(), want, rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nll_loss_of_images_matches_formula(reduction: str, dtype: str) -> None:
    x = strided(random(3, 5, 7, 6), dtype, True)
    at = np.random.default_rng(4).integers(0, 5, (3, 7, 6))
    at[1, 2:5] = -100
    k = pt.tensor(np.abs(random(5))).to(x.dtype)
    y = F.nll_loss(x, pt.tensor(at), k, reduction=reduction)
    a, w = x.detach().to(pt.float64).numpy(), k.to(pt.float64).numpy()
    live, t = at != -100, np.maximum(at, 0)
    each = np.where(live, w[t], 0)
    loss = -np.take_along_axis(a, t[:, None], 1)[:, 0] * each
    scale = 1 / each.sum() if reduction == "mean" else 1
    close(y, loss if reduction == "none" else loss.sum() * scale, dtype, 4)
    grad = np.zeros_like(a)
    np.put_along_axis(grad, t[:, None], -each[:, None] * scale, 1)
    close(pt.autograd.grad(y.sum(), x)[0], grad, dtype, 4)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_max_unpool_puts_elements_where_they_were(dtype: str) -> None:
    x = pt.tensor(random(2, 3, 12, 34)).to(getattr(pt, dtype)).requires_grad_()
    y, at = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(y, at, 2)
    flat = np.zeros((2, 3, 12 * 34))
    low = y.detach().to(pt.float64).numpy().reshape(2, 3, -1)
    np.put_along_axis(flat, at.numpy().reshape(2, 3, -1), low, 2)
    np.testing.assert_array_equal(back.detach().to(pt.float64).numpy().reshape(2, 3, -1), flat)
    got = pt.autograd.grad(back.sum(), x)[0]
    np.testing.assert_array_equal(got.to(pt.float64).numpy().reshape(2, 3, -1), flat != 0)
    for bad in (-1, 12 * 34):
        wrong = at.clone()
        wrong[1, 2, 0, 0] = bad
        with pytest.raises(RuntimeError, match=f"invalid max index: {bad} "):
            F.max_unpool2d(y, wrong, 2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("columns", [(2, 2), (3, 2), (3, 3), (2, 3)])
@pytest.mark.parametrize(("high", "rows"), [(1, (1, 1)), (9, (2, 2)), (8, (3, 1)), (8, (1, 3))])
@pytest.mark.parametrize("width", [16, 33, 50, 131])
def test_max_pool_of_few_columns_is_the_largest_of_each_window(
    width: int, high: int, rows: Any, columns: Any, dtype: str
) -> None:
    x = np.round(random(3, high, width) * 3)
    if dtype != "int64":
        x[0, 0, 5] = np.nan
        x[1] = -np.inf
    t = pt.tensor(x).to(getattr(pt, dtype)).requires_grad_(dtype != "int64")
    windows = np.lib.stride_tricks.sliding_window_view(x, (rows[0], columns[0]), axis=(1, 2))
    windows = windows[:, :: rows[1], :: columns[1]].reshape(
        3, (high - rows[0]) // rows[1] + 1, (width - columns[0]) // columns[1] + 1, -1
    )
    y = F.max_pool2d(t, (rows[0], columns[0]), (rows[1], columns[1]))
    np.testing.assert_equal(y.detach().to(pt.float64).numpy(), windows.max(-1).astype(np.float64))
    if high == 1:
        line = F.max_pool1d(t[:, 0], columns[0], columns[1])
        assert pt.equal(line.nan_to_num(9), y[:, 0].nan_to_num(9))
    if dtype != "int64":
        # Each window's gradient goes to one of its elements: the first of the largest.
        dx = np.zeros_like(x)
        for n, i, j in np.ndindex(*windows.shape[:3]):
            w = windows[n, i, j]
            bad = np.flatnonzero(np.isnan(w))
            at = bad[-1] if bad.size else w.argmax()
            a, b = divmod(int(at), columns[0])
            dx[n, i * rows[1] + a, j * columns[1] + b] += 1
        got = pt.autograd.grad(y.sum(), t)[0]
        np.testing.assert_array_equal(got.to(pt.float32).numpy(), dx)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_gradients_of_bags_have_gradients(mode: str) -> None:
    pt.manual_seed(0)
    table = pt.randn(50, 7, dtype=pt.float64, requires_grad=True)
    at, starts = pt.randint(0, 40, (600,)), pt.tensor([0, 7, 7, 200, 201, 590])
    weights = {"per_sample_weights": pt.rand(600).double()} if mode == "sum" else {}
    y = F.embedding_bag(at, table, starts, mode=mode, **weights)
    g = pt.randn_like(y, requires_grad=True)
    (d,) = pt.autograd.grad(y, table, g, create_graph=True)
    assert not d[40:].any()
    # Linear in the table: what a change of g does to it is the bags of what it is multiplied with.
    (back,) = pt.autograd.grad(d, g, table.detach())
    pt.testing.assert_close(back, y.detach())
