"""Narrow integers are computed in their own type, and conversions go straight to theirs."""

import math
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch

INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]


def some(dtype, n=3000):
    """Numbers of every size, and the ends of the type."""
    rng = np.random.default_rng(3)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True) >> rng.integers(
        0, info.bits - 1, n
    ).astype(dtype)
    x[:4] = [info.min, info.max, 0, 1]
    return x


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_quotients_and_remainders_equal_those_of_numpy(dtype):
    x = some(dtype)
    y = np.roll(x[::-1], 7)
    y = np.where(y == 0, np.asarray(7, dtype), y)
    # The least number and its quotient by -1, which wraps.
    x[5:9], y[5:9] = x[0], np.asarray([-1, 1, 3, x[1]]).astype(dtype)
    a, b = torch.from_numpy(x), torch.from_numpy(y)
    wide = [v.astype(object) for v in (x, y)]
    floor = [p // q for p, q in zip(*wide, strict=True)]
    bits = (1 << np.iinfo(dtype).bits) - 1
    low = np.array([v & bits for v in floor], np.uint64).astype(dtype)
    assert np.array_equal(torch.floor_divide(a, b).numpy(), low)
    assert np.array_equal(torch.div(a, b, rounding_mode="floor").numpy(), low)
    rest = np.array([p - q * f for p, q, f in zip(*wide, floor, strict=True)]).astype(dtype)
    assert np.array_equal(torch.remainder(a, b).numpy(), rest)
    remains = [abs(p) % abs(q) * (1 if p >= 0 else -1) for p, q in zip(*wide, strict=True)]
    remains = np.array(remains)
    assert np.array_equal(torch.fmod(a, b).numpy(), remains.astype(dtype))
    for number in (1, 7, 100) if dtype == "uint8" else (-100, -7, -1, 1, 7, 100):
        want = np.array([v // number & bits for v in wide[0]], np.uint64).astype(dtype)
        assert np.array_equal((a // number).numpy(), want)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.floor_divide(a, torch.zeros_like(a))


@pytest.mark.parametrize("bits", [8, 31, 49, 50, 51, 53, 62])
def test_wide_quotients_beside_whole_ones(bits):
    """Dividends next to multiples, whose quotients in floating numbers are next to integers."""
    rng = np.random.default_rng(bits)
    top = 1 << bits
    y = rng.integers(1, np.exp2(rng.uniform(1, bits, 4000)).astype(np.int64), 4000)
    x = rng.integers(0, top, 4000) // y * y + rng.integers(-1, 2, 4000)
    x[::5] = top - rng.integers(0, 3, 800)
    x[1::5] = (top - 1) // y[1::5] * y[1::5] - 1
    x, y = x * rng.choice([-1, 1], 4000), y * rng.choice([-1, 1], 4000)
    whole = [(p // q, abs(p) // abs(q)) for p, q in zip(x.tolist(), y.tolist(), strict=True)]
    floor = np.array([f for f, _ in whole])
    toward_zero = np.array([t for _, t in whole]) * np.sign(x) * np.sign(y)
    for n in (4000, 1):
        a, b = torch.from_numpy(x[:n]), torch.from_numpy(y[:n])
        for got, want in (
            (a // b, floor),
            (a % b, x - floor * y),
            (torch.fmod(a, b), x - toward_zero * y),
            (torch.div(a, b, rounding_mode="trunc"), toward_zero),
            (a.clone().floor_divide_(b), floor),
            (torch.remainder(a, b, out=b.clone()), x - floor * y),
        ):
            np.testing.assert_array_equal(got.numpy(), want[:n])
    spaced = torch.from_numpy(np.stack([x, y], 1))[:, 0]
    np.testing.assert_array_equal((spaced // int(y[7])).numpy(), x // y[7])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_order_sign_and_bounds_equal_those_of_numpy(dtype):
    x = some(dtype)
    y = np.roll(x, 11)
    a, b = torch.from_numpy(x), torch.from_numpy(y)
    for name, f in [("lt", np.less), ("le", np.less_equal), ("gt", np.greater)]:
        assert np.array_equal(getattr(torch, name)(a, b).numpy(), f(x, y))
    assert np.array_equal((a >= b).numpy(), x >= y)
    assert np.array_equal(a.sign().numpy(), np.sign(x))
    info = np.iinfo(dtype)
    low, high = int(info.min // 2 + 3), int(info.max // 3)
    assert np.array_equal(a.clamp(low, high).numpy(), np.clip(x, low, high))
    assert np.array_equal(a.clamp(min=low).numpy(), np.maximum(x, np.asarray(low, dtype)))
    assert np.array_equal(a[::3].clamp(max=high).numpy(), np.minimum(x[::3], high))
    for by in range(info.bits):
        assert np.array_equal((a << by).numpy(), x << np.asarray(by, dtype))
        assert np.array_equal((a >> by).numpy(), x >> np.asarray(by, dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32"])
def test_clamp_refuses_a_bound_that_its_type_does_not_hold(dtype):
    x = torch.from_numpy(some(dtype))
    beyond = int(np.iinfo(dtype).max) + 1
    for bounds in ({"min": beyond}, {"max": beyond}):
        with pytest.raises(RuntimeError, match="without overflow"):
            x.clamp(**bounds)
    if dtype == "uint8":
        # Nothing lies below zero.
        assert torch.equal(x.clamp(min=-5), x)


@pytest.mark.parametrize("source", [*INTEGERS, "bool", "float16", "float32", "float64"])
@pytest.mark.parametrize("target", [*INTEGERS, "bool", "float16", "float32", "float64"])
def test_conversion_of_what_fits_equals_that_of_numpy(source, target):
    """Also of integers that do not fit one another: the low bits."""
    if source == "bool":
        x = np.arange(777) % 3 == 0
    elif source.startswith("float"):
        x = np.random.default_rng(1).uniform(0, 127, 777).astype(source)
        x[:2] = [0, 0.5]
    else:
        x = some(source, 777)
    if target == "float16":
        x = x % np.asarray(2000, np.int64).astype(x.dtype) if x.dtype.kind in "iu" else x
    want = x.astype(target)
    t = torch.from_numpy(x)
    to = getattr(torch, target)
    assert np.array_equal(t.to(to).numpy(), want)
    assert np.array_equal(t[::2].to(to).numpy(), want[::2])
    assert np.array_equal(t[3:10].to(to).numpy(), want[3:10])
    into = torch.zeros(2 * x.size, dtype=to)
    into[::2] = t
    assert np.array_equal(into[::2].numpy(), want)


@pytest.mark.parametrize("target", ["uint8", "int8", "int16", "int32", "int64"])
def test_float_beyond_an_integer_gives_the_low_bits_of_the_least(target):
    least = {"int64": -(2**63)}.get(target, -(2**31))
    want = np.asarray(least).astype(np.int64).astype(target)
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor([np.nan, np.inf, -np.inf, 1e30, -1e30, 9.5e18] * 5, dtype=dtype)
        assert (x.to(getattr(torch, target)).numpy() == want).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_copysign_of_every_half(dtype):
    bits = torch.from_numpy(np.arange(1 << 16, dtype=np.uint16).view(np.int16))
    x = bits.view(getattr(torch, dtype))
    y = x.flip(0)
    got = torch.copysign(x, y).view(torch.int16).numpy()
    want = (bits.numpy() & 0x7FFF) | (bits.numpy()[::-1] & -0x8000)
    number = ~np.isnan(x.double().numpy())
    assert np.array_equal(got[number], want[number])


def assign(x: Any, key: Any, value: Any) -> None:
    x[key] = value


ONE = torch.tensor([0])

WRITES = {
    "one element": lambda x, v: assign(x, 0, v),
    "a slice": lambda x, v: assign(x, slice(None), v),
    "a mask": lambda x, v: assign(x, torch.tensor([True, False]), v),
    "an index": lambda x, v: assign(x, ONE, v),
    "index_fill": lambda x, v: x.index_fill(0, ONE, v),
    "scatter": lambda x, v: x.scatter(0, ONE, v),
    "scatter_": lambda x, v: x.scatter_(0, ONE, v, reduce="add"),
    "where": lambda x, v: torch.where(x > 1, x, v),
    "where's first": lambda x, v: torch.where(x > 1, v, x),
    "add": lambda x, v: torch.add(x, x, alpha=v),
    "sub": lambda x, v: x.sub(x, alpha=v),
    "rsub": lambda x, v: torch.rsub(x, x, alpha=v),
    "addcmul": lambda x, v: x.addcmul(x, x, value=v),
    "index_add": lambda x, v: x.index_add(0, ONE, x[:1], alpha=v),
    "addmm": lambda x, v: torch.addmm(x[None], x[None], x.new_ones(2, 2), alpha=v),
    "addmm's beta": lambda x, v: torch.addmm(x[None], x[None], x.new_ones(2, 2), beta=v),
    "addmv": lambda x, v: torch.addmv(x, x.new_ones(2, 2), x, alpha=v),
    "baddbmm": lambda x, v: torch.baddbmm(
        x[None, None], x[None, None], x.new_ones(1, 2, 2), beta=v
    ),
    "addbmm": lambda x, v: torch.addbmm(x[None], x[None, None], x.new_ones(1, 2, 2), alpha=v),
    "addr": lambda x, v: torch.addr(x.new_ones(2, 2), x, x, alpha=v),
    "pow": lambda x, v: x ** abs(v),
    "linspace": lambda x, v: torch.linspace(0, v, 3, dtype=x.dtype),
}


@pytest.mark.parametrize("name", WRITES)
def test_number_that_an_integer_type_does_not_hold_is_refused(name: str) -> None:
    for dtype, beyond in ((torch.uint8, 300), (torch.int8, -129), (torch.int32, 2**40)):
        x = torch.tensor([1, 2], dtype=dtype)
        with pytest.raises(RuntimeError, match="cannot be converted to type .* without overflow"):
            WRITES[name](x, beyond)
        assert x.tolist() == [1, 2]
        WRITES[name](x.clone(), 100)


def test_assigned_numbers_follow_pytorch_at_the_edges() -> None:
    x = torch.tensor([1, 2], dtype=torch.uint8)
    x[0] = -1
    assert x.tolist() == [255, 2]
    for beyond in (-0.5, math.nan, math.inf, 1e10):
        with pytest.raises(RuntimeError, match="without overflow"):
            x[0] = beyond
    # Products are made in the type of the result.
    bytes_ = torch.tensor([100, 20], dtype=torch.uint8)
    assert torch.addr(torch.ones(2), bytes_, bytes_).tolist() == [[10001, 2001], [2001, 401]]
    assert torch.addr(bytes_.int(), bytes_, bytes_, alpha=300)[0].tolist() == [3000100, 600020]
    # The type of the result counts, and where there is one number, only the first.
    assert torch.addr(x[1:], x[1:], x[1:].char(), alpha=300).tolist() == [[1202]]
    assert torch.linspace(0, 300, 1, dtype=torch.uint8).tolist() == [0]
    half = torch.zeros(1, dtype=torch.float16)
    half[0] = 70000
    assert half.tolist() == [math.inf]
    real = torch.zeros(1)
    real[0] = 3 + 0j
    assert real.tolist() == [3]
    with pytest.raises(TypeError, match="does not support deleting items"):
        del x[0]
