"""Floats become the integers that they are without their fractions, and narrower floats."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch

TARGETS = ("int8", "uint8", "int16", "uint16", "int32")


def numbers(dtype: str) -> torch.Tensor:
    x = np.random.default_rng(0).uniform(-300, 300, 4099)
    x[:9] = 0, -0.0, 0.99, -0.99, 127.5, -128.5, 60000.0, 255.5, -1
    return torch.from_numpy(x).to(getattr(torch, dtype))


@pytest.mark.parametrize("source", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [1, 31, 32, 33, 4099])
def test_rows_are_cut_to_low_bits_of_whole_numbers(source, target, n):
    x = numbers(source)[:n]
    want = np.trunc(x.double().numpy()).astype(np.int64).astype(target)
    to = getattr(torch, target)
    np.testing.assert_array_equal(x.to(to).numpy(), want)
    apart = torch.stack([x, x], 1)[:, 1]
    np.testing.assert_array_equal(apart.to(to).numpy(), want)
    y = torch.zeros(n + 3, dtype=to)
    y[1 : n + 1].copy_(x)
    np.testing.assert_array_equal(y.numpy(), np.concatenate([[0], want, [0, 0]]))


@pytest.mark.parametrize("source", ["float32", "bfloat16"])
@pytest.mark.parametrize("target", ["int8", "int16", "int32"])
def test_what_does_not_fit_is_the_least_int32(source, target):
    x = torch.tensor([np.nan, np.inf, -np.inf, 3e9, -3e9] * 20, dtype=getattr(torch, source))
    want = np.full(100, np.iinfo(np.int32).min, np.int32).astype(target)
    np.testing.assert_array_equal(x.to(getattr(torch, target)).numpy(), want)


@pytest.mark.parametrize("source", ["float32", "bfloat16", "float16"])
def test_truth_is_being_other_than_zero(source):
    x = torch.tensor([0.0, -0.0, np.nan, 1e-7, -np.inf] * 20, dtype=getattr(torch, source))
    assert x.bool().tolist() == [False, False, True, True, True] * 20


@pytest.mark.parametrize("n", [1, 31, 32, 33, 4099])
def test_float64_becomes_the_float16_next_to_its_float32(n):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 4099) * np.exp2(rng.integers(-30, 18, 4099))
    # Between two float16, where the way by float32 matters, and what float16 does not hold.
    x[:9] = 1 + 2**-11 + 2**-40, 1 + 2**-11, 65519.9999999, 65520, -0.0, np.nan, np.inf, 1e300, 1e-8
    with np.errstate(over="ignore"):
        want = x.astype(np.float32).astype(np.float16)[:n]
    t = torch.from_numpy(x)[:n]
    np.testing.assert_array_equal(t.half().numpy(), want)
    np.testing.assert_array_equal(torch.stack([t, t], 1)[:, 1].half().numpy(), want)
    y = torch.zeros(n + 3, dtype=torch.float16)
    y[1 : n + 1].copy_(t)
    np.testing.assert_array_equal(y.numpy()[1 : n + 1], want)
    assert not y[0] and not y[n + 1 :].any()
