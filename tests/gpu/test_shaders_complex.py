"""Functions of complex numbers in shaders, through wgpu-py, beside NumPy in complex128."""

import numpy as np
import pytest
from shader_runs import needs, pointwise

FUNCTIONS = {
    "exp": np.exp, "expm1": np.expm1, "exp2": np.exp2, "ln": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda z: 1 / np.sqrt(z),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
}  # fmt: skip
# Those that overflow for large numbers.
GROWING = {"exp", "expm1", "exp2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sigmoid"}


def of(name, z, acc="c64"):
    needs(acc)
    z = np.ascontiguousarray(z, np.complex64 if acc == "c64" else np.complex128)
    return pointwise(f"fn op(a: Acc) -> Acc {{ return m_{name}(a); }}", acc, np.zeros_like(z), [z])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_matches_complex128(name):
    rng = np.random.default_rng(3)
    sizes = [1e-6, 1e-2, 1, 10, 80] + ([] if name in GROWING else [1e6, 1e20, 1e37])
    z = rng.standard_normal((2, 4000 * len(sizes))) * np.repeat(sizes, 4000)
    z = (z[0] + 1j * z[1]).astype(np.complex64)
    got = of(name, z)
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name](z.astype(np.complex128))
    # Those that float32 holds.
    held = (np.abs(want) > 1e-36) & (np.abs(want.real) < 3e38) & (np.abs(want.imag) < 3e38)
    assert held.mean() > 0.7
    error = np.abs(got - want)[held] / np.abs(want)[held]
    # Of the modulus; near the poles of sigmoid the sum 1 + exp(-z) cancels.
    assert error.max() <= (3e-6 if name == "sigmoid" else 5e-7), z[held][error.argmax()]


# What NumPy rounds on the way.
LONG = {
    "exp2": lambda z: np.exp(z * np.log(np.longdouble(2))),
    "expm1": lambda z: (np.expm1(z.real) - 2 * np.exp(z.real) * np.sin(z.imag / 2) ** 2
                        + 1j * (np.exp(z.real) * np.sin(z.imag))),
    "log1p": lambda z: (np.log1p(z.real * (2 + z.real) + z.imag**2) / 2
                        + 1j * np.arctan2(z.imag, 1 + z.real)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_float64_parts_matches_numpy(name):
    if np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("NumPy has no numbers that are longer than float64")
    rng = np.random.default_rng(3)
    sizes = [1e-6, 1e-2, 1, 10, 600] + ([] if name in GROWING else [1e6, 1e20, 1e200, 1e307])
    z = rng.standard_normal((2, 1000 * len(sizes))) * np.repeat(sizes, 1000)
    z = np.clip(z, -1e308, 1e308)
    z = z[0] + 1j * z[1]
    got = of(name, z, "c128")
    with np.errstate(all="ignore"):
        want = (LONG.get(name) or FUNCTIONS[name])(z.astype(np.clongdouble))
    held = (np.abs(want) > 1e-290) & (np.abs(want.real) < 1e307) & (np.abs(want.imag) < 1e307)
    assert held.mean() > 0.6
    error = np.abs(got[held] - want[held]) / np.abs(want[held])
    assert error.max() <= (1e-14 if name == "sigmoid" else 2e-15), z[held][error.argmax()]


def test_arithmetic_of_float64_parts_matches_numpy():
    needs("c128")
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 333, 2)).view(np.complex128)[..., 0]
    for name, want in [("m_add(a, b)", a + b), ("m_mul(a, b)", a * b), ("m_div(a, b)", a / b),
                       ("m_conj(a)", a.conj()), ("m_abs(a)", np.abs(a) + 0j)]:  # fmt: skip
        op = f"fn op(a: Acc, b: Acc) -> Acc {{ return {name}; }}"
        got = pointwise(op, "c128", np.zeros_like(a), [a, b])
        np.testing.assert_allclose(got, want, 1e-15)
    got = pointwise("fn op(a: Acc) -> Acc { return a; }", "c128", np.zeros(333, np.complex64), [a])
    np.testing.assert_array_equal(got, a.astype(np.complex64))


def test_power_matches_complex128():
    rng = np.random.default_rng(4)
    z, e = (rng.standard_normal((2, 2, 5000)) * 2).view(np.complex128).reshape(2, -1)
    z, e = z.astype(np.complex64), e.astype(np.complex64)
    e.imag[::2] = 0
    op = "fn op(a: Acc, b: Acc) -> Acc { return m_pow(a, b); }"
    got = pointwise(op, "c64", np.zeros_like(z), [z, e])
    want = z.astype(np.complex128) ** e.astype(np.complex128)
    # The error of the exponential's argument.
    bound = 5e-7 * (1 + np.abs(e * np.log(z)))
    assert (np.abs(got - want) <= bound * np.abs(want)).all()


# The sides of each cut, told apart by the sign of zero.
CUTS = {
    "sqrt": [(-2, 0)], "ln": [(-2, 0)], "log1p": [(-3, 0)], "asin": [(2, 0), (-2, 0)],
    "acos": [(2, 0), (-2, 0)], "acosh": [(-2, 0), (0.5, 0)], "atanh": [(2, 0), (-2, 0)],
    "asinh": [(0, 2), (0, -2)], "atan": [(0, 2), (0, -2)],
}  # fmt: skip


@pytest.mark.parametrize("name", CUTS)
def test_function_keeps_to_its_side_of_a_cut(name):
    sides = []
    for re, im in CUTS[name]:
        if im == 0:
            sides += [complex(re, 0.0), complex(re, -0.0)]
        else:
            sides += [complex(0.0, im), complex(-0.0, im)]
    z = np.array(sides, np.complex64)
    want = FUNCTIONS[name](z.astype(np.complex128))
    np.testing.assert_allclose(of(name, z), want, rtol=1e-6, atol=1e-7)


# As C99's annex G has them; a sign that it leaves open is positive here.
INF, NAN = np.inf, np.nan
SPECIAL = {
    "exp": {(INF, 0): (INF, 0), (-INF, INF): (0, 0), (-INF, 1): (0, 0), (INF, INF): (INF, NAN),
            (NAN, 0): (NAN, 0), (1, INF): (NAN, NAN)},
    "ln": {(0, 0): (-INF, 0), (INF, INF): (INF, np.pi / 4),
           (-INF, 1): (INF, np.pi), (NAN, INF): (INF, NAN), (NAN, 1): (NAN, NAN)},
    "sqrt": {(1, INF): (INF, INF), (NAN, INF): (INF, INF), (-INF, 1): (0, INF),
             (INF, 1): (INF, 0), (INF, NAN): (INF, NAN), (0, 0): (0, 0), (1, NAN): (NAN, NAN)},
    "sinh": {(INF, 0): (INF, 0), (INF, INF): (INF, NAN), (NAN, 0): (NAN, 0), (0, INF): (0, NAN)},
    "cosh": {(INF, 0): (INF, 0), (INF, INF): (INF, NAN), (NAN, 0): (NAN, 0), (0, INF): (NAN, 0)},
    "tanh": {(INF, 1): (1, 0), (INF, INF): (1, 0), (1, INF): (NAN, NAN), (NAN, 0): (NAN, 0)},
    "asinh": {(1, INF): (INF, np.pi / 2), (INF, 1): (INF, 0), (INF, INF): (INF, np.pi / 4)},
    "acosh": {(INF, 1): (INF, 0), (-INF, 1): (INF, np.pi), (0, 0): (0, np.pi / 2)},
    "atanh": {(1, 0): (INF, 0), (INF, 1): (0, np.pi / 2), (1, INF): (0, np.pi / 2)},
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_function_at_infinities_and_nan(name):
    z = np.array([complex(*k) for k in SPECIAL[name]], np.complex64)
    want = np.array([complex(*v) for v in SPECIAL[name].values()], np.complex64)
    got = of(name, z)
    np.testing.assert_allclose(got.real, want.real, rtol=1e-6, err_msg=str(z))
    np.testing.assert_allclose(got.imag, want.imag, rtol=1e-6, err_msg=str(z))


def test_finite_and_infinite_ask_each_part():
    z = np.array([complex(3e38, 3e38), complex(INF, NAN), complex(NAN, 1), 1], np.complex64)
    for name, want in [("finite", [1, 0, 0, 1]), ("infinite", [0, 1, 0, 0])]:
        op = f"fn op(a: Acc) -> Acc {{ return vec2(f32(m_is_{name}(a)), 0.0); }}"
        assert pointwise(op, "c64", np.zeros(4, bool), [z]).tolist() == [bool(v) for v in want]
