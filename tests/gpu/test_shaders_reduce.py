"""Reductions in shaders, through wgpu-py, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from shader_runs import BF16, F16, close, dims, f32, floats, fmt, needs, rng, run

REDUCTIONS = [np.sum, np.prod, np.max, np.min, np.any, np.all]


@pytest.mark.parametrize("op", range(6))
@pytest.mark.parametrize("lanes", [1, 16, 64])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_reduce_matches_numpy(op, lanes, dtype):
    x = (rng().integers(0, 3, (7, 50)) if op != 1 else rng().integers(1, 2, (7, 50))).astype(dtype)
    acc = "f32" if "float" in dtype else "i32"
    identity = {0: 0, 1: 1, 2: -(2**31), 3: 2**31 - 1, 4: 0, 5: 1}[op]
    if acc == "f32":
        identity = f32({2: -np.inf, 3: np.inf}.get(op, identity))
    # Rows 1 and on: x starts at an offset; y as well.
    params = [6, 50, 1, 50, 50, 1, f32(1), 0, identity, 0, 0, 0, *dims([6], [50])]
    params += dims([50], [1])
    arrays = [np.zeros(8, dtype), x]
    groups = (-(-6 // (64 // lanes)), 1, 1)
    y = run("reduce", acc, arrays, params, groups, OP=op, X=fmt(x), Y=fmt(x), MAP=3 * (op > 3),
            LANES=lanes, ROWS=64 // lanes, WG=64)[0]  # fmt: skip
    want = REDUCTIONS[op](x[1:], axis=1).astype(dtype)
    np.testing.assert_array_equal(y, [0, *want, 0])


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("rows", [1, 6, 7])
@pytest.mark.parametrize("kind", [F16, BF16])
def test_reduce_to_pairs_gives_the_bits_of_single_halves(kind, rows, lanes):
    x = floats(rows, 9)
    params = [rows, 9, 1, 9, 0, 0, f32(0.5), 0, 0, 0, 0, 0, *dims([rows], [9]), *dims([9], [1])]
    sizes = {"OP": 0, "LANES": lanes, "ROWS": 8, "WG": 8 * lanes, "Y": kind}
    found = []
    for pairs in (0, 1):
        arrays = [np.full(rows + 3, 77, np.uint16), x]
        found.append(run("reduce", "f32", arrays, params, (1, 1, 1), PAIRS=pairs, **sizes)[0])
    np.testing.assert_array_equal(*found)
    assert (found[0][rows:] == 77).all()
    if kind == F16:
        close(found[0][:rows].view(np.float16), x.sum(1) / 2, 2e-3)


def test_reduce_two_reduced_dimensions_in_parts():
    x = floats(5, 6, 7)
    # Over dimensions 0 and 2, in three parts of 12 of the 35 elements, with the mean's factor.
    params = [6, 35, 3, 12, 0, 0, f32(0.5), 0, 0, 0, 0, 0, *dims([6], [7]), *dims([5, 7], [42, 1])]
    y = run("reduce", "f32", [np.zeros(18, np.float32), x], params, (2, 1, 1), INNER=2,
            LANES=4, ROWS=16, WG=64)[0]  # fmt: skip
    close(y.reshape(6, 3).sum(1), 0.5 * x.sum((0, 2)), 1e-5)


@pytest.mark.parametrize("op", [2, 3])
def test_reduce_max_and_min_keep_nan(op):
    x = floats(1, 300)
    x[0, 222] = np.nan
    params = [1, 300, 1, 300, 0, 0, f32(1), 0, f32([0, 0, -np.inf, np.inf][op]), 0, 0, 0]
    params += [*dims([1], [0]), *dims([300], [1])]
    y = run("reduce", "f32", [np.zeros(1, np.float32), x], params, (1, 1, 1), OP=op)[0]
    assert np.isnan(y[0])


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("op", range(5))
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_segment_reduce_and_its_adjoint_match_numpy(op, lanes, index):
    x = floats(2, 50, 3)
    # The last element of each row is in no segment, and one segment has none.
    bounds = np.array([[0, 2, 2, 40, 49], [1, 8, 9, 9, 49]], index)
    start = f32([0, 0, -np.inf, np.inf, 1][op])
    initial, empty = f32([0.5, 0.5, -0.25, 0.25, 2][op]), f32(7)
    params = [start, 0, initial, 0, empty, 0, 24, 4, 50, 3, 0, 0, 0, 0]
    arrays = [np.zeros((2, 4, 3), np.float32), x, bounds]
    rows = 64 // lanes
    kinds = {"OP": op, "I": fmt(bounds)}
    y = run("segment_reduce", "f32", arrays, params, (-(-24 // rows), 1, 1), LANES=lanes, ROWS=rows,
            WG=64, **kinds)[0]  # fmt: skip
    for o, s in np.ndindex(2, 4):
        part = x[o, bounds[o, s] : bounds[o, s + 1]].astype(np.float64)
        mean = (part.sum(0) + 0.5) / len(part) if len(part) else 7
        ends = part.max(0, initial=-0.25), part.min(0, initial=0.25)
        want = [part.sum(0) + 0.5, mean, *ends, part.prod(0) * 2][op]
        close(y[o, s], want, 1e-5)
    params[6] = 300
    arrays = [np.ones_like(x), y, bounds]
    d = run("segment_reduce", "f32", arrays, params, (2, 1, 1), entry="spread", WG=256, **kinds)[0]
    want = np.zeros_like(x)
    for o, s in np.ndindex(2, 4):
        begin, end = bounds[o, s], bounds[o, s + 1]
        want[o, begin:end] = y[o, s] / (end - begin if op == 1 and end > begin else 1)
    close(d, want, 1e-6)


@pytest.mark.parametrize("largest", [True, False])
def test_arg_reduce_matches_numpy(largest):
    x = rng().integers(0, 9, (5, 40)).astype(np.float32)
    x[2, 30] = x[2, 33] = np.nan
    arrays = [np.zeros(5, np.float32), np.zeros(5, np.int64), x, np.zeros(1, np.uint32)]
    params = [5, 40, 1, 40, 0, 0, 0, 0, *dims([5], [40]), *dims([40], [1])]
    y, index, *_ = run("arg_reduce", "f32", arrays, params, (5, 1, 1), LARGEST=largest)
    np.testing.assert_array_equal(index, (np.argmax if largest else np.argmin)(x, axis=1))
    np.testing.assert_array_equal(y, (np.max if largest else np.min)(x, axis=1))


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_means_of_what_is_not_nan_match_numpy(dtype, lanes, parts):
    acc, wide = ("f64", "float64") if dtype == "float64" else ("f32", "float32")
    needs(acc)
    rows, length = 5, 50
    part = -(-length // parts)
    x = (rng().standard_normal((rows, length)) * 3 + 10).astype(dtype)
    x[rng().random((rows, length)) < 0.3] = np.nan
    x[1] = np.nan
    x[2, :17] = np.nan  # a part of three without a number
    x[3, 4] = np.inf
    params = [rows, length, parts, part, 0, 0, 0, 0, *dims([rows], [length]), *dims([length], [1])]
    sizes = {"LANES": lanes, "ROWS": 2, "WG": 2 * lanes, "X": fmt(x)}
    whole = parts == 1
    first = np.zeros(rows * parts, dtype if whole else wide)
    arrays = [first, np.zeros(rows * parts, wide), x, x]
    groups = (-(-rows * parts // 2), 1, 1)
    y, counts, *_ = run("present", acc, arrays, params, groups, PART=not whole, Y=fmt(first),
                        **sizes)  # fmt: skip
    if not whole:
        arrays = [np.zeros(rows, dtype), np.zeros(rows, wide), y, counts]
        sizes |= {"X": fmt(y), "Y": fmt(x)}
        y, counts, *_ = run("present", acc, arrays, params, (3, 1, 1), entry="join", **sizes)
    np.testing.assert_array_equal(counts[:rows], (~np.isnan(x)).sum(1))
    assert np.isnan(y[1]) and y[3] == np.inf
    some = [0, 2, 4]
    want = np.nanmean(x[some].astype(np.float64), axis=1)
    close(y[some], want, {"float16": 1e-3, "float32": 1e-6, "float64": 1e-14}[dtype])
