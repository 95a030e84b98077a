"""Padding that reads the input again, against NumPy: runs and single elements of many rows."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib.nn import functional as F

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("pad", [(2, 3, 1, 2), (9, 12, 0, 0), (0, 0, 4, 5), (1, 0, 0, 0)])
@pytest.mark.parametrize("mode", MODES)
def test_pads_of_many_rows_are_numpys(mode: str, pad: tuple[int, ...], dtype: str) -> None:
    # More rows than are written in turn, and not a multiple of them.
    x = (np.arange(3 * 2 * 19 * 23).reshape(3, 2, 19, 23) % 251).astype(dtype)
    got = F.pad(torch.tensor(x), pad, mode=mode).numpy()
    left, right, top, bottom = pad
    sides = ((0, 0), (0, 0), (top, bottom), (left, right))
    np.testing.assert_array_equal(got, np.pad(x, sides, MODES[mode]))
