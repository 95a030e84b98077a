"""Arithmetic of complex numbers in the precision of their parts, by blocks of 128."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch

DTYPES = (torch.complex64, torch.complex128)
LENGTHS = (1, 2, 3, 7, 8, 127, 128, 129, 400)
FORMULAS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
}
UNARY = {"neg": np.negative, "conj_physical": np.conj, "abs": np.abs}
EPS = {torch.complex64: 2e-7, torch.complex128: 4e-16}


def sample(shape: int | tuple[int, ...], dtype: torch.dtype, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return torch.from_numpy(np.asarray(x * 10.0 ** rng.integers(-3, 4, shape))).to(dtype)


def near(got: torch.Tensor, want: np.ndarray, dtype: torch.dtype, parts: np.ndarray) -> None:
    """Within a few roundings of the parts, whose sizes `parts` says."""
    assert np.all(np.abs(got.numpy().astype(np.complex128) - want) <= 4 * EPS[dtype] * parts)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_two_tensors(name, dtype):
    for n in LENGTHS:
        x, y = sample(n, dtype, 0), sample(n, dtype, 1)
        wide = [v.numpy().astype(np.complex128) for v in (x, y)]
        want = FORMULAS[name](*wide)
        size = np.abs(wide[0]) + np.abs(wide[1]) if name in ("add", "sub") else np.abs(want)
        for got in (
            getattr(torch, name)(x, y),
            getattr(x.clone(), name + "_")(y),
            getattr(torch, name)(x, y, out=y.clone()),
        ):
            assert got.dtype == dtype
            near(got, want, dtype, size)
        # In the place of the second operand.
        z = y.clone()
        near(getattr(torch, name)(x, z, out=z), want, dtype, size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_one_tensor(name, dtype):
    for n in LENGTHS:
        x = sample(n, dtype, 0)
        want = UNARY[name](x.numpy().astype(np.complex128))
        got = getattr(torch, name)(x)
        assert got.dtype == (dtype.to_real() if name == "abs" else dtype)
        near(got, want, dtype, np.abs(want))
    into = torch.empty(2 * n, dtype=got.dtype)[::2]
    getattr(torch, name)(x, out=into)
    np.testing.assert_array_equal(into.numpy(), got.numpy())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_layouts_and_types(name, dtype):
    x, f = sample((6, 70, 5), dtype, 0), getattr(torch, name)
    part = dtype.to_real()
    others = [
        sample((70, 1), dtype, 1),
        sample((6, 5, 70), dtype, 2).transpose(1, 2),
        sample((), dtype, 3),
        sample((1,), dtype, 4),
        torch.from_numpy(np.random.default_rng(5).normal(size=(6, 1, 5)) + 3).to(part),
        torch.arange(1, 6),
        2.5,
        3 - 0.5j,
    ]
    for y in others:
        for a, b in ((x, y), (y, x)):
            wide = [np.asarray(torch.as_tensor(v).numpy(), np.complex128) for v in (a, b)]
            want = FORMULAS[name](*wide)
            got = f(a, b) if torch.is_tensor(a) else FORMULAS[name](a, b)
            assert got.dtype == dtype and got.shape == want.shape
            size = np.abs(wide[0]) + np.abs(wide[1]) if name in ("add", "sub") else np.abs(want)
            near(got, want, dtype, size)
    y = sample((6, 70, 5), dtype, 6)
    spaced = torch.zeros(6, 70, 10, dtype=dtype)[:, :, ::2]
    np.testing.assert_array_equal(f(x, y, out=spaced).numpy(), f(x, y).numpy())
    # Only the elements of the view change.
    z = x.clone()
    getattr(z[:, ::2], name + "_")(y[:, ::2])
    np.testing.assert_array_equal(z[:, ::2].numpy(), f(x, y)[:, ::2].numpy())
    np.testing.assert_array_equal(z[:, 1::2].numpy(), x[:, 1::2].numpy())


def smith(a: complex, b: complex) -> complex:
    """Smith's quotient, 1962, in float64; a division by zero divides each part by zero."""
    (x, y), (c, d) = (np.float64([z.real, z.imag]) for z in (a, b))
    if c == 0 and d == 0:
        return complex(x / abs(c), y / abs(c))
    if abs(c) >= abs(d) or np.isnan(c) or np.isnan(d):
        q = d / c
        size = c + d * q
        return complex((x + y * q) / size, (y - x * q) / size)
    q = c / d
    size = c * q + d
    return complex((x * q + y) / size, (y * q - x) / size)


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_numbers(dtype):
    parts = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e38 if dtype is DTYPES[0] else 1e300]
    numbers = np.array([complex(a, b) for a in parts for b in parts])
    x, y = (v.reshape(-1) for v in np.meshgrid(numbers, numbers))
    a, b = torch.from_numpy(x).to(dtype), torch.from_numpy(y).to(dtype)
    narrow = a.numpy(), b.numpy()
    with np.errstate(all="ignore"):
        want = np.array([smith(p, q) for p, q in zip(*(v.tolist() for v in narrow), strict=True)])
        want = want.astype(narrow[0].dtype)
        got = (a / b).numpy()
        for side in ("real", "imag"):
            p, q = getattr(got, side), getattr(want, side)
            np.testing.assert_array_equal(p, q)
            sure = ~np.isnan(q)
            np.testing.assert_array_equal(np.signbit(p)[sure], np.signbit(q)[sure])
        np.testing.assert_array_equal((a * b).real.numpy(), product(*narrow)[0])
        np.testing.assert_array_equal((a * b).imag.numpy(), product(*narrow)[1])
        np.testing.assert_array_equal(a.abs().numpy(), np.abs(narrow[0]))
    z = torch.conj_physical(a).numpy()
    np.testing.assert_array_equal(np.signbit(z.imag), ~np.signbit(narrow[0].imag))


def product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parts of the product by its definition, in the precision of the parts."""
    return a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_threads(dtype):
    x, y = sample(200_003, dtype, 0), sample(200_003, dtype, 1)
    before = torch.get_num_threads()
    try:
        got = []
        for threads in (1, 3):
            torch.set_num_threads(threads)
            got.append([v.numpy() for v in (x * y, x / y, x + y, x.abs(), x.exp(), x.sum())])
        for p, q in zip(*got, strict=True):
            np.testing.assert_array_equal(p, q)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_keep_parts_apart(dtype):
    x = sample((7, 300, 5), dtype, 0)
    wide = x.numpy().astype(np.complex128)
    for dims in (None, 0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        size = np.abs(wide).sum(dims)
        for v, w in ((x, wide), (x.transpose(0, 1), wide.swapaxes(0, 1))):
            if w is not wide:
                size = np.abs(w).sum(dims)
            got = v.sum() if dims is None else v.sum(dims)
            near(got, w.sum(dims), dtype, size)
            got = v.mean() if dims is None else v.mean(dims, keepdim=True)
            want = w.mean(dims) if dims is None else w.mean(dims, keepdims=True)
            assert got.shape == want.shape
            near(got, want, dtype, np.abs(w).mean(dims, keepdims=dims is not None))
    assert torch.empty(0, dtype=dtype).sum().item() == 0
    x = torch.tensor([1 + 2j, 3j], dtype=dtype, requires_grad=True)
    x.sum().abs().backward()
    assert x.grad is not None and x.grad.shape == (2,)
