"""Orthogonal polynomials that overflow are infinite, with the sign of the polynomial."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import pytensorlib as torch

# The first two of each family and its recurrence, in whole numbers and fractions.
FAMILIES = {
    "chebyshev_polynomial_t": (lambda x: x, lambda m, x, a, b: 2 * x * a - b),
    "chebyshev_polynomial_u": (lambda x: 2 * x, lambda m, x, a, b: 2 * x * a - b),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, lambda m, x, a, b: 2 * x * a - b),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, lambda m, x, a, b: 2 * x * a - b),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda m, x, a, b: 2 * x * a - 2 * m * b),
    "hermite_polynomial_he": (lambda x: x, lambda m, x, a, b: x * a - m * b),
    "laguerre_polynomial_l": (
        lambda x: 1 - x,
        lambda m, x, a, b: ((2 * m + 1 - x) * a - m * b) / (m + 1),
    ),
    "legendre_polynomial_p": (
        lambda x: x,
        lambda m, x, a, b: ((2 * m + 1) * x * a - m * b) / (m + 1),
    ),
}


def exact(name: str, x: float, n: int) -> float:
    first, step = FAMILIES[name]
    v = Fraction(x)
    before, at = Fraction(1), first(v)
    for m in range(1, n):
        before, at = at, step(m, v, at, before)
    value = at if n else before
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", FAMILIES)
def test_what_overflows_is_infinite_with_its_sign(name, dtype):
    x = [3.0, -3.0, 1e5, -1e5, 2.5e30, -2.5e30, 0.5, -1.25, 40.0]
    for n in (1, 2, 3, 8, 9, 150, 151, 400):
        t = torch.tensor(x, dtype=dtype)
        got = getattr(torch.special, name)(t, torch.tensor(n, dtype=dtype))
        with np.errstate(over="ignore"):
            want = np.array([exact(name, v, n) for v in t.tolist()]).astype(got.numpy().dtype)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_infinity_gives_the_infinity_of_its_power(name):
    x = torch.tensor([np.inf, -np.inf], dtype=torch.float64)
    for n in (1, 2, 3, 6, 7):
        got = getattr(torch.special, name)(x, torch.tensor(float(n))).tolist()
        up, down = exact(name, 1e60, n), exact(name, -1e60, n)
        assert got == [np.copysign(np.inf, up), np.copysign(np.inf, down)], n
