"""The table of operators: one row per operator, and nothing that runs them.

A row names the operator, how to make arguments for it, and an independent reference in float64.
Arguments are NumPy arrays: the laws cast float64 arrays to the dtype under test and leave
integer and bool arrays, which are indices and masks, as they are.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import op_refs as R
from scipy import linalg, special

FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
INTS = ("int64", "int32", "uint8")
ALL = (*FLOATS, *HALVES)

# Relative and absolute error that rounding alone may cause in one operation of a few steps.
TOLERANCE = {
    "float64": (1e-9, 1e-9),
    "float32": (3e-5, 3e-5),
    "float16": (4e-3, 4e-3),
    "bfloat16": (3e-2, 3e-2),
}


@dataclass(frozen=True)
class Sample:
    """One call: positional and keyword arguments."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def elements(self) -> int:
        """Return how many floating elements the arguments have."""
        arrays = [a for a in _flat((self.args, self.kwargs)) if a.dtype == np.float64]
        return sum(a.size for a in arrays)


def _flat(value: Any) -> Iterable[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _flat(item)
    elif isinstance(value, dict):
        yield from _flat(list(value.values()))


@dataclass(frozen=True)
class Op:
    """One row."""

    name: str
    ref: Callable[..., Any]
    make: Callable[[np.random.Generator], Iterable[Sample]]
    dtypes: tuple[str, ...] = FLOATS
    result: str = "same"  # or "bool", "int64", "float": floating even for integers
    differentiable: bool = True
    inplace: bool = False
    out: bool = True
    method: bool = True
    twice: bool = True  # whether PyTorch has a second derivative
    fixed: tuple[int | str, ...] = ()  # floating arguments that have no derivative
    scale: float = 1.0  # the tolerance times this
    why: str = ""  # the reason for a scale other than 1
    call: Callable[[Any], Callable[..., Any]] | None = None

    def __str__(self) -> str:
        return self.name

    def samples(self) -> list[Sample]:
        """Return the same arguments in every run."""
        return list(self.make(np.random.default_rng(zlib.crc32(self.name.encode()))))

    def function(self, torch: Any) -> Callable[..., Any]:
        """Look the operator up in the package."""
        if self.call is not None:
            return self.call(torch)
        found = torch
        for part in self.name.split("."):
            found = getattr(found, part)
        return found


def uniform(rng: np.random.Generator, *shape: int, low: float = -2, high: float = 2) -> np.ndarray:
    return np.asarray(rng.uniform(low, high, shape))


def distinct(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return values at least 1/8 apart, exact in every dtype: no ties for sort and max."""
    size = int(np.prod(shape))
    return (rng.permutation(size) / 8 - size / 16).reshape(shape)


# Sizes on both sides of vector widths and of the blocks of unrolled loops.
UNARY = [(), (1,), (0,), (5,), (2, 0, 3), (3, 4), (17,), (3, 33), (1025,)]
BINARY = [
    ((), ()), ((3,), ()), ((), (3,)), ((0,), (1,)), ((3, 4), (3, 4)), ((3, 1), (4,)),
    ((2, 1, 3), (4, 1)), ((65,), (65,)), ((5, 33), (33,)), ((1025,), (1025,)),
]


def unary(name: str, ref: Any, low: float = -2, high: float = 2, **row: Any) -> Op:
    def make(rng: np.random.Generator) -> Iterable[Sample]:
        for shape in UNARY:
            yield Sample((uniform(rng, *shape, low=low, high=high),))

    return Op(name, ref, make, **{"dtypes": ALL, "inplace": True, **row})


def activation(name: str, ref: Any, *options: dict[str, Any], **row: Any) -> Op:
    def make(rng: np.random.Generator) -> Iterable[Sample]:
        for kwargs in options or ({},):
            for shape in [(), (0,), (3, 4), (3, 33)]:
                yield Sample((uniform(rng, *shape, low=-4, high=4),), kwargs)

    row = {"dtypes": ALL, "out": False, "method": False, **row}
    return Op("nn.functional." + name, ref, make, **row)


def binary(
    name: str, ref: Any, low: float = -2, high: float = 2, scalar: float | None = 1.5, **row: Any
) -> Op:
    def make(rng: np.random.Generator) -> Iterable[Sample]:
        for a, b in BINARY:
            yield Sample(tuple(uniform(rng, *s, low=low, high=high) for s in (a, b)))
        if scalar is not None:
            yield Sample((uniform(rng, 3, 4, low=low, high=high), scalar))

    return Op(name, ref, make, **{"dtypes": ALL, "inplace": True, **row})


def compare(name: str, ref: Any) -> Op:
    def make(rng: np.random.Generator) -> Iterable[Sample]:
        for a, b in BINARY:
            yield Sample(tuple(np.asarray(np.round(uniform(rng, *s))) for s in (a, b)))
        yield Sample((np.round(uniform(rng, 3, 4)), 1))

    return Op(name, ref, make, (*ALL, *INTS), "bool", differentiable=False)


def reduction(name: str, ref: Any, *, whole: bool = True, many: bool = True, **row: Any) -> Op:
    """Return a row whose samples reduce all, one or several dimensions."""
    low, high = row.pop("low", -2), row.pop("high", 2)
    values = row.pop("values", None)

    def make(rng: np.random.Generator) -> Iterable[Sample]:
        def x(*shape: int) -> np.ndarray:
            return values(rng, *shape) if values else uniform(rng, *shape, low=low, high=high)

        if whole:
            yield from (Sample((x(*shape),)) for shape in [(), (1,), (3, 4), (2, 33)])
        for shape, dim in [((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((2, 33), 1), ((33, 2), 0)]:
            yield Sample((x(*shape), dim))
            yield Sample((x(*shape), dim), {"keepdim": True})
        if many:
            yield Sample((x(2, 3, 4), (0, 2)))
            yield Sample((x(2, 3, 4), (-1, 1)), {"keepdim": True})

    return Op(name, ref, make, **row)


def cases(name: str, ref: Any, *calls: Any, **row: Any) -> Op:
    """Return a row from calls: shapes (lists) become random arrays, functions get the rng."""
    fill = row.pop("fill", uniform)

    def argument(rng: np.random.Generator, value: Any) -> Any:
        if isinstance(value, list):
            return fill(rng, *value)
        if callable(value):
            return value(rng)
        return [argument(rng, v) for v in value.items] if isinstance(value, Many) else value

    def make(rng: np.random.Generator) -> Iterable[Sample]:
        for call in calls:
            *args, kwargs = call if isinstance(call[-1], dict) else (*call, {})
            yield Sample(
                tuple(argument(rng, a) for a in args),
                {k: argument(rng, v) for k, v in kwargs.items()},
            )

    return Op(name, ref, make, **row)


@dataclass(frozen=True)
class Many:
    """A list of tensors as one argument."""

    items: tuple[Any, ...]


def view(name: str, ref: Any, *calls: Any, **row: Any) -> Op:
    row = {"dtypes": (*ALL, "int64", "uint8"), "out": False, **row}
    return cases(name, ref, *calls, **row)


def functional(name: str, ref: Any, *calls: Any, **row: Any) -> Op:
    row = {"out": False, "method": False, **row}
    return cases("nn.functional." + name, ref, *calls, **row)


def index(high: int, *shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: rng.integers(0, high, shape)


def once(high: int, count: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Return positions without repeats, for operators that leave repeats undefined."""
    return lambda rng: rng.permutation(high)[:count]


def mask(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: rng.random(shape) < 0.5


def positive(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: uniform(rng, *shape, low=0.2, high=2)


def probability(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: uniform(rng, *shape, low=0.1, high=0.9)


def well_posed(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: uniform(rng, *shape) + 4 * np.eye(shape[-1])


def definite(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    def make(rng: np.random.Generator) -> np.ndarray:
        a = uniform(rng, *shape)
        return a @ np.swapaxes(a, -1, -2) + 2 * np.eye(shape[-1])

    return make


def fmod(x: Any, y: Any) -> Any:
    return np.fmod(x, y)


STEP = {"differentiable": True}  # derivative zero almost everywhere
NO_GRAD = {"differentiable": False}
WITH_INTS = {"dtypes": (*ALL, "int64", "int32")}
TO_FLOAT = {"dtypes": (*ALL, "int64"), "result": "float", "inplace": False}
LONG_SUM = {"scale": 4.0, "why": "error grows with the number of terms"}
MATRIX = {**LONG_SUM, "dtypes": ALL}
NN_SUM = {**LONG_SUM, "dtypes": FLOATS}

POINTWISE = [
    unary("abs", np.abs, **WITH_INTS),
    unary("neg", np.negative, **WITH_INTS),
    unary("square", np.square, **{**WITH_INTS, "out": True}),
    unary("sign", lambda x: np.where(np.isnan(x), 0, np.sign(x)), **WITH_INTS),
    unary("positive", np.positive, inplace=False, out=False, **WITH_INTS),
    unary("exp", np.exp, **TO_FLOAT),
    unary("exp2", np.exp2),
    unary("expm1", np.expm1),
    unary("log", np.log, 0.1, 4),
    unary("log2", np.log2, 0.1, 4),
    unary("log10", np.log10, 0.1, 4),
    unary("log1p", np.log1p, -0.8, 4),
    unary("sqrt", np.sqrt, 0.1, 9),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 9),
    unary("reciprocal", lambda x: 1 / x, 0.2, 4),
    unary("sin", np.sin, **TO_FLOAT),
    unary("cos", np.cos),
    unary("tan", np.tan, -1.2, 1.2),
    unary("asin", np.arcsin, -0.9, 0.9),
    unary("acos", np.arccos, -0.9, 0.9),
    unary("atan", np.arctan),
    unary("sinh", np.sinh),
    unary("cosh", np.cosh),
    unary("tanh", np.tanh, -4, 4),
    unary("asinh", np.arcsinh),
    unary("acosh", np.arccosh, 1.2, 5),
    unary("atanh", np.arctanh, -0.9, 0.9),
    unary("sigmoid", special.expit, -6, 6),
    unary("erf", special.erf),
    unary("erfc", special.erfc),
    unary("erfinv", special.erfinv, -0.9, 0.9),
    unary("lgamma", special.gammaln, 0.5, 6),
    unary("digamma", special.psi, 0.5, 6),
    unary("logit", special.logit, 0.1, 0.9),
    unary("sinc", np.sinc),
    unary("i0", special.i0),
    unary("floor", np.floor, **STEP),
    unary("ceil", np.ceil, **STEP),
    unary("trunc", np.trunc, **STEP),
    unary("round", np.round, **STEP),
    unary("frac", lambda x: x - np.trunc(x)),
    unary("deg2rad", np.deg2rad),
    unary("rad2deg", np.rad2deg),
    unary("relu", lambda x: np.maximum(x, 0), out=False),
    unary("isnan", np.isnan, result="bool", inplace=False, out=False, **NO_GRAD),
    unary("isinf", np.isinf, result="bool", inplace=False, out=False, **NO_GRAD),
    unary("isfinite", np.isfinite, result="bool", inplace=False, out=False, **NO_GRAD),
    unary("signbit", np.signbit, result="bool", inplace=False, **NO_GRAD),
    unary("logical_not", np.logical_not, result="bool", inplace=False, **NO_GRAD),
    binary("add", np.add, **WITH_INTS),
    binary("sub", np.subtract, **WITH_INTS),
    binary("mul", np.multiply, **WITH_INTS),
    binary("div", np.divide, 0.5, 3),
    binary("pow", np.power, 0.3, 2),
    binary("maximum", np.maximum, scalar=None, inplace=False),
    binary("minimum", np.minimum, scalar=None, inplace=False),
    binary("fmax", np.fmax, scalar=None, inplace=False),
    binary("fmin", np.fmin, scalar=None, inplace=False),
    binary("fmod", fmod, 0.5, 3, dtypes=FLOATS),
    binary("remainder", np.remainder, 0.5, 3, dtypes=FLOATS),
    binary("floor_divide", np.floor_divide, 0.5, 3, dtypes=FLOATS, **NO_GRAD),
    binary("atan2", np.arctan2, 0.2, 2, scalar=None),
    binary("hypot", np.hypot, 0.2, 2, scalar=None),
    binary("copysign", np.copysign, 0.2, 2),
    binary("logaddexp", np.logaddexp, scalar=None, inplace=False, dtypes=FLOATS),
    binary("logaddexp2", np.logaddexp2, scalar=None, inplace=False, dtypes=FLOATS),
    binary("xlogy", special.xlogy, 0.2, 2),
    binary("heaviside", np.heaviside, 0.2, 2, scalar=None, **NO_GRAD),
    compare("eq", np.equal),
    compare("ne", np.not_equal),
    compare("lt", np.less),
    compare("le", np.less_equal),
    compare("gt", np.greater),
    compare("ge", np.greater_equal),
    cases("add", lambda x, y, alpha: x + alpha * y, ([3, 4], [4], {"alpha": 2}), dtypes=ALL),
    cases("div", lambda x, y, rounding_mode: np.floor(x / y),
          ([3, 4], positive(4), {"rounding_mode": "floor"})),
    cases("div", lambda x, y, rounding_mode: np.trunc(x / y),
          ([3, 4], positive(4), {"rounding_mode": "trunc"})),
    cases("clamp", lambda x, min=None, max=None: np.clip(x, min, max),
          ([3, 4], -0.5, 0.7), ([3, 4], {"min": 0.1}), ([], {"max": 0.1}), ([33], -1.0, 1.0),
          dtypes=ALL, inplace=True),
    cases("lerp", lambda x, y, w: x + w * (y - x), ([3, 4], [3, 4], 0.3), ([3, 4], [4], [3, 1]),
          dtypes=FLOATS, inplace=True),
    cases("addcmul", lambda x, a, b, value=1: x + value * a * b, ([3, 4], [3, 4], [4]),
          ([3], [3], [3], {"value": 0.5}), inplace=True),
    cases("addcdiv", lambda x, a, b, value=1: x + value * a / b, ([3, 4], [3, 4], positive(4)),
          ([3], [3], positive(3), {"value": 0.5}), inplace=True),
    cases("where", np.where, (mask(3, 4), [3, 4], [4]), (mask(3, 1), [4], [1]), method=False,
          dtypes=ALL),
    cases("masked_fill", lambda x, m, v: np.where(m, v, x), ([3, 4], mask(3, 4), 2.0),
          ([3, 4], mask(4), -1.0), dtypes=ALL, inplace=True, out=False),
    cases("nan_to_num", lambda x, nan=0.0: np.nan_to_num(x, nan=nan), ([3, 4],), dtypes=FLOATS,
          inplace=True),
    cases("bitwise_and", np.bitwise_and, (index(9, 3, 4), index(9, 4)), **NO_GRAD),
    cases("bitwise_or", np.bitwise_or, (index(9, 3, 4), index(9, 4)), **NO_GRAD),
    cases("bitwise_xor", np.bitwise_xor, (mask(3, 4), mask(4)), **NO_GRAD),
    cases("bitwise_not", np.invert, (index(9, 3, 4),), (mask(3),), **NO_GRAD),
    cases("logical_and", np.logical_and, (mask(3, 4), mask(4)), **NO_GRAD),
    cases("logical_or", np.logical_or, (mask(3, 4), mask(4)), **NO_GRAD),
    cases("logical_xor", np.logical_xor, (mask(3, 4), mask(4)), **NO_GRAD),
]

ACTIVATIONS = [
    activation("relu6", lambda x: np.clip(x, 0, 6)),
    activation("silu", lambda x: x * special.expit(x)),
    activation("mish", lambda x: x * np.tanh(np.logaddexp(0, x))),
    activation("gelu", lambda x, approximate="none": x * special.ndtr(x) if approximate == "none"
               else 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
               {}, {"approximate": "tanh"}),
    activation("elu", lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x)), {},
               {"alpha": 0.5}),
    activation("celu", lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x / alpha)),
               {"alpha": 0.5}),
    activation("selu", lambda x: 1.0507009873554805
               * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    activation("leaky_relu", lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
               {}, {"negative_slope": 0.2}),
    activation("softplus", lambda x, beta=1.0: np.logaddexp(0, beta * x) / beta, {},
               {"beta": 2.0}),
    activation("softsign", lambda x: x / (1 + np.abs(x))),
    activation("logsigmoid", special.log_expit),
    activation("hardtanh", lambda x: np.clip(x, -1, 1)),
    activation("hardsigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), twice=False),
    activation("hardswish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    activation("tanhshrink", lambda x: x - np.tanh(x)),
    activation("softshrink", lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0)),
    activation("hardshrink", lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0)),
    activation("threshold", lambda x, threshold, value: np.where(x > threshold, x, value),
               {"threshold": 0.3, "value": 0.1}),
    functional("prelu", lambda x, w: np.where(x > 0, x, w.reshape(-1, 1) * x if w.size > 1
               else w * x), ([2, 3, 4], positive(3)), ([2, 3], positive(1))),
    functional("glu", lambda x, dim=-1: (lambda a, b: a * special.expit(b))(*np.split(x, 2, dim)),
               ([3, 4],), ([4, 3], 0)),
]

REDUCTIONS = [
    reduction("sum", R.reduce(np.sum), dtypes=(*ALL, "int64"), out=False, **LONG_SUM),
    reduction("mean", R.reduce(np.mean), dtypes=ALL, out=False, **LONG_SUM),
    reduction("prod", R.reduce(np.prod), many=False, dtypes=FLOATS, out=False, low=0.5,
              high=1.5, **LONG_SUM),
    reduction("amax", R.reduce(np.max), dtypes=(*ALL, "int64"), values=distinct),
    reduction("amin", R.reduce(np.min), dtypes=(*ALL, "int64"), values=distinct),
    reduction("argmax", R.arg(np.argmax), many=False, dtypes=ALL, result="int64",
              values=distinct, **NO_GRAD),
    reduction("argmin", R.arg(np.argmin), many=False, dtypes=ALL, result="int64",
              values=distinct, **NO_GRAD),
    reduction("max", R.extreme(np.max, np.argmax), whole=False, many=False, dtypes=ALL,
              values=distinct, out=False),
    reduction("min", R.extreme(np.min, np.argmin), whole=False, many=False, dtypes=ALL,
              values=distinct, out=False),
    reduction("median", R.median, whole=False, many=False, values=distinct, out=False),
    reduction("all", R.reduce(np.all), many=False, result="bool", out=False, **NO_GRAD),
    reduction("any", R.reduce(np.any), many=False, result="bool", out=False, **NO_GRAD),
    reduction("logsumexp", R.logsumexp, whole=False, dtypes=ALL),
    cases("count_nonzero", lambda x, dim=None: np.asarray(np.count_nonzero(x, axis=dim)),
          ([3, 4],), ([3, 4], 1), result="int64", out=False, **NO_GRAD),
    cases("var", R.spread(np.var), ([3, 4],), ([3, 4], 1), ([2, 3, 4], (0, 2), {"keepdim": True}),
          ([5], 0, {"correction": 0}), out=False),
    cases("std", R.spread(np.std), ([3, 4],), ([3, 4], 1), ([2, 3, 4], (0, 2), {"keepdim": True}),
          ([5], 0, {"correction": 0}), out=False),
    cases("cov", lambda x, correction=1: np.cov(x, ddof=correction), ([3, 7],), ([5],),
          ([2, 6], {"correction": 0}), out=False),
    cases("norm", lambda x, p=2, dim=None: (np.abs(x) ** p).sum(dim) ** (1 / p), ([3, 4],),
          ([3, 4], 2, 1), ([3, 4], 3, 0), out=False),
    cases("linalg.vector_norm", lambda x, ord=2, dim=None: (np.abs(x) ** ord).sum(dim)
          ** (1 / ord), ([3, 4],), ([3, 4], 2, 1), ([3, 4], 1, 0), method=False),
    cases("cumsum", lambda x, dim: np.cumsum(x, dim), ([3, 4], 0), ([3, 4], -1), ([33], 0),
          dtypes=(*ALL, "int64"), inplace=True, **LONG_SUM),
    cases("cumprod", lambda x, dim: np.cumprod(x, dim), (positive(3, 4), 0), (positive(6), -1),
          inplace=True, **LONG_SUM),
    cases("logcumsumexp", lambda x, dim: np.logaddexp.accumulate(x, dim), ([3, 4], 0),
          ([3, 4], -1)),
    cases("cummax", R.running(np.maximum), ([3, 4], 0), ([3, 4], -1), out=False, fill=distinct),
    cases("cummin", R.running(np.minimum), ([3, 4], 0), ([3, 4], -1), out=False, fill=distinct),
    cases("softmax", R.softmax, ([], 0), ([3, 4], 0), ([3, 4], -1), ([2, 3, 33], 1), ([2, 129], 1),
          dtypes=ALL, out=False),
    cases("log_softmax", R.log_softmax, ([], 0), ([3, 4], 0), ([3, 4], -1), ([2, 3, 33], 1),
          dtypes=ALL, out=False),
]

SORTING = [
    cases("sort", R.sort, ([7],), ([3, 4], 0), ([3, 4], 1, True), ([2, 65], 1), dtypes=ALL,
          out=False, fill=distinct),
    cases("argsort", lambda *a: R.sort(*a)[1], ([7],), ([3, 4], 0), ([3, 4], 1, True), out=False,
          result="int64", fill=distinct, **NO_GRAD),
    cases("topk", R.topk, ([7], 3), ([3, 4], 2, 0), ([3, 4], 2, 1, False), dtypes=ALL, out=False,
          fill=distinct),
    cases("kthvalue", R.kthvalue, ([7], 3), ([3, 4], 2, 0), out=False, fill=distinct),
    cases("searchsorted", lambda s, v: np.searchsorted(s, v),
          (lambda rng: np.sort(uniform(rng, 9)), [4]), result="int64", method=False, **NO_GRAD),
    cases("unique", np.unique, (index(5, 9),), out=False, **NO_GRAD),
    cases("bincount", np.bincount, (index(5, 9),), out=False, result="int64", **NO_GRAD),
    cases("nonzero", lambda m: np.argwhere(m), (mask(3, 4),), (mask(5),), result="int64",
          **NO_GRAD),
]

MATRICES = [
    cases("matmul", np.matmul, ([3], [3]), ([3, 4], [4]), ([3], [3, 4]), ([3, 4], [4, 2]),
          ([2, 3, 4], [4, 2]), ([2, 1, 3, 4], [5, 4, 2]), ([0, 3], [3, 2]), ([3, 0], [0, 2]),
          ([17, 33], [33, 18]), **MATRIX),
    cases("mm", np.matmul, ([3, 4], [4, 2]), ([1, 1], [1, 1]), ([15, 16], [16, 33]), **MATRIX),
    cases("mv", np.matmul, ([3, 4], [4]), ([33, 17], [17]), **MATRIX),
    cases("dot", np.dot, ([5], [5]), ([129], [129]), ([0], [0]), **MATRIX),
    cases("bmm", np.matmul, ([2, 3, 4], [2, 4, 2]), ([0, 3, 4], [0, 4, 2]), **MATRIX),
    cases("outer", np.outer, ([3], [4]), dtypes=ALL),
    cases("addmm", lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b),
          ([3, 2], [3, 4], [4, 2]), ([2], [3, 4], [4, 2], {"beta": 0.5, "alpha": 2}),
          inplace=False, **MATRIX),
    cases("baddbmm", lambda c, a, b: c + a @ b, ([2, 3, 2], [2, 3, 4], [2, 4, 2]), **MATRIX),
    cases("addmv", lambda c, a, b: c + a @ b, ([3], [3, 4], [4]), **MATRIX),
    cases("addr", lambda c, a, b: c + np.outer(a, b), ([3, 4], [3], [4])),
    cases("einsum", lambda eq, *a: np.einsum(eq, *a), ("ij,jk->ik", [3, 4], [4, 2]),
          ("bij,bkj->bik", [2, 3, 4], [2, 2, 4]), ("ii->i", [3, 3]), ("i,j->ij", [3], [2]),
          ("ij->", [3, 4]), out=False, method=False, **LONG_SUM),
    cases("tensordot", lambda a, b, dims: np.tensordot(a, b, dims), ([3, 4, 2], [4, 2, 3], 2),
          ([3, 4], [4, 3], ([0], [1])), method=False, **LONG_SUM),
    cases("kron", np.kron, ([2, 3], [3, 2])),
    cases("cdist", R.cdist, ([3, 4], [2, 4]), ([3, 4], [2, 4], 1.0), out=False, method=False,
          twice=False,
          **LONG_SUM),
    cases("linalg.inv", np.linalg.inv, (well_posed(3, 3),), (well_posed(2, 3, 3),), method=False,
          **LONG_SUM),
    cases("linalg.det", np.linalg.det, (well_posed(3, 3),), (well_posed(2, 2, 2),), method=False,
          scale=10, why="a product of pivots"),
    cases("linalg.solve", np.linalg.solve, (well_posed(3, 3), [3, 2]), method=False, **LONG_SUM),
    # The argument must stay symmetric under the perturbations of a gradient check.
    cases("linalg.cholesky", lambda x: np.linalg.cholesky(x + np.swapaxes(x, -1, -2)),
          (definite(3, 3),), (definite(2, 3, 3),), method=False, out=False, **LONG_SUM,
          call=lambda torch: lambda x: torch.linalg.cholesky(x + x.mT)),
    cases("linalg.solve_triangular",
          lambda a, b, upper: linalg.solve_triangular(a, b, lower=not upper),
          (lambda rng: np.triu(well_posed(3, 3)(rng)), [3, 2], {"upper": True}), method=False,
          differentiable=False),
    cases("cross", lambda a, b, dim=-1: np.cross(a, b, axis=dim), ([4, 3], [4, 3], {"dim": 1})),
]

VIEWS = [
    view("reshape", np.reshape, ([3, 4], (2, 6)), ([3, 4], (12,)), ([0, 2], (2, 0)), ([], (1, 1))),
    view("transpose", np.swapaxes, ([3, 4], 0, 1), ([2, 3, 4], -1, 0)),
    view("permute", np.transpose, ([2, 3, 4], (2, 0, 1)), ([], ())),
    view("squeeze", lambda x, d=None: np.squeeze(x, d), ([1, 3, 1],), ([1, 3, 1], 0)),
    view("unsqueeze", np.expand_dims, ([3, 4], 0), ([3, 4], -1), ([], 0)),
    view("flatten", lambda x, s=0, e=-1: x.reshape(
         *x.shape[:s], -1, *x.shape[e % x.ndim + 1:]), ([2, 3, 4],), ([2, 3, 4], 1),
         ([2, 3, 4], 0, 1)),
    view("unflatten", lambda x, d, s: x.reshape(*x.shape[:d], *s, *x.shape[d + 1:]),
         ([3, 4], 1, (2, 2))),
    view("movedim", np.moveaxis, ([2, 3, 4], 0, 2), ([2, 3, 4], (0, 1), (2, 0))),
    view("narrow", lambda x, d, s, n: np.take(x, range(s, s + n), d), ([3, 4], 1, 1, 2),
         ([3, 4], 0, 0, 0)),
    view("select", lambda x, d, i: np.take(x, i, d), ([3, 4], 0, 1), ([3, 4], 1, -1)),
    view("diagonal", lambda x, o=0, a=0, b=1: np.diagonal(x, o, a, b), ([3, 4],), ([3, 4], 1),
         ([2, 3, 4], 0, 1, 2)),
    view("broadcast_to", np.broadcast_to, ([3, 1], (2, 3, 4)), ([], (2,))),
    view("split", lambda x, n, d=0: np.split(x, range(n, x.shape[d], n), d), ([5, 2], 2),
         ([3, 4], 2, 1)),
    view("chunk", lambda x, n, d=0: np.split(x, n, d), ([4, 3], 2), ([3, 4], 4, 1)),
    view("unbind", lambda x, d=0: [np.take(x, i, d) for i in range(x.shape[d])], ([3, 4],),
         ([3, 4], 1)),
    view("unfold", R.unfold, ([7], 0, 3, 2), ([3, 5], 1, 2, 1), method=False,
         call=lambda torch: torch.Tensor.unfold),
    view("expand", lambda x, *s: np.broadcast_to(x, s), ([3, 1], 3, 4), method=False,
         call=lambda torch: torch.Tensor.expand),
    view("as_strided", lambda x, s, t, o=0: np.lib.stride_tricks.as_strided(
         x[o:], s, [8 * step for step in t]), ([12], (3, 2), (3, 1)), ([12], (3, 3), (1, 2), 2),
         dtypes=("float32", "float64")),
    view("flip", np.flip, ([3, 4], (0,)), ([3, 4], (0, 1))),
    view("roll", np.roll, ([3, 4], 1, 0), ([7], 2)),
    view("rot90", np.rot90, ([3, 4], 1, (0, 1))),
    view("tile", np.tile, ([3, 2], (2, 2))),
    view("repeat_interleave", np.repeat, ([3, 2], 2, 0), ([3, 2], index(3, 3), 0)),
    view("tril", np.tril, ([3, 4],), ([4, 3], 1), ([2, 3, 3], -1), inplace=True, out=True),
    view("triu", np.triu, ([3, 4],), ([4, 3], 1), ([2, 3, 3], -1), inplace=True, out=True),
    view("diag", np.diag, ([3],), ([3, 4], 1), out=True),
    view("diff", lambda x, n=1, d=-1: np.diff(x, n, d), ([5],), ([3, 4], 1, 0),
         dtypes=FLOATS, out=True),
    view("cat", np.concatenate, (Many(([2, 3], [1, 3])),), (Many(([2, 1], [2, 3])), 1),
         (Many(([0, 3], [2, 3])),), method=False, out=True),
    view("stack", np.stack, (Many(([3], [3])),), (Many(([2, 3], [2, 3])), -1), method=False,
         out=True),
    view("hstack", np.hstack, (Many(([3], [2])),), method=False, out=True),
    view("vstack", np.vstack, (Many(([3], [3])),), method=False, out=True),
    view("dstack", np.dstack, (Many(([2, 3], [2, 3])),), method=False, out=True),
    functional("pad", lambda x, p, mode="constant", value=0.0: np.pad(
        x, [(0, 0)] * (x.ndim - len(p) // 2) + [(p[i], p[i + 1]) for i in
        range(len(p) - 2, -1, -2)], **({"constant_values": value} if mode == "constant" else
        {"mode": {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]})),
        ([3, 4], (1, 2)), ([3, 4], (1, 2, 0, 1), "constant", 0.5), ([2, 3, 4], (1, 2), "reflect"),
        ([2, 3, 4], (1, 2), "replicate"), ([2, 3, 4], (1, 2), "circular")),
]

INDEXING = [
    cases("gather", lambda x, d, i: np.take_along_axis(x, i, d), ([3, 4], 0, index(3, 2, 4)),
          ([3, 4], 1, index(4, 3, 6)), dtypes=ALL),
    cases("take_along_dim", lambda x, i, d: np.take_along_axis(x, i, d),
          ([3, 4], index(4, 3, 2), 1)),
    cases("take", lambda x, i: np.take(x, i), ([3, 4], index(12, 5))),
    cases("index_select", lambda x, d, i: np.take(x, i, d), ([3, 4], 0, index(3, 5)),
          ([3, 4], 1, index(4, 2)), dtypes=ALL),
    cases("masked_select", lambda x, m: x[np.broadcast_to(m, x.shape)], ([3, 4], mask(3, 4)),
          ([3, 4], mask(4))),
    cases("scatter", R.put("set"), ([3, 4], 1, lambda rng: np.array([[0, 2], [3, 1]]), [2, 2]),
          ([3, 4], 0, lambda rng: np.array([[0, 2, 1, 0]]), 1.5), inplace=True),
    cases("scatter_add", R.put("add"), ([3, 4], 0, index(3, 2, 4), [2, 4]),
          ([3, 4], 1, index(4, 3, 5), [3, 5]), inplace=True, **LONG_SUM),
    cases("index_add", R.along("add"), ([3, 4], 0, index(3, 5), [5, 4]), inplace=True),
    cases("index_copy", R.along("set"), ([3, 4], 0, once(3, 2), [2, 4]), inplace=True),
    cases("index_fill", R.along("set"), ([3, 4], 1, index(4, 2), 1.5), inplace=True, out=False),
    functional("embedding", lambda i, w: w[i], (index(5, 3, 2), [5, 4])),
    functional("one_hot", lambda i, n: np.eye(n, dtype=np.int64)[i], (index(5, 3), 5), **NO_GRAD),
]

NETWORKS = [
    functional("linear", lambda x, w, b=None: x @ w.T + (0 if b is None else b),
               ([3, 4], [2, 4], [2]), ([4], [2, 4]), ([2, 3, 4], [5, 4], [5]), dtypes=ALL,
               **LONG_SUM),
    functional("bilinear", lambda a, b, w, c: np.einsum("ni,oij,nj->no", a, w, b) + c,
               ([3, 2], [3, 4], [5, 2, 4], [5]), **NN_SUM),
    functional("conv1d", R.conv, ([2, 3, 9], [4, 3, 3], [4]),
               ([1, 4, 9], [4, 2, 3], None, 2, 1, 1, 2), **NN_SUM),
    functional("conv2d", R.conv, ([1, 2, 5, 4], [3, 2, 3, 2], [3]),
               ([2, 2, 5, 5], [2, 2, 3, 3], None, 2, 1), ([1, 2, 6, 5], [2, 1, 2, 2], [2], 1,
               (1, 0), 2, 2), ([1, 3, 4, 4], [5, 3, 1, 1]), ([1, 16, 9, 9], [33, 16, 3, 3], [33],
               1, 1), **NN_SUM),
    functional("conv3d", R.conv, ([1, 2, 3, 4, 3], [2, 2, 2, 2, 2], [2]), **NN_SUM),
    functional("conv_transpose1d", R.conv_transpose, ([2, 3, 4], [3, 2, 3], [2], 2, 1, 1),
               **NN_SUM),
    functional("conv_transpose2d", R.conv_transpose, ([1, 2, 3, 3], [2, 3, 2, 2], [3]),
               ([1, 4, 3, 3], [4, 1, 3, 3], None, 2, 1, 1, 2, 1), **NN_SUM),
    functional("max_pool1d", R.max_pool, ([2, 3, 8], 2), fill=distinct),
    functional("max_pool2d", R.max_pool, ([1, 2, 4, 4], 2), ([1, 2, 5, 5], 3, 2, 1),
               ([1, 1, 5, 5], 2, 1, 0, 2), fill=distinct),
    functional("max_pool3d", R.max_pool, ([1, 1, 4, 4, 4], 2), fill=distinct),
    functional("avg_pool1d", R.avg_pool, ([2, 3, 8], 2)),
    functional("avg_pool2d", R.avg_pool, ([1, 2, 4, 4], 2), ([1, 2, 5, 5], 3, 2, 1),
               ([1, 2, 5, 5], 3, 2, 1, False, False)),
    functional("adaptive_avg_pool2d", R.adaptive_avg_pool, ([1, 2, 5, 7], (2, 3)),
               ([2, 3, 4, 4], 1)),
    functional("layer_norm", R.layer_norm, ([3, 4], (4,)), ([3, 4], (4,), [4], [4]),
               ([2, 3, 4], (3, 4), [3, 4]), ([2, 129], (129,)), dtypes=FLOATS, **LONG_SUM),
    functional("rms_norm", R.rms_norm, ([3, 4], (4,), [4], 1e-5), **LONG_SUM),
    functional("group_norm", R.group_norm, ([2, 4, 3], 2, [4], [4]), ([2, 4], 4 // 2), **LONG_SUM),
    functional("instance_norm", lambda x: R.group_norm(x, x.shape[1]), ([2, 3, 4],), **LONG_SUM),
    functional("batch_norm", R.batch_norm, ([4, 3], None, None, [3], [3], True),
               ([2, 3, 4], None, None, None, None, True), **LONG_SUM),
    functional("normalize", R.normalize, ([3, 4],), ([3, 4], 1.0, 0), **LONG_SUM),
    functional("cosine_similarity", R.cosine_similarity, ([3, 4], [3, 4]), **LONG_SUM),
    functional("scaled_dot_product_attention", R.attention, ([1, 2, 3, 4], [1, 2, 5, 4],
               [1, 2, 5, 4]), ([2, 3, 4], [2, 3, 4], [2, 3, 4], {"is_causal": True}),
               ([2, 3, 4], [2, 5, 4], [2, 5, 4], [3, 5]), **NN_SUM),
    functional("unfold", lambda x, k: np.moveaxis(R._windows(x, (k, k), 1, 0).reshape(
               *x.shape[:2], -1, k * k), 2, 3).reshape(x.shape[0], x.shape[1] * k * k, -1),
               ([1, 2, 4, 3], 2)),
    functional("pixel_shuffle", lambda x, r: x.reshape(
               x.shape[0], -1, r, r, *x.shape[2:]).transpose(0, 1, 4, 2, 5, 3).reshape(
               x.shape[0], -1, x.shape[2] * r, x.shape[3] * r), ([1, 4, 2, 3], 2)),
]

EACH = [{"reduction": how} for how in ("none", "sum", "mean")]


def losses(name: str, each: Any, x: Any, y: Any, *options: dict[str, Any], **row: Any) -> Op:
    calls = [(x, y, {**how, **more}) for how in EACH for more in options or ({},)]
    return functional(name, R.loss(each), *calls, **NN_SUM, **row)


LOSSES = [
    losses("mse_loss", lambda x, y: (x - y) ** 2, [3, 4], [3, 4]),
    losses("l1_loss", lambda x, y: np.abs(x - y), [3, 4], [3, 4]),
    losses("smooth_l1_loss", R.smooth_l1, [3, 4], [3, 4], {}, {"beta": 0.5}),
    losses("huber_loss", R.huber, [3, 4], [3, 4], {}, {"delta": 0.5}),
    losses("binary_cross_entropy", R.bce, probability(3, 4), probability(3, 4)),
    losses("binary_cross_entropy_with_logits", R.bce_logits, [3, 4], probability(3, 4), {},
           {"pos_weight": positive(4)}, fixed=("pos_weight",)),
    functional("kl_div", R.loss(R.kl_div), ([3, 4], probability(3, 4), {"reduction": "none"}),
               ([3, 4], probability(3, 4), {"reduction": "sum"}),
               ([3, 4], [3, 4], {"reduction": "sum", "log_target": True}), **NN_SUM),
    losses("soft_margin_loss", lambda x, y: np.logaddexp(0, -y * x), [3, 4], [3, 4],
           fixed=(1,)),
    functional("nll_loss", R.nll_loss, *[([3, 5], index(5, 3), how) for how in EACH],
               ([3, 5], index(5, 3), positive(5)), ([2, 4, 3], index(4, 2, 3)),
               ([6, 3], index(3, 6), {"ignore_index": 1}), fixed=(2,), **NN_SUM),
    functional("cross_entropy", R.cross_entropy, *[([3, 5], index(5, 3), how) for how in EACH],
               ([3, 5], index(5, 3), positive(5)), ([2, 4, 3], index(4, 2, 3)),
               ([6, 3], index(3, 6), {"ignore_index": 1}),
               ([3, 5], index(5, 3), {"label_smoothing": 0.2}),
               ([3, 5], index(5, 3), positive(5), {"label_smoothing": 0.2}), fixed=(2,),
               **NN_SUM),
]

OPS = [
    *POINTWISE, *ACTIVATIONS, *REDUCTIONS, *SORTING, *MATRICES, *VIEWS, *INDEXING, *NETWORKS,
    *LOSSES,
]
