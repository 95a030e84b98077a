"""Linear maps, runs of places, windows and factorisations through wgpu-py against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from shader_runs import FORMATS, close, dims, f32, floats, needs, rng, run

SET, ADD, MULTIPLY, MAX, MIN = range(5)


@pytest.mark.parametrize("acc", ["f32", "f64"])
@pytest.mark.parametrize("divided", ["", "OVER_SUM", "OVER_TERM"])
def test_resample_is_a_sparse_matrix(divided, acc):
    needs(acc)
    dtype = np.dtype("float32" if acc == "f32" else "float64")
    matrix = rng().standard_normal((5, 7)) * (rng(1).random((5, 7)) < 0.5)
    matrix[2] = 0
    rows = [np.flatnonzero(r) for r in matrix]
    start = np.cumsum([0, *map(len, rows)]).astype(np.uint32)
    weight = np.concatenate([r[at] for r, at in zip(matrix, rows)]).astype(dtype)
    by = rng(2).uniform(1, 3, 7).astype(dtype)
    parts = [
        start,
        np.concatenate(rows).astype(np.uint32),
        weight.view(np.uint32),
        by.view(np.uint32),
    ]
    at = np.cumsum([len(p) for p in parts])
    x = rng(3).standard_normal((2, 7, 3)).astype(dtype)
    params = [30, 7, 5, 3, 0, 0, at[0], at[1], at[2]]
    kind = FORMATS[dtype.name]
    arrays = [np.zeros((2, 5, 3), dtype), x, np.concatenate(parts)]
    y, *_ = run("resample", acc, arrays, params, (1, 1, 1),
                X=kind, Y=kind, WEIGHTED=True, **({divided: True} if divided else {}))  # fmt: skip
    want = matrix / by if divided == "OVER_TERM" else matrix
    want = np.einsum("ij,ojc->oic", want, x)
    if divided == "OVER_SUM":
        want /= by[:5, None]
    close(y, want, 1e-5 if acc == "f32" else 1e-13)


def test_resample_of_bytes_rounds_and_stays_within_them():
    # Whole weights of seven binary digits: halves go up, what leaves 0 to 255 is its end.
    matrix = np.array([[64, 64, 0], [-16, 160, -16], [128, 0, 0], [32, 32, 64]])
    rows = [np.flatnonzero(r) for r in matrix]
    weight = np.concatenate([r[at] for r, at in zip(matrix, rows)])
    parts = [np.cumsum([0, *map(len, rows)]), np.concatenate(rows), weight]
    table = np.concatenate(parts).astype(np.int32).view(np.uint32)
    x = rng().choice(np.array([0, 1, 2, 127, 254, 255], np.uint8), (2, 3, 4))
    params = [32, 3, 4, 4, 0, 0, 5, 5 + len(parts[1]), 0]
    y, *_ = run("resample", "i32", [np.zeros((2, 4, 4), np.uint8), x, table], params, (1, 1, 1),
                X=FORMATS["uint8"], Y=FORMATS["uint8"], WEIGHTED=True, DIGITS=7)  # fmt: skip
    want = np.einsum("ij,ojc->oic", matrix, x.astype(int)) / 128
    assert np.array_equal(y, np.floor(want + 0.5).clip(0, 255))


@pytest.mark.parametrize("op", [SET, ADD, MULTIPLY, MAX, MIN])
def test_the_end_of_each_run_meets_what_is_there(op):
    keys = np.sort(rng().integers(0, 12, (2, 40)), axis=1).astype(np.uint32)
    v, y = floats(2, 40), floats(2, 10, seed=1)
    arrays = [y, v, keys]
    # Lines (outer) of y; a key is a place, those of 10 and above name none.
    params = [80, 40, 1, 10, 0, 0, 1, 40, f32(2), 0, 0, 0, *dims([2])]
    params += [10, 0, 0, 0] + [0] * 28
    got = run("put_runs", "f32", arrays, params, (1, 1, 1), OP=op)[0]
    want = y.copy()
    for line in range(2):
        for k in range(40):
            key = keys[line, k]
            if key < 10 and (k == 39 or keys[line, k + 1] != key):
                a, b = y[line, key], v[line, k]
                want[line, key] = [b, a + 2 * b, a * b, max(a, b), min(a, b)][op]
    close(got, want, 1e-6)


def test_max_windows_match_numpy():
    x = floats(2, 4, 5)
    x[1, 2, 3] = np.nan
    ys, xs = [(0, 2, 1), (1, 4, 2), (3, 3, 1)], [(0, 5, 2), (2, 5, 1)]
    table = np.array([(0, 1, 1), *ys, *xs], np.uint32)
    params = [12, 0, 0, 0, 1, 4, 5, 1, 1, 3, 2, 1, f32(-np.inf), 0, 0, 0]
    arrays = [np.zeros((2, 3, 2), np.float32), np.zeros((2, 3, 2), np.int64), x, table]
    y, index, *_ = run("max_windows", "f32", arrays, params, (1, 1, 1))
    for plane, i, j in np.ndindex(2, 3, 2):
        part = x[plane, slice(*ys[i]), slice(*xs[j])]
        np.testing.assert_equal(y[plane, i, j], part.max(initial=-np.inf))
        at = index[plane, i, j]
        np.testing.assert_equal(at, -1) if part.size == 0 else np.testing.assert_equal(
            x[plane].flat[at], part.max()
        )


@pytest.mark.parametrize("acc", ["f32", "f64"])
@pytest.mark.parametrize(("m", "n"), [(5, 5), (9, 4), (70, 70)])
def test_factors_with_exchanged_rows_make_the_matrix(acc, m, n):
    needs(acc)
    dtype = np.float32 if acc == "f32" else np.float64
    a = rng().standard_normal((3, m, n)).astype(dtype)
    a[1, :, 1] = 0
    k = min(m, n)
    arrays = [a, np.zeros((3, k), np.int32), np.zeros(3, np.int32), np.zeros(2, np.uint32)]
    # In two dispatches.
    for first, end in [(0, k // 2), (k // 2, k)]:
        params = [3, m, n, 0, 0, 0, 0, 1, first, end]
        arrays = run("factor", acc, arrays, params, (3, 1, 1), entry="lu", WG=64)
    lu, pivots, info, _ = arrays
    np.testing.assert_array_equal(info, [0, 2, 0])
    for b in range(3):
        low = np.tril(lu[b], -1)[:, :k] + np.eye(m, k)
        back = low @ np.triu(lu[b])[:k]
        for i in reversed(range(k)):
            back[[i, pivots[b, i] - 1]] = back[[pivots[b, i] - 1, i]]
        close(back, a[b], 1e-4 if acc == "f32" else 1e-12)
        assert np.abs(low).max() <= 1


def test_systems_are_solved_by_factors_and_by_triangles():
    a = floats(2, 6, 6)
    b = floats(2, 6, 3, seed=1)
    arrays = [a, np.zeros((2, 6), np.int32), np.zeros(2, np.int32), np.zeros(2, np.uint32)]
    lu, pivots, *_ = run(
        "factor", "f32", arrays, [2, 6, 6, 0, 0, 0, 0, 1, 0, 6], (2, 1, 1), entry="lu", WG=64
    )
    params = [2, 6, 3, 0, 0, 0, 0, 0, 0, 6]
    spare = np.zeros(1, np.int32)
    x = run("factor", "f32", [b, pivots, spare, lu], params, (1, 1, 1), entry="permute", WG=64)[0]
    for way in ({"UNIT": True}, {"UPPER": True}):
        x = run("factor", "f32", [x, spare, spare, lu], params, (1, 1, 1), entry="solve", WG=64,
                **way)[0]  # fmt: skip
    close(np.einsum("bij,bjk->bik", a, x), b, 1e-4)
    for upper, unit in np.ndindex(2, 2):
        x = run("factor", "f32", [b, spare, spare, lu], params, (1, 1, 1), entry="solve", WG=64,
                UPPER=upper, UNIT=unit)[0]  # fmt: skip
        t = np.triu(lu) if upper else np.tril(lu)
        if unit:
            t = t - t * np.eye(6) + np.eye(6)
        close(np.einsum("bij,bjk->bik", t, x), b, 2e-3)


def test_lower_factors_and_the_minor_that_is_not_positive():
    root = floats(3, 20, 20)
    a = np.einsum("bij,bkj->bik", root, root) + 5 * np.eye(20, dtype=np.float32)
    a[1, 7, 7] = -1
    arrays = [np.zeros_like(a), np.zeros(1, np.int32), np.zeros(3, np.int32), a]
    for first, end in [(0, 9), (9, 20)]:
        params = [3, 20, 20, 0, 0, 0, 0, 0, first, end]
        arrays = run("factor", "f32", arrays, params, (3, 1, 1), entry="cholesky", WG=64)
    low, _, info, _ = arrays
    np.testing.assert_array_equal(info, [0, 8, 0])
    for b in (0, 2):
        close(low[b], np.linalg.cholesky(a[b].astype(np.float64)), 1e-4)


@pytest.mark.parametrize("n", [1, 7, 40])
def test_factors_of_indefinite_matrices_make_them_and_solve(n):
    a = floats(3, n, n)
    a = a + a.transpose(0, 2, 1)
    a[1, range(n), range(n)] = 0
    a[2] = 0
    spare = np.zeros(1, np.uint32)
    state = np.zeros(3, np.uint32)
    arrays = [np.tril(a), np.zeros((3, n), np.int32), np.zeros(3, np.int32), state, spare]
    # In two dispatches, which take more pivots together than there may be.
    for steps in (n // 2 + 1, n):
        params = [3, n, 0, steps, 0, 0, 0, 0]
        arrays = run("ldl", "f32", arrays, params, (3, 1, 1), entry="ldl")
    packed, pivots, info, state, _ = arrays
    np.testing.assert_array_equal(info, [0, n == 1, 1])
    np.testing.assert_array_equal(state, n)
    b = floats(3, n, 2, seed=1)
    given = np.concatenate([packed, pivots[..., None].astype(np.float32)], 2)
    x, state = b, np.zeros(6, np.uint32)
    for entry in ("forward", "backward"):
        for steps in (n // 2 + 1, n):
            arrays = [x, spare, spare, state, given]
            params = [3, n, 2, steps, 0, 0, 0, 0]
            x, _, _, state, _ = run("ldl", "f32", arrays, params, (1, 1, 1), entry=entry)
    for i in range(1 if n == 1 else 2):
        size = np.abs(np.linalg.inv(a[i].astype(np.float64))).sum(1).max()
        close(a[i] @ x[i], b[i], 1e-4 * max(size, 1))


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("border", ["constant", "nearest"])
def test_taps_of_a_grid_interpolate_between_neighbours(border, corners):
    image = floats(6, 8)
    at = rng(1).uniform(-1.3, 1.3, (50, 2)).astype(np.float32)
    arrays = [np.zeros(200, np.uint32), np.zeros(200, np.float32), np.zeros(400, np.float32), at]
    places, weights, *_ = run("grid_taps", "f32", arrays, [50, 50, 0, 0, 8, 6, 1, 1], (1, 1, 1),
                              BORDER=int(border == "nearest"), CORNERS=corners)  # fmt: skip
    got = (image.ravel()[places] * weights).reshape(4, 50).sum(0)
    size = np.array([8, 6])
    where = (at + 1) / 2 * (size - 1) if corners else (at + 1) * size / 2 - 0.5
    if border == "nearest":
        where = where.clip(0, size - 1)
    padded = np.pad(image, 2)
    low = np.floor(where).astype(int)
    want = 0.0
    for i, j in np.ndindex(2, 2):
        x, y = low[:, 0] + i, low[:, 1] + j
        part = (1 - np.abs(where[:, 0] - x)) * (1 - np.abs(where[:, 1] - y))
        want = want + part * padded[(y + 2).clip(0, 9), (x + 2).clip(0, 11)]
    close(got, want, 1e-5)
