"""Functions of numbers in shaders, through wgpu-py: IEEE 754, rounding, special values, Philox."""

from __future__ import annotations

import re

import numpy as np
import pytest
from shader_runs import SHADERS, floats, needs, pointwise, rng

special = pytest.importorskip("scipy.special")

ENDS = [0, 1, 2, 7, 100, 3e38, 3.4028235e38, 2.0**126, 2.0**127, 2.0**-126, 2.0**-127, 1e-40]
ENDS += [1e-45, 3 * 2.0**-149, 1.1754942e-38, 0.99999994, 1.0000001, 1.9999999, np.inf, np.nan]
ENDS = np.float32(ENDS + [-x for x in ENDS])


@pytest.mark.parametrize("acc", ["f32", "f64"])
def test_comparisons_know_nan_zeros_and_denormals(acc):
    needs(acc)
    dtype = np.dtype(acc.replace("f", "float"))
    a, b = (v.ravel() for v in np.meshgrid(ENDS.astype(dtype), ENDS.astype(dtype)))
    for name, want in [("less", a < b), ("at_most", a <= b), ("equal", a == b)]:
        op = f"fn op(a: Acc, b: Acc) -> Acc {{ return select(Acc(0), Acc(1), {name}(a, b)); }}"
        np.testing.assert_array_equal(pointwise(op, acc, np.zeros(len(a), bool), [a, b]), want)
    none = np.isnan(a) | np.isnan(b)
    more, fewer = a > b, a < b
    for name, first in [("larger", more), ("m_max", more), ("smaller", fewer), ("m_min", fewer)]:
        op = f"fn op(a: Acc, b: Acc) -> Acc {{ return {name}(a, b); }}"
        got = pointwise(op, acc, np.zeros_like(a), [a, b])
        # Of equal ones, which zeros are, the second.
        want = np.where(none, dtype.type(np.nan), np.where(first, a, b))
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[~none], np.signbit(want)[~none])


def quotients():
    """Returns pairs at the ends, of any bits, of small integers, and near one and two."""
    rng = np.random.default_rng(0)
    n = 200000
    yield [v.ravel() for v in np.meshgrid(ENDS, ENDS)]
    yield rng.integers(0, 2**32, (2, n), dtype=np.uint32).view(np.float32)
    yield np.float32([rng.integers(-(2**24), 2**24, n), rng.integers(1, 300, n)])
    # Quotients that are denormal, and that are near a power of two.
    tiny = rng.integers(2**20, 2**27, n, dtype=np.uint32).view(np.float32)
    yield np.float32([tiny, 1 + rng.random(n) * 1e4])
    near = rng.integers(1, 64, (2, n)) * 2.0**-23
    yield np.float32([1 + near[0], 2 - near[1]])


@pytest.mark.parametrize("far", [0, 2, 4])
def test_quotients_are_rounded_once_whatever_the_driver_estimates(far):
    text = (SHADERS / "prelude.wgsl").read_text()
    text = re.search(r"^fn quotient\(.*?^}\n", text, re.MULTILINE | re.DOTALL).group()
    text = text.replace("fn quotient(", "fn from_worse(")
    # Off by up to so many units in the last place, either way.
    worse = f"bitcast<f32>(bitcast<u32>(exact) + position % {2 * far + 1}u - {far}u)"
    text, found = re.subn(
        r"let estimate = (.*);", rf"let exact = \1;\n    let estimate = {worse};", text
    )
    assert found == 1
    op = text + "fn op(a: Acc, b: Acc) -> Acc { return from_worse(a, b); }"
    for a, b in quotients():
        with np.errstate(all="ignore"):
            want = a / b
        got = pointwise(op, "f32", np.zeros_like(a), [a, b])
        np.testing.assert_array_equal(got, want)
        signs = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[signs], np.signbit(want)[signs])


SPREAD = np.concatenate([
    np.linspace(-12, 12, 4001), np.linspace(-1, 1, 2001), np.geomspace(1e-30, 1e30, 500),
    -np.geomspace(1e-30, 1e30, 500),
]).astype(np.float32)  # fmt: skip

POSITIVE = np.geomspace(1e-37, 3e38, 4000).astype(np.float32)

UNIT = np.linspace(-1, 1, 4001).astype(np.float32)

ANGLES = np.linspace(-9000, 9000, 5001).astype(np.float32)

MATH = {
    "exp": (np.exp, SPREAD, 3e-7), "exp2": (np.exp2, SPREAD, 3e-7),
    "expm1": (np.expm1, SPREAD, 5e-7), "ln": (np.log, POSITIVE, 2e-7),
    "log2": (np.log2, POSITIVE, 3e-7), "log10": (np.log10, POSITIVE, 3e-7),
    "log1p": (np.log1p, np.concatenate([UNIT[1:], POSITIVE]), 5e-7),
    "sin": (np.sin, ANGLES, 3e-7), "cos": (np.cos, ANGLES, 3e-7),
    "tan": (np.tan, np.linspace(-1.5, 1.5, 3001).astype(np.float32), 1e-6),
    "asin": (np.arcsin, UNIT, 6e-7), "acos": (np.arccos, UNIT, 6e-7),
    "atan": (np.arctan, SPREAD, 3e-7), "sinh": (np.sinh, SPREAD, 2e-6),
    "cosh": (np.cosh, SPREAD, 2e-6), "tanh": (np.tanh, SPREAD, 5e-7),
    "asinh": (np.arcsinh, SPREAD, 1e-6), "acosh": (np.arccosh, POSITIVE[POSITIVE >= 1], 1e-6),
    "atanh": (np.arctanh, UNIT[1:-1], 1e-6), "sigmoid": (special.expit, SPREAD, 5e-7),
    "erf": (special.erf, SPREAD, 3e-7), "erfc": (special.erfc, SPREAD[SPREAD < 9], 2e-6),
    "erfinv": (special.erfinv, UNIT, 3e-6),
    "lgamma": (special.gammaln, np.linspace(-5.3, 50, 997).astype(np.float32), 2e-5),
    "digamma": (special.digamma, np.linspace(0.1, 50, 997).astype(np.float32), 3e-6),
    "floor": (np.floor, SPREAD, 0), "ceil": (np.ceil, SPREAD, 0), "round": (np.rint, SPREAD, 0),
    "trunc": (np.trunc, SPREAD, 0), "sqrt": (np.sqrt, POSITIVE, 1.3e-7),
}  # fmt: skip


@pytest.mark.parametrize("name", MATH)
def test_math_f32_matches_float64(name):
    f, x, tolerance = MATH[name]
    y = pointwise(f"fn op(a: Acc) -> Acc {{ return m_{name}(a); }}", "f32", np.zeros_like(x), [x])
    with np.errstate(all="ignore"):
        want = f(x.astype(np.float64)).astype(np.float32)
    normal = np.abs(want) > 1e-37
    np.testing.assert_allclose(y[normal], want[normal], rtol=tolerance, atol=tolerance / 4)


@pytest.mark.parametrize("name", MATH)
def test_math_f32_special_values(name):
    f = MATH[name][0]
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], np.float32)
    y = pointwise(f"fn op(a: Acc) -> Acc {{ return m_{name}(a); }}", "f32", np.zeros_like(x), [x])
    with np.errstate(all="ignore"):
        want = f(x).astype(np.float32)
    if name == "lgamma":
        want[2] = want[4] = np.inf  # C's, not SciPy's
    if name == "digamma":
        # PyTorch's: minus infinity at zero with its sign, NaN at negative integers and infinity.
        want = np.array([np.nan, np.inf, np.nan, -np.inf, np.inf, want[5], np.nan], np.float32)
    np.testing.assert_allclose(y, want, rtol=2e-6, atol=1e-6)


BINARY = {
    "pow": np.power, "atan2": np.arctan2, "fmod": np.fmod, "remainder": np.remainder,
    "copysign": np.copysign, "max": np.maximum, "min": np.minimum, "floor_div": np.floor_divide,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_math_f32_of_two_arguments_matches_numpy(name):
    edge = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, 7.25])
    a, b = (v.ravel().astype(np.float32) for v in np.meshgrid(edge, edge))
    a = np.concatenate([a, np.abs(floats(2000)) * 3, floats(2000) * 100]).astype(np.float32)
    b = np.concatenate([b, floats(2000, seed=1) * 6, floats(2000, seed=2) * 7]).astype(np.float32)
    op = f"fn op(a: Acc, b: Acc) -> Acc {{ return m_{name}(a, b); }}"
    y = pointwise(op, "f32", np.zeros_like(a), [a, b])
    with np.errstate(all="ignore"):
        want = BINARY[name](a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    if name == "floor_div":
        keep = (b != 0) & np.isfinite(a) & np.isfinite(b)
        y, want = y[keep], want[keep]
    np.testing.assert_allclose(y, want, rtol=4e-6, atol=1e-6)


@pytest.mark.parametrize("acc", ["i32", "i64"])
def test_math_int_matches_numpy(acc):
    needs(acc)
    dtype = {"i32": np.int32, "i64": np.int64}[acc]
    a = rng().integers(-100, 100, 400).astype(dtype)
    b = rng(1).integers(-9, 9, 400).astype(dtype)
    b[b == 0] = 4
    for name in ("fmod", "remainder", "floor_div", "max", "min"):
        op = f"fn op(a: Acc, b: Acc) -> Acc {{ return m_{name}(a, b); }}"
        y = pointwise(op, acc, np.zeros_like(a), [a, b])
        np.testing.assert_array_equal(y, BINARY[name](a, b), err_msg=name)
    op = "fn op(a: Acc, b: Acc) -> Acc { return m_pow(a, m_abs(b)); }"
    want = np.power(a, np.abs(b))
    np.testing.assert_array_equal(pointwise(op, acc, np.zeros_like(a), [a, b]), want)


def test_math_f64_matches_numpy():
    needs("f64")
    x = rng().standard_normal(200) * 10
    for name, f in {"floor": np.floor, "abs": np.abs, "sign": np.sign, "neg": np.negative}.items():
        op = f"fn op(a: Acc) -> Acc {{ return m_{name}(a); }}"
        np.testing.assert_array_equal(pointwise(op, "f64", np.zeros_like(x), [x]), f(x))


COMPLEX = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "neg": np.negative, "conj": np.conj, "sign": np.sign, "abs": np.abs, "equal": np.equal,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
def test_math_c64_matches_complex128(name):
    reference = COMPLEX[name]
    rng = np.random.default_rng(3)
    # Moduli whose squares overflow or vanish in float32 (but for products), and zeros.
    scales = [1e-3, 1.0, 1e3] if name == "mul" else [1e-15, 1.0, 1e15]
    parts = rng.standard_normal((2, 2, 3000)) * rng.choice(scales, (2, 1, 3000))
    a, b = (parts[:, 0] + 1j * parts[:, 1]).astype(np.complex64)
    b[:100] = a[:100]
    a[200:210] = 0
    x = [a, b][: reference.nin]
    dtype = {"abs": np.float32, "equal": bool}.get(name, np.complex64)
    args = ", ".join(f"a{k}" for k in range(len(x)))
    call = f"m_{name}({args})"
    body = f"select(vec2(0.0), vec2(1.0, 0.0), {call})" if name == "equal" else call
    taken = args.replace(",", ": Acc,") + ": Acc"
    op = f"fn op({taken}) -> Acc {{ return {body}; }}"
    got = pointwise(op, "c64", np.zeros(a.shape, dtype), x)
    want = reference(*(v.astype(np.complex128) for v in x))
    if name == "equal":
        assert (got == want).all() and got[:100].all() and not got[210:].any()
        return
    # Of the modulus: a part may be what cancellation leaves.
    assert np.all(np.abs(got - want) <= 4e-7 * np.abs(want))


def test_math_c64_keeps_signs_of_zeros_and_infinite_moduli():
    inf, nan = np.inf, np.nan
    z = np.array([complex(0.0, 0.0), complex(-0.0, 1.0), complex(inf, nan), complex(nan, -inf)])
    z = z.astype(np.complex64)
    conj = pointwise("fn op(a: Acc) -> Acc { return m_conj(a); }", "c64", z.copy(), [z])
    assert np.signbit(conj.imag[:2]).all() and np.signbit(conj.real[:2]).tolist() == [False, True]
    modulus = np.zeros(4, np.float32)
    modulus = pointwise("fn op(a: Acc) -> Acc { return m_abs(a); }", "c64", modulus, [z])
    assert modulus.tolist() == [0.0, 1.0, inf, inf]


def test_philox_known_answers_and_distribution():
    philox = (SHADERS / "philox.wgsl").read_text()
    floats_of = philox + (SHADERS / "philox_floats.wgsl").read_text()
    out = np.zeros(4, np.int32)
    op = philox + "fn op() -> Acc { return bitcast<i32>(philox_word()); }"
    op = op.replace("m_sqrt", "sqrt").replace("m_ln(u)", "log(u)")
    op = op.replace("m_sin_from(angle, 1u - (position & 1u))", "sin(angle)")
    y = pointwise(op, "i32", out, [], [0] * 4).view(np.uint32)
    assert [hex(v) for v in y] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    n = 40_000
    u = pointwise(floats_of + "fn op() -> Acc { return philox_uniform(); }", "f32",
                  np.zeros(n, np.float32), [], [7, 8, 9, 0])  # fmt: skip
    assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.01
    z = pointwise(floats_of + "fn op() -> Acc { return philox_normal(); }", "f32",
                  np.zeros(n, np.float32), [], [7, 8, 9, 0])  # fmt: skip
    assert abs(z.mean()) < 0.02 and abs(z.std() - 1) < 0.02
    assert abs(np.corrcoef(z[::2], z[1::2])[0, 1]) < 0.02
