"""Composed rows of special functions, in float64 and given in the type of the operand."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ._composed import composed, is_tensor

# Lanczos 1964, J. SIAM Numer. Anal. B 1:86, with g = 7 and nine terms.
_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7,
)  # fmt: skip
# Bernoulli's numbers of even order, from the second on.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
_SHIFT = 10  # of series that hold for large operands
_NODES = 64  # of integrals over half a circle


def _wide(f: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function compute in float64."""

    @functools.wraps(f)
    def made(t: Any, *args: Any) -> Any:
        first = next(a for a in args if is_tensor(a))
        dtype = first.dtype if first.dtype.is_floating_point else pt.float32
        return t.to(f(t, *(t.to(a, pt.float64) if is_tensor(a) else a for a in args)), dtype)

    return made


def _lgamma64(t: Any, x: Any) -> Any:
    left = t.lt(x, 0.5)
    y = t.sub(t.where(left, t.rsub(x, 1.0), x), 1.0)
    total = t.add(t.zeros_like(y), _LANCZOS[0])
    for i, c in enumerate(_LANCZOS[1:], 1):
        total = t.add(total, t.mul(t.reciprocal(t.add(y, float(i))), c))
    w = t.add(y, 7.5)
    made = t.add(t.sub(t.mul(t.add(y, 0.5), t.log(w)), w), t.log(total))
    made = t.add(made, 0.5 * math.log(2 * math.pi))
    turned = t.log(t.mul(t.abs(_sin_pi(t, x)), 1 / math.pi))
    made = t.where(left, t.neg(t.add(made, turned)), made)
    return t.where(t.isinf(x), t.abs(x), made)


def _sin_pi(t: Any, x: Any) -> Any:
    """Return sin(pi x) for large x too, zero at integers."""
    rest = t.sub(x, t.mul(t.floor(t.mul(x, 0.5)), 2.0))  # in [0, 2)
    made = t.sin(t.mul(rest, math.pi))
    return t.where(t.eq(rest, t.floor(rest)), t.zeros_like(x), made)


@composed("lgamma", "special_gammaln")
@_wide
def _lgamma(t: Any, x: Any) -> Any:
    return _lgamma64(t, x)


@composed("mvlgamma", "special_multigammaln")
def _mvlgamma(t: Any, x: Any, p: int) -> Any:
    terms = [_lgamma(t, t.sub(x, 0.5 * i)) for i in range(p)]
    return t.add(functools.reduce(t.add, terms), p * (p - 1) / 4 * math.log(math.pi))


def _digamma64(t: Any, x: Any) -> Any:
    left = t.lt(x, 0.5)
    y = t.where(left, t.rsub(x, 1.0), x)
    made = t.zeros_like(y)
    for i in range(_SHIFT):
        made = t.sub(made, t.reciprocal(t.add(y, float(i))))
    z = t.add(y, float(_SHIFT))
    made = t.add(made, t.sub(t.log(z), t.mul(t.reciprocal(z), 0.5)))
    square = t.reciprocal(t.mul(z, z))
    power = square
    for k, b in enumerate(_BERNOULLI, 1):
        made = t.sub(made, t.mul(power, b / (2 * k)))
        power = t.mul(power, square)
    rest = t.sub(x, t.floor(x))
    angle = t.mul(rest, math.pi)
    turned = t.mul(t.div(t.sin(t.add(angle, math.pi / 2)), t.sin(angle)), math.pi)
    made = t.where(left, t.sub(made, turned), made)
    poles = t.logical_and(t.le(x, 0.0), t.eq(rest, 0.0))
    at = t.where(t.eq(x, 0.0), t.neg(t.reciprocal(x)), t.full_like(x, math.nan))
    return t.where(poles, at, made)


@composed("digamma", "special_digamma", "special_psi")
@_wide
def _digamma(t: Any, x: Any) -> Any:
    return _digamma64(t, x)


def _zeta64(t: Any, s: Any, q: Any) -> Any:
    """Return Hurwitz's zeta by the Euler-Maclaurin sum; one of its operands is a tensor."""
    minus = t.neg(s) if is_tensor(s) else -s
    total = t.pow(q, minus)
    for i in range(1, _SHIFT):
        total = t.add(total, t.pow(t.add(q, float(i)), minus))
    a = t.add(q, float(_SHIFT))
    power = t.pow(a, minus)
    less = t.sub(s, 1.0) if is_tensor(s) else s - 1.0
    total = t.add(total, t.add(t.div(t.mul(a, power), less), t.mul(power, 0.5)))
    rising: Any = s  # s (s + 1) ... (s + 2k - 2)
    power = t.div(power, a)
    factorial = 2.0
    for k, b in enumerate(_BERNOULLI, 1):
        term = t.mul(power, rising) if is_tensor(rising) else t.mul(power, float(rising))
        total = t.add(total, t.mul(term, b / factorial))
        for j in (2 * k - 1, 2 * k):
            more = t.add(s, float(j)) if is_tensor(s) else s + j
            rising = t.mul(rising, more) if is_tensor(rising) else rising * more
        factorial *= (2 * k + 1) * (2 * k + 2)
        power = t.div(power, t.mul(a, a))
    return total


@composed("special_zeta")
@_wide
def _zeta(t: Any, s: Any, q: Any) -> Any:
    if not is_tensor(q):
        q = t.add(t.zeros_like(s), float(q))
    made = _zeta64(t, s, q)
    if is_tensor(s):
        made = t.where(t.eq(s, 1.0), t.full_like(made, math.inf), made)
        made = t.where(t.lt(s, 1.0), t.full_like(made, math.nan), made)
    poles = t.logical_and(t.le(q, 0.0), t.eq(q, t.floor(q)))
    return t.where(poles, t.full_like(made, math.inf), made)


@composed("polygamma", "special_polygamma")
def _polygamma(t: Any, n: int, x: Any) -> Any:
    if n == 0:
        return _digamma(t, x)
    made = _wide(lambda t, x: _zeta64(t, float(n + 1), x))(t, x)
    return t.mul(made, (-1.0) ** (n + 1) * math.factorial(n))


# Giles 2010, "Approximating the erfinv function", in single precision.
_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
    -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
    0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def _polynomial(t: Any, x: Any, coefficients: Any) -> Any:
    made = t.add(t.zeros_like(x), coefficients[0])
    for c in coefficients[1:]:
        made = t.add(t.mul(made, x), c)
    return made


def _erfinv64(t: Any, x: Any) -> Any:
    w = t.neg(t.log(t.mul(t.rsub(x, 1.0), t.add(x, 1.0))))
    near = _polynomial(t, t.sub(w, 2.5), _NEAR)
    far = _polynomial(t, t.sub(t.sqrt(w), 3.0), _FAR)
    made = t.mul(t.where(t.lt(w, 5.0), near, far), x)
    edge = t.eq(t.abs(x), 1.0)
    made = t.where(edge, t.mul(x, math.inf), made)
    return t.where(t.gt(t.abs(x), 1.0), t.full_like(x, math.nan), made)


@composed("erfinv", "special_erfinv")
@_wide
def _erfinv(t: Any, x: Any) -> Any:
    return _erfinv64(t, x)


@composed("special_ndtri")
@_wide
def _ndtri(t: Any, x: Any) -> Any:
    return t.mul(_erfinv64(t, t.sub(t.mul(x, 2.0), 1.0)), math.sqrt(2.0))


def _bessel(t: Any, x: Any, order: int) -> Any:
    """Return a modified Bessel function times exp(-|x|): an integral, for large x its series."""
    size = t.abs(x)
    angles = [(k + 0.5) * math.pi / _NODES for k in range(_NODES)]
    cosines = t.constant([math.cos(a) for a in angles], pt.float64)
    each = t.exp(t.mul(t.unsqueeze(size, -1), t.sub(cosines, 1.0)))
    made = t.mean(t.mul(each, cosines) if order else each, [-1])
    # The trapezoid sum holds while its nodes are closer than the integrand is wide.
    far = t.clamp(size, 200.0, None)
    m, term, series = 4.0 * order * order, t.add(t.zeros_like(size), 1.0), None
    for k in range(6):
        series = term if series is None else t.add(series, term)
        factor = -(m - (2 * k + 1) ** 2) / (8.0 * (k + 1))
        term = t.div(t.mul(term, factor), far)
    series = t.div(series, t.sqrt(t.mul(far, 2 * math.pi)))
    made = t.where(t.lt(size, 200.0), made, series)
    return t.mul(made, t.sign(x)) if order else made


def _bessels() -> None:
    for order in (0, 1):

        def scaled(t: Any, x: Any, order: int = order) -> Any:
            return _bessel(t, x, order)

        def plain(t: Any, x: Any, order: int = order) -> Any:
            return t.mul(_bessel(t, x, order), t.exp(t.abs(x)))

        composed(f"special_i{order}e")(_wide(scaled))
        composed(f"i{order}", f"special_i{order}", f"special_modified_bessel_i{order}")(
            _wide(plain)
        )


_bessels()


@composed("angle")
def _angle(t: Any, x: Any) -> Any:
    dtype = x.dtype if x.dtype.is_floating_point else pt.float32
    x = t.to(x, dtype)
    made = t.where(t.lt(x, 0.0), t.full_like(x, math.pi), t.zeros_like(x))
    return t.where(t.isnan(x), x, made)


@composed("frexp")
def _frexp(t: Any, x: Any) -> Any:
    wide = t.to(x, pt.float64)
    size = t.abs(wide)
    odd = t.logical_or(t.eq(size, 0.0), t.logical_or(t.isinf(wide), t.isnan(wide)))
    one = t.full_like(size, 1.0)
    power = t.add(t.floor(t.log2(t.where(odd, one, size))), 1.0)
    part = t.div(wide, t.exp2(power))
    # The logarithm may be off by one at a power of two.
    over, under = t.ge(t.abs(part), 1.0), t.lt(t.abs(part), 0.5)
    power = t.where(over, t.add(power, 1.0), t.where(under, t.sub(power, 1.0), power))
    part = t.where(odd, wide, t.div(wide, t.exp2(power)))
    power = t.where(odd, t.zeros_like(power), power)
    return [t.to(part, x.dtype), t.to(power, pt.int32)]


# Three-term recurrences: the first two, and the next of n, x, and the two before it.
_Step = Callable[[Any, int, Any, Any, Any], Any]


def _recurrence(first: Callable[[Any, Any], Any], step: _Step) -> Callable[..., Any]:
    def made(t: Any, x: Any, n: Any) -> Any:
        if is_tensor(n) or not is_tensor(x):
            raise t.c.error(t.c.at, "its degree is a tensor")
        before, now = t.add(t.zeros_like(x), 1.0), first(t, x)
        if n < 0:
            return t.zeros_like(x)
        for k in range(1, n):
            before, now = now, step(t, k, x, now, before)
        return before if n == 0 else now

    return made


def _chebyshev(t: Any, k: int, x: Any, now: Any, before: Any) -> Any:
    return t.sub(t.mul(t.mul(x, 2.0), now), before)


def _polynomials() -> None:
    firsts: dict[str, Callable[[Any, Any], Any]] = {
        "t": lambda t, x: x,
        "u": lambda t, x: t.mul(x, 2.0),
        "v": lambda t, x: t.sub(t.mul(x, 2.0), 1.0),
        "w": lambda t, x: t.add(t.mul(x, 2.0), 1.0),
    }
    for kind, first in firsts.items():
        plain = _recurrence(first, _chebyshev)
        composed(f"special_chebyshev_polynomial_{kind}")(plain)

        def shifted(t: Any, x: Any, n: Any, plain: Any = plain) -> Any:
            return plain(t, t.sub(t.mul(x, 2.0), 1.0) if is_tensor(x) else x, n)

        composed(f"special_shifted_chebyshev_polynomial_{kind}")(shifted)


_polynomials()
composed("special_hermite_polynomial_h")(
    _recurrence(
        lambda t, x: t.mul(x, 2.0),
        lambda t, k, x, y, z: t.sub(t.mul(t.mul(x, 2.0), y), t.mul(z, 2.0 * k)),
    )
)
composed("special_hermite_polynomial_he")(
    _recurrence(lambda t, x: x, lambda t, k, x, y, z: t.sub(t.mul(x, y), t.mul(z, float(k))))
)
composed("special_laguerre_polynomial_l")(
    _recurrence(
        lambda t, x: t.rsub(x, 1.0),
        lambda t, k, x, y, z: t.mul(
            t.sub(t.mul(t.rsub(x, 2.0 * k + 1), y), t.mul(z, float(k))), 1 / (k + 1)
        ),
    )
)
composed("special_legendre_polynomial_p")(
    _recurrence(
        lambda t, x: x,
        lambda t, k, x, y, z: t.mul(
            t.sub(t.mul(t.mul(x, 2.0 * k + 1), y), t.mul(z, float(k))), 1 / (k + 1)
        ),
    )
)


def _mills(t: Any, x: Any) -> Any:
    """Return (1 - Phi(x)) / phi(x) of the normal distribution for x from 2 on: its fraction."""
    made = x
    for k in range(60, 0, -1):
        made = t.add(x, t.div(t.full_like(x, float(k)), made))
    return t.reciprocal(made)


@composed("special_log_ndtr")
@_wide
def _log_ndtr(t: Any, x: Any) -> Any:
    left = t.clamp(t.neg(x), 2.0, None)
    far = t.sub(t.log(_mills(t, left)), t.mul(t.mul(left, left), 0.5))
    far = t.sub(far, 0.5 * math.log(2 * math.pi))
    half = t.to(t.erf(t.to(t.mul(x, math.sqrt(0.5)), pt.float32)), pt.float64)
    near = t.log(t.mul(t.add(half, 1.0), 0.5))
    # On the right the logarithm is that of nearly one.
    right = t.clamp(x, 2.0, None)
    rest = t.mul(_mills(t, right), t.exp(t.mul(t.mul(right, right), -0.5)))
    beyond = t.log1p(t.mul(rest, -1 / math.sqrt(2 * math.pi)))
    made = t.where(t.gt(x, 2.0), beyond, near)
    made = t.where(t.lt(x, -2.0), far, made)
    return t.where(t.isnan(x), x, made)


@composed("special_erfcx")
@_wide
def _erfcx(t: Any, x: Any) -> Any:
    right = t.clamp(t.mul(x, math.sqrt(2.0)), 2.0, None)
    far = t.mul(_mills(t, right), math.sqrt(2 / math.pi))
    rest = t.rsub(t.to(t.erf(t.to(x, pt.float32)), pt.float64), 1.0)
    made = t.where(t.gt(x, math.sqrt(2.0)), far, t.mul(t.exp(t.mul(x, x)), rest))
    return t.where(t.isnan(x), x, made)
