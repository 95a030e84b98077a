"""The functions of float64 bodies through wgpu-py against NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from shader_runs import needs, pointwise, rng

INF, NAN = np.inf, np.nan
ENDS = [0.0, -0.0, INF, -INF, NAN, 5e-324, -2.3e-308, 1e-300, 1.0, -1.0, 1.7e308, -1.7e308]
AROUND = np.concatenate([rng().standard_normal(4000) * 3, np.geomspace(1e-12, 1, 500)])
WIDE = np.concatenate([np.geomspace(1e-308, 1e308, 3000), [2.0**k for k in range(-40, 41)]])
UNIT = np.concatenate([rng(1).uniform(-1, 1, 3000), 1 - np.geomspace(1e-16, 1e-2, 200)])
ANGLES = np.concatenate([
    AROUND, np.geomspace(1, 1e300, 4000), np.arange(1, 2000) * np.pi / 2,
])  # fmt: skip

# Name, NumPy's or SciPy's, where, and the error in units of the last place.
FUNCTIONS = [
    ("exp", np.exp, np.r_[AROUND, np.linspace(-745, 709, 3000)], 2),
    ("exp2", np.exp2, np.r_[AROUND, np.linspace(-1070, 1020, 3000)], 2),
    ("expm1", np.expm1, np.r_[AROUND, np.linspace(-40, 700, 2000)], 3),
    ("ln", np.log, np.r_[WIDE, 1 + AROUND[:1000] * 1e-3, 1 - 1e-14], 3),
    ("log2", np.log2, np.r_[WIDE, 1 + AROUND[:1000] * 1e-3], 3),
    ("log10", np.log10, np.r_[WIDE, 1 + AROUND[:1000] * 1e-3], 3),
    ("log1p", np.log1p, np.r_[WIDE, UNIT, UNIT * 1e-9], 3),
    ("sin", np.sin, ANGLES, 2),
    ("cos", np.cos, ANGLES, 2),
    ("tan", np.tan, ANGLES, 4),
    ("atan", np.arctan, np.r_[WIDE, -WIDE, AROUND], 2),
    ("asin", np.arcsin, UNIT, 4),
    ("acos", np.arccos, UNIT, 4),
    ("sinh", np.sinh, np.r_[AROUND, np.linspace(-700, 700, 1000)], 4),
    ("cosh", np.cosh, np.r_[AROUND, np.linspace(-700, 700, 1000)], 4),
    ("tanh", np.tanh, np.r_[AROUND, -WIDE], 4),
    ("asinh", np.arcsinh, np.r_[AROUND, -WIDE, WIDE], 4),
    ("acosh", np.arccosh, 1 + np.abs(np.r_[AROUND, WIDE]), 4),
    ("atanh", np.arctanh, UNIT, 4),
    ("erf", special.erf, AROUND, 8),
    ("erfc", special.erfc, np.r_[AROUND, np.linspace(0.4, 26, 500)], 300),  # SciPy's loses as much
    ("sigmoid", special.expit, np.r_[AROUND, np.linspace(-700, 700, 500)], 4),
]


@pytest.mark.parametrize(
    ("name", "reference", "where", "ulp"), FUNCTIONS, ids=[f[0] for f in FUNCTIONS]
)
def test_math_f64_matches_numpy(name, reference, where, ulp):
    needs("f64")
    x = np.r_[where, ENDS]
    y = pointwise(f"fn op(a: Acc) -> Acc {{ return m_{name}(a); }}", "f64", np.zeros_like(x), [x])
    with np.errstate(all="ignore"):
        want = reference(x)
    # Denormals, which an adapter may take for zeros, are allowed their own distance.
    np.testing.assert_allclose(y, want, rtol=ulp * 2.3e-16, atol=5e-308)
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(y[zero]), np.signbit(want[zero]))


def test_math_f64_of_pairs_matches_numpy():
    needs("f64")
    r = rng(3)
    x = np.r_[
        np.abs(r.standard_normal(4000)) * 3, np.geomspace(1e-300, 1e300, 2000), 2.0, 3.0, 10.0
    ]
    e = np.r_[r.uniform(-300, 300, 4000), r.uniform(-1, 1, 2000), 0.5, 7.0, 22.0]
    specials = np.array(np.meshgrid([*ENDS, 0.5, 2, 3, -2], [*ENDS, 0.5, 2, 3, -2])).reshape(2, -1)
    a = np.r_[r.standard_normal(3000) * 10.0 ** r.integers(-20, 20, 3000), specials[0]]
    b = np.r_[r.standard_normal(3000) * 10.0 ** r.integers(-20, 20, 3000), specials[1]]
    cases = [
        ("pow", np.power, np.r_[x, specials[0]], np.r_[e, specials[1]], 4),
        ("atan2", np.arctan2, a, b, 4),
        ("fmod", np.fmod, a, b, 0),
        ("remainder", np.remainder, a[:3000], b[:3000], 1),
    ]
    for name, reference, left, right, ulp in cases:
        op = f"fn op(a: Acc, b: Acc) -> Acc {{ return m_{name}(a, b); }}"
        y = pointwise(op, "f64", np.zeros_like(left), [left, right])
        with np.errstate(all="ignore"):
            want = reference(left, right)
        np.testing.assert_allclose(y, want, rtol=ulp * 2.3e-16, atol=5e-308, err_msg=name)


def test_math_f64_of_the_angle_nearest_to_a_quarter_turn():
    needs("f64")
    x = np.array([6381956970095103.0 * 2.0**797])
    y = pointwise("fn op(a: Acc) -> Acc { return m_cos(a); }", "f64", np.zeros_like(x), [x])
    np.testing.assert_allclose(y, -4.68716592425462761112e-19, rtol=3e-16)
