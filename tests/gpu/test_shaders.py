"""Each shader file through wgpu-py against NumPy: none of the project's Rust takes part.

A kernel's source is the numbers it knows by name, the prelude, the prelude of the type it computes
in, what it uses, its file and, for pointwise bodies, the math file and a tail (see
shaders/README.md).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shader_runs import (
    BF16,
    F16,
    F32,
    FORMATS,
    I16,
    PARTS,
    SHADERS,
    U8,
    close,
    dims,
    floats,
    needs,
    pointwise,
    rng,
    run,
)


def test_every_file_has_a_test():
    text = "".join(p.read_text() for p in Path(__file__).parent.glob("test_shader*.py"))
    # What wgpu-py's adapters cannot run, and the tests that do where there is one that can.
    elsewhere = {
        "matmul_cooperative": "test_wgpu_cooperative.py",
        "conv_cooperative": "test_wgpu_cooperative_conv.py",
        "words": "test_wgpu_without.py",
    }
    for path in SHADERS.glob("*.wgsl"):
        tested = path.stem in PARTS or f'"{path.stem}"' in text
        assert tested or (Path(__file__).parent / elsewhere[path.stem]).exists(), path.name


@pytest.mark.parametrize(
    ("kind", "lanes", "parts"), [("u1", 4, 1), ("u2", 2, 1), ("u4", 1, 1), ("u8", 1, 2)]
)
def test_transpose_moves_squares(kind, lanes, parts):
    random = np.random.default_rng(3)
    side = 64 if lanes > 1 else 32
    # Planes beyond squares, whose order is turned round too.
    planes, rows, columns = 3, side + 8, 2 * side + 4
    x = random.integers(0, 200, (planes, rows, columns)).astype(kind)
    across, along = -(-columns // side), -(-rows // side)
    for whole in (0, 1):
        plane, squares = rows * columns, across * along
        params = [columns, rows, across, squares, planes * squares, 0, (planes - 1) * plane]
        params += [columns, rows, 0, 0, 0, planes, *[0] * 7, plane, *[0] * 7]
        params += [(1 << 32) - plane, *[0] * 7]
        sizes = {"LANES": lanes, "PARTS": parts, "SIDE": side, "WHOLE": whole, "DIMS": 1}
        y, _ = run("transpose", "i32", [np.zeros_like(x), x], params, (params[4], 1, 1), **sizes)
        want = x[::-1].transpose(0, 2, 1)
        np.testing.assert_array_equal(y.reshape(want.shape), want)


def test_peak_copies_and_multiplies():
    x = floats(300, 4)
    y, _ = run("peak", "f32", [np.zeros_like(x), x], [300, 0], (2, 1, 1), entry="copy")
    np.testing.assert_array_equal(y, x)
    x = np.float32([[-0.25, 0.0, 0.125, 0.25], [0.5, 1, 2, 4]])
    y, _ = run(
        "peak", "f32", [np.zeros((3, 4), np.float32), x], [3, 9], (1, 1, 1), entry="multiply"
    )
    a, b = x[0].astype(float) + 0.5, x[1] + np.arange(3.0)[:, None]
    want = np.zeros((3, 4))
    for start in range(8):
        r = b + start
        for _ in range(9):
            r = r * a + b
        want += r
    close(y, want, 1e-5)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("of", FORMATS)
def test_pointwise_identity_converts_every_pair_of_types(of, to):
    acc = {"float64": "f64", "int64": "i64"}.get(of, "f32" if "float" in of else "i32")
    acc = "f64" if to == "float64" else acc
    needs(acc)
    x = np.array([0, 1, 2, 3, 100, 127, 7, 5, 64], dtype=of)
    y = pointwise("fn op(a: Acc) -> Acc { return a; }", acc, np.zeros(9, to), [x])
    np.testing.assert_array_equal(y, x.astype(to))


def test_pointwise_half_rounds_as_numpy():
    x = np.concatenate([floats(500) * s for s in (1e-8, 1e-5, 1, 3e4)])
    x = np.append(x, np.array([65519.9, 65520, np.inf, -np.inf, 0, -0.0, 2049, 2051], np.float32))
    with np.errstate(over="ignore"):
        want = x.astype(np.float16)
    op = "fn op(a: Acc) -> Acc { return a; }"
    np.testing.assert_array_equal(pointwise(op, "f32", np.zeros_like(want), [x]), want)
    back = pointwise(op, "f32", np.zeros_like(x), [want])
    np.testing.assert_array_equal(back, want.astype(np.float32))


def test_pointwise_bfloat16_rounds_to_nearest_even():
    x = floats(1000)
    tail = "fn op(a: Acc) -> Acc { return a; }\nfn value(i: u32) -> Acc { return op(load0(i)); }\n"
    params = [1000, 0, 0, 0, *[0] * 8, *[1] * 8]
    arrays = [np.zeros(1000, np.uint16), x]
    y = run("pointwise", "f32", arrays, params, (3, 1, 1), tail, Y=BF16, X0=F32)[0]
    u = x.view(np.uint32)
    np.testing.assert_array_equal(y, ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16))


def test_pointwise_strided_and_scattered_write_only_their_elements():
    x = rng().integers(0, 255, (4, 6)).astype(np.uint8)
    y = np.full(120, 9, np.uint8)
    # y[1 + 20 i + 3 j] = x[j, i]: a transposed input and bytes that share words with others.
    params = [24, 0, 0, 0, 1, *[0] * 7, *[0] * 8, *[0] * 16, *dims([6, 4], [20, 3], [1, 6])]
    tail = "fn value(i: u32) -> Acc { return load0(i); }\n"
    constants = {"Y": U8, "X0": U8, "DIMS": 2}
    got = run("pointwise", "i32", [y, x], params, (1, 1, 1), tail, "scattered", **constants)[0]
    want = y.copy()
    for i in range(6):
        for j in range(4):
            want[1 + 20 * i + 3 * j] = x[j, i]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("offset", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_invocations_that_own_words_give_the_bits_of_single_ones(n, offset):
    x = rng().integers(0, 200, 64)
    at = rng(1).integers(0, 32, n).astype(np.uint32)
    around = [*dims([1], [1]), *dims([1], [1])]
    planes = rng(2).standard_normal(64).astype(np.float16)
    shape = [1, 2 * n, 1, n, 1, 2, 1, 2, 0, 0]
    for name, acc, kind, y_type, params, formats in [
        ("take", "i32", np.uint8, U8, [n, n, 1, 0, offset, 0, 0, 0, *around], {"X": U8}),
        ("take", "i32", np.uint16, I16, [n, n, 1, 0, offset, 0, 0, 0, *around], {"X": I16}),
        ("avg_pool2d", "f32", np.uint16, F16, [n, 0, offset, 0, *shape, 0], {"X": F16}),
        ("avg_pool2d", "f32", np.uint16, BF16, [n, 0, offset, 0, *shape, 0], {"X": F16}),
    ]:
        found = []
        for together in (0, 1):
            y = np.full(n + 12, 77, kind)
            source = x.astype(kind) if name == "take" else planes
            arrays = [y, source, at] if name == "take" else [y, source]
            sizes = {"Y": y_type, "WORDS": together, **formats}
            found.append(run(name, acc, arrays, params, (1, 1, 1), **sizes)[0])
        np.testing.assert_array_equal(*found)
        outside = np.delete(found[0], np.s_[offset : offset + n])
        assert (outside == 77).all()
        if name == "take":
            np.testing.assert_array_equal(found[0][offset : offset + n], x.astype(kind)[at])
