"""ONNX for operators that work element by element."""

from __future__ import annotations

import math
from typing import Any

import pytensorlib as pt

from ._graph import Value
from ._rows import ROWS, row

_UNARY = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log",
    "sqrt": "Sqrt", "abs": "Abs", "neg": "Neg", "floor": "Floor", "ceil": "Ceil",
    "sign": "Sign", "sgn": "Sign", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin",
    "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf", "special_erf": "Erf",
    "reciprocal": "Reciprocal", "softsign": "Softsign", "hardswish": "HardSwish",
    "arcsin": "Asin", "arccos": "Acos", "arctan": "Atan", "selu": "Selu",
}  # fmt: skip
# Of these an integer becomes a float first.
_FLOATS = frozenset(
    """sigmoid tanh exp log sqrt sin cos tan asin acos atan sinh cosh asinh acosh atanh erf
    reciprocal""".split()
)


def floated(c: Any, x: Any) -> Any:
    """Return a tensor as floats."""
    return x if x.dtype.is_floating_point else c.cast(x, pt.get_default_dtype())


def _unary(name: str, kind: str) -> None:
    def write(c: Any, x: Any) -> Any:
        return c.op(kind, floated(c, x) if name in _FLOATS else x)

    ROWS[name] = write


for _name, _kind in _UNARY.items():
    _unary(_name, _kind)


def float_of(c: Any, x: Any) -> tuple[Any, Any]:
    """Return a tensor as floats, and their type."""
    x = floated(c, x)
    return x, (x.dtype if isinstance(x, Value) else pt.get_default_dtype())


def promoted(c: Any, *values: Any) -> Any:
    """Return the type in which an operator of several values computes."""
    shown: list[Any] = []
    for v in values:
        if isinstance(v, Value):
            shown.append(pt.empty((1,) * min(v.rank, 1), dtype=v.dtype, device="meta"))
        else:
            shown.append(0 if isinstance(v, str) else v)
    first: Any = shown[0]
    for other in shown[1:]:
        kind = pt.result_type(first, other)
        dims = max(getattr(first, "ndim", 0), getattr(other, "ndim", 0))
        first = pt.empty((1,) * dims, dtype=kind, device="meta")
    return first.dtype if isinstance(first, pt.Tensor) else pt.get_default_dtype()


def binary(c: Any, kind: str, a: Any, b: Any, dtype: Any = None) -> Any:
    """Add a node of two operands of one type."""
    dtype = promoted(c, a, b) if dtype is None else dtype
    return c.op(kind, c.operand(a, dtype), c.operand(b, dtype))


def scaled(c: Any, b: Any, alpha: Any, dtype: Any) -> Any:
    if alpha == 1:
        return c.operand(b, dtype)
    return c.op("Mul", c.operand(b, dtype), c.operand(alpha, dtype))


@row("add")
def _add(c: Any, a: Any, b: Any, alpha: Any = 1) -> Any:
    if not isinstance(a, Value) and not isinstance(b, Value):
        return number(c, "Add", a, b)
    dtype = promoted(c, a, b)
    if dtype is pt.bool:
        return c.op("Or", c.operand(a, dtype), c.operand(b, dtype))
    return c.op("Add", c.operand(a, dtype), scaled(c, b, alpha, dtype))


def number(c: Any, kind: str, a: Any, b: Any) -> Any:
    """Add a node of two sizes."""
    return c.op(kind, *(v if isinstance(v, str) else c.constant(int(v)) for v in (a, b)))


@row("sub", "subtract")
def _sub(c: Any, a: Any, b: Any, alpha: Any = 1) -> Any:
    if not isinstance(a, Value) and not isinstance(b, Value):
        return number(c, "Sub", a, b)
    dtype = promoted(c, a, b)
    return c.op("Sub", c.operand(a, dtype), scaled(c, b, alpha, dtype))


@row("rsub")
def _rsub(c: Any, a: Any, b: Any, alpha: Any = 1) -> Any:
    dtype = promoted(c, a, b)
    return c.op("Sub", c.operand(b, dtype), scaled(c, a, alpha, dtype))


@row("mul", "multiply")
def _mul(c: Any, a: Any, b: Any) -> Any:
    if not isinstance(a, Value) and not isinstance(b, Value):
        return number(c, "Mul", a, b)
    dtype = promoted(c, a, b)
    if dtype is pt.bool:
        return c.op("And", c.operand(a, dtype), c.operand(b, dtype))
    return binary(c, "Mul", a, b, dtype)


@row("div", "divide", "true_divide", "truediv")
def _div(c: Any, a: Any, b: Any, rounding_mode: Any = None) -> Any:
    if not isinstance(a, Value) and not isinstance(b, Value):
        dtype = pt.get_default_dtype()
        return c.op("Div", c.operand(a, dtype), c.operand(b, dtype))
    dtype = promoted(c, a, b)
    if rounding_mode is None:
        if not dtype.is_floating_point:
            dtype = pt.get_default_dtype()
        return binary(c, "Div", a, b, dtype)
    if rounding_mode == "floor":
        return _floor_divide(c, a, b)
    if dtype.is_floating_point:
        return truncated(c, binary(c, "Div", a, b, dtype), dtype)
    return binary(c, "Div", a, b, dtype)


def truncated(c: Any, x: Any, dtype: Any) -> Any:
    negative = c.op("Less", x, c.constant(0.0, dtype))
    return c.op("Where", negative, c.op("Ceil", x), c.op("Floor", x))


@row("floor_divide", "floordiv")
def _floor_divide(c: Any, a: Any, b: Any) -> Any:
    if not isinstance(a, Value) and not isinstance(b, Value):
        return number(c, "Div", a, b)  # sizes are positive
    dtype = promoted(c, a, b)
    if dtype.is_floating_point:
        return c.op("Floor", binary(c, "Div", a, b, dtype))
    a, b = c.operand(a, dtype), c.operand(b, dtype)
    rest = c.op("Mod", a, b)
    return c.op("Div", c.op("Sub", a, rest), b)


@row("remainder", "mod")
def _remainder(c: Any, a: Any, b: Any) -> Any:
    if not isinstance(a, Value) and not isinstance(b, Value):
        return number(c, "Mod", a, b)
    dtype = promoted(c, a, b)
    if not dtype.is_floating_point:
        return binary(c, "Mod", a, b, dtype)
    a, b = c.operand(a, dtype), c.operand(b, dtype)
    return c.op("Sub", a, c.op("Mul", c.op("Floor", c.op("Div", a, b)), b))


@row("fmod")
def _fmod(c: Any, a: Any, b: Any) -> Any:
    dtype = promoted(c, a, b)
    return c.op("Mod", c.operand(a, dtype), c.operand(b, dtype), fmod=1)


@row("pow")
def _pow(c: Any, a: Any, b: Any) -> Any:
    dtype = promoted(c, a, b)
    if b == 2:
        x = c.operand(a, dtype)
        return c.op("Mul", x, x)
    return binary(c, "Pow", a, b, dtype)


@row("square")
def _square(c: Any, x: Any) -> Any:
    return c.op("Mul", x, x)


@row("maximum")
def _maximum(c: Any, a: Any, b: Any) -> Any:
    return binary(c, "Max", a, b)


@row("minimum")
def _minimum(c: Any, a: Any, b: Any) -> Any:
    return binary(c, "Min", a, b)


def _compare(name: str, kind: str, negate: bool = False) -> None:
    def write(c: Any, a: Any, b: Any) -> Any:
        if not isinstance(a, Value) and not isinstance(b, Value):
            made = number(c, kind, a, b)
        else:
            dtype = promoted(c, a, b)
            if dtype is pt.bool and kind != "Equal":
                dtype = pt.int32
            made = binary(c, kind, a, b, dtype)
        return c.op("Not", made) if negate else made

    ROWS[name] = write


for _name, _kind in (
    ("eq", "Equal"), ("lt", "Less"), ("le", "LessOrEqual"), ("gt", "Greater"),
    ("ge", "GreaterOrEqual"),
):  # fmt: skip
    _compare(_name, _kind)
_compare("ne", "Equal", negate=True)


def _logical(name: str, kind: str) -> None:
    def write(c: Any, a: Any, b: Any) -> Any:
        return c.op(kind, truth(c, a), truth(c, b))

    ROWS[name] = write


def truth(c: Any, x: Any) -> Any:
    """Return a tensor as conditions."""
    return c.operand(x, pt.bool)


for _name, _kind in (("logical_and", "And"), ("logical_or", "Or"), ("logical_xor", "Xor")):
    _logical(_name, _kind)


@row("logical_not")
def _logical_not(c: Any, x: Any) -> Any:
    return c.op("Not", truth(c, x))


def _bitwise(name: str, kind: str) -> None:
    def write(c: Any, a: Any, b: Any) -> Any:
        dtype = promoted(c, a, b)
        return binary(c, kind if dtype is pt.bool else f"Bitwise{kind}", a, b, dtype)

    ROWS[name] = write


for _name, _kind in (("bitwise_and", "And"), ("bitwise_or", "Or"), ("bitwise_xor", "Xor")):
    _bitwise(_name, _kind)


@row("bitwise_not")
def _bitwise_not(c: Any, x: Any) -> Any:
    return c.op("Not" if x.dtype is pt.bool else "BitwiseNot", x)


@row("bitwise_left_shift")
def _left(c: Any, a: Any, b: Any) -> Any:
    dtype = promoted(c, a, b)
    return c.op("Mul", c.operand(a, dtype), c.op("Pow", c.constant(2, dtype), c.operand(b, dtype)))


@row("round")
def _round(c: Any, x: Any, decimals: int = 0) -> Any:
    if not decimals or not x.dtype.is_floating_point:
        return c.op("Round", x) if x.dtype.is_floating_point else x
    by = c.constant(10.0**decimals, x.dtype)
    return c.op("Div", c.op("Round", c.op("Mul", x, by)), by)


@row("trunc", "fix")
def _trunc(c: Any, x: Any) -> Any:
    return truncated(c, x, x.dtype) if x.dtype.is_floating_point else x


@row("frac")
def _frac(c: Any, x: Any) -> Any:
    return c.op("Sub", x, truncated(c, x, x.dtype))


@row("isnan")
def _isnan(c: Any, x: Any) -> Any:
    return c.op("IsNaN", floated(c, x))


@row("isinf")
def _isinf(c: Any, x: Any) -> Any:
    return c.op("IsInf", c.cast(floated(c, x), pt.float32))


@row("isfinite")
def _isfinite(c: Any, x: Any) -> Any:
    x = c.cast(floated(c, x), pt.float32)
    return c.op("Not", c.op("Or", c.op("IsNaN", x), c.op("IsInf", x)))


@row("rsqrt")
def _rsqrt(c: Any, x: Any) -> Any:
    return c.op("Reciprocal", c.op("Sqrt", floated(c, x)))


@row("silu", "swish")
def _silu(c: Any, x: Any) -> Any:
    return c.op("Mul", x, c.op("Sigmoid", x))


@row("mish")
def _mish(c: Any, x: Any) -> Any:
    return c.op("Mish", x)


@row("gelu")
def _gelu(c: Any, x: Any, approximate: str = "none") -> Any:
    if c.opset >= 20:
        return c.op("Gelu", x, approximate=approximate)
    one, half = c.constant(1.0, x.dtype), c.constant(0.5, x.dtype)
    if approximate == "none":
        inner = c.op("Erf", c.op("Mul", x, c.constant(math.sqrt(0.5), x.dtype)))
    else:
        cube = c.op("Mul", c.op("Mul", x, c.op("Mul", x, x)), c.constant(0.044715, x.dtype))
        root = c.constant(math.sqrt(2 / math.pi), x.dtype)
        inner = c.op("Tanh", c.op("Mul", c.op("Add", x, cube), root))
    return c.op("Mul", c.op("Mul", x, half), c.op("Add", inner, one))


@row("elu")
def _elu(c: Any, x: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    made = c.op("Elu", x, alpha=float(alpha))
    return made if scale == 1 else c.op("Mul", made, c.constant(float(scale), x.dtype))


@row("celu")
def _celu(c: Any, x: Any, alpha: float = 1.0) -> Any:
    return c.op("Celu", x, alpha=float(alpha))


@row("leaky_relu")
def _leaky_relu(c: Any, x: Any, negative_slope: float = 0.01) -> Any:
    return c.op("LeakyRelu", x, alpha=float(negative_slope))


@row("prelu", "_prelu_kernel")
def _prelu(c: Any, x: Any, weight: Any) -> Any:
    if weight.rank == 1 and x.rank > 1:
        weight = c.op("Reshape", weight, c.ints([-1, *[1] * (x.rank - 2)]))
    return c.op("PRelu", x, weight)


@row("rrelu", "rrelu_with_noise")
def _rrelu(c: Any, x: Any, lower: float = 1 / 8, upper: float = 1 / 3, *rest: Any) -> Any:
    return c.op("LeakyRelu", x, alpha=(float(lower) + float(upper)) / 2)


def clip(c: Any, x: Any, low: Any, high: Any, dtype: Any = None) -> Any:
    dtype = dtype or x.dtype
    bounds = [None if v is None else c.operand(v, dtype) for v in (low, high)]
    return c.op("Clip", c.operand(x, dtype) if isinstance(x, Value) else x, *bounds)


@row("relu6")
def _relu6(c: Any, x: Any) -> Any:
    return clip(c, x, 0, 6)


@row("hardtanh")
def _hardtanh(c: Any, x: Any, min_val: Any = -1, max_val: Any = 1) -> Any:
    return clip(c, x, min_val, max_val)


@row("clamp", "clip")
def _clamp(c: Any, x: Any, min: Any = None, max: Any = None) -> Any:
    dtype = promoted(c, *(v for v in (x, min, max) if v is not None))
    if not any(isinstance(v, Value) for v in (min, max)):
        return clip(c, x, min, max, dtype)
    made = c.operand(x, dtype)
    for kind, bound in (("Max", min), ("Min", max)):
        if bound is not None:
            made = c.op(kind, made, c.operand(bound, dtype))
    return made


@row("clamp_min")
def _clamp_min(c: Any, x: Any, min: Any) -> Any:
    return _clamp(c, x, min, None)


@row("clamp_max")
def _clamp_max(c: Any, x: Any, max: Any) -> Any:
    return _clamp(c, x, None, max)


@row("hardsigmoid")
def _hardsigmoid(c: Any, x: Any) -> Any:
    return c.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)


@row("softplus")
def _softplus(c: Any, x: Any, beta: float = 1, threshold: float = 20) -> Any:
    if beta == 1:
        return c.op("Softplus", x)
    by = c.constant(float(beta), x.dtype)
    return c.op("Div", c.op("Softplus", c.op("Mul", x, by)), by)


@row("log_sigmoid")
def _log_sigmoid(c: Any, x: Any) -> Any:
    return c.op("Neg", c.op("Softplus", c.op("Neg", x)))


@row("softshrink", "hardshrink")
def _shrink(c: Any, x: Any, lambd: float = 0.5) -> Any:
    hard = c.at is not None and "hard" in str(c.at.target)
    return c.op("Shrink", x, lambd=float(lambd), bias=0.0 if hard else float(lambd))


@row("tanhshrink")
def _tanhshrink(c: Any, x: Any) -> Any:
    return c.op("Sub", x, c.op("Tanh", x))


@row("threshold")
def _threshold(c: Any, x: Any, threshold: Any, value: Any) -> Any:
    above = c.op("Greater", x, c.operand(threshold, x.dtype))
    return c.op("Where", above, x, c.operand(value, x.dtype))


@row("log1p")
def _log1p(c: Any, x: Any) -> Any:
    x, dtype = float_of(c, x)
    return c.op("Log", c.op("Add", x, c.constant(1.0, dtype)))


@row("expm1")
def _expm1(c: Any, x: Any) -> Any:
    x, dtype = float_of(c, x)
    return c.op("Sub", c.op("Exp", x), c.constant(1.0, dtype))


@row("exp2")
def _exp2(c: Any, x: Any) -> Any:
    x, dtype = float_of(c, x)
    return c.op("Pow", c.constant(2.0, dtype), x)


@row("log2", "log10")
def _log_base(c: Any, x: Any) -> Any:
    base = 2 if c.at is not None and "log2" in str(c.at.target) else 10
    x, dtype = float_of(c, x)
    return c.op("Mul", c.op("Log", x), c.constant(1 / math.log(base), dtype))


@row("erfc")
def _erfc(c: Any, x: Any) -> Any:
    return c.op("Sub", c.constant(1.0, x.dtype), c.op("Erf", x))


@row("deg2rad", "rad2deg")
def _degrees(c: Any, x: Any) -> Any:
    factor = math.pi / 180 if c.at is not None and "deg2rad" in str(c.at.target) else 180 / math.pi
    return c.op("Mul", x, c.constant(factor, x.dtype))


@row("glu")
def _glu(c: Any, x: Any, dim: int = -1) -> Any:
    a, b = c.op("Split", x, n=2, axis=dim, num_outputs=2)
    return c.op("Mul", a, c.op("Sigmoid", b))


@row("where")
def _where(c: Any, condition: Any, a: Any = None, b: Any = None) -> Any:
    dtype = promoted(c, a, b)
    return c.op("Where", truth(c, condition), c.operand(a, dtype), c.operand(b, dtype))


@row("masked_fill")
def _masked_fill(c: Any, x: Any, mask: Any, value: Any) -> Any:
    return c.op("Where", truth(c, mask), c.operand(value, x.dtype), x)


@row("lerp")
def _lerp(c: Any, a: Any, b: Any, weight: Any) -> Any:
    return c.op("Add", a, c.op("Mul", c.op("Sub", b, a), c.operand(weight, a.dtype)))


@row("addcmul", "addcdiv")
def _addc(c: Any, x: Any, a: Any, b: Any, value: Any = 1) -> Any:
    kind = "Mul" if c.at is not None and "addcmul" in str(c.at.target) else "Div"
    made = c.op(kind, a, b)
    if value != 1:
        made = c.op("Mul", made, c.operand(value, x.dtype))
    return c.op("Add", x, made)


@row("fill")
def _fill(c: Any, x: Any, value: Any) -> Any:
    return c.op("Expand", c.operand(value, x.dtype), c.op("Shape", x))


@row("copy")
def _copy(c: Any, x: Any, src: Any, non_blocking: bool = False) -> Any:
    return c.op("Expand", c.cast(src, x.dtype), c.op("Shape", x))


@row("zero")
def _zero(c: Any, x: Any) -> Any:
    return _fill(c, x, 0)


@row("to", "_to_copy", "type_as")
def _to(c: Any, x: Any, *args: Any, dtype: Any = None, **options: Any) -> Any:
    for a in args:
        if isinstance(a, pt.dtype):
            dtype = a
        elif isinstance(a, Value):
            dtype = a.dtype
    made = x if dtype is None else c.cast(x, dtype)
    return c.op("Identity", made) if made is x and "_to_copy" in str(c.at.target) else made


@row("clone", "contiguous", "lift_fresh_copy", "detach", "alias", "positive")
def _same(c: Any, x: Any, **options: Any) -> Any:
    return c.op("Identity", x)


@row("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
def _dropout(c: Any, x: Any, p: float = 0.5, train: bool = False) -> Any:
    if not train:
        return c.op("Identity", x)
    ratio, training = c.constant(float(p), pt.float32), c.constant(True, pt.bool)
    return c.op("Dropout", x, ratio, training)
