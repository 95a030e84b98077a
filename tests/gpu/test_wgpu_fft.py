"""Fourier transforms on the GPU, with no operator run on the CPU, beside NumPy in complex128."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import wgpu

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]


def numbers(*shape: int, real: bool = False, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return z.real.astype(np.float32) if real else z.astype(np.complex64)


def put(x: Any) -> Any:
    return torch.from_numpy(x).to("wgpu")


def check(got: Any, want: Any, n: int) -> None:
    """Hold a transform of `n` elements to O(eps log n) of its norm."""
    assert got.device.type == "wgpu" and tuple(got.shape) == want.shape
    got = got.detach().cpu().numpy()
    assert got.dtype == (np.complex64 if np.iscomplexobj(want) else np.float32)
    error = np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-30)
    assert error <= 1.2e-7 * (2 + np.log2(n)), (n, error)


def wide(x: Any) -> Any:
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


# Of one pass, of primes, of several passes, and what needs a convolution of several.
LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 30, 31, 60, 64, 97, 125, 243, 509, 512, 1000, 1024]
LENGTHS += [1021, 1025, 1031, 2048, 2187, 3125, 4099, 6000, 30030, 65536, 131071]


@pytest.mark.parametrize("n", LENGTHS)
def test_fft_of_any_length_matches_numpy(n: int) -> None:
    x = numbers(2, n)
    check(torch.fft.fft(put(x)), np.fft.fft(wide(x)), n)
    check(torch.fft.ifft(put(x)), np.fft.ifft(wide(x)), n)
    r = numbers(3, n, real=True)
    check(torch.fft.rfft(put(r)), np.fft.rfft(wide(r)), n)
    half = numbers(2, n // 2 + 1)
    check(torch.fft.irfft(put(half), n), np.fft.irfft(wide(half), n), n)
    check(torch.fft.hfft(put(half), n), np.fft.hfft(wide(half), n), n)
    check(torch.fft.ihfft(put(r)), np.fft.ihfft(wide(r)), n)


@pytest.mark.slow
def test_fft_of_three_passes_matches_numpy() -> None:
    n = 1 << 21
    x = numbers(n)
    check(torch.fft.fft(put(x)), np.fft.fft(wide(x)), n)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize(("n", "dim"), [(None, 0), (9, 0), (3, 1), (20, 1), (14, -1), (7, 2)])
def test_fft_norms_lengths_and_dims(n: int | None, dim: int, norm: Any) -> None:
    x = numbers(6, 10, 14)
    turned = put(numbers(14, 10, 6)).transpose(0, 2)
    for name in ("fft", "ifft", "irfft", "hfft"):
        ours, reference = getattr(torch.fft, name), getattr(np.fft, name)
        check(ours(put(x), n, dim, norm), reference(wide(x), n, dim, norm), 20)
    for t in (put(x).real, turned.imag, put(x)[::2, 1:].abs()):
        want = np.fft.rfft(wide(t.cpu().numpy()), n, dim, norm)
        check(torch.fft.rfft(t, n, dim, norm), want, 20)
    strided = put(x)[1::2, :, ::3].transpose(0, 2)
    want = np.fft.fft(wide(strided.cpu().numpy()), n, dim, norm)
    check(torch.fft.fft(strided, n, dim, norm), want, 20)


def test_fft_over_several_dims_matches_numpy() -> None:
    x, r = numbers(4, 6, 35), numbers(4, 6, 35, real=True)
    check(torch.fft.fftn(put(x)), np.fft.fftn(wide(x)), 840)
    check(torch.fft.fft2(put(x)), np.fft.fft2(wide(x)), 210)
    check(torch.fft.ifft2(put(x), (8, 30), (0, 2)), np.fft.ifft2(wide(x), (8, 30), (0, 2)), 240)
    check(torch.fft.rfftn(put(r), norm="ortho"), np.fft.rfftn(wide(r), norm="ortho"), 840)
    half = np.fft.rfftn(wide(r)).astype(np.complex64)
    check(torch.fft.irfftn(put(half), (4, 6, 35)), wide(r), 840)
    check(torch.fft.rfft2(put(r)), np.fft.rfft2(wide(r)), 210)


def test_fft_of_nothing_but_padding_is_zero() -> None:
    x = torch.zeros(3, 0, dtype=torch.complex64, device="wgpu")
    got = torch.fft.fft(x, 5)
    assert got.shape == (3, 5) and not got.cpu().numpy().any()
    assert torch.fft.fft(torch.zeros(0, 4, device="wgpu")).shape == (0, 4)


@pytest.mark.parametrize("n", [6, 7])
def test_fftshift_and_back(n: int) -> None:
    x = numbers(3, n)
    shifted = torch.fft.fftshift(put(x))
    np.testing.assert_array_equal(shifted.cpu().numpy(), np.fft.fftshift(x))
    np.testing.assert_array_equal(torch.fft.ifftshift(shifted).cpu().numpy(), x)


@pytest.mark.parametrize("n", [5, 8, 11, 12, 14])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_gradients_are_those_of_the_cpu(name: str, n: int) -> None:
    real = name in ("rfft", "ihfft")
    x = numbers(2, 9, 3, real=real)

    def gradient(device: str) -> Any:
        t = torch.from_numpy(x).to(device).requires_grad_()
        y = getattr(torch.fft, name)(t, n, 1, "ortho")
        g = numbers(*y.shape, real=not y.is_complex(), seed=1)
        y.backward(torch.from_numpy(g).to(device))
        return t.grad

    check(gradient("wgpu"), wide(gradient("cpu").numpy()), n)


def test_stft_and_back() -> None:
    x = numbers(2, 400, real=True)
    window = torch.hann_window(64)
    ours = torch.stft(put(x), 64, 16, window=window.to("wgpu"), return_complex=True)
    want = torch.stft(torch.from_numpy(x).double(), 64, 16, window=window.double(),
                      return_complex=True)  # fmt: skip
    check(ours, want.numpy(), 64)
    back = torch.istft(ours, 64, 16, window=window.to("wgpu"), length=400)
    np.testing.assert_allclose(back.cpu().numpy(), x, atol=2e-6)


def test_a_line_does_not_depend_on_others() -> None:
    x = numbers(40, 60)
    whole = torch.fft.fft(put(x)).cpu().numpy()
    np.testing.assert_array_equal(torch.fft.fft(put(x[7:9].copy())).cpu().numpy(), whole[7:9])


def test_infinite_and_nan_stay_in_their_line() -> None:
    x = numbers(3, 16)
    x[1, 4] = np.nan
    got = torch.fft.fft(put(x)).cpu().numpy()
    assert np.isnan(got[1]).all() and np.isfinite(got[[0, 2]]).all()
