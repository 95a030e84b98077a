"""Formulas over float16 and bfloat16 that are widened and narrowed in registers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib.nn import functional as F

HALVES = (torch.float16, torch.bfloat16)
UNARY = ("floor", "ceil", "trunc", "round", "square", "reciprocal", "sqrt", "rsqrt", "relu")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")


def every(dtype: torch.dtype) -> torch.Tensor:
    """Every number of a half type, and some more so that no vector divides their count."""
    bits = np.concatenate([np.arange(1 << 16), np.arange(7)]).astype(np.uint16)
    return torch.from_numpy(bits.view(np.int16)).view(dtype)


def same(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether both hold the same bits, or a NaN at the same place."""
    nan = torch.isnan(got)
    bits = (got.view(torch.int16) == want.view(torch.int16)) | nan
    return got.dtype == want.dtype and bool((nan == torch.isnan(want)).all() and bits.all())


def wide(name: str, *x: torch.Tensor | float) -> np.ndarray:
    """NumPy's answer in float32."""
    a, *b = (v.float().numpy() if isinstance(v, torch.Tensor) else np.float32(v) for v in x)
    own: dict[str, Callable[..., np.ndarray]] = {
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "round": np.rint,
        "rsqrt": lambda v: np.float32(1) / np.sqrt(v),
        "relu": lambda v: np.where(v < 0, np.float32(0), v),
    }
    with np.errstate(all="ignore"):
        return own[name](a, *b) if name in own else getattr(np, name)(a, *b)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", UNARY)
def test_unary_of_every_number_is_float32_rounded_once(name, dtype):
    x = every(dtype)
    want = torch.from_numpy(wide(name, x)).to(dtype)
    assert same(getattr(torch, name)(x), want)
    y = x.clone()
    getattr(y, name + "_")()
    assert same(y, want)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", BINARY)
def test_binary_is_float32_rounded_once(name, dtype):
    x = every(dtype)
    y = x[torch.from_numpy(np.random.default_rng(1).permutation(len(x)))]
    want = torch.from_numpy(wide(name, x, y)).to(dtype)
    assert same(getattr(torch, name)(x, y), want)
    if name[0] != "m" or name == "mul":
        z = x.clone()
        assert same(getattr(z, name + "_")(y), want)
    z = y.clone()
    assert same(getattr(torch, name)(x, z, out=z), want)


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32])
@pytest.mark.parametrize("name", BINARY[:4])
@pytest.mark.parametrize("number", [1.7, -3, float("nan")])
def test_a_number_is_an_operand_like_any_other(name, number, dtype):
    x = every(dtype) if dtype != torch.float32 else torch.randn(70001)
    # Halves multiply and add numbers that they do not hold, but subtract those that they do.
    held = float(torch.tensor(number, dtype=dtype)) if name == "sub" else number
    want = torch.from_numpy(wide(name, x, held)).to(dtype)
    got = getattr(x, name)(number)
    for other in (getattr(x.clone(), name + "_")(number), getattr(torch, name)(x, number)):
        assert same(other.half(), got.half()) if dtype == torch.float32 else same(other, got)
    if dtype == torch.float32:
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    else:
        assert same(got, want)
    apart = torch.stack([x, x], 1)[:, 0]
    np.testing.assert_array_equal(getattr(apart, name)(number).float(), got.float())


def put(v: np.ndarray, *rules: tuple[np.ndarray, np.ndarray | np.float32]) -> np.ndarray:
    """Return `v`, or where the first rule holds its value."""
    return np.select([rule for rule, _ in rules], [value for _, value in rules], v)


ONE, HALF, SIX = np.float32(1), np.float32(0.5), np.float32(6)
MORE: dict[str, tuple[Callable, Callable[..., np.ndarray]]] = {
    "leaky_relu": (
        lambda x: F.leaky_relu(x, 0.1),
        lambda v: put(v, (~(v > 0), v * np.float32(0.1))),
    ),
    "hardtanh": (F.hardtanh, lambda v: np.clip(v, -ONE, ONE)),
    "hardsigmoid": (F.hardsigmoid, lambda v: np.clip(v + 3, 0, SIX) / SIX),
    "hardswish": (F.hardswish, lambda v: v * np.clip(v + 3, 0, SIX) / SIX),
    "hardshrink": (F.hardshrink, lambda v: put(v, (np.abs(v) <= HALF, 0 * ONE))),
    "softshrink": (
        F.softshrink,
        lambda v: put(v, (v > HALF, v - HALF), (v < -HALF, v + HALF), (v == v, np.copysign(0, v))),
    ),
    "threshold": (lambda x: F.threshold(x, 0.5, 2), lambda v: put(v, (v <= HALF, 4 * HALF))),
    "frac": (torch.frac, lambda v: v - np.trunc(v)),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), lambda v: np.clip(v, -HALF, HALF)),
    "clamp_min": (lambda x: x.clamp(min=0.5), lambda v: put(v, (v < HALF, HALF))),
    "nan_to_num": (lambda x: x.nan_to_num(1, 2, 3), lambda v: np.nan_to_num(v, True, 1, 2, 3)),
    "fmax": (torch.fmax, lambda v, w: put(v, (~((v >= w) | np.isnan(w)), w))),
    "fmin": (torch.fmin, lambda v, w: put(v, (~((v <= w) | np.isnan(w)), w))),
    "clamp by a tensor": (torch.clamp_min, lambda v, w: put(v + 0 * w, (v >= w, v), (v < w, w))),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", MORE)
def test_more_of_every_number_is_float32_rounded_once(name, dtype):
    call, wanted = MORE[name]
    x = every(dtype)
    y = x[torch.from_numpy(np.random.default_rng(1).permutation(len(x)))]
    of = (x, y)[: wanted.__code__.co_argcount]
    with np.errstate(all="ignore"):
        want = torch.from_numpy(wanted(*(v.float().numpy() for v in of)).astype(np.float32))
    assert same(call(*of), want.to(dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_three_operands_are_float32_rounded_once(dtype):
    x = every(dtype)
    rng = np.random.default_rng(1)
    x, y, z = (x[torch.from_numpy(rng.permutation(len(x)))] for _ in range(3))
    wide = (x.float(), y.float(), z.float())
    assert same(x.lerp(y, 0.3), wide[0].lerp(wide[1], 0.3).to(dtype))
    assert same(x.lerp(y, z), wide[0].lerp(*wide[1:]).to(dtype))
    assert same(x.addcmul(y, z, value=0.7), wide[0].addcmul(*wide[1:], value=0.7).to(dtype))
    assert same(x.addcdiv(y, z, value=0.7), wide[0].addcdiv(*wide[1:], value=0.7).to(dtype))
    w = y.clone()
    w.addcmul_(x, z, value=0.7)
    assert same(w, wide[1].addcmul(wide[0], wide[2], value=0.7).to(dtype))
