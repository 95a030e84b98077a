"""Floats become the integers that they are without their fractions."""

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
