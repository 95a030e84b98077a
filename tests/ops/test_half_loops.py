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


# Of PyTorch 2.13: x, y, the quotient of tensors, and that by one number, toward zero and down.
# Several quotients round each step to the type, the one by a number is computed in float32.
QUOTIENTS = {
    (torch.bfloat16, "trunc"): [
        (-58.0, 0.1279296875, -454.0, -452.0), (-79.0, 0.1669921875, -474.0, -472.0),
        (96.5, -0.87890625, -110.0, -109.0), (-10.4375, -1.7421875, 6.0, 5.0),
        (8.75, -0.73046875, -12.0, -11.0), (-62.25, 0.5234375, -119.0, -118.0),
    ],
    (torch.bfloat16, "floor"): [
        (-58.0, 0.1279296875, -456.0, -454.0), (-79.0, 0.1669921875, -476.0, -474.0),
        (-7.1875, -0.01422119140625, 506.0, 504.0), (41.0, 0.130859375, 314.0, 312.0),
        (-64.0, -0.0517578125, 1240.0, 1232.0), (-25.0, -0.062255859375, 402.0, 400.0),
    ],
    (torch.float16, "trunc"): [
        (46.3125, -1.654296875, -28.0, -27.0), (-58.0, 0.1280517578125, -453.0, -452.0),
        (-41.4375, 0.4228515625, -98.0, -97.0), (81.1875, -0.07159423828125, -1134.0, -1133.0),
        (95.625, 0.04266357421875, 2242.0, 2240.0), (13.0703125, -0.071044921875, -184.0, -183.0),
    ],
    (torch.float16, "floor"): [
        (49.3125, -0.00516510009765625, -9544.0, -9552.0),
        (95.625, 0.04266357421875, 2242.0, 2240.0),
        (4.8671875, -0.0032520294189453125, -1496.0, -1497.0),
        (87.375, -0.028167724609375, -3104.0, -3102.0),
        (76.1875, -0.07891845703125, -967.0, -966.0),
        (-50.0, 0.0180511474609375, -2768.0, -2770.0),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "mode"), QUOTIENTS)
@pytest.mark.parametrize("repeats", [1, 11])
def test_whole_quotients_are_rounded_in_the_steps_of_pytorchs(dtype, mode, repeats) -> None:
    x, y, several, single = (
        torch.tensor(c * repeats, dtype=dtype) for c in zip(*QUOTIENTS[dtype, mode], strict=True)
    )
    ways = [torch.div(x, y, rounding_mode=mode), x.clone().div_(y, rounding_mode=mode)]
    ways += [torch.div(x[:, None], y, rounding_mode=mode).diagonal()]
    if mode == "floor":
        ways += [x // y, torch.floor_divide(x, y), x.clone().floor_divide_(y)]
        z = x.clone()
        z //= y
        ways.append(z)
    for got in ways:
        assert torch.equal(got, several)
    for i in range(6):
        for by in (y[i], y[i].item(), y[i : i + 1]):
            assert torch.equal(torch.div(x[i : i + 1], by, rounding_mode=mode), single[i : i + 1])
        if mode == "floor":
            assert torch.equal(x[i : i + 1] // y[i].item(), single[i : i + 1])
        first = torch.div(x[i].item(), y, rounding_mode=mode)
        assert first[i] == several[i]


@pytest.mark.parametrize("dtype", HALVES)
def test_whole_quotients_by_zero_and_of_ends_keep_their_kind(dtype) -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([1.0, -1.0, 0.0, inf, -inf, nan, 5.0, -5.0, -0.0], dtype=dtype)
    y = torch.tensor([0.0, 0.0, 0.0, 2.0, 2.0, 1.0, inf, inf, 2.0], dtype=dtype)
    # Recorded of PyTorch 2.13.
    for mode, want in (
        ("trunc", [inf, -inf, nan, inf, -inf, nan, 0.0, -0.0, -0.0]),
        ("floor", [inf, -inf, nan, nan, nan, nan, 0.0, -1.0, -0.0]),
    ):
        got = torch.div(x, y, rounding_mode=mode)
        assert same(got, torch.tensor(want, dtype=dtype))


@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize("compiled", [False, True])
def test_number_that_a_half_type_does_not_hold_is_divided_as_it_is(n, compiled):
    x = torch.full((n,), 10.0, dtype=torch.float16)
    divide = torch.compile(lambda x: 70000.0 / x) if compiled else lambda x: 70000.0 / x
    for _ in range(3):
        assert divide(x).tolist() == [7000.0] * n
    assert (65520 / x).tolist() == [6552.0] * n  # 65520 rounds to infinity as float16
    # A tensor is rounded first, as in PyTorch.
    assert (torch.tensor(70000.0) / x).tolist() == [float("inf")] * n


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("value", [1e9, -1e9, 1e300, -1e39])
def test_where_takes_numbers_beyond_a_half_type_as_infinite(dtype, value):
    x = torch.tensor([1.0, 2.0], dtype=dtype)
    mask = torch.tensor([True, False])
    with np.errstate(over="ignore"):
        beyond = torch.tensor(value, dtype=torch.float64).to(dtype).item()
    for y in (torch.where(mask, x, value), x.where(mask, value)):
        assert y.dtype == dtype
        assert y.tolist() == [1.0, beyond]
    assert torch.where(mask, value, x).tolist() == [beyond, 2.0]
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.where(mask, x.float(), 1e300)
