"""Numbers at the ends of every type, through every op with a GPU kernel: the GPU gives what the CPU
gives. 64-bit integers are checked against NumPy as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import wgpu
from pytensorlib.nn import functional as F

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]


def on_gpu(x: Any, strided: bool) -> Any:
    """Return a copy on the GPU: contiguous, or every second element from the first odd one on."""
    if not strided or x.ndim == 0:
        return x.to("wgpu")
    wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1] + 1, dtype=x.dtype, device="wgpu")
    return wide[..., 1::2].copy_(x)


def leaves(value: Any) -> list[Any]:
    return [value] if isinstance(value, torch.Tensor) else [t for v in value for t in leaves(v)]


# ---- 64-bit integers ----------------------------------------------------------------------------

WIDE = np.array(
    [0, 1, -1, 2, 7, -100, -300, 2**31, 2**31 - 1, -(2**31), -(2**31) - 1, 2**32, 2**32 - 1,
     -(2**32), 3 * 10**9, 2**40, -(2**40), 2**53 + 1, 2**63 - 1, -(2**63)],
)  # fmt: skip
A, B = (v.ravel() for v in np.meshgrid(WIDE, WIDE))
NONZERO = A[B != 0], B[B != 0]
ROWS = WIDE.reshape(4, 5)
AT = np.array([3, 0, 3, 2])
GRID = np.array([[1, 0, 3, 3, 2], [0, 1, 2, 3, 0]])


def put(x: Any, at: Any, v: Any, how: Any) -> Any:
    """Return a copy of `x` after `x[at] = how(x[at], v)`, one index after the other."""
    y = x.copy()
    for k, i in enumerate(at):
        y[i] = v[k] if how is None else how(y[i], v[k])
    return y


def scattered(x: Any, at: Any, v: Any, how: Any) -> Any:
    """Return `x.scatter(0, at, v)` with this way to meet."""
    y = x.copy()
    for k, c in np.ndindex(at.shape):
        y[at[k, c], c] = v[k, c] if how is None else how(y[at[k, c], c], v[k, c])
    return y


def single(x: Any) -> Any:
    """Return `x` in the type in which integers divide."""
    return x.astype(np.float32)


# name -> (ours, NumPy's, arguments)
INT64: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "neg": (torch.neg, np.negative, (WIDE,)),
    "abs": (torch.abs, np.abs, (WIDE,)),
    "sign": (torch.sign, np.sign, (WIDE,)),
    "square": (torch.square, np.square, (WIDE,)),
    "relu": (torch.relu, lambda a: np.maximum(a, 0), (WIDE,)),
    "bitwise_not": (torch.bitwise_not, np.invert, (WIDE,)),
    "logical_not": (torch.logical_not, np.logical_not, (WIDE,)),
    "clone": (torch.clone, np.copy, (WIDE,)),
    "add": (torch.add, np.add, (A, B)),
    "sub": (torch.sub, np.subtract, (A, B)),
    "mul": (torch.mul, np.multiply, (A, B)),
    "add_alpha": (lambda a, b: torch.add(a, b, alpha=2**40), lambda a, b: a + 2**40 * b, (A, B)),
    "add_huge": (lambda a: a + (2**62 + 1), lambda a: a + (2**62 + 1), (WIDE,)),
    "rsub": (lambda a: 2**33 - a, lambda a: 2**33 - a, (WIDE,)),
    "floor_divide": (torch.floor_divide, np.floor_divide, NONZERO),
    "trunc_divide": (
        lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        lambda a, b: (a - np.fmod(a, b)) // b, NONZERO,
    ),
    "remainder": (torch.remainder, np.remainder, NONZERO),
    "fmod": (torch.fmod, np.fmod, NONZERO),
    "true_divide": (torch.true_divide, lambda a, b: single(a) / single(b), NONZERO),
    "divide_number": (lambda a: a / 2, lambda a: single(a) / np.float32(2), (WIDE,)),
    "pow": (lambda a: a**3, lambda a: a**3, (WIDE,)),
    "bitwise_and": (torch.bitwise_and, np.bitwise_and, (A, B)),
    "bitwise_or": (torch.bitwise_or, np.bitwise_or, (A, B)),
    "bitwise_xor": (torch.bitwise_xor, np.bitwise_xor, (A, B)),
    "logical_and": (torch.logical_and, np.logical_and, (A, B)),
    "logical_xor": (torch.logical_xor, np.logical_xor, (A, B)),
    "eq": (torch.eq, np.equal, (A, B)),
    "ne": (torch.ne, np.not_equal, (A, B)),
    "lt": (torch.lt, np.less, (A, B)),
    "le": (torch.le, np.less_equal, (A, B)),
    "gt": (torch.gt, np.greater, (A, B)),
    "ge": (torch.ge, np.greater_equal, (A, B)),
    "lt_number": (lambda a: a < 2**31, lambda a: a < 2**31, (WIDE,)),
    "eq_number": (lambda a: a == 2**53 + 1, lambda a: a == 2**53 + 1, (WIDE,)),
    "maximum": (torch.maximum, np.maximum, (A, B)),
    "minimum": (torch.minimum, np.minimum, (A, B)),
    "clamp": (lambda a: a.clamp(-(2**40), 2**32 + 1), lambda a: a.clip(-(2**40), 2**32 + 1), (A,)),
    "clamp_tensors": (torch.clamp, np.clip, (A, np.minimum(A, B), np.maximum(A, B))),
    "where": (lambda a, b: torch.where(a < b, a, b), np.minimum, (A, B)),
    "where_number": (lambda a: torch.where(a > 0, a, -5), lambda a: np.where(a > 0, a, -5), (A,)),
    "masked_fill": (
        lambda a: a.masked_fill(a < 0, 2**40), lambda a: np.where(a < 0, 2**40, a), (WIDE,)
    ),
    "times_float": (lambda a: a * 0.5, lambda a: single(a) * np.float32(0.5), (WIDE,)),
    "mixed_with_float": (
        lambda a: torch.ones_like(a, dtype=torch.float32) * a, single, (WIDE,)
    ),
    "sum": (torch.sum, np.sum, (WIDE,)),
    "sum_0": (lambda a: a.sum(0), lambda a: a.sum(0), (ROWS,)),
    "sum_1": (lambda a: a.sum(1), lambda a: a.sum(1), (ROWS,)),
    "prod": (lambda a: a.prod(1), lambda a: a.prod(1), (ROWS,)),
    "amin": (lambda a: (a.amin(0), a.amin()), lambda a: (a.min(0), a.min()), (ROWS,)),
    "amax": (lambda a: (a.amax(1), a.amax()), lambda a: (a.max(1), a.max()), (ROWS,)),
    "amin_of_positive": (lambda a: a.abs().clamp(1).amin(0), lambda a: np.abs(a).clip(1).min(0),
                         (ROWS[:, :4],)),
    "max": (lambda a: tuple(a.max(0)), lambda a: (a.max(0), a.argmax(0)), (ROWS,)),
    "min": (lambda a: tuple(a.min(1)), lambda a: (a.min(1), a.argmin(1)), (ROWS,)),
    "argmax": (lambda a: a.argmax(1), lambda a: a.argmax(1), (ROWS,)),
    "argmin": (lambda a: a.argmin(), lambda a: a.argmin(), (ROWS,)),
    "any": (lambda a: a.any(0), lambda a: a.any(0), (ROWS - ROWS[:1],)),
    "all": (lambda a: a.all(1), lambda a: a.all(1), (ROWS,)),
    "count_nonzero": (lambda a: torch.count_nonzero(a, 1), lambda a: (a != 0).sum(1), (ROWS,)),
    "matmul": (torch.matmul, np.matmul, (ROWS, ROWS.T)),
    "index": (lambda a, i: a[i], lambda a, i: a[i], (ROWS, AT)),
    "index_select": (lambda a, i: a.index_select(0, i), lambda a, i: a[i], (ROWS, AT)),
    "take": (lambda a, i: a.take(i), np.take, (WIDE, AT)),
    "gather": (lambda a, i: a.gather(0, i), lambda a, i: np.take_along_axis(a, i, 0), (ROWS, GRID)),
    "index_put": (lambda a, i, v: a.index_put((i,), v), lambda a, i, v: put(a, i, v, None),
                  (ROWS, AT, ROWS)),
    "index_accumulate": (lambda a, i, v: a.index_put((i,), v, accumulate=True),
                         lambda a, i, v: put(a, i, v, np.add), (ROWS, AT, ROWS)),
    "index_add": (lambda a, i, v: a.index_add(0, i, v), lambda a, i, v: put(a, i, v, np.add),
                  (ROWS, AT, ROWS)),
    "index_copy": (lambda a, i, v: a.index_copy(0, i, v), lambda a, i, v: put(a, i, v, None),
                   (ROWS, AT, ROWS)),
    "index_fill": (lambda a, i: a.index_fill(0, i, 2**40),
                   lambda a, i: put(a, i, np.full(4, 2**40), None), (ROWS, AT)),
    "scatter": (lambda a, i, v: a.scatter(0, i, v), lambda a, i, v: scattered(a, i, v, None),
                (ROWS, GRID, ROWS)),
    "scatter_add": (lambda a, i, v: a.scatter_add(0, i, v),
                    lambda a, i, v: scattered(a, i, v, np.add), (ROWS, GRID, ROWS)),
    "cat": (lambda a: torch.cat([a, a], 1), lambda a: np.concatenate([a, a], 1), (ROWS,)),
    "stack": (lambda a: torch.stack([a, a]), lambda a: np.stack([a, a]), (ROWS,)),
    "flip": (lambda a: a.flip(1), lambda a: a[:, ::-1], (ROWS,)),
    "roll": (lambda a: a.roll(1, 0), lambda a: np.roll(a, 1, 0), (ROWS,)),
    "tril": (torch.tril, np.tril, (ROWS,)),
    "full_like": (lambda a: torch.full_like(a, -(2**40) - 1),
                  lambda a: np.full_like(a, -(2**40) - 1), (WIDE,)),
    "embedding": (lambda i, w: F.embedding(i, w), lambda i, w: w[i], (AT, ROWS)),
}  # fmt: skip
for _name in ("float32", "float64", "int32", "int16", "int8", "uint8", "bool"):
    INT64[f"to_{_name}"] = (
        lambda a, t=_name: a.to(getattr(torch, t)),
        lambda a, t=_name: a.astype(t),
        (WIDE,),
    )


@pytest.mark.parametrize("name", INT64)
def test_int64_on_gpu_cpu_and_numpy_agree(name: str) -> None:
    f, reference, arrays = INT64[name]
    with np.errstate(all="ignore"):
        want = reference(*arrays)
    want = [np.asarray(w) for w in (want if isinstance(want, tuple) else (want,))]
    host = [torch.from_numpy(np.ascontiguousarray(a)) for a in arrays]
    results = [f(*host), *(f(*[on_gpu(a, s) for a in host]) for s in (False, True))]
    for result in results:
        for g, w in zip(leaves(result), want, strict=True):
            np.testing.assert_array_equal(g.cpu().numpy(), w)


# ---- every type ---------------------------------------------------------------------------------

REAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 3.5, -2.5, 1e-3, -1e-3, 0.3, 0.7, 1.5, 10.0, -10.0, 100.0,
    -100.0, 3e4, -3e4, 65504.0, 1.2e-38, 6e-8, 1e-5, 1e10, -1e10, 3e38, -3e38, float("inf"),
    float("-inf"), float("nan"),
]  # fmt: skip
DENORMAL = [1e-40, -1e-40, 1e-45]
VALUES: dict[str, list[Any]] = {
    "float32": REAL,
    "float16": REAL,
    "bfloat16": REAL,
    "int64": WIDE.tolist(),
    "int32": [0, 1, -1, 2, 7, -100, 2**31 - 1, -(2**31), 2**16, -(2**24) - 1, 2**24 + 1],
    "int16": [0, 1, -1, 2, 7, -100, 32767, -32768, 256],
    "int8": [0, 1, -1, 2, 7, 127, -128, 64],
    "uint8": [0, 1, 2, 7, 100, 128, 255],
    "bool": [False, True],
}
TYPES = [*VALUES, "float64"]
UNARY = """neg abs sign sgn square bitwise_not logical_not relu sqrt rsqrt exp exp2 expm1 log log2
    log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc erfinv
    lgamma digamma floor ceil trunc round frac reciprocal isnan isinf isfinite signbit deg2rad
    rad2deg positive nan_to_num sinc logit""".split()
ACTIVATIONS = """gelu silu mish softplus softsign elu selu celu leaky_relu relu6 hardtanh hardswish
    hardsigmoid logsigmoid tanhshrink softshrink hardshrink""".split()
BINARY = """add sub mul true_divide floor_divide remainder fmod eq ne lt le gt ge maximum minimum
    fmax fmin bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor pow atan2
    copysign hypot logaddexp logaddexp2 xlogy heaviside ldexp""".split()
# Largest relative and absolute distance from the CPU beyond one rounding; 3e-6 where none is named.
# `tanhshrink` is a difference from tanh(x), whose last place is 2^-25 below 1/2.
LOOSE = {
    "lgamma": (2e-5, 5e-6), "digamma": (3e-6, 1e-6), "gelu": (3e-6, 6e-8),
    "tanhshrink": (3e-6, 3e-8),
}  # fmt: skip
ROUNDING = {"float32": 0.0, "float16": 1.1e-3, "bfloat16": 8.5e-3, "float64": 0.0}


def functions() -> dict[str, tuple[int, Callable[..., Any]]]:
    """Return functions by name, with how many tensors they take."""
    found: dict[str, tuple[int, Callable[..., Any]]] = {}
    for module, names, count in ((torch, UNARY, 1), (F, ACTIVATIONS, 1), (torch, BINARY, 2)):
        for name in names:
            found[name] = count, getattr(module, name)
    for to in TYPES:
        found[f"to_{to}"] = 1, lambda a, t=to: a.to(getattr(torch, t))
    for number in (3, -7, 0.5):
        found[f"add_{number}"] = 1, lambda a, s=number: a + s
        found[f"rsub_{number}"] = 1, lambda a, s=number: s - a
        found[f"mul_{number}"] = 1, lambda a, s=number: a * s
        found[f"div_{number}"] = 1, lambda a, s=number: a / s
        found[f"floor_div_{number}"] = 1, lambda a, s=number: a // s
        found[f"remainder_{number}"] = 1, lambda a, s=number: a % s
        found[f"lt_{number}"] = 1, lambda a, s=number: a < s
        found[f"clamp_{number}"] = 1, lambda a, s=number: a.clamp(s, 5)
    found["where"] = 2, lambda a, b: torch.where(a == b, a, b)
    found["clamp"] = 2, lambda a, b: torch.clamp(a, b, b)
    found["masked_fill"] = 2, lambda a, b: a.masked_fill(a == b, 1)
    found["addcmul"] = 2, lambda a, b: torch.addcmul(a, a, b, value=2)
    found["any"] = 1, lambda a: a.any()
    found["all"] = 1, lambda a: a.all()
    found["amax"] = 1, lambda a: a.amax()
    found["amin"] = 1, lambda a: a.amin()
    found["argmax"] = 1, lambda a: a.argmax()
    found["max"] = 1, lambda a: a.reshape(1, -1).max(1)
    return found


def operands(dtype: str, count: int, name: str) -> list[Any]:
    """Return the values, or all pairs of them that the function takes."""
    values = list(VALUES[dtype])
    if dtype.startswith(("float", "bfloat")) and not flushes():
        values += DENORMAL
    x = torch.tensor(values).to(getattr(torch, dtype))
    if count == 1:
        return [x]
    a, b = (v.ravel() for v in np.meshgrid(range(len(x)), range(len(x))))
    pairs = [x[torch.from_numpy(v)] for v in (a, b)]
    if not x.is_floating_point() and name in ("floor_divide", "remainder", "fmod"):
        keep = pairs[1] != 0
    elif not x.is_floating_point() and name == "pow":
        keep = (pairs[1] >= 0) & (pairs[1] < 40)
    else:
        return pairs
    return [p[keep] for p in pairs]


def flushes() -> bool:
    """Whether this adapter takes denormals for zeros, which WGSL allows."""
    tiny = torch.tensor([1e-40], device="wgpu")
    return not bool((tiny * 1.5 > 0).cpu())


def differing(name: str, got: Any, want: Any) -> Any:
    """Return where two results differ by more than the function's tolerance."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape), name
    if not want.is_floating_point():
        return (got != want).numpy()
    kind = str(want.dtype).split(".")[-1]
    g, w = got.to(torch.float64).numpy(), want.to(torch.float64).numpy()
    rtol, atol = LOOSE.get(name, (3e-6, 1.2e-38))
    with np.errstate(all="ignore"):
        near = np.abs(g - w) <= max(rtol, ROUNDING[kind]) * np.abs(w) + atol
    near |= (g == w) | (np.isnan(g) & np.isnan(w))
    # Zeros have their sign too, but for a sum of logarithms at the zero of lgamma, and where the
    # zero stands for a denormal: e^-100.
    signs = (g == 0) & (w == 0) & (np.signbit(g) != np.signbit(w))
    open_ = name == "lgamma" or (name == "logsigmoid" and flushes())
    return ~near | (signs if not open_ else False)


@pytest.mark.parametrize("strided", [False, True], ids=["contiguous", "strided"])
@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(d, marks=pytest.mark.slow if d in ("int64", "int16", "int8") else ())
        for d in VALUES
    ],
)
def test_pointwise_extremes_equal_cpu(dtype: str, strided: bool) -> None:
    ran, wrong = 0, []
    table = functions()
    for k, (name, (count, f)) in enumerate(table.items()):
        # Each layout takes half of the functions, the other half for the next type.
        if (k + list(VALUES).index(dtype)) % 2 != strided:
            continue
        args = operands(dtype, count, name)
        try:
            want = leaves(f(*args))
        except (RuntimeError, NotImplementedError, TypeError) as e:
            with pytest.raises(type(e)):
                f(*[on_gpu(a, strided) for a in args])
            continue
        try:
            got = leaves(f(*[on_gpu(a, strided) for a in args]))
        except NotImplementedError as e:
            assert "no GPU kernel" in str(e), (name, str(e))  # noqa: PT017
            continue
        ran += 1
        for g, w in zip(got, want, strict=True):
            g = g.cpu()
            bad = np.flatnonzero(differing(name, g, w).ravel())
            if bad.size:
                i = int(bad[0])
                at = [a.reshape(-1)[i].item() for a in args if a.shape == w.shape]
                wrong.append((name, at, g.reshape(-1)[i].item(), w.reshape(-1)[i].item()))
    assert not wrong, wrong
    assert ran > 0.3 * len(table), f"only {ran} of {len(table)} have a kernel"


def test_pointwise_gradients_at_extremes_equal_cpu() -> None:
    def gradient(f: Callable[..., Any], x: Any) -> Any:
        x = x.clone().requires_grad_()
        y = f(x)
        if y.requires_grad:
            y.backward(torch.full_like(y, 1.5))
        return x.grad

    ran, wrong = 0, []
    for name, (count, f) in functions().items():
        if (
            count == 2
            or name in ("any", "all", "max", "amax", "amin")
            or name.startswith(("to_", "arg"))
        ):
            continue
        (x,) = operands("float32", 1, name)
        try:
            want = gradient(f, x)
            got = gradient(f, x.to("wgpu"))
        except (RuntimeError, NotImplementedError, TypeError):
            continue
        assert (got is None) == (want is None), name
        if want is None:
            continue
        ran += 1
        # 1 - y * y and its like lose digits where y is near 1.
        g, w = got.cpu().double().numpy(), want.double().numpy()
        with np.errstate(all="ignore"):
            near = (g == w) | (np.abs(g - w) <= 5e-5 * np.abs(w) + 1.2e-38)
        near |= np.isnan(g) & np.isnan(w)
        if name == "log2" and flushes():
            # x ln 2 is a denormal where x just is not.
            near |= np.abs(x.double().numpy()) < 1.7e-38
        wrong += [(name, x[int(i)].item(), g[i], w[i]) for i in np.flatnonzero(~near)[:1]]
    assert not wrong, wrong
    assert ran > 40


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_fractions_and_powers_of_two_match_numpy(dtype: str) -> None:
    limits = np.finfo(dtype)
    x = [0, 1, 3.5, 0.5, 0.1, limits.max, limits.tiny, limits.smallest_subnormal, np.inf, np.nan]
    x = np.array([*x, 5 * limits.smallest_subnormal, limits.tiny / 2], dtype)
    x = np.concatenate([x, -x])
    fraction, power = torch.from_numpy(x.copy()).to("wgpu").frexp()
    want = np.frexp(x)
    np.testing.assert_array_equal(fraction.cpu().numpy(), want[0])
    np.testing.assert_array_equal(np.signbit(fraction.cpu().numpy()), np.signbit(want[0]))
    np.testing.assert_array_equal(power.cpu().numpy(), np.where(np.isfinite(x), want[1], 0))


def rounded(how: str, a: Any, b: Any, c: Any) -> Any:
    """The same of arrays and tensors, by operators or by functions that are one kernel each."""
    if isinstance(a, np.ndarray):
        d, w = np.float32(0.3), np.float32(0.7)
        return {
            "add": lambda: a + d * b,
            "sub": lambda: a - d * b,
            "rsub": lambda: b - d * a,
            "addcmul": lambda: a + d * b * c,
            "addcdiv": lambda: a + d * (b / c),
            "lerp": lambda: b - (b - a) * (np.float32(1) - w),
            "div": lambda: a / b,
            "reciprocal": lambda: 1 / a,
        }[how]()
    return {
        "add": lambda: torch.add(a, b, alpha=0.3),
        "sub": lambda: torch.sub(a, b, alpha=0.3),
        "rsub": lambda: torch.rsub(a, b, alpha=0.3),
        "addcmul": lambda: torch.addcmul(a, b, c, value=0.3),
        "addcdiv": lambda: torch.addcdiv(a, b, c, value=0.3),
        "lerp": lambda: torch.lerp(a, b, 0.7),
        "div": lambda: torch.div(a, b),
        "reciprocal": lambda: torch.reciprocal(a),
    }[how]()


@pytest.mark.parametrize("together", [False, True], ids=["alone", "among others"])
@pytest.mark.parametrize(
    "how", ["add", "sub", "rsub", "addcmul", "addcdiv", "lerp", "div", "reciprocal"]
)
def test_each_operation_is_rounded_once(how: str, together: bool) -> None:
    """A product that a driver joins with a sum is not, nor a quotient by way of a reciprocal."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 50000)).astype(np.float32)
    want = rounded(how, *x)
    a, b, c = (torch.from_numpy(v).to("wgpu") for v in x)
    if together:
        # In one kernel with what comes next.
        y = rounded(how, a * 3, b, c) * 5 - a
        want = rounded(how, x[0] * np.float32(3), x[1], x[2]) * np.float32(5) - x[0]
    else:
        y = rounded(how, a, b, c)
    np.testing.assert_array_equal(y.cpu().numpy(), want)


MASKED: dict[str, Callable[..., Any]] = {
    "bool": lambda x, c, a: x * c,
    "not": lambda x, c, a: x * ~c,
    "compared": lambda x, c, a: x * (a > 0),
    "compared, cast": lambda x, c, a: x * (a > 0).float(),
    "compared, integer": lambda x, c, a: x * (a != 0).int(),
    "compared, by way of half": lambda x, c, a: x * (a > 0).half().float(),
    "halves": lambda x, c, a: (x.bfloat16() * c.bfloat16()).float(),
    "both": lambda x, c, a: x * torch.logical_and(c, a > 0),
    "one without": lambda x, c, a: x * (1 - (a > 0).float()),
    "chosen": lambda x, c, a: x * torch.where(a > 0, 1.0, 0.0),
    "filled": lambda x, c, a: x * torch.ones_like(x).masked_fill(~c, 0.0),
    "heaviside": lambda x, c, a: x * torch.heaviside(a, torch.zeros_like(a)),
    "sign": lambda x, c, a: x * torch.sign(a),
    "added": lambda x, c, a: torch.addcmul(a, x, c.float()),
}


@pytest.mark.parametrize("how", MASKED)
def test_a_product_with_a_mask_is_no_choice(how: str) -> None:
    """NaN and infinity times zero are NaN, which a driver that makes a choice of it would lose."""
    x = torch.tensor([np.nan, np.inf, -np.inf, 1, np.nan, np.inf, -2, 0])
    a = torch.tensor([0.0, 0, 0, 0, 1, 1, 1, 1])
    with np.errstate(invalid="ignore"):
        kept = x.numpy() * (1 - a if how in ("not", "one without") else a).numpy()
    want = kept + (a.numpy() if how == "added" else 0)
    got = MASKED[how](*(t.to("wgpu") for t in (x, a > 0, a)))
    np.testing.assert_array_equal(got.cpu().numpy(), want)


WHOLE = {"uint8": 200, "int8": 100, "int16": 30000, "int32": 2**31 - 1, "int64": 2**40}
BOTH = {"add": np.add, "mul": np.multiply, "sub": np.subtract}


@pytest.mark.parametrize("left", WHOLE)
@pytest.mark.parametrize("right", WHOLE)
def test_shifts_of_mixed_integers_match_numpy(left: str, right: str) -> None:
    """By every number of bits that the common type has, by more, and by fewer than none."""
    x = np.array([WHOLE[left], 3, 100, 0, 1], left)
    dtype = (torch.tensor(x[:1]) + torch.zeros(1, dtype=getattr(torch, right))).dtype
    common = np.dtype(str(dtype).removeprefix("torch."))
    bits = 8 * common.itemsize
    counts = [n for n in (0, 1, 7, 8, 15, 31, 32, 63, 64, 100) if n <= np.iinfo(right).max]
    for n in counts + ([-1] if right != "uint8" else []):
        y = np.full(5, n, right)
        a, b = torch.tensor(x, device="wgpu"), torch.tensor(y, device="wgpu")
        wide, inside = x.astype(common), 0 <= n < bits
        with np.errstate(over="ignore"):
            up = wide << common.type(n) if inside else wide * common.type(0)
        down = wide >> common.type(n) if inside else np.where(wide < 0, -1, 0).astype(common)
        for got, want in ((a << b, up), (a >> b, down)):
            assert got.dtype == dtype
            np.testing.assert_array_equal(got.cpu().numpy(), want, str((n, left, right)))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "float16"])
@pytest.mark.parametrize("wider", ["int32", "int64", "float32"])
def test_what_a_narrow_type_cannot_hold_shows_in_a_wider_out(dtype: str, wider: str) -> None:
    if dtype == "float16" and wider != "float32":
        return
    x = np.array([WHOLE.get(dtype, 1), 7, 0], dtype)
    if dtype == "float16":
        x[0] = 60000
    for name, of in BOTH.items():
        if dtype == "bool" and name == "sub":
            continue
        with np.errstate(over="ignore"):
            want = of(x, x).astype(wider)
        a = torch.tensor(x, device="wgpu")
        out = torch.empty(3, dtype=getattr(torch, wider), device="wgpu")
        getattr(torch, name)(a, a, out=out)
        np.testing.assert_array_equal(out.cpu().numpy(), want, name)
