"""Formulas over float16 and bfloat16 that are widened and narrowed in registers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pytensorlib as torch

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
