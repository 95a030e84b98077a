"""Error bounds of functions in units in the last place, their special values, random numbers."""

import math

import numpy as np
import pytest

import pytensorlib as torch

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# The function, its reference, arguments, and the bounds in float32 and float64.
BOUNDS = [
    ("exp", np.exp, (-745, 709), 1, 1),
    ("exp", np.exp, (-2, 2), 1, 1),
    ("exp2", np.exp2, (-1074, 1023), 1, 1),
    ("expm1", np.expm1, (-2, 2), 1.5, 2),
    ("log", np.log, (0.5, 2), 1, 1),
    ("log", np.log, (1e-300, 1e300), 1, 1),
    ("log2", np.log2, (0.5, 2), 1.2, 1),
    ("log10", np.log10, (0.5, 2), 1, 1),
    ("log1p", np.log1p, (-0.9, 3), 1, 1),
    ("sin", np.sin, (-10, 10), 1, 1),
    ("cos", np.cos, (-10, 10), 1, 1),
    ("tan", np.tan, (-10, 10), 1, 1),
    ("sin", np.sin, (1e4, 1e12), 1, 1),
    ("cos", np.cos, (1e4, 1e12), 1, 1),
    ("tan", np.tan, (1e4, 1e12), 1, 1),
    ("asin", np.arcsin, (-1, 1), 1, 2),
    ("acos", np.arccos, (-1, 1), 1, 2),
    ("atan", np.arctan, (-20, 20), 1, 1),
    ("sinh", np.sinh, (-20, 20), 1, 2),
    ("cosh", np.cosh, (-20, 20), 1, 2),
    ("tanh", np.tanh, (-3, 3), 2, 2),
    ("asinh", np.arcsinh, (-20, 20), 1, 1),
    ("acosh", np.arccosh, (1, 20), 1, 1),
    ("atanh", np.arctanh, (-1, 1), 1, 1),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), (-20, 20), 2.5, 2),
    ("rsqrt", lambda x: 1 / np.sqrt(x), (0.01, 100), 1.5, 1.5),
]


def ulps(y, exact):
    """The distance of `y` from numbers of a wider type, in units of its own type's last place."""
    near = exact.astype(y.dtype)
    unit = np.spacing(np.abs(near))
    off = np.abs((y.astype(exact.dtype) - exact) / unit.astype(exact.dtype))
    return np.where((y == near) | (np.isnan(y) & np.isnan(near)), 0, off).max()


def spread(low, high, dtype, n=20_001):
    """Numbers of a range, spaced evenly, and by ratio where it spans powers of ten."""
    rng = np.random.default_rng(0)
    x = rng.uniform(low, high, n)
    if low > 0 and high / low > 1e3:
        x = np.exp(rng.uniform(np.log(low), np.log(high), n))
    return x.astype(dtype)


@pytest.mark.parametrize(("name", "reference", "limits", "single", "double"), BOUNDS)
def test_function_of_float32_stays_within_its_bound(name, reference, limits, single, double):
    x = spread(*limits, np.float32)
    x = x[np.isfinite(x) & (x != 0)]
    y = getattr(torch, name)(torch.from_numpy(x)).numpy()
    assert ulps(y, reference(x.astype(np.float64))) <= single


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no wider float to compare with")
@pytest.mark.parametrize(("name", "reference", "limits", "single", "double"), BOUNDS)
def test_function_of_float64_stays_within_its_bound(name, reference, limits, single, double):
    x = spread(*limits, np.float64)
    y = getattr(torch, name)(torch.from_numpy(x)).numpy()
    assert ulps(y, reference(x.astype(np.longdouble))) <= double


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no wider float to compare with")
@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 1), (np.float64, 1.5)])
def test_power_of_any_exponent_stays_within_its_bound(dtype, bound):
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(-5, 5, 20_001)).astype(dtype)
    for e in (2.5, -0.3, 7.0, 11.7, -2.0, -1.0, 4.0):
        y = torch.pow(torch.from_numpy(x), e).numpy()
        exact = np.power(x.astype(np.longdouble), np.longdouble(dtype(e)))
        assert ulps(y, exact) <= (2 if e == int(e) and abs(e) <= 4 else bound)
    e = rng.uniform(-9, 9, 20_001).astype(dtype)
    y = torch.pow(torch.from_numpy(x), torch.from_numpy(e)).numpy()
    assert ulps(y, np.power(x.astype(np.longdouble), e.astype(np.longdouble))) <= bound


def test_error_functions_agree_with_scipy():
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([np.linspace(-6, 27, 20_001), np.geomspace(1e-300, 1, 501)])
    for dtype, tolerance in [(np.float32, 2e-7), (np.float64, 3e-15)]:
        v = x.astype(dtype)
        t = torch.from_numpy(v)
        small = np.finfo(dtype).tiny
        for name in ("erf", "erfc"):
            want = getattr(special, name)(v.astype(np.float64))
            y = getattr(torch, name)(t).numpy()
            # SciPy's own tail is right to about 1e-13.
            np.testing.assert_allclose(y, want, max(tolerance, 2e-13), atol=small)
        u = np.linspace(-1, 1, 20_001).astype(dtype)
        want = special.erfinv(u.astype(np.float64))
        np.testing.assert_allclose(torch.erfinv(torch.from_numpy(u)).numpy(), want, tolerance)
        p = np.concatenate([np.geomspace(1e-30, 1, 2001), np.linspace(0, 1, 2001)]).astype(dtype)
        want = special.ndtri(p.astype(np.float64))
        y = torch.special.ndtri(torch.from_numpy(p)).numpy()
        np.testing.assert_allclose(y, want, tolerance, atol=tolerance)


def test_gamma_and_bessel_functions_agree_with_scipy():
    special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(0)
    positive = np.concatenate([rng.uniform(0, 12, 4001), np.exp(rng.uniform(-40, 40, 501))])
    signed = np.concatenate([rng.uniform(-30, 30, 4001), [0.0, 8.0, -8.0, 1e-30, 200.0]])
    rows = [
        ("lgamma", torch.lgamma, special.gammaln, positive),
        ("lgamma", torch.lgamma, special.gammaln, signed),
        ("digamma", torch.digamma, special.psi, positive),
        ("digamma", torch.digamma, special.psi, signed),
        ("trigamma", lambda x: torch.polygamma(1, x), lambda x: special.zeta(2.0, x), positive),
        ("i0", torch.i0, special.i0, signed),
        ("i0e", torch.special.i0e, special.i0e, signed),
        ("i1", torch.special.i1, special.i1, signed),
        ("i1e", torch.special.i1e, special.i1e, signed),
    ]
    for dtype, tolerance in [(np.float32, 2e-7), (np.float64, 4e-15)]:
        for name, f, reference, x in rows:
            x = x.astype(dtype)
            with np.errstate(over="ignore"):
                want = reference(x.astype(np.float64)).astype(dtype)
            y = f(torch.from_numpy(x)).numpy()
            np.testing.assert_allclose(y, want, tolerance, atol=tolerance / 4, err_msg=name)
    x = torch.tensor([0.0, -1.0, -0.5, 1.0, 2.0, float("inf"), float("nan")])
    inf, nan = float("inf"), float("nan")
    want = torch.tensor([inf, inf, 1.2655121, 0.0, 0.0, inf, nan])
    torch.testing.assert_close(torch.lgamma(x), want, equal_nan=True)


def test_lgamma_of_negative_float32_stays_within_one_ulp():
    special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(0)
    tiny = -np.exp(rng.uniform(-90, 1, 5_001))
    left = [rng.uniform(low, 0, 20_001) for low in (-3, -40, -120, -1e4)]
    x = np.concatenate([*left, tiny]).astype(np.float32)
    # SciPy's own is infinite, and wrong, from -171 on at some integers.
    x = x[x != np.round(x)]
    want = special.gammaln(x.astype(np.float64))
    # Left of -2 the reference has 1e-15 of the terms that cancel.
    far = np.abs(want) > 1e-6
    assert far.mean() > 0.99
    assert ulps(torch.from_numpy(x[far]).lgamma().numpy(), want[far]) <= 1
    np.testing.assert_allclose(torch.from_numpy(x).lgamma().numpy(), want, 2e-7, 1e-12)
    poles = torch.tensor([-0.0, 0.0, -1.0, -2.0, -7.0, -1e7, -3e38, -float("inf")]).repeat(9)
    assert torch.equal(poles.lgamma(), torch.full_like(poles, float("inf")))


def test_lgamma_and_digamma_of_float64_where_their_forms_meet():
    """Values to twenty digits by mpmath: near the zeros at 1 and 2, at 8, far left and right."""
    rows = {
        "lgamma": {
            1.00000001: -5.77215653168851219e-9,
            1.9999: -4.2275208772153458011e-5,
            0.9999999: 5.7721574684441928263e-8,
            2.0000001: 4.2278436665324979232e-8,
            1.48: -0.1213239621249295795,
            7.75: 8.0254583963159838712,
            1e-300: 690.77552789821370518,
            -0.25: 1.5895753125511859903,
            -7.9: -8.0720397360128331239,
        },
        "digamma": {
            0.001: -1000.5755719318102797,
            1e-300: -9.9999999999999997494e299,
            7.999: 2.0155083320903480383,
            8.0: 2.0156414779556099965,
            123.5: 4.8121871094331430726,
        },
    }
    for name, row in rows.items():
        x = torch.tensor(list(row), dtype=torch.float64)
        for t in (x, x.repeat(50)):
            y = getattr(torch, name)(t)[: len(x)]
            np.testing.assert_allclose(y.numpy(), list(row.values()), 2e-15, err_msg=name)
    zeros = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert zeros.lgamma().tolist() == [0, 0]
    ends = torch.tensor([0.0, -0.0, -3, -1e300, torch.inf, -torch.inf], dtype=torch.float64)
    assert torch.equal(ends.lgamma(), torch.full_like(ends, torch.inf))
    assert ends.digamma()[:2].tolist() == [-torch.inf, torch.inf]


def test_incomplete_gamma_of_mixed_arguments():
    special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(0)
    n = 3_001
    few, many = rng.uniform(0.01, 12, (2, n)), rng.uniform(0.01, 300, (2, n))
    wide = 10 ** rng.uniform(-40, 5, (2, n))
    # SciPy's own loses digits from there on.
    middle = 10 ** rng.uniform(0, 4, n)
    middle = np.stack([middle, middle + rng.normal(size=n) * 3 * np.sqrt(middle)]).clip(1e-3)
    ends = [0, 1e-45, 1e-38, 0.0099, 0.01, 1, 19.999, 20, 3e38, np.inf, np.nan, -1]
    edges = np.stack([v.ravel() for v in np.meshgrid(ends, ends)])
    for a, x in (few, many, wide, middle, edges):
        a, x = a.astype(np.float32), x.astype(np.float32)
        t, u = torch.from_numpy(a.copy()), torch.from_numpy(x)
        for name in ("gammainc", "gammaincc"):
            with np.errstate(all="ignore"):
                want = getattr(special, name)(a.astype(float), x.astype(float))
            y = getattr(torch.special, name)(t, u)
            np.testing.assert_allclose(y.numpy(), want.astype(np.float32), 2e-7, atol=2e-45)
            same = getattr(torch.special, name)(t, u, out=t)
            np.testing.assert_array_equal(same.numpy(), y.numpy())
            t = torch.from_numpy(a.copy())
    # Where the upper one is near zero with its order: mpmath.
    rows = [(1e-40, 0.5, 5.5977359477616077217e-41), (1e-5, 1e-20, 4.5464156338518807292e-4)]
    rows += [(0.0099, 0.9, 2.5998380211041456532e-3), (0.001, 1.0, 2.1960835758555639629e-4)]
    a, x, want = torch.tensor(rows, dtype=torch.float64).T
    np.testing.assert_allclose(torch.special.gammaincc(a, x).numpy(), want.numpy(), 1e-14)


EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, -5e-324, 1e-310, 1e-40, -1e-40]
EDGES += [
    1e308,
    -1e308,
    3e38,
    -3e38,
    1e10,
    -1e10,
    1e300,
    0.5,
    -0.5,
    2.0,
    709.9,
    -745.2,
    88.8,
    -104.0,
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_at_special_values_match_numpy(dtype):
    x = np.array(EDGES).astype(dtype)
    for name, reference in {b[0]: b[1] for b in BOUNDS}.items():
        # A length beyond one block, so that the vector loop has them too.
        y = getattr(torch, name)(torch.from_numpy(np.tile(x, 20))).numpy().reshape(20, -1)
        assert np.array_equal(y, np.tile(y[0], (20, 1)), equal_nan=True), name
        wide = np.longdouble if dtype == np.float64 else np.float64
        want = reference(x.astype(wide)).astype(dtype)
        if name == "sigmoid":
            want[x == -np.inf] = 0
        tolerance = 4 * np.finfo(dtype).eps
        np.testing.assert_allclose(y[0], want, tolerance, np.finfo(dtype).tiny, err_msg=name)
        zero = (want == 0) & (y[0] == 0)
        assert np.array_equal(np.signbit(y[0])[zero], np.signbit(want)[zero]), name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_power_at_special_values_matches_numpy(dtype):
    values = np.array([*EDGES, 3.0, -3.0, 2.5, -2.5, 1e20, -1e20], dtype=dtype)
    x, e = (v.ravel() for v in np.meshgrid(values, values))
    y = torch.pow(torch.from_numpy(x), torch.from_numpy(e)).numpy()
    want = np.power(x, e)
    np.testing.assert_allclose(y, want, 1e-6 if dtype == np.float32 else 1e-14)
    assert np.array_equal(np.signbit(y)[y == 0], np.signbit(want)[y == 0])
    for number in (0.0, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, 0.5, 2.5):
        y = torch.pow(torch.from_numpy(values), number).numpy()
        # The square in 1 / x^2 may leave the range where the result is subnormal.
        want = np.power(values, dtype(number)) if number != -2 else 1 / (values * values)
        if number == 0.5:
            want[values == -np.inf] = np.nan
        np.testing.assert_allclose(y, want, 1e-6 if dtype == np.float32 else 1e-14)


def test_element_does_not_depend_on_its_neighbours():
    x = torch.randn(1000) * 10
    alone = torch.stack([torch.sin(v) for v in x[:200]])
    y = x.clone()
    y[::7] = 1e30
    for n in (200, 127, 128, 129, 1):
        assert torch.equal(torch.sin(x[:n]), alone[:n])
        keep = torch.arange(n) % 7 != 0
        assert torch.equal(torch.sin(y[:n])[keep], alone[:n][keep])
    z = y.clone()
    z.sin_()
    assert torch.equal(z, torch.sin(y))
    v = y.clone().requires_grad_()
    torch.sin(v).sum().backward()
    assert torch.equal(v.grad, torch.cos(y))


def test_bernoulli_ones_follow_the_uniform_numbers():
    for n in (1, 15, 513, 2000):
        torch.manual_seed(n)
        u = torch.rand(n, dtype=torch.float64)
        for dtype in (torch.float32, torch.float64, torch.int64, torch.bool):
            torch.manual_seed(n)
            assert torch.equal(torch.zeros(n, dtype=dtype).bernoulli_(0.3), (u < 0.3).to(dtype))
        for p in (0.0, 1.0):
            assert torch.equal(torch.zeros(n).bernoulli_(p), torch.full((n,), p))


def test_randperm_and_randint_follow_their_words():
    def words(n):
        torch.manual_seed(9)
        return torch.randint(0, 1 << 27, (n,)).numpy()

    for n in (1, 2, 257, 1000, 70_000):
        torch.manual_seed(9)
        order = torch.randperm(n).numpy()
        torch.manual_seed(9)
        assert np.array_equal(torch.randperm(n, dtype=torch.int32).numpy(), order)
        assert np.array_equal(np.sort(order), np.arange(n))
    for m in (1, 2, 64, 4096):
        torch.manual_seed(9)
        assert np.array_equal(torch.randint(0, m, (3000,)).numpy(), words(3000) % m)


def test_dropout_of_any_size_masks_and_scales():
    for n in (1, 255, 256, 257, 5000):
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            x = (torch.rand(n) + 1).to(dtype).requires_grad_()
            y = torch.nn.functional.dropout(x, 0.25)
            kept = y != 0
            want = torch.where(kept, x.detach() * (1 / 0.75), torch.zeros_like(y))
            torch.testing.assert_close(y.detach(), want)
            y.backward(torch.ones_like(y))
            torch.testing.assert_close(x.grad, kept.to(dtype) * (1 / 0.75))
    share = (torch.nn.functional.dropout(torch.ones(100_000), 0.25) != 0).float().mean().item()
    assert abs(share - 0.75) < 0.01
    assert not torch.nn.functional.dropout(torch.ones(1000), 1.0).any()


def test_bessel_and_airy_functions_for_large_arguments_agree_with_scipy():
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([np.geomspace(1e-6, 2, 200), np.linspace(1.9, 2.1, 50)])
    x = np.concatenate([x, np.linspace(2, 300, 200), np.geomspace(300, 1e8, 50)])
    for name, reference in (
        ("scaled_modified_bessel_k0", special.k0e),
        ("scaled_modified_bessel_k1", special.k1e),
    ):
        y = getattr(torch.special, name)(torch.tensor(x)).numpy()
        np.testing.assert_allclose(y, reference(x), rtol=4e-15, err_msg=name)
    x = np.linspace(-8, 100, 700)
    y = torch.special.airy_ai(torch.tensor(x)).numpy()
    np.testing.assert_allclose(y, special.airy(x)[0], rtol=4e-13, atol=4e-15)


def test_oscillating_bessel_functions_agree_with_scipy():
    special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 60, 4001), np.geomspace(1e-300, 1e6, 801), [8.0, 1e12]])
    for name in ("j0", "j1", "y0", "y1"):
        want = getattr(special, name)(x)
        f = getattr(torch.special, f"bessel_{name}")
        y = f(torch.tensor(x)).numpy()
        # Of the size near a crest, or of the value where that is larger; SciPy rounds the angle.
        crest = np.maximum(np.minimum(1, 1 / np.sqrt(x)), np.abs(want))
        assert (np.abs(y - want) / crest / (1 + 0.1 * x))[want > -np.inf].max() < 3e-15, name
        single = x[x < 1e5].astype(np.float32)
        want = getattr(special, name)(single.astype(np.float64)).astype(np.float32)
        y = f(torch.tensor(single)).numpy()
        crest = np.maximum(np.minimum(1, 1 / np.sqrt(single)), np.abs(want))
        assert (np.abs(y - want) / crest)[np.isfinite(want)].max() < 2e-7, name
    inf = math.inf
    x = torch.tensor([0.0, -0.0, inf, -inf, math.nan, -2.5, 2.5], dtype=torch.float64)
    for name, want in {
        "j0": [1.0, 1.0, 0.0, 0.0, math.nan],
        "j1": [0.0, 0.0, 0.0, 0.0, math.nan],
        "y0": [-inf, -inf, 0.0, math.nan, math.nan],
        "y1": [-inf, -inf, 0.0, math.nan, math.nan],
    }.items():
        y = getattr(torch.special, f"bessel_{name}")(x).numpy()
        np.testing.assert_array_equal(y[:5], want)
        sign = {"j0": 1, "j1": -1}.get(name, math.nan)
        np.testing.assert_array_equal(y[5], sign * y[6])
    # The angle of a number beyond the vector code's reach is reduced exactly.
    y = torch.special.bessel_j0(torch.tensor([1.0, 1e17], dtype=torch.float64)).tolist()
    assert y == pytest.approx([0.7651976865579666, -2.408723548367383e-09])


def test_scaled_error_function_and_logarithm_of_the_normal_area_agree_with_scipy():
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([np.linspace(-26, 60, 4001), np.linspace(-1, 1, 2001), [19.999, 20.0, 1e8]])
    y = torch.special.erfcx(torch.tensor(x)).numpy()
    # SciPy's is e^(x^2) of a rounded square on the left.
    right = x > -2
    np.testing.assert_allclose(y[right], special.erfcx(x[right]), rtol=2e-15)
    np.testing.assert_allclose(y, special.erfcx(x), rtol=1e-13)
    y = torch.special.erfcx(torch.tensor(x, dtype=torch.float32)).numpy()
    single = x.astype(np.float32).astype(np.float64)
    with np.errstate(over="ignore"):
        want = special.erfcx(single).astype(np.float32)
    np.testing.assert_allclose(y, want, rtol=1.3e-7)
    # By 40 digits of mpmath.
    x = torch.tensor([-60.0, -20.0, -2.0, -0.65, 0.0, 0.65, 2.0, 8.5, 38.0], dtype=torch.float64)
    want = [
        -1805.0135606805673,
        -203.91715537109727,
        -3.783184333682032,
        -1.3553923417640765,
        -0.6931471805599453,
        -0.2981986594829527,
        -0.02301290932896349,
        -9.479534822203318e-18,
        -2.88542835e-316,
    ]
    np.testing.assert_allclose(torch.special.log_ndtr(x).numpy(), want, rtol=1e-15)
    inf = math.inf
    edges = torch.tensor([inf, -inf, math.nan, 1e300, -1e300], dtype=torch.float64)
    y = torch.special.erfcx(edges).numpy()
    np.testing.assert_allclose(y, [0.0, inf, math.nan, 5.641895835477563e-301, inf])
    y = torch.special.log_ndtr(edges).numpy()
    np.testing.assert_array_equal(y, [0.0, -inf, math.nan, 0.0, -inf])


def test_remainders_by_denormals_are_exact_as_in_c():
    d = 5e-324
    x, by = [1.0, -1.0, 1e300, 7 * d, -7 * d], [d, d, 3 * d, 2 * d, 3 * d]
    a, b = torch.tensor(x, dtype=torch.float64), torch.tensor(by, dtype=torch.float64)
    y = torch.fmod(a, b)
    expected = [math.fmod(p, q) for p, q in zip(x, by, strict=True)]
    assert y.tolist() == expected
    assert torch.remainder(a, b).tolist() == [p % q for p, q in zip(x, by, strict=True)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_remainders_by_numbers_round_the_number_to_half(dtype):
    x = torch.linspace(-20, 20, 100).to(dtype)
    for number in (0.3, -1.7, 6e-8):
        by = torch.full((100,), number, dtype=dtype)
        assert torch.equal(torch.fmod(x, number), torch.fmod(x, by))
        assert torch.equal(x % number, x % by)
        y = x.clone()
        y %= number
        assert torch.equal(y, x % by)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_atan2_within_its_bound(dtype):
    edges = [0.0, -0.0, 1, -2, 1e-45, 3e38, -3e38, np.inf, -np.inf, np.nan]
    e = np.array(edges, dtype)
    y, x = (v.ravel() for v in np.meshgrid(e, e))
    rng = np.random.default_rng(0)
    more = rng.standard_normal((2, 20_000)) * 10.0 ** rng.integers(-5, 5, (2, 20_000))
    y, x = (np.concatenate([a, b.astype(dtype)]) for a, b in ((y, more[0]), (x, more[1])))
    exact = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    got = torch.atan2(torch.from_numpy(y), torch.from_numpy(x)).numpy()
    assert ulps(got, exact) <= (0.51 if dtype == "float32" else 2)
    number = ~np.isnan(exact)
    assert np.array_equal(np.signbit(got[number]), np.signbit(exact[number]))


@pytest.mark.parametrize(
    ("dtype", "digits", "least", "bound"),
    [("bfloat16", 7, -126, 0.504), ("float16", 10, -14, 0.54)],
)
def test_gelu_of_every_half_within_its_bound(dtype, digits, least, bound):
    """In units in the last place, where the result is at least 2e-37."""
    special = pytest.importorskip("scipy.special")
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
    x = torch.from_numpy(bits).view(getattr(torch, dtype))
    y = torch.nn.functional.gelu(x).double().numpy()
    x = x.double().numpy()
    exact = x * special.ndtr(x)
    size = np.abs(exact)
    plain = np.isfinite(x) & (size >= 2e-37)
    unit = 2.0 ** (np.maximum(np.floor(np.log2(size[plain])), least) - digits)
    assert (np.abs(y - exact)[plain] / unit).max() <= bound
    rest = np.isfinite(x) & ~plain
    assert np.abs(y - exact)[rest].max() <= 2e-37
    assert np.isnan(y[np.isnan(x) | (x == -np.inf)]).all()
    assert (y[x == np.inf] == np.inf).all()


@pytest.mark.parametrize("n", [1, 15, 16, 33, 1000, 70_001])
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_gelu_float32_and_its_gradient_within_their_bounds(n, scale):
    """The area left of x to 2^-23, the slope to 2^-22 of the largest number in it."""
    special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(n)
    x = (rng.standard_normal(n) * scale).astype(np.float32)
    x[: min(n, 3)] = [0.0, -40.0, 40.0][: min(n, 3)]
    g = rng.standard_normal(n).astype(np.float32)
    t = torch.from_numpy(x).requires_grad_()
    y = torch.nn.functional.gelu(t)
    y.backward(torch.from_numpy(g))
    d = x.astype(np.float64)
    assert (np.abs(y.detach().numpy() - d * special.ndtr(d)) <= 2.0**-23 * np.abs(d)).all()
    slope = special.ndtr(d) + d * np.exp(-d * d / 2) / np.sqrt(2 * np.pi)
    assert (np.abs(t.grad.numpy() - g * slope) <= 2.0**-22 * np.abs(g)).all()
    ends = torch.tensor([np.inf, -np.inf, np.nan, -0.0])
    y = torch.nn.functional.gelu(ends).numpy()
    assert y[0] == np.inf
    assert np.isnan(y[1:3]).all()
    assert np.signbit(y[3])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sign_of_every_half(dtype):
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = torch.from_numpy(bits.view(np.int16)).view(getattr(torch, dtype))
    number = ~np.isnan(x.double().numpy())
    for strided in (False, True):
        v = x.reshape(256, 256).t() if strided else x
        want = bits.reshape(256, 256).T if strided else bits
        keep = number.reshape(256, 256).T if strided else number
        for y, e in ((-v, want ^ 0x8000), (v.abs(), want & 0x7FFF)):
            got = y.contiguous().view(torch.int16).numpy().view(np.uint16)
            assert np.array_equal(got[keep], e[keep])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("n", [1, 17, 33, 70_001])
def test_sums_and_products_of_halves_round_once(dtype, n):
    """As float32, where they are exact or rounded far below, and then to the type."""
    rng = np.random.default_rng(n)
    bits = rng.integers(0, 1 << 16, (2, n)).astype(np.uint16).view(np.int16)
    a, b = (torch.from_numpy(row).view(getattr(torch, dtype)) for row in bits)
    wide = [a.float(), b.float()]
    for f in (torch.add, torch.sub, torch.mul):
        got, want = f(a, b), f(*wide).to(a.dtype)
        number = ~torch.isnan(want)
        assert torch.equal(torch.isnan(got), ~number)
        assert torch.equal(got[number].view(torch.int16), want[number].view(torch.int16))
