"""Pools over long lines, beside NumPy's windows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from scipy import sparse

import pytensorlib as torch
import pytensorlib.nn.functional as F

RNG = np.random.default_rng(7)
# Elements of a window, steps between them, padding, dilation.
GEOMETRY = [
    (1, 1, 0, 1),
    (3, 1, 1, 1),
    (3, 2, 1, 2),
    (2, 2, 0, 1),
    (4, 3, 2, 1),
    (7, 4, 3, 1),
    (5, 6, 2, 3),
    (50, 1, 25, 1),
    (61, 2, 7, 2),
    (300, 1, 0, 1),
    (1000, 3, 500, 1),
]


def line(n: int, dtype: str) -> np.ndarray:
    x = RNG.standard_normal((2, n)).astype(dtype)
    x[0, [5, 3000, n - 2]] = [np.inf, -np.inf, np.inf]
    return x


def windows(x: np.ndarray, k: int, s: int, p: int, d: int, fill: float) -> np.ndarray:
    wide = np.pad(x, [(0, 0), (p, p)], constant_values=fill)
    return sliding_window_view(wide, (k - 1) * d + 1, 1)[:, ::s, ::d]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("k", "s", "p", "d"), GEOMETRY)
def test_max_pool1d_of_a_long_line_is_the_largest_of_each_window(
    k: int, s: int, p: int, d: int, dtype: str
) -> None:
    x = line(26_011, dtype)
    x[1, [4, 9000]] = np.nan
    expected = windows(x, k, s, p, d, -np.inf).max(-1)
    y = F.max_pool1d(torch.from_numpy(x), k, s, p, d)
    np.testing.assert_array_equal(y.numpy(), expected)
    y, at = F.max_pool1d(torch.from_numpy(x), k, s, p, d, return_indices=True)
    np.testing.assert_array_equal(y.numpy(), expected)
    np.testing.assert_array_equal(np.take_along_axis(x, at.numpy(), 1), expected)


@pytest.mark.parametrize(("k", "s", "p", "d"), GEOMETRY)
def test_max_pool1d_of_a_long_line_has_the_gradient_of_the_first_largest(
    k: int, s: int, p: int, d: int
) -> None:
    x = RNG.integers(0, 9, (2, 13_007)).astype("float32")
    at = windows(x, k, s, p, d, -np.inf).argmax(-1)
    place = np.arange(at.shape[1]) * s - p + at * d
    g = RNG.integers(1, 5, at.shape).astype("float32")
    expected = np.zeros_like(x)
    for row in range(2):
        np.add.at(expected[row], place[row], g[row])
    t = torch.from_numpy(x).requires_grad_()
    F.max_pool1d(t, k, s, p, d).backward(torch.from_numpy(g))
    np.testing.assert_array_equal(t.grad.numpy(), expected)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("k", "s", "p", "d"), [g for g in GEOMETRY if g[3] == 1])
def test_avg_pool1d_of_a_long_line_is_the_mean_of_each_window(
    k: int, s: int, p: int, d: int, dtype: str, inside: bool
) -> None:
    x = line(26_011, dtype)
    sums = windows(x.astype("float64"), k, s, p, 1, 0).sum(-1)
    count = windows(np.ones_like(x), k, s, p, 1, float(not inside)).sum(-1)
    t = torch.from_numpy(x).requires_grad_()
    y = F.avg_pool1d(t, k, s, p, count_include_pad=not inside)
    eps = 2e-5 if dtype == "float32" else 1e-12
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(y.detach().numpy(), sums / count, rtol=eps, atol=eps)
    g = RNG.standard_normal(y.shape)
    expected = np.zeros((2, x.shape[1] + 2 * p))
    for i in range(k):
        expected[:, i : i + s * y.shape[1] : s][:, : y.shape[1]] += g / count
    y.backward(torch.from_numpy(g.astype(dtype)))
    expected = expected[:, p : p + x.shape[1]]
    np.testing.assert_allclose(t.grad.numpy(), expected, rtol=eps, atol=eps)


def test_avg_pool1d_of_a_last_window_in_the_padding_divides_by_what_is_there() -> None:
    x = torch.ones(1, 1001)
    y = F.avg_pool1d(x, 4, 3, 2, ceil_mode=True)
    assert y.shape == (1, 335)
    # Of the last window one element is inside, two are padding, and one is neither.
    assert y[0, 0].item() == 0.5 and y[0, 1:-1].eq(1).all()
    assert y[0, -1].item() == torch.tensor(1 / 3).item()
    whole = F.avg_pool1d(torch.ones(1, 1003, dtype=torch.int64), 4, 3)
    assert whole.dtype == torch.int64 and whole.eq(1).all()


@pytest.mark.parametrize("parts", [1, 3, 700, 5000, 9001])
def test_adaptive_pools_of_a_long_line_are_those_of_its_parts(parts: int) -> None:
    n = 7013
    x = RNG.standard_normal((2, n))
    begin = np.arange(parts) * n // parts
    end = -(-(np.arange(parts) + 1) * n // parts)
    means = np.stack([x[:, a:b].mean(1) for a, b in zip(begin, end, strict=True)], 1)
    tops = np.stack([x[:, a:b].max(1) for a, b in zip(begin, end, strict=True)], 1)
    t = torch.from_numpy(x).requires_grad_()
    y = F.adaptive_avg_pool1d(t, parts)
    np.testing.assert_allclose(y.detach().numpy(), means, rtol=1e-12, atol=1e-12)
    g = RNG.standard_normal(y.shape)
    expected = np.zeros_like(x)
    for o, (a, b) in enumerate(zip(begin, end, strict=True)):
        expected[:, a:b] += g[:, o : o + 1] / (b - a)
    y.backward(torch.from_numpy(g))
    np.testing.assert_allclose(t.grad.numpy(), expected, rtol=1e-12, atol=1e-12)
    top, at = F.adaptive_max_pool1d(torch.from_numpy(x), parts, return_indices=True)
    np.testing.assert_array_equal(top.numpy(), tops)
    np.testing.assert_array_equal(np.take_along_axis(x, at.numpy(), 1), tops)


def test_pools_of_a_long_line_do_not_depend_on_the_number_of_threads() -> None:
    x = torch.from_numpy(RNG.standard_normal((1, 300_000)).astype("float32"))
    calls = [
        lambda: F.avg_pool1d(x, 70, 1),
        lambda: F.avg_pool1d(x, 5, 2),
        lambda: F.max_pool1d(x, 70, 1),
        lambda: F.adaptive_avg_pool1d(x, 11),
    ]
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append([call() for call in calls])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    "shape",
    [(2, 3, 700, 1), (1, 2, 300, 2), (2, 1, 90, 7), (1, 1, 9000, 1), (1, 2, 300, 1, 1)]
    + [(1, 1, 1, 300, 1), (1, 2, 100, 2, 2), (2, 1, 3, 100, 2)],
)
@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("along", [False, True])
def test_pools_of_long_columns_are_those_of_their_windows(
    shape: tuple[int, ...], kernel: int, along: bool, dtype: str
) -> None:
    n = len(shape) - 2
    longest = 2 + int(np.argmax(shape[2:]))
    sizes = [kernel if d == longest or not along else 1 for d in range(2, n + 2)]
    steps = [min(2, k) for k in sizes]
    pads = [k // 2 for k in sizes]
    x = RNG.standard_normal(shape).astype(dtype)
    x[0, 0].flat[5] = np.nan
    wide = np.pad(x, [(0, 0), (0, 0), *zip(pads, pads, strict=True)], constant_values=-np.inf)
    seen = sliding_window_view(wide, sizes, tuple(range(2, n + 2)))
    seen = seen[(slice(None), slice(None), *(slice(None, None, s) for s in steps))]
    seen = seen.reshape(*seen.shape[: n + 2], -1)
    pool, mean = (getattr(F, f"{kind}_pool{n}d") for kind in ("max", "avg"))
    expected = seen.max(-1)
    t = torch.from_numpy(x).requires_grad_()
    np.testing.assert_array_equal(pool(t.detach(), sizes, steps, pads).numpy(), expected)
    # The gradient goes to the first of the largest, or to the last NaN.
    y, at = pool(t, sizes, steps, pads, return_indices=True)
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    flat, at = x.reshape(*shape[:2], -1), at.numpy().reshape(*shape[:2], -1)
    taken = np.take_along_axis(flat, at, -1).reshape(expected.shape)
    np.testing.assert_array_equal(taken, expected)
    y = pool(t, sizes, steps, pads)
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    y.backward(torch.ones_like(y))
    slopes = np.zeros(flat.shape)
    for plane in np.ndindex(shape[:2]):
        np.add.at(slopes[plane], at[plane], 1)
    np.testing.assert_array_equal(t.grad.numpy(), slopes.reshape(shape))
    if dtype != "float16":
        with np.errstate(invalid="ignore"):
            sums = np.where(seen == -np.inf, 0, seen).sum(-1) / np.prod(sizes)
        found = mean(t.detach(), sizes, steps, pads)
        np.testing.assert_allclose(found.numpy(), sums, rtol=1e-5, atol=1e-6)


def mean_of_windows(
    n: int, size: int, stride: int, pad: int, ceil: bool, counted: bool
) -> sparse.csr_array:
    """Return the matrix that takes a line of `n` elements to the means of its windows."""
    rows = -(-(n + 2 * pad - size) // stride) + 1 if ceil else (n + 2 * pad - size) // stride + 1
    if ceil and (rows - 1) * stride >= n + pad:
        rows -= 1
    start = np.arange(rows) * stride - pad
    end = np.minimum(start + size, n + pad)
    at = start[:, None] + np.arange(size)
    inside = (at >= 0) & (at < np.minimum(end, n)[:, None])
    share = 1 / (end - start if counted else inside.sum(1))
    o = np.broadcast_to(np.arange(rows)[:, None], at.shape)
    data = np.broadcast_to(share[:, None], at.shape)[inside]
    return sparse.csr_array((data, (o[inside], at[inside])), (rows, n))


def applied(down: sparse.sparray, along: sparse.sparray, x: np.ndarray) -> np.ndarray:
    """Return the products of planes with one matrix for columns and one for rows."""
    n, c, h, w = x.shape
    y = down @ x.transpose(2, 0, 1, 3).astype("float64").reshape(h, -1)
    return (y.reshape(-1, n, c, w) @ along.toarray().T).transpose(1, 2, 0, 3)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 16])
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_avg_pools_of_long_images_of_short_rows_are_the_means(
    width: int, ceil: bool, counted: bool, dtype: str
) -> None:
    for size, stride, pad in [(1, 1, 0), (2, 2, 0), (2, 1, 1), (3, 2, 1), (3, 1, 0), (5, 3, 2)]:
        if size > width + 2 * pad:
            continue
        x = RNG.standard_normal((2, 2, 2600, width)).astype(dtype)
        down, along = (
            mean_of_windows(n, size, stride, pad, ceil, counted) for n in (x.shape[2], width)
        )
        expected = applied(down, along, x)
        t = torch.from_numpy(x).requires_grad_()
        y = F.avg_pool2d(t, size, stride, pad, ceil, counted)
        assert y.grad_fn.name() == "AvgPool2DBackward0" and not y.grad_fn.next_functions[0][1]
        bound = {"float32": 1e-6, "float64": 1e-14, "float16": 2e-3}[dtype]
        np.testing.assert_allclose(y.detach().numpy(), expected, rtol=bound, atol=bound)
        g = RNG.standard_normal(expected.shape).astype(dtype)
        y.backward(torch.from_numpy(g))
        back = applied(down.T, along.T, g)
        np.testing.assert_allclose(t.grad.numpy(), back, rtol=bound, atol=bound)
    if not ceil and counted:
        fixed = F.avg_pool2d(torch.from_numpy(x), (2, 1), divisor_override=3).numpy()
        pairs = x[:, :, :2600].reshape(2, 2, 1300, 2, width).astype("float64").sum(3) / 3
        np.testing.assert_allclose(fixed, pairs, rtol=bound, atol=bound)


def test_adaptive_avg_pool_of_a_long_image_of_short_rows_is_that_of_its_parts() -> None:
    x = RNG.standard_normal((1, 2, 3001, 5))
    y = F.adaptive_avg_pool2d(torch.from_numpy(x), (700, 3)).numpy()
    for o in range(700):
        for p in range(3):
            rows = slice(o * 3001 // 700, -(-(o + 1) * 3001 // 700))
            part = x[:, :, rows, p * 5 // 3 : -(-(p + 1) * 5 // 3)]
            np.testing.assert_allclose(y[:, :, o, p], part.mean((2, 3)), rtol=1e-13, atol=1e-13)


def test_avg_pool_of_a_short_row_keeps_what_is_not_finite_in_its_windows() -> None:
    x = torch.zeros(1, 1, 2000, 4)
    x[0, 0, 7, 1], x[0, 0, 500, 3] = float("nan"), float("inf")
    y = F.avg_pool2d(x, 2)[0, 0]
    assert y.isnan().nonzero().tolist() == [[3, 0]]
    assert y.isinf().nonzero().tolist() == [[250, 1]]


inf, nan = float("inf"), float("nan")


@pytest.mark.parametrize("sign", [1, -1])
def test_lp_pool_of_an_infinite_norm_is_an_extreme(sign: int) -> None:
    rng = np.random.default_rng(0)
    for n, pool in ((1, F.lp_pool1d), (2, F.lp_pool2d), (3, F.lp_pool3d)):
        x = rng.standard_normal((2, *(5,) * n))
        got = pool(torch.from_numpy(x), sign * inf, 2, stride=3, ceil_mode=True)
        for at in np.ndindex(2, *(2,) * n):
            window = np.abs(x[(at[0], *(slice(3 * i, 3 * i + 2) for i in at[1:]))])
            assert got[at].item() == (window.max() if sign > 0 else window.min())
