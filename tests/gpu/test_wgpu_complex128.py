"""complex128 and float64 on the GPU, with no operator run on the CPU, beside NumPy and the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_wgpu_complex import CALLS
from test_wgpu_complex_functions import FUNCTIONS, OPEN, REAL
from test_wgpu_complex_parts import CALLS as PARTS
from test_wgpu_complex_parts import computed

import pytensorlib as torch
from pytensorlib import wgpu


def has_float64() -> bool:
    return wgpu.is_available() and bool(wgpu.get_device_properties()["float64"])


pytestmark = [
    pytest.mark.skipif(not has_float64(), reason="no GPU adapter with float64"),
    pytest.mark.usefixtures("no_fallback"),
]


def numbers(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def put(x: Any) -> Any:
    return torch.from_numpy(x).to("wgpu")


def close(got: Any, want: Any, tolerance: float = 1e-12) -> None:
    assert got.device.type == "wgpu"
    got = got.detach().cpu().numpy()
    assert got.dtype == want.dtype
    error = np.abs(got - want) / np.maximum(np.abs(want), 1e-2)
    assert np.isfinite(want).all() and error.max() <= tolerance, error.max()


@pytest.mark.parametrize("name", CALLS)
def test_arithmetic_matches_numpy(name: str) -> None:
    ours, reference = CALLS[name]
    a, b = numbers(7, 65), numbers(7, 65, seed=1)
    close(ours(put(a), put(b)), reference(a, b), 1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_match_numpy(name: str) -> None:
    ours, reference = FUNCTIONS[name]
    # Of a sum of exponentials NumPy has the principal logarithm alone.
    for size in (1e-3, 1.0, 8.0) if name != "logaddexp" else (1e-3, 1.0):
        z = numbers(6, 67) * size
        got = ours(put(z))
        close(got, reference(z))
        if name != "powers_of_each_other":
            turned = ours(put(z).t()[::2])
            np.testing.assert_array_equal(turned.cpu().numpy(), got.t()[::2].cpu().numpy())


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"nan_to_num", "silu", "sgn"}))
def test_gradients_are_those_of_the_cpu(name: str) -> None:
    ours = FUNCTIONS[name][0]
    z, g = numbers(5, 8), numbers(5, 8, seed=1)

    def gradient(device: str) -> Any:
        x = torch.from_numpy(z).to(device).requires_grad_()
        other = torch.from_numpy(g).to(device)
        ours(x).backward(other.real if name in REAL else other)
        return x.grad

    close(gradient("wgpu"), gradient("cpu").numpy())


ENDS = [0.0, -0.0, 0.5, -1.0, 1e300, 1e-310, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - OPEN - {"exp2"}))
def test_infinities_nan_and_zeros_are_those_of_the_cpu(name: str) -> None:
    ours = FUNCTIONS[name][0]
    ends = [v for v in ENDS if v != 1e300]
    z = torch.tensor([complex(a, b) for a in ends for b in ends], dtype=torch.complex128)
    got, want = ours(z.to("wgpu")).cpu().numpy(), ours(z).numpy()
    parts = (lambda v: [v.real, v.imag]) if np.iscomplexobj(want) else (lambda v: [v])
    # C leaves open which infinity acos and asin of a NaN give, and a card loses a NaN's sign.
    unsigned = torch.isnan(z).numpy()
    for a, b in zip(parts(got), parts(want), strict=True):
        a, b = (np.where(unsigned & np.isinf(v), np.abs(v), v) for v in (a, b))
        np.testing.assert_allclose(a, b, 1e-12, 1e-300)


def test_comparisons_and_choices() -> None:
    a = numbers(5, 33)
    b = np.where(np.arange(33) % 3 == 0, a, a.conj())
    x, y = put(a), put(b)
    np.testing.assert_array_equal((x == y).cpu().numpy(), a == b)
    np.testing.assert_array_equal((x != y).cpu().numpy(), a != b)
    np.testing.assert_array_equal(torch.isnan(x * 0 / 0).cpu().numpy(), np.ones((5, 33), bool))
    np.testing.assert_array_equal(torch.where(x == y, x, y).cpu().numpy(), np.where(a == b, a, b))
    np.testing.assert_array_equal(x.mul(2 - 1j).cpu().numpy(), torch.tensor(a).mul(2 - 1j).numpy())


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize(
    "of", ["float16", "int64", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("to", ["complex64", "complex128", "float64", "float32", "bool"])
def test_casts_are_those_of_the_cpu(of: str, to: str) -> None:
    x = torch.tensor([[1.5, -2.25, 0.0], [3.1, 1e-3, 7.0]], dtype=torch.float64)
    x = (x * (2 + 0.5j) if of.startswith("c") else x).to(getattr(torch, of))
    got = x.to("wgpu").t().to(getattr(torch, to))
    np.testing.assert_array_equal(got.cpu().numpy(), x.t().to(getattr(torch, to)).numpy())


@pytest.mark.parametrize("name", PARTS)
def test_operators_by_parts_and_their_gradients_match_the_cpu(name: str) -> None:
    found, expected = (computed(name, "complex128", device) for device in ("wgpu", "cpu"))
    for x, y in zip(found, expected, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            assert x.device.type == "wgpu" and x.shape == y.shape
            size = max(1.0, float(y.abs().max()) if y.numel() else 0.0)
            np.testing.assert_allclose(x.cpu().numpy(), y.numpy(), atol=1e-12 * size)


# Of one pass, of primes, of several passes, and what needs a convolution of several.
LENGTHS = [1, 2, 3, 5, 8, 30, 31, 97, 243, 509, 512, 513, 1000, 1021, 1024, 2187, 6000, 131071]


def check(got: Any, want: Any, n: int) -> None:
    assert got.device.type == "wgpu" and tuple(got.shape) == want.shape
    got = got.detach().cpu().numpy()
    assert got.dtype == want.dtype
    error = np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-30)
    assert error <= 4e-16 * (2 + np.log2(n)), (n, error)


@pytest.mark.parametrize("n", LENGTHS)
def test_fft_of_any_length_matches_numpy(n: int) -> None:
    x = numbers(2, n)
    check(torch.fft.fft(put(x)), np.fft.fft(x), n)
    check(torch.fft.ifft(put(x)), np.fft.ifft(x), n)
    r = numbers(3, n).real.copy()
    check(torch.fft.rfft(put(r)), np.fft.rfft(r), n)
    half = numbers(2, n // 2 + 1)
    check(torch.fft.irfft(put(half), n), np.fft.irfft(half, n), n)


def test_fft_of_planes_and_its_gradient_match_the_cpu() -> None:
    x = numbers(3, 12, 20)

    def run(device: str) -> list[Any]:
        a = torch.from_numpy(x).to(device).requires_grad_()
        y = torch.fft.fft2(a, norm="ortho")
        (y.abs() ** 2 * torch.arange(20, device=device)).sum().backward()
        return [y.detach().cpu().numpy(), a.grad.cpu().numpy()]

    for got, want in zip(run("wgpu"), run("cpu"), strict=True):
        np.testing.assert_allclose(got, want, 1e-12, 1e-12)


def test_recorded_calls_take_numbers_of_the_host_anew() -> None:
    z = put(numbers(4, 9))

    @torch.compile
    def step(z: Any, by: Any) -> Any:
        return torch.exp(z * by) + by

    for by in (1 + 2j, 1 + 2j, 0.5 - 1j, -1j):
        number = torch.tensor(by, dtype=torch.complex128)
        want = np.exp(z.cpu().numpy() * by) + by
        close(step(z, number), want)
