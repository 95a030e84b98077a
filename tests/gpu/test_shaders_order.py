"""Scans and sorts through wgpu-py against NumPy: none of the project's Rust takes part."""

from __future__ import annotations

import numpy as np
import pytest
from shader_runs import FORMATS, close, needs, rng, run

SUM, PROD, MAX, MIN, LAST, BLEND, OWN, BEFORE = range(8)
WHOLE, PARTS, TOTALS, APPLY = range(4)
NO_BLEND = "fn blend(l: Acc, r: Acc) -> Acc { return r; }\n"
NONE = np.zeros(1, np.uint32)


def scan(x, step, b=None, keys=None, acc="f32", splits=1, reverse=False, found=False, blend=""):
    """Returns running results along the middle dimension, and where each was found."""
    outer, length, inner = x.shape
    lanes = 1 if inner >= 32 else 64
    part = -(-length // splits)
    params = [outer * inner, length, inner, splits, part, reverse, 0, 0, 0, 0,
              length * inner, inner, 1, 0]  # fmt: skip
    among = [*params[:1], splits, inner, 1, splits, *params[5:]]
    y, index = np.zeros_like(x), np.zeros(x.shape if found else 1, np.int64)
    totals = np.zeros(6 * outer * inner * splits, np.uint32)
    given = [x, x if b is None else b, NONE if keys is None else keys, NONE]
    kind = FORMATS[str(x.dtype)]
    constants = {"OP": step, "X": kind, "Y": kind, "B": kind, "FOUND": found, "LANES": lanes,
                 "SEGMENTED": keys is not None, "ROWS": 64 // lanes, "WG": 64}  # fmt: skip
    stages = (
        [(WHOLE, params)] if splits == 1 else [(PARTS, params), (TOTALS, among), (APPLY, params)]
    )
    for stage, values in stages:
        rows = outer * inner * (1 if stage == TOTALS else splits)
        groups = (-(-rows // (64 // lanes)), 1, 1)
        out = run("scan", acc, [y, index, totals, *given], values, groups,
                  tail=blend or NO_BLEND, STAGE=stage, **constants)  # fmt: skip
        y, index, totals = out[:3]
    return y, index


@pytest.mark.parametrize("splits", [1, 5])
@pytest.mark.parametrize("shape", [(3, 300, 1), (2, 300, 40)])
def test_scans_match_numpy(shape, splits):
    x = rng().integers(-5, 6, shape).astype(np.float32)
    y, _ = scan(x, SUM, splits=splits)
    np.testing.assert_array_equal(y, x.cumsum(1))
    y, _ = scan(x, SUM, splits=splits, reverse=True)
    np.testing.assert_array_equal(y, x[:, ::-1].cumsum(1)[:, ::-1])
    y, _ = scan(np.sign(x + 0.5), PROD, splits=splits)
    np.testing.assert_array_equal(y, np.sign(x + 0.5).cumprod(1))


@pytest.mark.parametrize("splits", [1, 4])
@pytest.mark.parametrize("step", [MAX, MIN])
def test_running_extremes_take_the_last_of_equal_ones(step, splits):
    x = rng().integers(0, 50, (2, 200, 1)).astype(np.float32)
    x[1, 120] = np.nan
    y, at = scan(x, step, splits=splits, found=True)
    for o in range(2):
        best, where = x[o, 0, 0], 0
        for k in range(200):
            v = x[o, k, 0]
            wins = v >= best if step == MAX else v <= best
            if np.isnan(v) or (not np.isnan(best) and wins):
                best, where = v, k
            np.testing.assert_equal((y[o, k, 0], at[o, k, 0]), (best, where))


@pytest.mark.parametrize("splits", [1, 4])
@pytest.mark.parametrize("own", [True, False])
def test_recurrences_match_a_loop(own, splits):
    a = rng(1).standard_normal((2, 150, 1)).astype(np.float32)
    b = rng(2).uniform(-1, 1, (2, 150, 1)).astype(np.float32)
    y, _ = scan(a, OWN if own else BEFORE, b, splits=splits)
    want = a.astype(np.float64)
    for k in range(1, 150):
        want[:, k] += b[:, k if own else k - 1] * want[:, k - 1]
    close(y, want, 1e-5)


def test_a_recurrence_of_zeros_passes_factors_that_overflow():
    a, b = np.zeros((1, 100, 1), np.float32), np.full((1, 100, 1), 1e20, np.float32)
    a[0, 99] = 3
    y, _ = scan(a, OWN, b, splits=3)
    np.testing.assert_array_equal(y, a)


@pytest.mark.parametrize("splits", [1, 5])
def test_segments_begin_anew_where_keys_differ(splits):
    x = rng().integers(-5, 6, (2, 300, 2)).astype(np.int64)
    keys = np.sort(rng(1).integers(0, 12, x.shape), axis=1).astype(np.uint32)
    needs("i64")
    for step in (SUM, LAST):
        y, _ = scan(x, step, keys=keys, acc="i64", splits=splits)
        want = x.copy()
        for k in range(1, 300):
            same = keys[:, k] == keys[:, k - 1]
            want[:, k] += np.where(same & (step == SUM), want[:, k - 1], 0)
        np.testing.assert_array_equal(y, want)


def test_a_blend_is_any_associative_function():
    x = rng().standard_normal((1, 150, 1)).astype(np.float32)
    blend = "fn blend(l: Acc, r: Acc) -> Acc { return max(l, r) + m_log1p(m_exp(-abs(l - r))); }\n"
    y, _ = scan(x, BLEND, splits=3, blend=blend)
    close(y, np.logaddexp.accumulate(x.astype(np.float64), 1), 1e-5)


VALUES = {
    "float32": [0.5, -0.0, 0.0, np.nan, -np.inf, np.inf, -2, 1e-45, -1e-45, -np.nan],
    "float64": [0.5, -0.0, 0.0, np.nan, -np.inf, np.inf, -2, 5e-324, -1e300, 1 + 1e-15, 1],
    "float16": [0.5, -0.0, 0.0, np.nan, -np.inf, np.inf, -2, 6e-8],
    "int64": [0, -1, 2**40, -(2**40), 2**31, 2**63 - 1, -(2**63), 7],
    "int32": [0, -1, 2**31 - 1, -(2**31), 7],
    "int16": [0, -1, 32767, -32768, 7],
    "int8": [0, -1, 127, -128, 7],
    "uint8": [0, 255, 127, 128, 7],
    "bool": [True, False, True],
}
BITS = {"int64": 32, "float64": 32, "int32": 32, "float32": 32, "int16": 16, "float16": 16}


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", sorted(VALUES))
def test_keys_have_the_order_of_their_elements(dtype, descending):
    x = np.array(VALUES[dtype], dtype)
    n = len(x)
    low, high, at = (np.zeros(n, np.uint32) for _ in range(3))
    low, high, at, _ = run(
        "sort_keys", "i32", [low, high, at, x], [n, n, 1, 0, 0], (1, 1, 1),
        X=FORMATS[dtype], BITS=BITS.get(dtype, 8), DESCENDING=descending,
    )  # fmt: skip
    np.testing.assert_array_equal(at, np.arange(n))
    keys = [int(h) << 32 | int(w) for h, w in zip(high, low)]
    for i, j in np.ndindex(n, n):
        a, b = x[i], x[j]
        less = bool(a < b) or (b != b and a == a)
        less, more = less, bool(b < a) or (a != a and b == b)
        want = (more, less) if descending else (less, more)
        assert (keys[i] < keys[j], keys[i] > keys[j]) == want, (a, b)


def test_keys_by_lines_follow_the_inner_dimension():
    x = rng().integers(0, 99, (2, 3, 4)).astype(np.int32)
    out = [np.zeros(24, np.uint32) for _ in range(3)]
    low, _, at, _ = run("sort_keys", "i32", [*out, x], [24, 3, 4, 0, 50], (1, 1, 1),
                        X=FORMATS["int32"], PLAIN=True)  # fmt: skip
    np.testing.assert_array_equal(low, np.minimum(x, 50).transpose(0, 2, 1).ravel())
    np.testing.assert_array_equal(at, np.tile(np.arange(3), 8))


@pytest.mark.parametrize("long", [False, True])
def test_short_lines_are_sorted_stably(long):
    low = rng().integers(0, 20, (7, 60)).astype(np.uint32)
    high = rng(1).integers(0, 3, (7, 60)).astype(np.uint32)
    out = [np.zeros_like(low) for _ in range(3)]
    keys, upper, at, *_ = run("sort_short", "i32", [*out, low, high], [420, 60], (2, 1, 1),
                              LONG_KEYS=long)  # fmt: skip
    whole = low + (high.astype(np.int64) << 32 if long else 0)
    want = np.argsort(whole, axis=1, kind="stable")
    np.testing.assert_array_equal(at, want)
    np.testing.assert_array_equal(keys, np.take_along_axis(low, want, 1))
    if long:
        np.testing.assert_array_equal(upper, np.take_along_axis(high, want, 1))


def test_a_pass_by_digit_is_stable_within_lines():
    low = rng().integers(0, 2**32, (2, 2500), np.uint32)
    at = np.tile(np.arange(2500, dtype=np.uint32), (2, 1))
    blocks, shift = 3, 8
    params = [2500, blocks, 2 * blocks, shift]
    counts = np.zeros((2, 16, blocks), np.uint32)
    counts = run("sort_digit", "i32", [counts, NONE, NONE, low, NONE, at, NONE], params, (6, 1, 1),
                 entry="count")[0]  # fmt: skip
    digits = low >> shift & 15
    for b in range(blocks):
        part = digits[:, b * 1024 : (b + 1) * 1024]
        want = [[(line == d).sum() for d in range(16)] for line in part]
        np.testing.assert_array_equal(counts[:, :, b], want)
    ends = counts.reshape(2, -1).cumsum(1, dtype=np.uint32)
    out = [np.zeros_like(low), NONE, np.zeros_like(low), low, NONE, at, ends]
    keys, _, places, *_ = run("sort_digit", "i32", out, params, (6, 1, 1), entry="move_all")
    want = np.argsort(digits, axis=1, kind="stable")
    np.testing.assert_array_equal(places, want)
    np.testing.assert_array_equal(keys, np.take_along_axis(low, want, 1))


@pytest.mark.parametrize("k", [0, 17, 59])
def test_the_element_of_a_place_comes_there(k):
    low = rng().integers(0, 25, (9, 60)).astype(np.uint32)
    at = np.tile(np.arange(60, dtype=np.uint32), (9, 1))
    keys, _, places = run("select_place", "i32", [low, NONE, at], [9, 60, k], (1, 1, 1))
    np.testing.assert_array_equal(keys[:, k], np.sort(low, axis=1)[:, k])
    np.testing.assert_array_equal(np.take_along_axis(low, places.astype(np.int64), 1), keys)
    assert (keys[:, :k] <= keys[:, k : k + 1]).all()
    assert (keys[:, k:] >= keys[:, k : k + 1]).all()
