"""Large tensors joined along a dimension that is not the first, which go in bands of rows."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as pt


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "complex128"])
@pytest.mark.parametrize("widths", [(1, 1), (16, 16), (3, 700, 1), (64, 0, 65)])
def test_joined_rows_are_those_of_numpy(widths: tuple[int, ...], dtype: str) -> None:
    rows = 300_000 // sum(widths) + 7
    rng = np.random.default_rng(0)
    x = [rng.integers(0, 100, (rows, w)).astype(dtype) for w in widths]
    joined = pt.cat([pt.from_numpy(v) for v in x], 1)
    np.testing.assert_array_equal(joined.numpy(), np.concatenate(x, 1))


def test_joined_rows_may_be_views_and_expanded() -> None:
    rng = np.random.default_rng(1)
    a, b, c = rng.random((40, 5000)), rng.random((5000, 1)), rng.random((10_000, 30))
    x = [pt.from_numpy(a).T, pt.from_numpy(b).expand(-1, 9), pt.from_numpy(c)[::2, 1:]]
    want = np.concatenate([a.T, np.broadcast_to(b, (5000, 9)), c[::2, 1:]], 1)
    np.testing.assert_array_equal(pt.cat(x, 1).numpy(), want)
    deep = [v.view(-1, 10, v.shape[1]) for v in (pt.from_numpy(a.T.copy()), pt.from_numpy(c[::2]))]
    want = np.concatenate([v.numpy() for v in deep], 2)
    np.testing.assert_array_equal(pt.cat(deep, 2).numpy(), want)
    assert pt.equal(pt.stack([deep[0], deep[0]], 1)[:, 1], deep[0])
