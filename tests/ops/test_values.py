"""Numbers at the edges of operators: ties, padding, NaN and infinity, narrow types, long sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch

F = torch.nn.functional
INF, NAN = math.inf, math.nan
close = torch.testing.assert_close


def grad_of(f: Any, *x: Any) -> list[Any]:
    """Return the gradients of the sum of what `f` gives."""
    x = tuple(t.detach().clone().requires_grad_() for t in x)
    return list(torch.autograd.grad(f(*x).sum(), x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_max_pool_window_in_padding_alone_is_the_least_value_without_gradient(dtype: Any) -> None:
    # Windows at -1 and 1 of one element at 0, and of two rows stepped over by three.
    for shape, dilation in [((1, 1), 2), ((1, 2, 2), 3)]:
        x = torch.ones(*shape, dtype=dtype, requires_grad=True)
        pool = F.max_pool1d if len(shape) == 2 else F.max_pool2d
        y = pool(x, 2, padding=1, dilation=dilation)
        assert y.tolist() == torch.full(y.shape, -INF).tolist()
        y.sum().backward()
        assert not x.grad.any()
        (g,) = torch.autograd.grad(
            pool(x, 2, padding=1, dilation=dilation).sum(), x, create_graph=True
        )
        assert not g.any()


def test_max_pool_of_integers_in_padding_alone_is_their_least_number() -> None:
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8):
        x = torch.ones(1, 2, 2, dtype=dtype)
        y, at = F.max_pool2d(x, 2, padding=1, dilation=3, return_indices=True)
        assert (y.item(), at.item()) == (torch.iinfo(dtype).min, -1)
        # Such a place is in no plane.
        with pytest.raises(RuntimeError, match="invalid max index"):
            F.max_unpool2d(y.float(), at, 2)


def test_embedding_bag_counts_no_number_behind_the_last_offset() -> None:
    table, numbers = torch.arange(15.0).view(5, 3), torch.tensor([0, 1, 2, 3])
    for padding in (None, 4):
        got = F.embedding_bag(
            numbers,
            table,
            torch.tensor([0, 3, 3]),
            mode="sum",
            include_last_offset=True,
            padding_idx=padding,
        )
        assert got.tolist() == [[9.0, 12.0, 15.0], [0.0, 0.0, 0.0]]


def test_embedding_bag_refuses_numbers_out_of_range() -> None:
    for bad in (9, -1):
        with pytest.raises(RuntimeError, match=f"found idx to be {bad}"):
            F.embedding_bag(torch.tensor([0, bad]), torch.ones(5, 3), torch.tensor([0]))


def test_acosh_gradient_left_of_minus_one_is_that_of_its_formula() -> None:
    x = torch.tensor([-2.0, -INF, 2.0, 1.5, 0.5], dtype=torch.float64)
    (g,) = grad_of(torch.acosh, x)
    want = [3**-0.5, 0.0, 3**-0.5, 1.25**-0.5, NAN]
    close(g, torch.tensor(want, dtype=torch.float64), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_sinc_gradient_near_zero(dtype: Any) -> None:
    x = [1e-310, 1e-200, 1e-160, 1e-30, 1e-8, 1e-4, 0.01, 0.1, 0.159, 0.16, 0.3, 0.0, -1e-200, -0.1]
    t = torch.tensor(x, dtype=dtype)

    def slope(v: float) -> float:
        # The series of (t cos t - sin t) / t^2, in exact order, for t = pi v.
        t, s = math.pi * v, 0.0
        for n in range(12, 0, -1):
            s += (-1) ** n * t ** (2 * n - 1) * 2 * n / math.factorial(2 * n + 1)
        return math.pi * s

    (g,) = grad_of(torch.sinc, t)
    want = torch.tensor([slope(v) for v in t.tolist()], dtype=dtype)
    close(g, want, rtol=1e-13 if dtype == torch.float64 else 2e-6, atol=0.0)
    # And the slope of the slope: -pi^2 / 3 at zero.
    x0 = torch.zeros(1, dtype=dtype, requires_grad=True)
    (g,) = torch.autograd.grad(torch.sinc(x0), x0, create_graph=True)
    (gg,) = torch.autograd.grad(g, x0)
    close(gg, torch.tensor([-(math.pi**2) / 3], dtype=dtype))


def test_i1e_gradient_near_zero_is_one_half() -> None:
    x = torch.tensor([0.0, 1e-310, 1e-300, 1e-12], dtype=torch.float64)
    close(grad_of(torch.special.i1e, x)[0], torch.full((4,), 0.5, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["i0", "i1", "modified_bessel_i0", "modified_bessel_i1"])
def test_bessel_of_infinity_is_nan_as_pytorchs(name, dtype) -> None:
    # PyTorch 2.13 gives NaN, and its own tests ask for that.
    if name.startswith("modified") and dtype.itemsize < 4:
        pytest.skip("it takes float32 and float64")
    f = getattr(torch.special, name)
    assert f(torch.tensor([INF, -INF, NAN], dtype=dtype)).isnan().all()
    assert f(torch.tensor([700.0], dtype=torch.float64)).isfinite().all()


@pytest.mark.parametrize("name", ["hardswish", "celu", "elu", "selu", "silu", "mish", "gelu"])
@pytest.mark.parametrize("n", [1, 67])
def test_activation_gradient_at_nan_is_nan(name: str, n: int) -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        (g,) = grad_of(getattr(F, name), torch.full((n,), NAN, dtype=dtype))
        assert g.isnan().all()


def fixed_point(x: np.ndarray, size: tuple[int, int], mode: str, corners: bool) -> np.ndarray:
    """Resize bytes with weights of 16-bit integers, rows first and rounded after each dimension."""
    y = x.astype(np.int64)
    for d in (3, 2):
        n, m = x.shape[d], size[d - 2]
        step = (n - 1) / (m - 1) if corners else n / m
        w = np.zeros((m, n))
        for i in range(m):
            at = i * step if corners else (i + 0.5) * step - 0.5
            if mode == "bilinear":
                at = max(at, 0.0)
                low = min(int(at), n - 1)
                taps = [(low, 1 - (at - low)), (min(low + 1, n - 1), at - low)]
            else:
                low = math.floor(at)
                taps = []
                for k in range(4):
                    t = abs(at - (low - 1 + k))
                    near = (1.25 * t - 2.25) * t * t + 1
                    far = ((-0.75 * t + 3.75) * t - 6) * t + 3
                    taps.append((min(max(low - 1 + k, 0), n - 1), near if t <= 1 else far))
            for j, v in taps:
                w[i, j] += v
        digits = 0
        while int(0.5 + w.max() * 2 ** (digits + 1)) < 2**15:
            digits += 1
        whole = np.trunc(w * 2**digits + np.where(w < 0, -0.5, 0.5)).astype(np.int64)
        y = np.moveaxis(np.tensordot(y, whole, axes=(d, 1)), -1, d)
        y = np.clip((y + (1 << (digits - 1))) >> digits, 0, 255)
    return y.astype(np.uint8)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("corners", [False, True])
def test_interpolation_of_bytes_rounds_as_fixed_point_weights(mode: str, corners: bool) -> None:
    rng = np.random.default_rng(0)
    for size, out in [
        ((16, 16), (3, 3)),
        ((7, 9), (20, 5)),
        ((13, 8), (13, 8)),
        ((31, 17), (9, 64)),
    ]:
        x = rng.integers(0, 256, (2, 3, *size)).astype(np.uint8)
        got = F.interpolate(torch.tensor(x), size=out, mode=mode, align_corners=corners)
        assert (got.numpy() == fixed_point(x, out, mode, corners)).all()


@pytest.mark.parametrize("value", [0.1, 1.0, 1e4 / 3])
def test_norm_of_equal_values_over_a_long_row_is_zero(value: float) -> None:
    n = 300_007
    x = torch.full((1, 1, n), value)
    want = np.float32(value)
    for y in (F.layer_norm(x, (n,)), F.group_norm(x, 1), F.instance_norm(x)):
        # A mean one rounding away leaves that over the root of eps.
        assert y.abs().max() <= 2 * np.spacing(want) / 1e-5**0.5
    mean = torch.native_layer_norm(x, (n,), None, None, 1e-5)[1].item()
    assert abs(mean - want) <= np.spacing(want)


def test_norm_of_a_long_row_is_that_of_float64() -> None:
    x = torch.randn(1, 1, 1_500_001, generator=torch.Generator().manual_seed(3)) + 3
    n = x.size(-1)
    want = F.layer_norm(x.double(), (n,))
    for y in (
        F.layer_norm(x, (n,)),
        F.group_norm(x, 1),
        F.batch_norm(x, None, None, training=True),
    ):
        assert (y.double() - want).abs().max() < 2e-6


def test_variance_of_values_whose_squares_leave_float32() -> None:
    for scale in (1e19, 1e30, 3e37, 1e-20, 1e-24):
        v = np.array([1.0, -1.0, 3.0, 0.5], dtype=np.float32) * np.float32(scale)
        for dim, x in [(0, torch.tensor(v)), (1, torch.tensor(v)[None].expand(3, 4))]:
            close(torch.std(x, dim).max(), torch.tensor(v.astype(np.float64).std(ddof=1)).float())
        _, m = torch.std_mean(torch.tensor(v))
        close(m, torch.tensor(v.astype(np.float64).mean()).float())
    assert torch.var(torch.tensor([1e19, -1e19, 0.0])).item() == pytest.approx(1e38)
    # The mean of infinity and one is infinity; PyTorch's running mean makes it NaN.
    assert torch.var_mean(torch.tensor([INF, 1.0]))[1].item() == INF


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_types_compare_with_the_number_they_hold(dtype: Any) -> None:
    x = torch.tensor([0.1], dtype=dtype)
    for y in (0.1, torch.tensor(0.1), torch.tensor(0.1, dtype=torch.float64)):
        assert (x == y).item() and (x >= y).item() and (x <= y).item()
        assert not (x != y).item() and not (x < y).item() and not (x > y).item()
        assert torch.eq(torch.as_tensor(y), x).item()
    # Without a dimension the number decides with the tensor.
    assert not (torch.tensor(0.1, dtype=dtype) == torch.tensor([0.1])).item()
    lam = 0.3
    edge = torch.tensor([lam, -lam], dtype=dtype)
    assert not F.hardshrink(edge, lam).any()
    assert not grad_of(lambda t: F.hardshrink(t, lam), edge)[0].any()


def test_out_of_another_type_holds_what_the_half_type_gave() -> None:
    x = torch.tensor([33000.0], dtype=torch.float16)
    assert (x + x).item() == INF
    for dtype in (torch.float64, torch.float32):
        assert torch.add(x, x, out=torch.zeros(1, dtype=dtype)).item() == INF
        assert torch.exp(x, out=torch.zeros(1, dtype=dtype)).item() == INF
    third = torch.div(torch.ones(1).half(), 3, out=torch.zeros(1)).item()
    assert third == np.float16(1 / 3)


def test_integers_take_the_low_bits_of_a_wide_number_before_they_compute() -> None:
    wide = torch.tensor(-(2**63))
    x = torch.tensor([5, -3], dtype=torch.int32)
    for f in (torch.fmin, torch.minimum):
        assert f(x, wide).tolist() == [0, -3]
        assert f(wide, x).tolist() == [0, -3]
    assert torch.fmax(x, torch.tensor(2**33 + 7)).tolist() == [7, 7]
    y = torch.tensor([5, -3], dtype=torch.int8)
    assert torch.fmod(y, torch.tensor(260)).tolist() == [1, -3]
    assert torch.div(y, torch.tensor(260), rounding_mode="floor").tolist() == [1, -1]
    # Comparisons see the number whole: no int8 is 261. PyTorch wraps it to 5.
    assert (y == 261).tolist() == [False, False]
    assert torch.lt(y, torch.tensor(260)).tolist() == [True, True]


def test_losses_at_ties_give_the_whole_slope() -> None:
    x = torch.tensor([1.0, 0.0])
    target = torch.tensor([1.0, -1.0])
    (g,) = grad_of(lambda t: F.margin_ranking_loss(t, x, target, reduction="sum"), x)
    assert g.tolist() == [-1.0, 1.0]
    away = torch.tensor([-1, -1])
    (g,) = grad_of(lambda t: F.hinge_embedding_loss(t, away, margin=1.0, reduction="sum"), x)
    assert g.tolist() == [-1.0, -1.0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_triplet_loss_of_a_point_with_itself_has_finite_gradients(dtype: Any) -> None:
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=dtype)
    p = torch.tensor([[1.0, 2.0, 3.0, 5.0]], dtype=dtype)
    gx, gp, gn = grad_of(F.triplet_margin_loss, x, p, x)
    for g in (gx, gp, gn):
        assert g.isfinite().all()
    assert gp.tolist()[0][3] == pytest.approx(1.0)
    # The unit vector along (eps, eps, eps, eps).
    assert gn.tolist()[0] == [0.5] * 4


def test_losses_of_integers_and_mixed_types() -> None:
    x, t = torch.tensor([1, 2, -3]), torch.tensor([-1, -1, -1])
    assert F.hinge_embedding_loss(x, t, margin=1.5, reduction="none").tolist() == [0, 0, 4]
    assert F.hinge_embedding_loss(x, t, reduction="sum").dtype == torch.int64
    for f in (F.huber_loss, F.soft_margin_loss):
        for dtype in (torch.float16, torch.float32, torch.float64):
            for reduction in ("none", "mean"):
                y = f(torch.ones(2, dtype=dtype), torch.zeros(2).double(), reduction=reduction)
                assert y.dtype == dtype
        with pytest.raises(RuntimeError, match="can't be cast"):
            f(x, torch.zeros(3))
    with pytest.raises(RuntimeError, match="Integral inputs not supported"):
        F.kl_div(x.float(), x, reduction="sum")


def test_index_fill_gradient_counts_a_place_once() -> None:
    for index in ([1, 1, 1], [1, -3], [1]):
        v = torch.tensor(2.0, requires_grad=True)
        torch.zeros(4).index_fill(0, torch.tensor(index), v).sum().backward()
        assert v.grad.item() == 1
    v = torch.tensor(2.0, requires_grad=True)
    torch.zeros(3, 4).index_fill(1, torch.tensor([0, 0, 3]), v).sum().backward()
    assert v.grad.item() == 6
    with pytest.raises(IndexError):
        torch.zeros(4).index_fill(0, torch.tensor([7]), v)


def test_scatter_of_one_element_gives_it_a_gradient_of_its_shape() -> None:
    for x, index, source in [((), (1,), ()), ((), (), (1,)), ((1,), (), ()), ((3,), (1,), (1,))]:
        for name in ("scatter", "scatter_add"):
            s = torch.ones(source, requires_grad=True)
            at = torch.zeros(index, dtype=torch.int64)
            getattr(torch.zeros(x), name)(0, at, s).sum().backward()
            close(s.grad, torch.ones(source))


def test_take_along_dim_counts_negative_indices_from_the_end() -> None:
    x = torch.arange(6.0).view(2, 3)
    assert torch.take_along_dim(x, torch.tensor([[-1, 0]]), 1).tolist() == [[2.0, 0.0], [5.0, 3.0]]


def test_logcumsumexp_second_derivative_of_large_values_is_finite() -> None:
    x = torch.tensor([1e4, 1e4 + 1, 9.9e3], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda t: torch.logcumsumexp(t, 0), (x,))


@pytest.mark.parametrize(
    ("args", "dtype", "want"),
    [
        ((0.0, -8.000001, -4.0), torch.int16, [0, -4, -8]),
        ((0.0, 8.000001, 4.0), torch.uint8, [0, 4, 8]),
        ((0.5, 3.9), torch.int32, [0, 1, 2, 3]),
        ((0.0, 5.5, 2), torch.int64, [0, 2, 4]),
        ((-1.5, 3, 1.5), torch.int64, [-1, 0, 1, 2]),
        ((3.9, 0.1, -1.5), torch.int32, [3, 2, 1]),
    ],
)
def test_arange_of_integers_counts_as_pytorch(args: Any, dtype: Any, want: list[int]) -> None:
    assert torch.arange(*args, dtype=dtype).tolist() == want


def test_bincount_without_elements_counts_in_int64() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    for w in (None, torch.zeros(0), torch.zeros(0, dtype=torch.float64)):
        y = torch.bincount(none, w, minlength=3)
        assert (y.dtype, y.tolist()) == (torch.int64, [0, 0, 0])
    with pytest.raises(NotImplementedError, match="bincount"):
        torch.bincount(torch.zeros(0))


def test_cumulative_trapezoid_of_no_integers_is_floating() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    assert torch.cumulative_trapezoid(none).dtype == torch.float32
    assert torch.trapezoid(none).dtype == torch.int64
    assert torch.cumulative_trapezoid(none.half()).dtype == torch.float16


def test_products_without_terms_have_the_shape_of_the_product() -> None:
    # PyTorch gives the shape of the added term where the matrix has no columns.
    for added in (torch.tensor(2.0), torch.tensor([2.0])):
        y = torch.addmv(added, torch.zeros(3, 0), torch.zeros(0), beta=2.5)
        assert y.tolist() == [5.0, 5.0, 5.0]


def test_group_norm_by_given_sizes_reads_any_shape() -> None:
    x = torch.arange(12.0).view(2, 3, 2)
    y, m, _ = torch.native_group_norm(x, None, None, 4, 3, 1, 1, 1e-5)
    assert m.flatten().tolist() == [1.0, 4.0, 7.0, 10.0]
    want = F.group_norm(x.view(4, 3, 1), 1).view(2, 3, 2)
    close(y, want)
    with pytest.raises(RuntimeError, match="native_group_norm"):
        torch.native_group_norm(x, None, None, 2, 3, 3, 1, 1e-5)


@pytest.mark.parametrize("corners", [False, True])
def test_grid_sample_at_points_that_are_nowhere(corners: bool) -> None:
    image = torch.arange(1.0, 17).view(1, 1, 4, 4)

    def at(c: float, mode: str, padding: str) -> float:
        grid = torch.tensor([[[[c, 0.0]]]])
        return F.grid_sample(image, grid, mode, padding, align_corners=corners).item()

    edge = {p: at(-1.0, "nearest", p) for p in ("border", "reflection")}
    for c in (INF, -INF, NAN):
        assert math.isnan(at(c, "bilinear", "zeros"))
        assert math.isnan(at(c, "bicubic", "zeros"))
        assert at(c, "nearest", "zeros") == 0
        # NaN is read as -1, the first element; so is an infinity that is reflected.
        assert at(c, "nearest", "reflection") == edge["reflection"]
    assert at(NAN, "nearest", "border") == edge["border"]
    assert at(-INF, "nearest", "border") == edge["border"]
    assert at(INF, "nearest", "border") == at(1.0, "nearest", "border")


def test_padding_that_empties_a_dimension() -> None:
    for mode in ("reflect", "replicate"):
        x = torch.ones(1, 1, 5, 5, requires_grad=True)
        y = F.pad(x, (1, 1, 0, -5), mode=mode)
        assert y.shape == (1, 1, 0, 7)
        y.sum().backward()
        assert not x.grad.any()
        with pytest.raises(RuntimeError, match="too small"):
            F.pad(torch.ones(1, 1, 5), (0, -5), mode=mode)
    with pytest.raises(RuntimeError, match="nothing to repeat"):
        F.pad(torch.ones(1, 1, 5), (-6, 2), mode="circular")
    assert F.pad(torch.ones(1, 1, 5), (2, -7), mode="circular").numel() == 0


def test_reductions_and_rolls_take_none_for_their_dimensions() -> None:
    x = torch.arange(6.0).view(2, 3)
    assert torch.amax(x, dim=None).item() == 5
    assert x.amin(None, keepdim=True).tolist() == [[0.0]]
    assert torch.all(x, keepdim=True).tolist() == [[False]]
    assert x.any(dim=None, keepdim=True).tolist() == [[True]]
    assert torch.roll(x, 1, dims=None).tolist() == [[5.0, 0.0, 1.0], [2.0, 3.0, 4.0]]


def test_bernoulli_fills_an_output_of_any_type() -> None:
    p = torch.full((64,), 0.5)
    torch.manual_seed(0)
    want = torch.bernoulli(p).tolist()
    for dtype in (torch.int64, torch.uint8, torch.bool, torch.float64):
        torch.manual_seed(0)
        y = torch.bernoulli(p, out=torch.empty(64, dtype=dtype))
        assert (y.dtype, [float(v) for v in y.tolist()]) == (dtype, want)


def test_fractional_max_pool_without_windows_is_empty() -> None:
    y = torch.nn.FractionalMaxPool2d(2, output_size=(0, 2))(torch.ones(1, 1, 5, 5))
    assert y.shape == (1, 1, 0, 2)


def test_attention_without_features_averages_the_values() -> None:
    q, k, v = torch.ones(1, 2, 3, 0), torch.ones(1, 2, 4, 0), torch.randn(1, 2, 4, 5)
    g = grad_of(F.scaled_dot_product_attention, q, k, v)
    close(F.scaled_dot_product_attention(q, k, v), v.mean(2, keepdim=True).expand(1, 2, 3, 5))
    close(g[2], torch.full((1, 2, 4, 5), 0.75))


def test_attention_keeps_nan_where_it_is_read_and_nowhere_else() -> None:
    q, k, v = (torch.arange(24.0).view(1, 2, 3, 4) / 20 for _ in "qkv")
    mask = torch.tensor([[True, True, False], [False, False, False], [True, False, True]])
    # A query that is NaN gives NaN; PyTorch's fused kernel gives 0.
    bad = q.clone()
    bad[0, 0, 0, 0] = NAN
    y = F.scaled_dot_product_attention(bad, k, v)
    assert y[0, 0, 0].isnan().all() and y[0, 0, 1:].isfinite().all() and y[0, 1].isfinite().all()
    # A key that a mask of truth values hides is not read; PyTorch adds -inf to its NaN.
    bad = k.clone()
    bad[0, 0, 2, 0] = NAN
    y = F.scaled_dot_product_attention(q, bad, v, attn_mask=mask)
    assert y[0, 0, :2].isfinite().all() and y[0, 0, 2].isnan().all()
    # A row that sees nothing is zero, and gives no gradient.
    assert not y[0, 1, 1].any()
    for g in grad_of(
        lambda *t: F.scaled_dot_product_attention(*t, attn_mask=mask)[:, :, 1], q, k, v
    ):
        assert not g.any()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_convolution_of_no_channels_makes_none_as_pytorchs(n) -> None:
    conv = getattr(F, f"conv{n}d")
    x, w, b = (
        torch.ones(*shape, requires_grad=True)
        for shape in ((2, 0, *(5,) * n), (4, 0, *(3,) * n), (4,))
    )
    y = conv(x, w, b)
    assert y.shape == (2, 0, *(3,) * n)
    assert conv(x[0], w, b).shape == (0, *(3,) * n)
    y.sum().backward()
    assert (x.grad.shape, w.grad.shape, b.grad.tolist()) == (x.shape, w.shape, [0.0] * 4)


def test_arithmetic_takes_a_number_first() -> None:
    x = torch.tensor([1.0, 4.0])
    assert torch.add(1.5, x).tolist() == [2.5, 5.5]
    assert torch.sub(2, x, alpha=2).tolist() == [0.0, -6.0]
    assert torch.mul(2, x).tolist() == [2.0, 8.0]
    assert torch.div(2, x).tolist() == torch.true_divide(2, x).tolist() == [2.0, 0.5]
    assert torch.floor_divide(6, x).tolist() == [6.0, 1.0]
    for a, b, dtype, want in [
        (1, 2, torch.int64, 3),
        (1, 2.5, torch.float32, 3.5),
        (True, True, torch.bool, True),
    ]:
        y = torch.add(a, b)
        assert (y.dtype, y.shape, y.item()) == (dtype, (), want)
    out = torch.empty(2, dtype=torch.float64)
    assert torch.float_power(2.0, x, out=out) is out
    assert out.tolist() == [2.0, 16.0]


def test_addcmul_and_addcdiv_take_their_value_second() -> None:
    t, u = torch.ones(2), torch.full((2,), 2.0)
    for call, want in (
        (lambda: torch.addcmul(t, 3, u, u), 13.0),
        (lambda: t.addcmul(3, u, u), 13.0),
        (lambda: torch.addcdiv(t, 3, u, u), 4.0),
        (lambda: t.clone().addcdiv_(-1, u, u), 0.0),
    ):
        with pytest.warns(UserWarning, match="This overload of addc.* is deprecated"):
            got = call()
        assert got.tolist() == [want, want]


def test_index_copy_of_a_scalar_writes_one_element() -> None:
    for index in (torch.tensor(1), torch.tensor([1])):
        assert torch.zeros(3).index_copy_(0, index, torch.tensor(5.0)).tolist() == [0.0, 5.0, 0.0]
    (g,) = grad_of(lambda s: torch.zeros(3).index_copy(0, torch.tensor([1]), s), torch.tensor(5.0))
    assert g.item() == 1
    for index, source in [
        ([0, 1], torch.tensor(5.0)),
        ([0], torch.ones(2)),
        ([0], torch.ones(1, 2)),
    ]:
        with pytest.raises(IndexError, match="index_copy_"):
            torch.zeros(3).index_copy_(0, torch.tensor(index), source)


def test_multilabel_margin_loss_of_one_class() -> None:
    for x, t in [(0.5, [0]), ([0.5], 0), (0.5, 0)]:
        assert F.multilabel_margin_loss(torch.tensor(x), torch.tensor(t)).item() == 0


@pytest.mark.parametrize("size", [1, 3, 5])
def test_norm_across_maps_counts_the_neighbours_of_its_formula(size):
    x = torch.arange(1.0, 9).reshape(1, 8, 1, 1)
    got = torch.nn.CrossMapLRN2d(size, alpha=float(size), beta=1.0, k=0.0)(x).flatten()
    reach = size // 2
    for c in range(8):
        near = range(max(c - reach, 0), min(c + reach, 7) + 1)
        assert got[c].item() == pytest.approx((c + 1) / sum((j + 1) ** 2 for j in near))


ANSWERS = {
    "an empty region": (
        lambda: torch.as_strided_scatter(torch.ones(3, 2).t(), torch.ones(0), (0,), (1,)),
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],
    ),
    "an empty tensor": (
        lambda: torch.as_strided_scatter(torch.zeros(2, 0), torch.zeros(0), (0,), (1,)),
        [[], []],
    ),
    "a kernel longer than time": (
        lambda: torch.tensor(
            torch.conv_tbc(torch.ones(2, 1, 2), torch.ones(3, 2, 4), torch.ones(4)).shape
        ),
        [0, 1, 4],
    ),
    "no time": (
        lambda: torch.tensor(
            torch.conv_tbc(torch.ones(0, 1, 2), torch.ones(1, 2, 4), torch.ones(4)).shape
        ),
        [0, 1, 4],
    ),
    "threshold": (lambda: F.threshold(torch.tensor([1, 9], dtype=torch.uint8), 3, 5), [5, 9]),
    # What overflows float32 is infinite, with the sign of the polynomial: NaN would say less.
    "hermite": (
        lambda: torch.special.hermite_polynomial_he(torch.tensor([1.0, 2.5]), 99),
        [INF, INF],
    ),
    "distance": (
        lambda: F.pairwise_distance(torch.tensor([[3 + 4j]]), torch.tensor([[0j]]), eps=0.0),
        [5.0],
    ),
    "triplet": (
        lambda: F.triplet_margin_loss(*[torch.ones(2, 2, dtype=torch.complex64)] * 3),
        1.0,
    ),
    "poisson": (
        lambda: F.poisson_nll_loss(
            *[torch.ones(2, dtype=torch.complex128)] * 2, log_input=False, eps=0.0
        ),
        1 + 0j,
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answer(case: str) -> None:
    call, want = ANSWERS[case]
    assert call().tolist() == want
