"""Embeddings, indices and pools in shaders, through wgpu-py, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from shader_runs import close, dims, f32, floats, rng, run, strided


def test_embedding_and_its_sums_match_numpy():
    table, at = floats(6, 5), np.array([[3, 0, 3], [5, 3, 0]], np.int64)
    arrays = [np.zeros((6, 5), np.float32), np.zeros(8, np.uint32), table, at]
    params = [6, 5, 6, 0, 0, 0, 0, 4, 9]
    y, fault, *_ = run("embedding", "f32", arrays, params, (1, 1, 1))
    np.testing.assert_array_equal(y, table[at.ravel()])
    assert not fault.any()
    arrays[3] = at + 3
    assert list(run("embedding", "f32", arrays, params, (1, 1, 1))[1][[0, 3, 4, 5]]) == [1, 6, 4, 9]
    g = floats(6, 5, seed=1)
    arrays = [np.ones((6, 5), np.float32), np.zeros(8, np.uint32), g, at]
    y = run("embedding", "f32", arrays, params, (6, 1, 1), entry="sums")[0]
    want = np.zeros((6, 5))
    for row, line in zip(at.ravel(), g):
        # Row 0 is padding.
        want[row] += line * (row != 0)
    close(y, want, 1e-6)


def test_index_offsets_take_and_put_match_numpy():
    x = floats(3, 8, 5)
    index = np.array([1, -1, 0, 1, 7, 1], np.int64)
    arrays = [np.zeros(6, np.uint32), np.zeros(8, np.uint32), index]
    params = [6, 0, 8, 5, 0, 0, 1, 0, 0]
    offsets, fault, _ = run("index_offsets", "i32", arrays, params, (1, 1, 1))
    np.testing.assert_array_equal(offsets, index % 8 * 5)
    assert not fault.any()
    around = [*dims([3], [40]), *dims([5], [1])]
    arrays = [np.zeros((3, 6, 5), np.float32), x, offsets]
    y = run("take", "i32", arrays, [90, 6, 5, 0, 0, 0, 0, 0, *around], (1, 1, 1))[0]
    np.testing.assert_array_equal(y, x[:, index])
    links = run("chain", "i32", [np.zeros(6, np.uint32), offsets], [0, 6], (1, 1, 1))[0]
    assert [hex(v) for v in links] == [
        "0x3", "0x4", "0x7fffffff", "0x80000005", "0xffffffff", "0xffffffff",
    ]  # fmt: skip
    params = [90, 6, 5, 0, 6, 0, 0, 0, f32(0.5), 0, 0, 0, *around]
    v = floats(3, 6, 5, seed=1)
    added = run("put", "f32", [x, v, offsets, links], params, (1, 1, 1), ACCUMULATE=1)[0]
    want = x.copy()
    np.add.at(want, (slice(None), index), 0.5 * v)
    close(added, want)
    written = run("put", "f32", [x, v, offsets, links], params, (1, 1, 1))[0]
    want = x.copy()
    want[:, index] = v
    np.testing.assert_array_equal(written, want)


def test_index_offsets_bad_and_skipped_indices():
    index = np.array([3, 9, -9, 2**33], np.int64)
    arrays = [np.zeros(4, np.uint32), np.zeros(8, np.uint32), index]
    params = [4, 0, 8, 5, 3, 1, 1, 6, 7]
    offsets, fault, _ = run("index_offsets", "i32", arrays, params, (1, 1, 1))
    assert offsets[0] == 0xFFFFFFFF and fault[0] == 1
    assert fault[1:3].view(np.int64)[0] in [9, -9, 2**33] and list(fault[3:6]) == [8, 6, 7]
    params = [4, 4, 1, 0, 0, 0, 0, 0, *dims([1], [0]), *dims([1], [1])]
    y = run("take", "i32", [np.ones(4, np.int32), np.ones(40, np.int32), offsets], params,
            (1, 1, 1))[0]  # fmt: skip
    assert y[0] == 0 and y[1] == 1


@pytest.mark.parametrize(("index", "bad"), [(-1, True), (0, False), (7, False), (8, True)])
def test_index_offsets_without_wrapping_refuse_negative_indices(index, bad):
    arrays = [np.zeros(1, np.uint32), np.zeros(8, np.uint32), np.array([index], np.int64)]
    params = [1, 0, 8, 5, 0, 0, 0, 2, 3]
    offsets, fault, _ = run("index_offsets", "i32", arrays, params, (1, 1, 1))
    assert fault[0] == bad and offsets[0] == (0 if bad else 5 * index)


def test_gather_and_scatter_match_numpy():
    x = floats(4, 6)
    index = rng().integers(0, 6, (4, 3)).astype(np.int64)
    fault = np.zeros(8, np.uint32)
    params = [12, 0, 0, 0, 6, 1, 0, 0, *strided([4, 3], [6, 0], [3, 1])]
    arrays = [np.zeros((4, 3), np.float32), fault, x, index]
    y = run("gather", "i32", arrays, params, (1, 1, 1), DIMS=2)[0]
    np.testing.assert_array_equal(y, np.take_along_axis(x, index, 1))
    v = floats(4, 3, seed=1)
    for op, f in enumerate([None, np.add, np.multiply, np.maximum, np.minimum]):
        params = [24, 6, 0, 3, 0, 0, 0, 1, 1, 1, 0, 0, *strided([4], [6], [3], [3])]
        got = run("scatter", "f32", [x, fault, v, index], params, (1, 1, 1), OP=op)[0]
        want = x.copy()
        for r, j in np.ndindex(4, 3):
            at = (r, index[r, j])
            want[at] = v[r, j] if f is None else f(want[at], v[r, j])
        close(got, want)


@pytest.mark.parametrize("config", [(2, 2, 0), (3, 1, 1), (3, 2, 1)])
def test_max_pool2d_and_backward_match_numpy(config):
    k, s, pad = config
    x = rng().permutation(2 * 7 * 8).reshape(2, 7, 8).astype(np.float32)
    oh, ow = (7 + 2 * pad - k) // s + 1, (8 + 2 * pad - k) // s + 1
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (1, 2))[:, ::s, ::s]
    want = windows[:, :oh, :ow].max((3, 4))
    shape = [7, 8, oh, ow, *[k] * 2, *[s] * 2, *[pad] * 2, 1, 1]
    arrays = [np.zeros((2, oh, ow), np.float32), np.zeros((2, oh, ow), np.int64), x]
    y, index, _ = run("max_pool2d", "f32", arrays, [want.size, 0, 0, 0, *shape], (1, 1, 1))
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(np.take_along_axis(x.reshape(2, -1), index.reshape(2, -1), 1),
                                  want.reshape(2, -1))  # fmt: skip
    g = floats(2, oh, ow)
    d = run("max_pool2d_backward", "f32", [np.zeros_like(x), g, index],
            [x.size, 0, 0, 0, *shape], (1, 1, 1))[0]  # fmt: skip
    grad = np.zeros((2, 56))
    for p in range(2):
        np.add.at(grad[p], index[p].ravel(), g[p].ravel())
    close(d.reshape(2, -1), grad)


@pytest.mark.parametrize("config", [(2, 2, 0, 0), (3, 1, 1, 0), (3, 2, 1, 1), "adaptive"])
def test_avg_pool2d_and_backward_match_numpy(config):
    x = floats(2, 7, 8)
    adaptive = config == "adaptive"
    k, s, pad, counted = (1, 1, 0, 0) if adaptive else config
    oh, ow = (3, 5) if adaptive else ((7 + 2 * pad - k) // s + 1, (8 + 2 * pad - k) // s + 1)

    def bounds(o, size, count):
        if adaptive:
            return o * size // count, -(-(o + 1) * size // count)
        return max(o * s - pad, 0), min(o * s - pad + k, size)

    # The pooling matrix: which inputs enter each output, with what factor.
    matrix = np.zeros((oh, ow, 7, 8))
    for i, j in np.ndindex(oh, ow):
        (a, b), (c, d) = bounds(i, 7, oh), bounds(j, 8, ow)
        matrix[i, j, a:b, c:d] = 1 / (k * k if counted else (b - a) * (d - c))
    shape = [7, 8, oh, ow, *[k] * 2, *[s] * 2, *[pad] * 2, counted]
    arrays = [np.zeros((2, oh, ow), np.float32), x]
    params = [2 * oh * ow, 0, 0, 0, *shape]
    y = run("avg_pool2d", "f32", arrays, params, (1, 1, 1), ADAPTIVE=adaptive)[0]
    close(y, np.einsum("ijhw,phw->pij", matrix, x), 1e-5)
    g = floats(2, oh, ow, seed=1)
    params = [x.size, 0, 0, 0, *shape]
    arrays = [np.zeros_like(x), g]
    d = run("avg_pool2d", "f32", arrays, params, (1, 1, 1), ADAPTIVE=adaptive, BACKWARD=1)[0]
    close(d, np.einsum("ijhw,pij->phw", matrix, g), 1e-5)
