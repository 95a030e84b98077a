"""Convolution and its gradients beside their definition in float64: one slice for each tap."""

from __future__ import annotations

import itertools
import os
import time

import numpy as np
import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F


def taps(x, w, stride, padding, dilation):
    """Yield each tap with the slices of the padded input that it reads."""
    n = w.ndim - 2
    shape = [x.shape[d + 2] + 2 * padding[d] for d in range(n)]
    outs = [(shape[d] - dilation[d] * (w.shape[d + 2] - 1) - 1) // stride[d] + 1 for d in range(n)]
    for k in itertools.product(*map(range, w.shape[2:])):
        starts = [k[d] * dilation[d] for d in range(n)]
        yield (
            k,
            tuple(
                slice(a, a + s * (o - 1) + 1, s)
                for a, s, o in zip(starts, stride, outs, strict=True)
            ),
        )


def padded(x, padding):
    return np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])


def split(a, groups, axis):
    return np.split(a, groups, axis)


def reference(x, w, g, stride, padding, dilation, groups):
    """Return the result for ones as far as `g` is None, else the gradients for x and w."""
    y, gx, gw = 0, np.zeros(padded(x, padding).shape), np.zeros(w.shape)
    xp = padded(x, padding)
    for k, where in taps(x, w, stride, padding, dilation):
        part = xp[(slice(None), slice(None), *where)]
        wk = w[(slice(None), slice(None), *k)]
        pairs = list(zip(split(part, groups, 1), split(wk, groups, 0), strict=True))
        y = y + np.concatenate([np.einsum("nc...,oc->no...", a, b) for a, b in pairs], 1)
        if g is not None:
            gs = split(g, groups, 1)
            back = [np.einsum("no...,oc->nc...", a, b) for a, (_, b) in zip(gs, pairs, strict=True)]
            gx[(slice(None), slice(None), *where)] += np.concatenate(back, 1)
            of = [np.einsum("nol,ncl->oc", a.reshape(*a.shape[:2], -1), b.reshape(*b.shape[:2], -1))
                  for a, (b, _) in zip(gs, pairs, strict=True)]  # fmt: skip
            gw[(slice(None), slice(None), *k)] = np.concatenate(of, 0)
    inner = tuple(slice(p, p + s) for p, s in zip(padding, x.shape[2:], strict=True))
    return y, gx[(slice(None), slice(None), *inner)], gw


# Batch, groups, inputs and outputs of a group, size, kernel, stride, padding, dilation.
CASES = [
    (1, 1, 1, 1, (5,), (3,), (1,), (0,), (1,)),
    (2, 1, 64, 9, (1000,), (5,), (1,), (2,), (1,)),
    (1, 1, 700, 3, (130,), (3,), (1,), (1,), (1,)),
    (2, 1, 3, 9, (2100,), (2,), (1,), (512,), (1024,)),
    (1, 1, 3, 8, (9030,), (2,), (1,), (0,), (9000,)),
    (3, 1, 5, 8, (17, 16), (1, 1), (1, 1), (0, 0), (1, 1)),
    (2, 1, 16, 12, (32, 32), (1, 1), (1, 1), (0, 0), (1, 1)),
    (2, 1, 3, 5, (9, 11), (1, 1), (2, 3), (0, 0), (1, 1)),
    (2, 1, 7, 13, (28, 26), (3, 3), (1, 1), (0, 0), (1, 1)),
    (2, 1, 16, 17, (30, 56), (3, 3), (1, 1), (1, 1), (1, 1)),
    (9, 1, 6, 10, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 1, 3, 8, (31, 40), (7, 7), (2, 2), (3, 3), (1, 1)),
    (2, 2, 4, 3, (12, 19), (4, 4), (2, 2), (1, 1), (1, 1)),
    (2, 8, 2, 2, (14, 14), (3, 3), (1, 1), (2, 2), (2, 2)),
    (1, 1, 2, 3, (13, 12), (2, 3), (3, 2), (1, 2), (2, 1)),
    (3, 16, 1, 1, (20, 23), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 6, 1, 2, (15, 15), (5, 3), (2, 2), (2, 1), (1, 1)),
    (1, 1, 1, 6, (6, 6), (3, 3), (1, 1), (4, 4), (3, 3)),
    (1, 1, 3, 4, (40, 41), (2, 2), (5, 7), (0, 3), (1, 9)),
    (2, 1, 4, 6, (6, 9, 11), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    (1, 2, 3, 2, (7, 8, 9), (2, 3, 1), (2, 1, 3), (1, 0, 2), (1, 2, 1)),
    # One kernel element: tiny images, one position each, long rows, groups, and strides.
    (9, 1, 33, 40, (4, 3), (1, 1), (1, 1), (0, 0), (1, 1)),
    (13, 1, 35, 64, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    (3, 2, 32, 33, (24, 23), (1, 1), (1, 1), (0, 0), (1, 1)),
    (5, 3, 48, 32, (7, 7), (1, 1), (1, 1), (0, 0), (1, 1)),
    (3, 2, 40, 32, (7, 9), (1, 1), (2, 2), (0, 0), (1, 1)),
    (2, 1, 33, 35, (5, 7, 6), (1, 1, 1), (3, 1, 2), (0, 0, 0), (1, 1, 1)),
    # Winograd's: odd sizes, channels that fill no vector, wide rows, more padding than kernel.
    (4, 1, 16, 16, (28, 28), (3, 3), (1, 1), (1, 1), (1, 1)),
    (3, 1, 20, 30, (15, 13), (3, 3), (1, 1), (0, 2), (1, 1)),
    (9, 1, 33, 31, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 2, 16, 48, (4, 301), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 1, 80, 31, (9, 8), (3, 3), (1, 1), (3, 4), (1, 1)),
    (2, 1, 17, 32, (6, 10, 11), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    (2, 1, 32, 16, (7, 9, 11), (2, 3, 3), (2, 1, 1), (3, 1, 1), (2, 1, 1)),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolution_and_gradients_match_their_sums(case, dtype):
    batch, groups, inputs, outputs, size, kernel, stride, padding, dilation = case
    rng = np.random.default_rng(1)
    # Sixteenths, which every type holds.
    make = lambda *s: rng.integers(-32, 33, s) / 16  # noqa: E731
    x, w = make(batch, groups * inputs, *size), make(groups * outputs, inputs, *kernel)
    b = make(groups * outputs)
    call = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y, _, _ = reference(x, w, None, **call)
    g = make(*y.shape)
    _, gx, gw = reference(x, w, g, **call)
    # Channels last in memory: an input that must be laid out first.
    tx = torch.tensor(np.moveaxis(x, 1, -1).copy()).to(dtype).movedim(-1, 1).requires_grad_()
    tw, tb = (torch.tensor(a).to(dtype).requires_grad_() for a in (w, b))
    n = len(size)
    out = getattr(F, f"conv{n}d")(tx, tw, tb, **call)
    grads = torch.autograd.grad(out, (tx, tw, tb), torch.tensor(g).to(dtype))
    bias = b.reshape(-1, *[1] * n)
    wanted = (y + bias, gx, gw, g.sum((0, *range(2, n + 2))))
    unit = {torch.float32: 2**-24, torch.float64: 2**-53, torch.bfloat16: 2**-8}[dtype]
    for ours, ref in zip((out, *grads), wanted, strict=True):
        np.testing.assert_allclose(ours.detach().double().numpy(), ref, rtol=unit, atol=40 * 2**-24)
    # The transposed convolution is the gradient for the input.
    extra = [
        size[d]
        - ((y.shape[d + 2] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel[d] - 1) + 1)
        for d in range(n)
    ]
    if all(e < max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        back = getattr(F, f"conv_transpose{n}d")(
            torch.tensor(g).to(dtype), tw, output_padding=extra, **call
        )
        np.testing.assert_allclose(back.detach().double().numpy(), gx, rtol=unit, atol=40 * 2**-24)


def test_taps_may_lie_far_apart():
    far = 1 << 28
    x, w, g = torch.randn(2, 3, 5), torch.randn(4, 3, 3), torch.randn(2, 4, 5)
    x.requires_grad_()
    w.requires_grad_()
    y = F.conv1d(x, w, padding=far, dilation=far)
    near = F.conv1d(x, w[:, :, 1:2])
    torch.testing.assert_close(y, near)
    ours, wanted = (torch.autograd.grad(z, (x, w), g) for z in (y, near))
    torch.testing.assert_close(ours, wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int32])
def test_pointwise_of_narrow_types_is_that_of_wide_ones(dtype):
    x, w = torch.randint(-9, 9, (9, 16, 70, 60)), torch.randint(-9, 9, (24, 16, 1, 1))
    y = F.conv2d(x, w, torch.arange(24), stride=(1, 2))
    got = F.conv2d(x.to(dtype), w.to(dtype), torch.arange(24, dtype=dtype), stride=(1, 2))
    assert got.dtype == dtype and (got == y.to(dtype)).all()


def test_integers_wrap():
    x, w = (
        torch.arange(2 * 3 * 7 * 7).reshape(2, 3, 7, 7),
        torch.arange(5 * 3 * 9).reshape(5, 3, 3, 3),
    )
    y, _, _ = reference(x.numpy(), w.numpy(), None, (2, 1), (1, 1), (1, 2), 1)
    assert (F.conv2d(x, w, stride=(2, 1), padding=1, dilation=(1, 2)).numpy() == y).all()


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_what_is_not_finite_stays_where_it_is_read(bad):
    x, w = torch.ones(2, 3, 12, 12), torch.ones(4, 3, 3, 3)
    x[0, 1, 0, 0] = bad
    y = F.conv2d(x, w)
    wrong = ~torch.isfinite(y)
    assert wrong.sum() == 4 and wrong[0, :, 0, 0].all()
    # Only the first tap of this channel meets that number.
    gw = torch.autograd.grad(F.conv2d(x, w.requires_grad_()), w, torch.ones(2, 4, 10, 10))[0]
    wrong = ~torch.isfinite(gw)
    assert wrong.sum() == 4 and wrong[:, 1, 0, 0].all()
    assert (gw[:, 0] == 200).all()


def gradients(x, w, g, padding):
    x, w = (torch.tensor(a.astype(np.float32)).requires_grad_() for a in (x, w))
    y = F.conv2d(x, w, padding=padding)
    found = (y, *torch.autograd.grad(y, (x, w), torch.tensor(g.astype(np.float32))))
    return [a.detach().numpy() for a in found]


@pytest.mark.parametrize("channels", [16, 64, 160])
@pytest.mark.parametrize("scale", [1e-20, 1e-9, 1.0, 1e7, 1e14])
def test_error_stays_that_of_a_float32_sum(channels, scale):
    rng = np.random.default_rng(3)
    single = lambda *s: rng.standard_normal(s).astype(np.float32).astype(np.float64)  # noqa: E731
    x = (single(3, channels, 21, 22) * scale).astype(np.float32).astype(np.float64)
    w, g = single(channels, channels, 3, 3), single(3, channels, 21, 22)
    wanted = reference(x, w, g, (1, 1), (1, 1), (1, 1), 1)
    for ours, ref in zip(gradients(x, w, g, 1), wanted, strict=True):
        size = np.sqrt((ref**2).mean())
        assert np.abs(ours - ref).max() < 6e-6 * size
        assert np.sqrt(((ours - ref) ** 2).mean()) < 1e-6 * size


# As CASES: sums of many products, which are not to be one long chain of additions.
LONG = [
    (64, 1, 32, 40, (7, 7), (1, 1), (1, 1), (0, 0), (1, 1)),
    (6, 1, 32, 33, (30, 31), (1, 1), (1, 1), (0, 0), (1, 1)),
    (1, 1, 1024, 9, (7, 7), (1, 1), (1, 1), (0, 0), (1, 1)),
    (1, 4, 128, 64, (7, 9), (1, 1), (1, 1), (0, 0), (1, 1)),
    (1, 1, 512, 17, (14, 14), (3, 3), (2, 2), (1, 1), (1, 1)),
    (1, 1, 64, 16, (14, 20), (7, 7), (1, 1), (3, 3), (1, 1)),
    (2, 1, 320, 24, (130,), (3,), (1,), (1,), (1,)),
    (1, 1, 128, 24, (4, 8, 8), (3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1)),
    (1, 1, 512, 32, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 1, 256, 32, (14, 15), (4, 4), (2, 2), (1, 1), (1, 1)),
]


@pytest.mark.parametrize("case", LONG, ids=str)
def test_long_sums_are_as_exact_as_short_ones(case):
    batch, groups, inputs, outputs, size, kernel, *how = case
    rng = np.random.default_rng(5)
    single = lambda *s: rng.standard_normal(s).astype(np.float32).astype(np.float64)  # noqa: E731
    x, w = single(batch, groups * inputs, *size), single(groups * outputs, inputs, *kernel)
    y, _, _ = reference(x, w, None, *how, groups)
    g = single(*y.shape)
    wanted = reference(x, w, g, *how, groups)
    conv = [F.conv1d, F.conv2d, F.conv3d][len(size) - 1]
    ours = [torch.tensor(a.astype(np.float32)).requires_grad_() for a in (x, w)]
    y = conv(*ours, None, *how, groups)
    found = (y, *torch.autograd.grad(y, ours, torch.tensor(g.astype(np.float32))))
    # A weight gradient of 1x1 is a matrix product. Portable ones sum longer chains: of 256 products
    # such an error is 3.1e-7 in a simulation with NumPy.
    product = os.environ.get("PYTENSORLIB_CPU") == "portable" and set(kernel) == {1}
    bound = 4e-7 if product else 3e-7
    for one, ref in zip(found, wanted, strict=True):
        error, scale = one.detach().numpy() - ref, np.sqrt((ref**2).mean())
        assert np.abs(error).max() < 2e-6 * scale
        assert np.sqrt((error**2).mean()) < bound * scale


@pytest.mark.parametrize("bad", [np.inf, np.nan, 1e30, 1e6])
def test_one_wild_number_does_not_reach_results_that_do_not_read_it(bad):
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((2, 32, 20, 20)), rng.standard_normal((32, 32, 3, 3))
    g = rng.standard_normal((2, 32, 20, 20))
    good = gradients(x, w, g, 1)
    away = np.ones((2, 32, 20, 20), bool)
    away[1, :, 4:7, 8:11] = False
    spoilt = x.copy()
    spoilt[1, 7, 5, 9] = bad
    y, gx, gw = gradients(spoilt, w, g, 1)
    np.testing.assert_allclose(y[away], good[0][away], atol=2e-4)
    np.testing.assert_allclose(gx, good[1], atol=1e-3)
    others = np.arange(32) != 7
    np.testing.assert_allclose(gw[:, others], good[2][:, others], atol=2e-3)
    assert (np.abs(gw[:, 7] - good[2][:, 7]) > 1).any() or np.isnan(bad)
    spoilt = g.copy()
    spoilt[1, 7, 5, 9] = bad
    _, gx, gw = gradients(x, w, spoilt, 1)
    np.testing.assert_allclose(gx[away], good[1][away], atol=2e-4)
    np.testing.assert_allclose(gw[others], good[2][others], atol=2e-3)
    spoilt = w.copy()
    spoilt[3, 7, 1, 1] = bad
    y, _, _ = gradients(x, spoilt, g, 1)
    np.testing.assert_allclose(y[:, np.arange(32) != 3], good[0][:, np.arange(32) != 3], atol=2e-4)


@pytest.mark.parametrize("channels", [24, 64])
def test_results_do_not_depend_on_threads(channels):
    x, w = torch.randn(5, channels, 30, 30), torch.randn(20, channels, 3, 3)
    x.requires_grad_()
    w.requires_grad_()
    g, before = torch.randn(5, 20, 30, 30), torch.get_num_threads()

    def run(threads):
        torch.set_num_threads(threads)
        y = F.conv2d(x, w, padding=1)
        return [t.detach().numpy().tobytes() for t in (y, *torch.autograd.grad(y, (x, w), g))]

    try:
        assert run(1) == run(2) == run(3)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("bias", [False, True])
def test_transposed_convolution_with_a_kernel_larger_than_the_source_is_its_sum(spatial, bias):
    rng = np.random.default_rng(spatial)
    size, kernel = ((3,), (90,)) if spatial == 1 else ((2, 1, 2)[:spatial], (3, 40, 5)[:spatial])
    stride, padding, dilation = (2, 1, 3)[:spatial], (1, 2, 0)[:spatial], (1, 2, 2)[:spatial]
    x, w = rng.standard_normal((2, 3, *size)), rng.standard_normal((3, 4, *kernel))
    b = rng.standard_normal(4) if bias else np.zeros(4)
    full = [(n - 1) * s + (k - 1) * d + 2 for n, k, s, d in zip(size, kernel, stride, dilation)]
    want = np.zeros((2, 4, *full))
    for i in np.ndindex(*size):
        for k in np.ndindex(*kernel):
            at = tuple(p * s + q * d for p, q, s, d in zip(i, k, stride, dilation))
            product = np.einsum("nc,co->no", x[(..., *i)], w[(..., *k)])
            want[(slice(None), slice(None), *at)] += product
    # One more row at the end, by output_padding, before the padding is cut off.
    extra = tuple(min(1, max(s, d) - 1) for s, d in zip(stride, dilation))
    ends = [n - 1 + e - p for n, e, p in zip(full, extra, padding)]
    cut = tuple(slice(p, end) for p, end in zip(padding, ends))
    want = want[(slice(None), slice(None), *cut)] + b.reshape(4, *[1] * spatial)
    tensors = [torch.tensor(v, requires_grad=True) for v in (x, w, b)]
    function = getattr(F, f"conv_transpose{spatial}d")

    def run(x, w, b):
        b = b if bias else None
        return function(x, w, b, stride, padding, extra, dilation=dilation)

    np.testing.assert_allclose(run(*tensors).detach().numpy(), want, atol=1e-12)
    assert torch.autograd.gradcheck(run, tensors, fast_mode=True)
    assert torch.autograd.gradgradcheck(run, tensors, fast_mode=True)


@pytest.mark.timed
def test_time_of_a_transposed_convolution_grows_with_the_kernel_not_its_square():
    def seconds(width):
        x, w = torch.ones(1, 2, 1, 4), torch.ones(2, 2, 1, width)
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            F.conv_transpose2d(x, w)
            best = min(best, time.perf_counter() - start)
        return best

    # Sixteen times as much work, at most; squares would be 256 times.
    assert seconds(32_000) < 80 * seconds(2000)


def test_conv_tbc_with_immense_padding_raises() -> None:
    x, w = torch.ones(5, 2, 3), torch.ones(3, 3, 4)
    for pad in (2**63 - 1, 2**62, -1):
        with pytest.raises(RuntimeError, match="overflow|negative padding"):
            torch.conv_tbc(x, w, torch.ones(4), pad)
