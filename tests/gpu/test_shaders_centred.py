"""centred.wgsl against NumPy through wgpu-py: variances and logarithms of sums of exponentials."""

from __future__ import annotations

import numpy as np
import pytest
from shader_runs import F32, F64, close, dims, f32, fmt, needs, run

INF = np.inf


def both(v, acc):
    """Returns a number as two words."""
    return (
        [f32(v), 0]
        if acc == "f32"
        else [int(w) for w in np.float64(v).view(np.uint64).reshape(1).view(np.uint32)]
    )


def centred(x, acc, *, log, parts=1, lanes=4, free=1.0, root=False):
    """Returns results and centres of the rows of x, from as many parts of each."""
    rows, length = x.shape
    part = -(-length // parts)
    kind = F64 if acc == "f64" else F32
    each = {"LOG": log, "ROOT": root}
    empty = lambda n: np.zeros(n, x.dtype)  # noqa: E731
    params = [
        rows,
        length,
        parts,
        part,
        0,
        0,
        0,
        0,
        *both(free, acc),
        *both(-INF if log else 0, acc),
    ]
    params += [*dims([rows], [length]), *dims([length], [1])]
    shape = {"LANES": lanes, "ROWS": 2, "WG": 2 * lanes, "X": fmt(x), "Y": fmt(x)}
    groups = (-(-rows * parts // 2), 1, 1)
    arrays = [empty(rows * parts * (1 + (parts > 1))), empty(rows * parts), x, x]
    y, centre, *_ = run("centred", acc, arrays, params, groups, PART=parts > 1, **shape, **each)
    if parts > 1:
        arrays = [empty(rows), empty(rows), y, centre]
        shape |= {"X": kind}
        y, centre, *_ = run("centred", acc, arrays, params, groups, entry="join", **shape, **each)
    return y, centre


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("acc", ["f32", "f64"])
def test_centred_matches_numpy(acc, lanes, parts):
    needs(acc)
    x = np.random.default_rng(0).standard_normal((5, 50)) * 3 + 1000
    x = x.astype("float64" if acc == "f64" else "float32")
    wide = x.astype(np.float64)
    tolerance = 1e-5 if acc == "f32" else 1e-12
    for root in (False, True):
        call = {"log": False, "root": root, "free": 49.0}
        y, mean = centred(x, acc, parts=parts, lanes=lanes, **call)
        close(y, (wide.std if root else wide.var)(1, ddof=1), tolerance)
        close(mean, wide.mean(1), tolerance)
    y, top = centred(x, acc, log=True, parts=parts, lanes=lanes)
    close(y, np.log(np.exp(wide - 1000).sum(1)) + 1000, tolerance)
    np.testing.assert_array_equal(top, x.max(1))


@pytest.mark.parametrize("parts", [1, 3])
def test_logarithms_of_infinite_terms(parts):
    x = np.zeros((6, 9), np.float32)
    x[0] = -INF  # all
    x[1, 2] = INF
    x[2, :5] = -INF  # more than a part, and the rest far below zero
    x[2, 5:] = -200
    x[3, 4] = np.nan
    x[4], x[5, 0] = 500, -INF
    y, _ = centred(x, "f32", log=True, parts=parts)
    close(y[[2, 4, 5]], [-200 + np.log(4), 500 + np.log(9), np.log(8)])
    np.testing.assert_array_equal(y[[0, 1]], [-INF, INF])
    assert np.isnan(y[3])


@pytest.mark.parametrize("parts", [1, 3])
def test_variances_by_no_freedom(parts):
    x = np.array([[2.0] * 9, [1.0, *[2.0] * 8], [np.nan, *[2.0] * 8]], np.float32)
    y, _ = centred(x, "f32", log=False, parts=parts, free=0.0)
    assert np.isnan(y[[0, 2]]).all() and y[1] == INF
