"""Numbers at the ends of what a shader can hold, through wgpu-py: 64-bit integers of every size,
large angles, denormals, zeros with a sign.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from shader_runs import close, floats, needs, pointwise
from test_shaders_math import BINARY

LARGE = np.concatenate([
    np.geomspace(1.2e4, 3.4e38, 6000), 2.0 ** np.arange(14, 128), [1e10, 16777216, 123456.8],
    # The multiples of a quarter turn that come nearest to a float32.
    np.arange(1, 4000) * np.pi * 1e4, [367.0 * 2**21, 13195360.0 * 2**78],
]).astype(np.float32)  # fmt: skip


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_math_f32_of_large_angles_matches_float64(name):
    x = np.concatenate([LARGE, -LARGE])
    y = pointwise(f"fn op(a: Acc) -> Acc {{ return m_{name}(a); }}", "f32", np.zeros_like(x), [x])
    want = getattr(np, name)(x.astype(np.float64))
    np.testing.assert_allclose(y, want, rtol=1e-6 if name == "tan" else 3e-7, atol=1.5e-7)
    assert name == "tan" or np.abs(y).max() <= 1


WIDE = np.array(
    [0, 1, -1, 2**31, 2**31 - 1, -(2**31), -(2**31) - 1, 2**32, 2**32 - 1, -(2**32), 3 * 10**9,
     2**40, -(2**40), 2**40 + 2**31, 2**53 + 1, 2**62 + 2**38 + 1, 2**62 - 1, -100, -300,
     -(2**62) - 2**38, 2**63 - 1, -(2**63)],
    np.int64,
)  # fmt: skip


@pytest.mark.parametrize("to", ["int64", "float64", "float32", "int32"])
def test_int64_values_survive_every_reader(to):
    op = "fn op(a: Acc) -> Acc { return a; }"
    for acc in ("i64", "f64", "f32"):
        if (acc == "f32") != (to == "float32") or (acc == "f64") != (to == "float64"):
            continue
        needs(acc)
        y = pointwise(op, acc, np.zeros(WIDE.size, to), [WIDE])
        np.testing.assert_array_equal(y, WIDE.astype(to), err_msg=acc)


def test_int64_arithmetic_carries_into_the_high_word():
    needs("i64")
    with np.errstate(over="ignore"):
        for text, want in {"a + Acc(1)": WIDE + 1, "a * a": WIDE * WIDE, "-a": -WIDE}.items():
            op = f"fn op(a: Acc) -> Acc {{ return {text}; }}"
            y = pointwise(op, "i64", np.zeros_like(WIDE), [WIDE])
            np.testing.assert_array_equal(y, want, err_msg=text)


def test_float32_to_int64_truncates_any_size():
    x = np.array(
        [2**31, -(2**31), 3e9, -3e9, 1.5, -1.5, 2**40, -1e18, 9.2e18, -(2.0**63)], np.float32
    )
    y = pointwise("fn op(a: Acc) -> Acc { return a; }", "f32", np.zeros(x.size, np.int64), [x])
    np.testing.assert_array_equal(y, x.astype(np.int64))


TINY = np.array([1e-45, -3e-45, 1e-40, 1.1754942e-38, -1e-39], np.float32)


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_div"])
def test_math_f32_division_of_any_sizes_matches_numpy(name):
    some = np.concatenate([TINY, floats(40), np.geomspace(1e-37, 3e38, 40)]).astype(np.float32)
    a, b = (v.ravel() for v in np.meshgrid(some, some))
    op = f"fn op(a: Acc, b: Acc) -> Acc {{ return m_{name}(a, b); }}"
    y = pointwise(op, "f32", np.zeros_like(a), [a, b])
    if name == "fmod":
        np.testing.assert_array_equal(y.view(np.int32), np.fmod(a, b).view(np.int32))
        return
    with np.errstate(all="ignore"):
        want = BINARY[name](a, b)
        plain = BINARY[name](a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    # An adapter may count denormal results as zeros. A quotient one off where it is rounded in
    # float32 is what float32 gives elsewhere too.
    same = np.isclose(y, want, rtol=1e-6, atol=1.2e-38) | np.isclose(
        y, plain, rtol=1e-6, atol=1.2e-38
    )
    assert same.all(), [(a[i], b[i], y[i], want[i]) for i in np.flatnonzero(~same)[:5]]


def test_math_f32_zeros_denormals_and_extremes():
    def at(text, *x):
        args = ", ".join(f"{v}: Acc" for v in "ab"[: len(x)])
        op = f"fn op({args}) -> Acc {{ return {text}; }}"
        return pointwise(op, "f32", np.zeros_like(x[0]), list(x))

    zeros = np.array([0.0, -0.0], np.float32)
    for name in ("expm1", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "log1p",
                 "erf", "erfinv", "sqrt", "floor", "ceil", "trunc", "round"):  # fmt: skip
        np.testing.assert_array_equal(np.signbit(at(f"m_{name}(a)", zeros)), [False, True], name)
    positive = np.abs(TINY)
    for name, f in {"ln": np.log, "log2": np.log2, "log10": np.log10}.items():
        close(at(f"m_{name}(a)", positive), f(positive.astype(np.float64)))
    close(at("m_lgamma(a)", TINY), -np.log(positive.astype(np.float64)))
    assert np.isnan(at("m_ln(a)", -positive)).all()
    signs = at("m_sign(a)", np.array([np.nan, 0.0, -0.0, 1e-40, -1e-40], np.float32))
    np.testing.assert_array_equal(signs, [0, 0, 0, 1, -1])
    assert not np.signbit(signs[:3]).any()
    huge = np.array([3e38, 3e38, 1.0000001, 0.9999999, -3e38], np.float32)
    powers = np.array([3e38, -3e38, 3e38, 3e38, 3e38], np.float32)
    np.testing.assert_array_equal(at("m_pow(a, b)", huge, powers), [np.inf, 0, np.inf, 0, np.inf])


SMALL = np.concatenate([np.geomspace(1e-30, 0.9, 3000), -np.geomspace(1e-30, 0.9, 3000)])
RELATIVE = {
    "log1p": np.log1p, "asinh": np.arcsinh, "atanh": np.arctanh, "expm1": np.expm1, "sin": np.sin,
    "sinh": np.sinh, "tanh": np.tanh, "erf": special.erf,
}  # fmt: skip


@pytest.mark.parametrize("name", RELATIVE)
def test_math_f32_near_zero_keeps_every_digit(name):
    x = SMALL.astype(np.float32)
    y = pointwise(f"fn op(a: Acc) -> Acc {{ return m_{name}(a); }}", "f32", np.zeros_like(x), [x])
    np.testing.assert_allclose(y, RELATIVE[name](x.astype(np.float64)), rtol=6e-7)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_polygamma_of_negative_numbers_and_at_poles(n):
    x = np.array([-0.5, -2.5, -0.001, -30.25, -1000.5, 0.0, -1.0, -7.0, np.inf, 0.75, 40])
    op = f"fn op(a: Acc) -> Acc {{ return m_polygamma({n}u, a); }}"
    y = pointwise(op, "f32", np.zeros(x.size, np.float32), [x.astype(np.float32)])
    # The recurrence of the Hurwitz zeta function down from where SciPy has it.
    exact = x.astype(np.float32).astype(np.float64)
    sign, want = (-1.0) ** (n + 1), []
    for v in exact:
        if v <= 0 and v == np.floor(v):
            want.append(sign * np.inf)
            continue
        steps = np.arange(max(0, np.ceil(-v)))
        below = ((v + steps) ** -(n + 1.0)).sum()
        zeta = 0.0 if np.isinf(v) else special.zeta(n + 1, v + steps.size)
        want.append(sign * special.factorial(n) * (below + zeta))
    np.testing.assert_allclose(y, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("acc", ["f32", "f64"])
def test_float_to_integer_beyond_its_range_is_the_smallest_as_on_x86(acc):
    needs(acc)
    x = np.array([1e10, -1e10, 3e38, 2.0**63, -(2.0**63), np.inf, -np.inf, np.nan, 2.0**31, -3.7])
    x = x.astype(np.float32 if acc == "f32" else np.float64)
    op = "fn op(a: Acc) -> Acc { return a; }"
    small, wide = -(2**31), -(2**63)
    y = pointwise(op, acc, np.zeros(10, np.int32), [x])
    np.testing.assert_array_equal(y, [small] * 9 + [-3])
    y = pointwise(op, acc, np.zeros(10, np.int64), [x])
    assert list(y) == [10**10, -(10**10), wide, wide, wide, wide, wide, wide, 2**31, -3]
    y = pointwise(op, acc, np.zeros(10, np.uint8), [x])
    np.testing.assert_array_equal(y, [0] * 9 + [253])
