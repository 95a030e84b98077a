"""cummax and cummin over lines whose blocks hold something new, nothing new, and NaN."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch


def walked(x: np.ndarray, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """Each line element by element: the last of equal extremes, and NaN once there was one."""
    values, at = x.copy(), np.zeros(x.shape, np.int64)
    for row, line in enumerate(x):
        best = 0
        for i, v in enumerate(line):
            old = line[best]
            if v != v or (old == old and (v >= old if largest else v <= old)):
                best = i
            values[row, i], at[row, i] = line[best], best
    return values, at


@pytest.mark.parametrize("n", [1, 15, 16, 17, 100])
@pytest.mark.parametrize("kind", ["random", "rising", "falling", "equal", "nan", "int"])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extrema_agree_with_a_walk(name, kind, n):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((5, n)).astype(np.float32)
    if kind in ("rising", "falling"):
        x = np.sort(x)[:, :: 1 if kind == "rising" else -1].copy()
    elif kind == "equal":
        x = np.round(x)
    elif kind == "nan":
        x[rng.random(x.shape) < 0.03] = np.nan
    elif kind == "int":
        x = (x * 3).astype(np.int64)
    want = walked(x, name == "cummax")
    for t, dim in ((torch.from_numpy(x), 1), (torch.from_numpy(x.T.copy()), 0)):
        values, at = getattr(torch, name)(t, dim)
        turned = dim == 0
        np.testing.assert_array_equal(values.numpy().T if turned else values.numpy(), want[0])
        np.testing.assert_array_equal(at.numpy().T if turned else at.numpy(), want[1])
