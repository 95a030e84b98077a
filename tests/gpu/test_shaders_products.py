"""Products of matrices and convolutions in shaders, through wgpu-py, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from shader_runs import close, f32, floats, fmt, rng, run

TILES = [
    {"BM": 32, "BN": 32, "RM": 1, "RN": 1, "DEPTH": 8, "BUFFERS": 2},
    {"BM": 64, "BN": 64, "RM": 2, "RN": 1, "DEPTH": 16, "BUFFERS": 1},
    {"BM": 8, "BN": 128, "RM": 1, "RN": 1, "DEPTH": 16, "BUFFERS": 1},
    {"BM": 32, "BN": 32, "RM": 1, "RN": 1, "DEPTH": 8, "BUFFERS": 2, "ROLLED": 1},
]


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (33, 40, 19)])
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_matmul_matches_numpy(m, n, k, tile, dtype):
    a, b = (
        rng(s).integers(-4, 5, shape).astype(dtype) for s, shape in ((0, (2, m, k)), (1, (n, k)))
    )
    c = rng(2).integers(-4, 5, n).astype(dtype)
    tiles = (-(-m // tile["BM"]), -(-n // tile["BN"]))
    one = f32(2.0) if "float" in dtype else 2
    params = [m, n, k, 2, 1, 16 * -(-k // 16), *tiles]
    params += [0, m * k, k, 1, 0, 0, 1, k, 0, 0, 0, 1, 0, m * n, n, 1, one, 0, one, 0, 0]
    arrays = [np.zeros((2, m, n), dtype), np.zeros(m, np.float32), a, b, c]
    groups = (tiles[0] * tiles[1] * 2, 1, 1)
    f = fmt(a)
    y = run("matmul", "f32" if "float" in dtype else "i32", arrays, params, groups, A=f, B=f, C=f,
            Y=f, HAS_C=1, B_ALONG_K=1, **tile)[0]  # fmt: skip
    want = 2 * (a.astype(np.float64) @ b.T.astype(np.float64)) + 2 * c
    np.testing.assert_array_equal(y, want.astype(dtype))


def test_matmul_every_tile_gives_the_same_bits():
    m, n, k = 70, 45, 60
    a, b = floats(1, m, k), floats(1, k, n, seed=1)
    found = set()
    for tile in TILES:
        tiles = (-(-m // tile["BM"]), -(-n // tile["BN"]))
        params = [m, n, k, 1, 1, k, *tiles, 0, 0, k, 1, 0, 0, n, 1, *[0] * 4, 0, 0, n, 1]
        params += [f32(1), 0, 0, 0, 0]
        arrays = [np.zeros((1, m, n), np.float32), np.zeros(m, np.float32), a, b, b]
        groups = (tiles[0] * tiles[1], 1, 1)
        y, sums, *_ = run("matmul", "f32", arrays, params, groups, SUMS=1, **tile)
        close(y, a.astype(np.float64) @ b, 1e-5)
        found.add((y.tobytes(), sums.tobytes()))
    assert len(found) == 1


def test_matmul_split_k_gives_partial_sums():
    a, b = floats(1, 5, 100), floats(1, 100, 6, seed=1)
    params = [5, 6, 100, 1, 4, 32, 1, 1, 0, 0, 100, 1, 0, 0, 6, 1, *[0] * 4, 0, 0, 6, 1]
    params += [f32(1), 0, 0, 0, 30]
    arrays = [np.zeros((4, 5, 6), np.float32), np.zeros((4, 5), np.float32), a, b, b]
    y, sums, *_ = run("matmul", "f32", arrays, params, (4, 1, 1), SUMS=1)
    close(sums.sum(0), a[0].sum(1), 1e-5)
    close(y.sum(0), a[0] @ b[0], 1e-5)
    close(y[3], a[0, :, 96:] @ b[0, 96:], 1e-5)


def convolve(x, w, stride, padding, dilation, groups):
    """Returns a 2-d convolution in float64, by its definition."""
    n, _, *sizes = x.shape
    oc, cg, kh, kw = w.shape
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    reach = [s + 2 * padding - dilation * (k - 1) for s, k in zip(sizes, (kh, kw))]
    oh, ow = ((r - 1) // stride + 1 for r in reach)
    y = np.zeros((n, oc, oh, ow))
    for o in range(oc):
        g = o // (oc // groups)
        for i, j in np.ndindex(oh, ow):
            rows = i * stride + dilation * np.arange(kh)
            columns = j * stride + dilation * np.arange(kw)
            window = x[:, g * cg : (g + 1) * cg][:, :, rows][:, :, :, columns]
            y[:, o, i, j] = (window * w[o]).sum((1, 2, 3))
    return y


@pytest.mark.parametrize(
    "config", [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2), (3, 1, 1, 4), (2, 2, 2, 1), (3, 2, 2, 2)]
)
def test_convolution_and_gradients_match_their_definition(config):
    stride, padding, dilation, groups = config
    x, w, bias = floats(2, 4, 9, 8), floats(8, 4 // groups, 3, 2, seed=1), floats(8, seed=2)
    y = convolve(x, w, *config)
    g = rng(3).standard_normal(y.shape)
    size, outer, kernel = (1, 9, 8), (1, *y.shape[2:]), (1, 3, 2)
    cg, og, taps = 4 // groups, 8 // groups, 6
    inside, outside = 72, math.prod(outer)
    step = stride // math.gcd(stride, dilation)
    inverse = next((i for i in range(step) if i * dilation % step == 1), 0)

    def call(mode, a, b, out, m, n, k, tile, entry="main"):
        """Runs a mode with its source, its places and the strides of a, y and the weight."""
        x, o = (size, cg, inside), (outer, og, outside)
        of, to = (o, x) if mode == "input" else (x, o)
        row, channel = (taps, cg * taps) if mode == "input" else (cg * taps, taps)
        weight, image = (cg * og * taps, row), (to[1] * to[2], to[2])
        (a_group, a_row), (y_group, y_row) = (
            (image, weight) if mode == "weight" else (weight, image)
        )
        classes = min(stride, 9) * min(stride, 8) if mode == "input" else 1
        tiles = (-(-m // tile["BM"]), -(-n // tile["BN"]))
        params = [m, n, k, groups, 1, 16 * -(-k // 16), *tiles, 0, 0, classes, 2, of[1]]
        params += [0, a_group, a_row, 0, of[1] * of[2], 0, y_group, y_row, 0, 0, 0]
        for volume, last in ((of, of[2]), (to, 0)):
            (_, h, w), channels, area = volume
            params += [*volume[0], last, h * w, w, 1, groups * channels * area]
        params += [*kernel, 0, 6, 2, 1, channel, 1, stride, stride, 1, 0, padding, padding, 0]
        params += [1, dilation, dilation, 1, 1, step, step, 1, 0, inverse, inverse, 0]
        arrays = [np.zeros(out, np.float32), a.astype(np.float32), b.astype(np.float32), bias]
        count = tiles[0] * tiles[1] * groups * classes
        if entry == "direct":
            count = -(-m * n * groups * classes // 256)
        threads = tile["BM"] * tile["BN"] // (16 * tile["RM"] * tile["RN"])
        near = 4 * -(-tile["DEPTH"] * tile["BN"] // (4 * threads)) if mode == "weight" else 4
        flags = {"TO_WEIGHT": mode == "weight", "CLASSES": mode == "input", "NEAR": near}
        flags |= {"HAS_BIAS": mode == "forward", "DIMS": 2}
        if entry == "shared_out":
            # Two columns of a row to a workgroup.
            params[6:8] = [m, -(-n // 2)]
            count = params[6] * params[7] * groups
            flags |= {"TAPS": 2, "LANES": 64}
        return run("conv", "f32", arrays, params, (count, 1, 1), entry=entry, **flags, **tile)[0]

    most = 2 * -(-9 // stride) * -(-8 // stride)
    reached = og * -(-3 // step) * -(-2 // step)
    calls = {
        "forward": (w, x, y.shape, og, 2 * outside, cg * taps),
        "input": (w, g, x.shape, cg, most, reached),
        "weight": (g, x, w.shape, og, cg * taps, 2 * outside),
    }
    got = {}
    for mode, args in calls.items():
        found = [call(mode, *args, tile) for tile in TILES]
        if mode != "weight":
            found.append(call(mode, *args, TILES[0], "direct"))
        assert len({f.tobytes() for f in found}) == 1
        got[mode] = found[0]
    shared = call("weight", *calls["weight"], TILES[0], "shared_out")
    close(shared, got["weight"], 1e-5)
    close(got["forward"], y + bias[:, None, None], 1e-5)
    # Convolution is bilinear: its gradients follow from the forward pass on unit tensors.
    probe = floats(*x.shape, seed=4)
    close((got["input"] * probe).sum(), (convolve(probe, w, *config) * g).sum(), 1e-4)
    probe = floats(*w.shape, seed=5)
    close((got["weight"] * probe).sum(), (convolve(x, probe, *config) * g).sum(), 1e-4)
