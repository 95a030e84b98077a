"""The pointwise driver beside NumPy: layouts, types, aliases and results past the caches."""

import numpy as np
import pytest

import pytensorlib as torch

RNG = np.random.default_rng(0)
DTYPES = ["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8"]


def array(shape, dtype):
    if dtype.startswith("float"):
        return RNG.standard_normal(shape).astype(dtype)
    return RNG.integers(0, 50, shape).astype(dtype)


LAYOUTS = {
    "plain": lambda a: a,
    "transposed": lambda a: a.T,
    "strided": lambda a: a[::2, 1::3],
    "row": lambda a: a[:1],
    "column": lambda a: a[:, :1],
    "one": lambda a: a[:1, :1],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("first", ["plain", "transposed", "strided"])
def test_add_any_layouts_equal_numpy(first, second, dtype):
    for side in (3, 40, 150):
        pair = []
        shape = LAYOUTS[first](np.empty((side, side))).shape
        for name in (first, second):
            a = array((side, side), dtype)
            v, t = LAYOUTS[name](a), LAYOUTS[name](torch.from_numpy(a))
            if v.shape != shape and name not in ("row", "column", "one"):
                v, t = v[: shape[0], : shape[1]], t[: shape[0], : shape[1]]
            if name == "row":
                v, t = v[:, : shape[1]], t[:, : shape[1]]
            if name == "column":
                v, t = v[: shape[0]], t[: shape[0]]
            pair.append((v, t))
        (a, x), (b, y) = pair
        try:
            want = a + b
        except ValueError:
            continue
        assert np.array_equal((x + y).numpy(), want)
        assert np.array_equal((x > y).numpy(), a > b)


IN_PLACE = {
    "x.add_(y)": lambda a, b: a + b,
    "x.mul_(x)": lambda a, b: a * a,
    "x.sub_(y, alpha=2)": lambda a, b: a - a.dtype.type(2) * b,
    "torch.sub(y, x, out=x)": lambda a, b: b - a,
    "x.clamp_(1, 3)": lambda a, b: a.clip(1, 3),
    "x[1:].add_(y[:-1])": lambda a, b: np.concatenate([a[:1], a[1:] + b[:-1]]),
    "x[::2].mul_(y[::2])": lambda a, b: np.where(np.arange(len(a)) % 2, a, a * b),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("call", IN_PLACE)
def test_in_place_calls_equal_numpy(call, dtype):
    for n in (1, 2, 63, 64, 65, 1000, 33_001, 70_001):
        a, b = array(n, dtype), array(n, dtype)
        x, y = torch.from_numpy(a.copy()), torch.from_numpy(b)
        with np.errstate(over="ignore"):
            want = IN_PLACE[call](a, b)
        eval(call, {"torch": torch, "x": x, "y": y})
        # The product may be fused with the sum.
        tolerance = {"float16": 4e-3, "float32": 4e-7}.get(dtype, 0 if "int" in dtype else 1e-15)
        assert np.allclose(x.numpy(), want, rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize("dtype", ["float32", "int64", "int16", "uint8", "bool"])
def test_flip_and_roll_equal_numpy(dtype):
    for shape in [(0,), (1,), (7,), (70_001,), (3, 5), (40, 33), (5, 1, 6), (4, 0, 2), (9, 8, 17)]:
        for a in (array(shape, dtype), array(shape[::-1], dtype).T):
            x = torch.from_numpy(a)
            k = a.ndim
            for dims in [(0,), (k - 1,), tuple(range(k))]:
                assert np.array_equal(x.flip(dims).numpy(), np.flip(a, dims))
                for by in (1, -3, 12):
                    want = np.roll(a, [by] * len(dims), dims)
                    assert np.array_equal(x.roll([by] * len(dims), dims).numpy(), want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fmod_equals_numpy_exactly(dtype):
    edges = [
        0.0,
        -0.0,
        1,
        -2,
        0.5,
        1e-38,
        -1e-45,
        3e38,
        np.inf,
        -np.inf,
        np.nan,
        7e7,
        8388609,
        1 / 3,
    ]
    e = np.array(edges, dtype)
    a, b = (v.ravel() for v in np.meshgrid(e, e))
    scale = 10.0 ** RNG.integers(-6, 6, (2, 20_000))
    wide = (RNG.standard_normal((2, 20_000)) * scale).astype(dtype)
    near = wide[0][:500] / np.arange(1, 501).astype(dtype)  # quotients next to integers
    a = np.concatenate([a, wide[0], wide[0][:500]])
    b = np.concatenate([b, wide[1], near])
    with np.errstate(invalid="ignore"):
        want = np.fmod(a, b)
    got = torch.fmod(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    assert np.array_equal(got, want, equal_nan=True)
    number = ~np.isnan(want)
    assert np.array_equal(np.signbit(got[number]), np.signbit(want[number]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_contiguous_of_permuted_equals_numpy(dtype):
    a = array((5, 33, 18, 7), dtype)
    t = torch.from_numpy(a)
    for order in [(0, 2, 3, 1), (3, 2, 1, 0), (0, 1, 3, 2), (2, 0, 3, 1)]:
        want = np.ascontiguousarray(a.transpose(order))
        assert np.array_equal(t.permute(*order).contiguous().numpy(), want)


def test_in_place_on_itself_equals_numpy():
    for n in (10, 1000, 100_003):
        a = array(n, "float32")
        x = torch.from_numpy(a.copy())
        x.mul_(3.0).add_(x)
        assert np.array_equal(x.numpy(), (a * np.float32(3)) + (a * np.float32(3)))


def test_results_past_the_caches_equal_numpy():
    a = array((4100, 4100), "float32")
    x = torch.from_numpy(a)
    row = x[7]
    assert np.array_equal((x + row).numpy(), a + a[7])
    assert np.array_equal((x + x.T).numpy(), a + a.T)
    assert np.array_equal(x.T.contiguous().numpy(), a.T)
    assert np.array_equal(x.double().numpy(), a.astype(np.float64))
    assert (torch.full((4100, 4103), 2.5).numpy() == 2.5).all()


def test_bfloat16_rounds_to_nearest_even_with_subnormals():
    bits = RNG.integers(0, 1 << 32, 100_000, dtype=np.uint64).astype(np.uint32)
    bits[:200] = np.arange(200)
    a = bits.view(np.float32)
    wide = bits.astype(np.uint64)
    want = (((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)
    got = torch.from_numpy(a).bfloat16().float().numpy()
    known = ~np.isnan(a)
    assert np.isnan(got[~known]).all()
    assert np.array_equal(got[known].view(np.uint32), want[known].view(np.uint32))


def test_int64_to_float32_rounds_once():
    a = np.array([(1 << 60) + (1 << 36) + 1, (1 << 53) + 1, -(1 << 62) - 3], dtype=np.int64)
    a = np.tile(a, 50)
    assert np.array_equal(torch.from_numpy(a).float().numpy(), a.astype(np.float32))


def test_narrow_integers_wrap_and_compare():
    a = np.arange(-128, 128).astype(np.int8)
    x = torch.from_numpy(a)
    assert np.array_equal((x + x).numpy(), a + a)
    assert np.array_equal((x * x).numpy(), a * a)
    assert np.array_equal((x < 3).numpy(), a < 3)
    assert np.array_equal(x.masked_fill(x > 0, 7).numpy(), np.where(a > 0, 7, a))


@pytest.mark.parametrize("columns", [1, 2, 7, 100, 511, 512, 513, 1024, 1500])
def test_rows_that_broadcast_equal_numpy(columns):
    for rows in (1, 2, 3, 8, 9):
        a, b = array((rows, columns), "float32"), array(columns, "float32")
        x, y = torch.from_numpy(a), torch.from_numpy(b)
        assert np.array_equal((x + y).numpy(), a + b)
        assert np.array_equal((y - x).numpy(), b - a)
        assert np.array_equal((x > y).numpy(), a > b)
        assert np.array_equal(torch.where(x > 0, y, 2.0).numpy(), np.where(a > 0, b, np.float32(2)))
        assert np.array_equal(x.clone().mul_(y).numpy(), a * b)


def test_argmax_of_columns_equals_numpy():
    for shape in [(1, 5), (700, 3), (64, 1000), (300, 2049)]:
        a = RNG.integers(-4, 5, shape).astype("float32")  # ties: the first counts
        for b in (a, a.astype("float64"), np.asfortranarray(a)):
            x = torch.from_numpy(b)
            assert np.array_equal(x.argmax(0).numpy(), b.argmax(0))
            assert np.array_equal(x.min(0).indices.numpy(), b.argmin(0))
        a[shape[0] // 2] = np.nan
        assert np.array_equal(torch.from_numpy(a).argmax(0).numpy(), a.argmax(0))
