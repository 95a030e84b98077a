"""Rows of functions of numbers: pointwise, special functions, reductions, order, windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import op_refs as R
from op_row import (
    ALL,
    FLOATS,
    LONG_SUM,
    NO_GRAD,
    Op,
    cases,
    distinct,
    index,
    positive,
    probability,
    quiet,
    reduction,
    unary,
)
from scipy import integrate, special
from scipy.signal import windows

EXACT = {"dtypes": ("float64",)}
INT = {"result": "int64", **NO_GRAD}
FUNCTION = {"method": False, "inplace": False}
CREATION = {**EXACT, **NO_GRAD, "method": False}


def with_nan(rng: np.random.Generator, *shape: int) -> np.ndarray:
    x = distinct(rng, *shape)
    x.flat[1::3] = np.nan
    return x


def spoiled(*shape: int) -> Any:
    return lambda rng: with_nan(rng, *shape)


def ordered(rng: np.random.Generator) -> np.ndarray:
    return np.array([-1.5, -0.5, 0.25, 1.0])


POINTWISE = [
    unary("angle", np.angle, inplace=False, dtypes=FLOATS),
    cases("float_power", np.power, (positive(3, 4), [4]), (positive(3), 2.5), inplace=True,
          **EXACT),
    unary("sgn", np.sign),
    unary("conj_physical", np.conj, dtypes=FLOATS),
    unary("isneginf", np.isneginf, result="bool", inplace=False, **NO_GRAD),
    unary("isposinf", np.isposinf, result="bool", inplace=False, **NO_GRAD),
    unary("isreal", np.isreal, result="bool", inplace=False, out=False, **NO_GRAD),
    unary("clone", np.array, inplace=False, out=False),
    unary("detach", np.array, inplace=False, out=False, **NO_GRAD),
    cases("frexp", np.frexp, ([3, 4],), ([33],), dtypes=FLOATS, out=False),
    cases("clamp_max", np.minimum, ([3, 4], [4]), ([3, 6], 0.3), dtypes=ALL, inplace=True),
    cases("clamp_min", np.maximum, ([3, 4], [4]), ([3, 6], 0.3), dtypes=ALL, inplace=True),
    cases("rsub", lambda x, y, alpha=1: y - alpha * x, ([3, 4], [4]), ([3], 1.5),
          ([3, 4], [3, 4], {"alpha": 2}), dtypes=ALL, out=False, method=False),
    cases("ldexp", lambda x, y: x * 2.0**y, ([3, 4], index(5, 4)), ([3], [3]), inplace=True),
    cases("nextafter", np.nextafter, ([3, 4], [4]), inplace=True, **EXACT, **NO_GRAD),
    cases("gcd", np.gcd, (index(60, 3, 4), index(60, 4)), inplace=True, **INT),
    cases("lcm", np.lcm, (index(60, 3, 4), index(60, 4)), inplace=True, **INT),
    cases("bitwise_left_shift", np.left_shift, (index(60, 3, 4), index(6, 4)),
          (index(60, 5), 3), inplace=True, **INT),
    cases("bitwise_right_shift", np.right_shift, (index(60, 3, 4), index(6, 4)),
          (index(60, 5), 3), inplace=True, **INT),
    cases("isclose", lambda a, b, atol=1e-8: np.isclose(a, b, atol=atol),
          (index(3, 3, 4), index(3, 4)), ([3, 4], [4], {"atol": 0.5}), result="bool", out=False,
          **NO_GRAD),
    cases("isin", np.isin, (index(9, 3, 4), index(9, 5)), (index(9, 3, 4), index(9, 20)),
          method=False, result="bool", **NO_GRAD),
    cases("complex", lambda a, b: a + 1j * b, ([3, 4], [4]), result="complex", method=False,
          **NO_GRAD, dtypes=("float32", "float64")),
    cases("polar", lambda r, t: r * np.exp(1j * t), (positive(3, 4), [4]), result="complex",
          method=False, **NO_GRAD),
    # Complex numbers made of and taken apart into real ones, so that all laws run on them.
    cases("view_as_real", lambda x: np.stack([x, 2 * x], -1), ([3, 4],), out=False, method=False,
          call=lambda torch: lambda x: torch.view_as_real(torch.complex(x, 2 * x))),
    cases("view_as_complex", lambda x: x[..., 0] + 1j * x[..., 1], ([3, 2],), out=False,
          method=False, result="complex", **NO_GRAD,
          call=lambda torch: lambda x: torch.view_as_complex(x.contiguous().clone())),
    cases("imag", lambda x: 2 * x, ([3, 4],), out=False, method=False,
          call=lambda torch: lambda x: torch.imag(torch.complex(x, 2 * x))),
    cases("trapezoid", lambda y, x=None, dx=1.0, dim=-1: integrate.trapezoid(y, x, dx, dim),
          ([3, 4],), ([3, 4], ordered), ([3, 4], {"dx": 0.5, "dim": 0}), out=False, method=False),
    cases("cumulative_trapezoid", lambda y, x=None, dx=1.0, dim=-1:
          integrate.cumulative_trapezoid(y, x, dx, dim), ([3, 4],), ([3, 4], ordered),
          ([3, 4], {"dx": 0.5, "dim": 0}), out=False, method=False),
    cases("trapz", lambda y, x=None, dx=1.0, dim=-1: integrate.trapezoid(y, x, dx, dim), ([3, 4],),
          ([3, 4], ordered), out=False, method=False),
    cases("fill", lambda x, v: np.full_like(x, v), ([3, 4], 1.5), out=False, method=False,
          inplace=True),
    cases("equal", lambda a, b: np.asarray(np.array_equal(a, b)), ([3], [3]),
          (index(1, 3), index(1, 3)), **CREATION, out=False, result="bool",
          call=lambda torch: lambda *a: torch.tensor(torch.equal(*a))),
    cases("allclose", lambda a, b, rtol, atol: np.asarray(np.allclose(a, b, rtol, atol)),
          ([3], [3], 0.0, 0.1), ([3], [3], 0.0, 9.0), **CREATION, out=False, result="bool",
          call=lambda torch: lambda *a: torch.tensor(torch.allclose(*a))),
]


def special_unary(name: str, ref: Any, low: float = -2, high: float = 2, **row: Any) -> Op:
    return unary("special." + name, ref, low, high, **{"dtypes": FLOATS, **FUNCTION, **row})


def polynomial(name: str, ref: Any) -> Op:
    calls = [(probability(9), n) for n in range(7)]
    return cases("special." + name, lambda x, n: ref(np.asarray(n, float), x), *calls,
                 (probability(3, 4), index(7, 4)), method=False, **NO_GRAD)


def third(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return Chebyshev's polynomials of the third kind."""
    t = np.arccos(x)
    return np.cos((n + 0.5) * t) / np.cos(t / 2)


def fourth(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    t = np.arccos(x)
    return np.sin((n + 0.5) * t) / np.sin(t / 2)


def shifted(ref: Any) -> Any:
    return lambda n, x: ref(n, 2 * x - 1)


def whole(ref: Any) -> Any:
    return lambda n, x: ref(n.astype(int), x)


SPECIAL = [
    special_unary("entr", special.entr, 0.1, 3),
    special_unary("erfcx", special.erfcx),
    special_unary("i0e", special.i0e),
    special_unary("i1", special.i1),
    special_unary("i1e", special.i1e),
    special_unary("ndtr", special.ndtr),
    special_unary("ndtri", special.ndtri, 0.1, 0.9),
    special_unary("log_ndtr", special.log_ndtr),
    special_unary("airy_ai", lambda x: special.airy(x)[0], **NO_GRAD),
    special_unary("bessel_j0", special.j0, **NO_GRAD),
    special_unary("bessel_j1", special.j1, **NO_GRAD),
    special_unary("bessel_y0", special.y0, 0.5, 5, **NO_GRAD),
    special_unary("bessel_y1", special.y1, 0.5, 5, **NO_GRAD),
    special_unary("modified_bessel_i0", special.i0, **NO_GRAD),
    special_unary("modified_bessel_i1", special.i1, **NO_GRAD),
    special_unary("modified_bessel_k0", special.k0, 0.5, 5, **NO_GRAD),
    special_unary("modified_bessel_k1", special.k1, 0.5, 5, **NO_GRAD),
    special_unary("scaled_modified_bessel_k0", special.k0e, 0.5, 5, **NO_GRAD),
    special_unary("scaled_modified_bessel_k1", special.k1e, 0.5, 5, **NO_GRAD),
    special_unary("spherical_bessel_j0", lambda x: special.spherical_jn(0, x), 0.1, 5, **NO_GRAD),
    polynomial("chebyshev_polynomial_t", special.eval_chebyt),
    polynomial("chebyshev_polynomial_u", special.eval_chebyu),
    polynomial("chebyshev_polynomial_v", third),
    polynomial("chebyshev_polynomial_w", fourth),
    polynomial("shifted_chebyshev_polynomial_t", shifted(special.eval_chebyt)),
    polynomial("shifted_chebyshev_polynomial_u", shifted(special.eval_chebyu)),
    polynomial("shifted_chebyshev_polynomial_v", shifted(third)),
    polynomial("shifted_chebyshev_polynomial_w", shifted(fourth)),
    polynomial("hermite_polynomial_h", whole(special.eval_hermite)),
    polynomial("hermite_polynomial_he", whole(special.eval_hermitenorm)),
    polynomial("laguerre_polynomial_l", special.eval_laguerre),
    polynomial("legendre_polynomial_p", special.eval_legendre),
    cases("special.xlog1py", special.xlog1py, ([3, 4], positive(4)), (positive(3), 2.0),
          method=False),
    cases("special.zeta", special.zeta, (lambda rng: 2 + positive(3, 4)(rng), positive(4)),
          method=False, **NO_GRAD),
    cases("igamma", special.gammainc, (positive(3, 4), positive(4)), fixed=(0,), inplace=True),
    cases("igammac", special.gammaincc, (positive(3, 4), positive(4)), fixed=(0,), inplace=True),
    cases("polygamma", special.polygamma, (1, positive(3, 4)), (2, positive(5)), method=False,
          scale=4, why="a series"),
    cases("mvlgamma", lambda x, p: sum(special.gammaln(x - j / 2) for j in range(p))
          + p * (p - 1) / 4 * np.log(np.pi), (lambda rng: 2 + positive(3, 4)(rng), 3),
          inplace=True, scale=4, why="a sum of logarithms"),
]



def quantile(function: Any) -> Any:
    def ref(x: Any, q: Any, dim: Any = None, keepdim: bool = False,
            interpolation: str = "linear") -> Any:
        return np.asarray(function(x, q, axis=dim, keepdims=keepdim, method=interpolation))

    return ref


def nan_median(x: Any, dim: int, keepdim: bool = False) -> Any:
    """Return the lower median of the numbers that are not NaN, and where it is."""
    order = np.argsort(x, axis=dim)
    k = (np.sum(~np.isnan(x), axis=dim, keepdims=True) - 1) // 2
    where = np.take_along_axis(order, k, dim)
    both = np.take_along_axis(x, where, dim), where
    return both if keepdim else tuple(np.squeeze(y, dim) for y in both)


def mode(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the most frequent value, the smallest of several; samples have it in place 0."""
    def one(row: Any) -> Any:
        values, counts = np.unique(row, return_counts=True)
        return values[np.argmax(counts)]

    y = np.apply_along_axis(one, dim, x)
    return np.expand_dims(y, dim) if keepdim else y


def both(spread: Any) -> Any:
    def ref(x: Any, dim: Any = None, correction: int = 1, keepdim: bool = False) -> Any:
        axes = R.axes(dim, x.ndim)
        return (spread(x, axis=axes, ddof=correction, keepdims=keepdim),
                np.mean(x, axis=axes, keepdims=keepdim))

    return ref


def runs(x: Any) -> Any:
    flat = x.ravel()
    return flat[np.concatenate([[True], flat[1:] != flat[:-1]])]


SPREADS = (([3, 4],), ([3, 4], 1), ([2, 3, 4], (0, 2), {"keepdim": True}),
           ([5], 0, {"correction": 0}))

REDUCTIONS = [
    cases("aminmax", lambda x, dim=None, keepdim=False: (np.min(x, dim, keepdims=keepdim),
          np.max(x, dim, keepdims=keepdim)), ([3, 4],), ([3, 4], {"dim": 1}),
          ([3, 4], {"dim": 0, "keepdim": True}), fill=distinct, out=False, dtypes=ALL),
    reduction("nansum", R.reduce(np.nansum), values=with_nan, out=False, **LONG_SUM),
    reduction("nanmean", R.reduce(np.nanmean), values=with_nan, whole=False, out=False, dtypes=ALL,
              **LONG_SUM),
    cases("nanmedian", nan_median, (spoiled(3, 4), 1), (spoiled(4, 5), 0, True), out=False),
    cases("mode", mode, (index(3, 4, 9), 1), (index(3, 9, 2), 0, True), out=False, **NO_GRAD,
          method=False, call=lambda torch: lambda *a: torch.mode(*a)[0]),
    cases("quantile", quantile(np.quantile), ([9], 0.3), ([3, 4], 0.5, 1),
          ([3, 4], lambda rng: np.array([0.1, 0.7]), 0), ([5], 0.6, {"interpolation": "lower"}),
          fill=distinct, fixed=(1,), out=False),
    cases("nanquantile", quantile(np.nanquantile), (spoiled(9), 0.3), (spoiled(3, 4), 0.5, 1),
          fixed=(1,), out=False),
    cases("std_mean", both(np.std), *SPREADS, out=False, method=False),
    cases("var_mean", both(np.var), *SPREADS, out=False, method=False),
    cases("histc", lambda x, bins, low, high: np.histogram(x, bins, (low, high))[0].astype(float),
          ([33], 5, -1, 1), ([3, 4], 4, -2.0, 2.0), **NO_GRAD),
    cases("histogram", lambda x, bins, range=None: np.histogram(x, bins, range), ([33], 5),
          ([3, 4], 4, {"range": (-1.0, 1.0)}), out=False, dtypes=FLOATS, **NO_GRAD),
    cases("renorm", R.renorm, ([3, 4], 2, 0, 1.0), ([3, 4], 1, 1, 0.5), inplace=True),
    cases("msort", lambda x: np.sort(x, 0), ([5],), ([3, 4],), fill=distinct),
    cases("trace", np.trace, ([3, 3],), ([3, 4],), out=False, **LONG_SUM),
    cases("dist", lambda x, y, p=2: np.linalg.norm((x - y).ravel(), p), ([3, 4], [4]),
          ([5], [5], 3), ([5], [5], 1), out=False, **LONG_SUM),
    cases("frobenius_norm", lambda x, dim=(0, 1), keepdim=False: np.sqrt(
          (x * x).sum(tuple(dim), keepdims=keepdim)), ([3, 4], (0, 1)), ([3, 4], (1,), True),
          method=False, **LONG_SUM),
    cases("nuclear_norm", lambda x: np.linalg.norm(x, "nuc"), ([3, 4],), out=False,
          method=False, **LONG_SUM),
    cases("bucketize", lambda x, b, right=False: np.searchsorted(b, x, "right" if right
          else "left"), ([3, 4], ordered), ([5], ordered, {"right": True}), method=False, **INT),
    cases("unique_consecutive", runs, (index(3, 9),), (index(2, 3, 4),), out=False, **NO_GRAD),
    cases("unique_dim", lambda x, d: np.unique(x, axis=d), (index(2, 9, 2), 0), out=False,
          method=False, **NO_GRAD, call=lambda torch: lambda x, d: torch.unique(x, dim=d)),
    cases("corrcoef", np.corrcoef, ([3, 7],), out=False, **LONG_SUM),
]


def window(name: str, ref: Any, *more: Any) -> Op:
    def call(n: int, periodic: bool = True, *rest: float) -> Any:
        return ref(n, *rest, sym=not periodic)

    calls = [(n, *rest) for n in (1, 5, 8) for rest in [(), (False,), *more]]
    return cases(name, call, *calls, **CREATION, out=False,
                 call=lambda torch: lambda *a: getattr(torch, name)(*a, dtype=torch.float64))


def full64(name: str) -> Any:
    return lambda torch: lambda *a, **k: getattr(torch, name)(*a, dtype=torch.float64, **k)


CREATIONS = [
    cases("arange", np.arange, (5,), (2, 7), (2, 9, 3), (0.5, 3.0, 0.75), **CREATION,
          call=full64("arange")),
    cases("range", lambda a, b, s=1: np.arange(a, b + s / 2, s), (2, 7), (0.5, 3.0, 0.5),
          **CREATION, call=lambda torch: lambda *a, **k:
          quiet(torch.range, *a, dtype=torch.float64, **k)),
    cases("linspace", np.linspace, (0, 1, 5), (-1.5, 2.0, 1), (3, 1, 4), **CREATION,
          call=full64("linspace")),
    cases("logspace", lambda a, b, n, base=10.0: np.logspace(a, b, n, base=base), (0, 1, 5),
          (-1.0, 2.0, 4, 2.0), **CREATION, call=full64("logspace")),
    cases("eye", np.eye, (3,), (3, 4), (0,), **CREATION, call=full64("eye")),
    cases("zeros", np.zeros, ((2, 3),), ((0,),), ((),), **CREATION, call=full64("zeros")),
    cases("ones", np.ones, ((2, 3),), ((0,),), ((),), **CREATION, call=full64("ones")),
    cases("full", np.full, ((2, 3), 1.5), ((), 2.0), **CREATION, call=full64("full")),
    cases("scalar_tensor", np.asarray, (1.5,), (2,), **CREATION, out=False,
          call=full64("scalar_tensor")),
    cases("zeros_like", np.zeros_like, ([3, 4],), (index(3, 2),), method=False, out=False,
          dtypes=ALL, **NO_GRAD),
    cases("ones_like", np.ones_like, ([3, 4],), (index(3, 2),), method=False, out=False,
          dtypes=ALL, **NO_GRAD),
    cases("full_like", np.full_like, ([3, 4], 1.5), (index(3, 2), 7), method=False, out=False,
          dtypes=ALL, **NO_GRAD),
    cases("Tensor.new_zeros", lambda x, s: np.zeros(s, x.dtype), ([3], (2, 3)), method=False,
          out=False, dtypes=ALL, **NO_GRAD),
    cases("Tensor.new_ones", lambda x, s: np.ones(s, x.dtype), ([3], (2, 3)), method=False,
          out=False, dtypes=ALL, **NO_GRAD),
    cases("Tensor.new_full", lambda x, s, v: np.full(s, v, x.dtype), ([3], (2, 3), 1.5),
          method=False, out=False, dtypes=ALL, **NO_GRAD),
    cases("tril_indices", lambda r, c, o=0: np.stack(np.tril_indices(r, o, c)), (3, 4), (3, 3, 1),
          **CREATION, out=False),
    cases("triu_indices", lambda r, c, o=0: np.stack(np.triu_indices(r, o, c)), (3, 4), (3, 3, 1),
          **CREATION, out=False),
    window("bartlett_window", windows.bartlett),
    window("blackman_window", windows.blackman),
    window("hann_window", windows.hann),
    window("hamming_window", windows.hamming),
    window("kaiser_window", lambda n, beta=12.0, sym=True: windows.kaiser(n, beta, sym=sym),
           (True, 5.0)),
]


ROWS = [*POINTWISE, *SPECIAL, *REDUCTIONS, *CREATIONS]
