"""Arithmetic of a tensor with one number for each of its rows, on either side."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
# Around the lengths that loops for rows begin at, vectors, and the buffer for NaN.
LENGTHS = (3, 8, 15, 16, 17, 31, 32, 33, 63, 65, 100, 255, 257, 600)
FORMULAS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
INTEGER_FORMULAS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}


def sample(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape) * 3).to(dtype)


def numpy_of(x: torch.Tensor) -> np.ndarray:
    """In the type that the elements are computed in."""
    return (x if x.dtype == torch.float64 else x.float()).numpy()


def bits(x: torch.Tensor) -> np.ndarray:
    integer = {8: torch.int64, 4: torch.int32, 2: torch.int16}[x.element_size()]
    return x.contiguous().view(integer).numpy()


def agrees(name: str, x: torch.Tensor, y: torch.Tensor) -> None:
    with np.errstate(all="ignore"):
        want = FORMULAS[name](numpy_of(x), numpy_of(y))
    want = torch.from_numpy(np.ascontiguousarray(want)).to(x.dtype)
    got = getattr(torch, name)(x, y)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(numpy_of(got), numpy_of(want))
    # Zeros keep their sign, and NaN is that of operands without a broadcast.
    whole = getattr(torch, name)(*(t.expand(want.shape).contiguous() for t in (x, y)))
    np.testing.assert_array_equal(bits(got), bits(whole))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_every_row_takes_its_own_number(name, dtype):
    for length in LENGTHS:
        for rows in (2, 63, 64, 65, 130):
            x, c = sample((rows, length), dtype, 0), sample((rows, 1), dtype, 1)
            agrees(name, x, c)
            agrees(name, c, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_numbers_that_are_not_finite(name, dtype):
    x, c = sample((9, 600), dtype, 0), sample((9, 1), dtype, 1)
    x[:, ::7] = float("nan")
    x[:, 1::7] = -0.0
    special = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0]
    c[1:6, 0] = torch.tensor(special, dtype=dtype)
    agrees(name, x, c)
    agrees(name, c, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_layouts(name, dtype):
    x = sample((4, 6, 5, 80), dtype, 0)
    channel, gate = sample((6, 1, 1), dtype, 1), sample((4, 6, 1, 1), dtype, 2)
    spaced = sample((4, 6, 5, 2), dtype, 3)[..., :1]
    row, outer = sample((80,), dtype, 4), sample((5, 1), dtype, 5)
    for y in (channel, gate, spaced, row, outer):
        agrees(name, x, y)
        agrees(name, y, x)
    agrees(name, row, outer)
    agrees(name, x[:, :, :, 3:70], gate)
    agrees(name, x[:, ::2], channel[::2])
    agrees(name, x.transpose(1, 2), gate.transpose(1, 2))
    agrees(name, x.contiguous(memory_format=torch.channels_last), channel)
    agrees(name, x, spaced.flip(0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_threads_share(dtype):
    # Ranges of threads begin and end within rows.
    for shape in ((3, 70_001), (301, 1009), (5000, 33)):
        x, c = sample(shape, dtype, 0), sample((shape[0], 1), dtype, 1)
        agrees("mul", x, c)
        agrees("sub", c, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_in_place_and_into(name, dtype):
    x, c = sample((70, 90), dtype, 0), sample((70, 1), dtype, 1)
    want = getattr(torch, name)(x, c.expand(70, 90).contiguous())
    y = x.clone()
    assert getattr(torch, name)(y, c, out=y) is y
    np.testing.assert_array_equal(bits(y), bits(want))
    into = torch.zeros(70, 180, dtype=dtype)[:, ::2]
    getattr(torch, name)(x, c, out=into)
    np.testing.assert_array_equal(bits(into), bits(want))
    # The result in the place of the second input.
    y = x.clone()
    getattr(torch, name)(c, y, out=y)
    want = getattr(torch, name)(c.expand(70, 90).contiguous(), x)
    np.testing.assert_array_equal(bits(y), bits(want))


@pytest.mark.parametrize("dtype", DTYPES)
def test_alpha(dtype):
    x, c = sample((20, 90), dtype, 0), sample((20, 1), dtype, 1)
    for name, sign in (("add", 1), ("sub", -1)):
        for a, b in ((x, c), (c, x)):
            got = getattr(torch, name)(a, b, alpha=1.5)
            scaled = numpy_of(a).dtype.type(1.5) * numpy_of(b)
            want = torch.from_numpy(numpy_of(a) + sign * scaled).to(dtype)
            np.testing.assert_array_equal(bits(got), bits(want))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", INTEGER_FORMULAS)
def test_integers(name, dtype):
    info, rng = torch.iinfo(dtype), np.random.default_rng(0)

    def integers(*shape: int) -> torch.Tensor:
        return torch.tensor(rng.integers(info.min, info.max, shape, endpoint=True), dtype=dtype)

    for length in (8, 63, 64, 65, 130, 600):
        for rows in (2, 63, 65):
            x, c = integers(rows, length), integers(rows, 1)
            for a, b in ((x, c), (c, x)):
                # What overflows wraps, in both.
                want = INTEGER_FORMULAS[name](a.numpy(), b.numpy())
                got = getattr(torch, name)(a, b)
                assert got.dtype == dtype
                np.testing.assert_array_equal(got.numpy(), want)
    x, c = integers(20, 100), integers(20, 1)
    want = INTEGER_FORMULAS[name](x.numpy(), c.numpy())
    y = x.clone()
    getattr(torch, name)(y, c, out=y)
    np.testing.assert_array_equal(y.numpy(), want)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_alpha_of_integers(dtype):
    x, c = torch.arange(200).reshape(2, 100).to(dtype), torch.tensor([[3], [5]], dtype=dtype)
    want = x.numpy() + (c.numpy() * 3).astype(x.numpy().dtype)
    np.testing.assert_array_equal(torch.add(x, c, alpha=3).numpy(), want)


@pytest.mark.parametrize(
    "name", ["add", "mul", "maximum", "bitwise_and", "bitwise_or", "bitwise_xor"]
)
def test_bool(name):
    rng = np.random.default_rng(0)
    x, c = rng.random((9, 100)) < 0.5, rng.random((9, 1)) < 0.5
    got = getattr(torch, name)(torch.tensor(x), torch.tensor(c))
    assert got.dtype == torch.bool
    np.testing.assert_array_equal(got.numpy(), INTEGER_FORMULAS[name](x, c))
