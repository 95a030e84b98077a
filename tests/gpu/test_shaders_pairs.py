"""pairs.wgsl against NumPy through wgpu-py: cosines and distances of rows."""

from __future__ import annotations

import numpy as np
import pytest
from shader_runs import close, fmt, needs, run
from test_shaders_centred import both


def pairs(x, acc, *, lanes, cosine, third=False, least=0.0, added=0.0):
    """Returns what rows of three tensors give, the second of which lies in columns."""
    rows, length = x[0].shape
    laid = [x[0], np.ascontiguousarray(x[1].T), x[2]]
    strides = [[length, 1, length, 0], *[[0] * 4] * 7]
    params = [rows, length, 0, 0, *both(least, acc), *both(added, acc), 0, 0, 0, 0]
    params += [1, rows, 1, 0, rows, *[0] * 7, *[w for v in strides for w in v]]
    arrays = [np.zeros(rows, x[0].dtype) for _ in range(4)]
    shape = {"LANES": lanes, "ROWS": 2, "WG": 2 * lanes, "DIMS": 1}
    formats = {name: fmt(x[0]) for name in "ABCY"}
    y, first, second, last, *_ = run(
        "pairs", acc, [*arrays, *laid], params, (-(-rows // 2), 1, 1),
        COSINE=cosine, THIRD=third, **shape, **formats,
    )  # fmt: skip
    close(first, y)
    return y, second, last


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("acc", ["f32", "f64"])
def test_pairs_matches_numpy(acc, lanes):
    needs(acc)
    x = np.random.default_rng(0).standard_normal((3, 5, 50))
    x = x.astype("float64" if acc == "f64" else "float32")
    a, b, c = wide = x.astype(np.float64)
    tolerance = 1e-5 if acc == "f32" else 1e-12
    n, m = (np.sqrt((t * t).sum(1) + 0.5) for t in wide[:2])
    want = (a * b).sum(1) / np.maximum(n, 7.0) / np.maximum(m, 7.0), n, m
    for got, known in zip(
        pairs(x, acc, lanes=lanes, cosine=True, least=7.0, added=0.5), want, strict=True
    ):
        close(got, known, tolerance)
    want = [np.linalg.norm(s - t + 0.25, axis=1) for s, t in ((a, b), (a, c), (b, c))]
    got = pairs(x, acc, lanes=lanes, cosine=False, third=True, added=0.25)
    for g, known in zip(got, want, strict=True):
        close(g, known, tolerance)


@pytest.mark.parametrize("acc", ["f32", "f64"])
def test_cosine_of_rows_whose_squares_are_infinite(acc):
    needs(acc)
    dtype, large = ("float64", 1e250) if acc == "f64" else ("float32", 1e25)
    x = np.random.default_rng(0).standard_normal((3, 5, 50))
    n, m = (np.linalg.norm(t, axis=1) for t in x[:2])
    # An ordinary row, one of both, and both.
    by = np.array([1, large, 1, large, large])[:, None], np.array([1, 1, large, large, 1])[:, None]
    scaled = np.stack([x[0] * by[0], x[1] * by[1], x[2]]).astype(dtype)
    cosine, *lengths = pairs(scaled, acc, lanes=4, cosine=True, least=1e-8, added=1e-12)
    close(cosine, (x[0] * x[1]).sum(1) / n / m, 1e-5)
    for length, known, k in zip(lengths, (n, m), by, strict=True):
        close(length / k[:, 0], known, 1e-5)
