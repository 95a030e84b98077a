"""The passes of a Fourier transform, run through wgpu-py with none of our code, beside NumPy."""

import numpy as np
import pytest
from shader_runs import C64, C128, F32, F64, f32, needs, run

NONE = 0xFFFFFFFF
PASS = {
    "read": 0, "kept": 0, "x_inner": 1, "x_length": 0, "x_offset": 0, "y_inner": 1, "y_length": 0,
    "y_offset": 0, "x_across": 0, "y_across": 0, "x_half": 0, "y_half": 0, "x_factor": NONE,
    "y_factor": NONE, "conjugates": 0, "low": 0, "high": 0, "bits": 0, "scale": f32(1.0),
}  # fmt: skip


def roots(n, step=1, count=None):
    k = np.arange(n if count is None else count) * step
    return np.exp(-2j * np.pi * k / n).astype(np.complex64)


def one_pass(y, x, table, n, radix, done, each, radices, factors=None, **given):
    """Runs one pass over lines of `n` elements; `radices` are those of its stages."""
    p = PASS | {"read": n, "kept": n, "x_length": n, "y_length": n} | given
    transforms = x.size // p["x_length"] * (n // radix)
    head = [transforms, n, radix, done, each, len(radices)]
    packed = [sum(r << (4 * i) for i, r in enumerate(radices[a : a + 8])) for a in (0, 8)]
    params = [*head, *p.values(), 0, *packed]
    kinds = {"Y": C64 if np.iscomplexobj(y) else F32, "X": C64 if np.iscomplexobj(x) else F32}
    arrays = [y, x, table, table if factors is None else factors]
    groups = (-(-transforms // each), 1, 1)
    return run("fft", "c64", arrays, params, groups, **kinds)[0]


def test_fft_of_float64_parts_matches_numpy():
    needs("c128")
    words = np.array([1.0 / 60]).view(np.uint32)
    rng = np.random.default_rng(5)
    x = rng.standard_normal((5, 60)) + 1j * rng.standard_normal((5, 60))
    k = np.arange(60)
    table = np.exp(-2j * np.pi * k / 60)
    p = PASS | {"read": 60, "kept": 60, "x_length": 60, "y_length": 60, "scale": int(words[0])}
    for kind, y in [(C128, np.zeros_like(x)), (F64, np.zeros((5, 60)))]:
        params = [5, 60, 60, 1, 3, 3, *p.values(), int(words[1]), 4 | 3 << 4 | 5 << 8, 0]
        arrays = [y, x, table, table]
        sizes = {"Y": kind, "X": C128, "MOST": 512}
        got = run("fft", "c128", arrays, params, (2, 1, 1), **sizes)[0]
        want = np.fft.fft(x) / 60
        np.testing.assert_allclose(got, want if kind == C128 else want.real, 1e-13, 1e-15)


def numbers(*shape):
    rng = np.random.default_rng(5)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def close(got, want, n):
    # O(eps log n) of the norm.
    error = np.linalg.norm(got - want) / np.linalg.norm(want)
    assert error <= 1.2e-7 * (1 + np.log2(n)), error


STAGES = {
    1: [], 2: [2], 3: [3], 4: [4], 5: [5], 8: [4, 2], 9: [3, 3], 60: [4, 3, 5], 625: [5] * 4,
    729: [3] * 6, 960: [4, 4, 4, 3, 5], 1024: [4] * 5, 512: [2] * 9,
}  # fmt: skip


@pytest.mark.parametrize("n", STAGES)
def test_fft_of_one_pass_matches_numpy(n):
    x = numbers(5, n)
    each = min(1024 // n, 3)
    got = one_pass(np.zeros_like(x), x, roots(n), n, n, 1, each, STAGES[n])
    close(got, np.fft.fft(x.astype(np.complex128)), n)
    back = one_pass(np.zeros_like(x), x, roots(n), n, n, 1, each, STAGES[n], conjugates=1,
                    scale=f32(1 / n))  # fmt: skip
    close(back, np.fft.ifft(x.astype(np.complex128)), n)


def test_fft_of_lines_across_memory_and_of_real_numbers():
    x = numbers(3, 60, 4).real.copy()
    y = np.zeros((3, 31, 4), np.complex64)
    options = {"x_inner": 4, "y_inner": 4, "y_length": 31, "kept": 31, "x_across": 1, "y_across": 1}
    got = one_pass(y, x, roots(60), 60, 60, 1, 3, STAGES[60], **options)
    close(got, np.fft.rfft(x.astype(float), axis=1), 60)


def test_fft_of_half_a_spectrum_is_real():
    x = numbers(4, 31)
    options = {"x_length": 31, "read": 31, "conjugates": 1, "x_half": 60, "scale": f32(1 / 60)}
    got = one_pass(np.zeros((4, 60), np.float32), x, roots(60), 60, 60, 1, 2, STAGES[60], **options)
    x.imag[:, [0, 30]] = 0
    close(got, np.fft.irfft(x.astype(np.complex128)), 60)


def test_fft_of_two_passes_matches_numpy():
    n, a, b = 2880, 60, 48
    x = numbers(2, n)
    first = one_pass(np.zeros_like(x), x, roots(a), n, a, 1, 17, STAGES[60], x_across=1)
    low = 64
    table = np.concatenate([roots(b), roots(n, count=low), roots(n, low, n // low)])
    got = one_pass(np.zeros_like(x), first, table, n, b, a, 21, [4, 4, 3], x_across=1, y_across=1,
                   low=b, high=b + low, bits=6)  # fmt: skip
    close(got, np.fft.fft(x.astype(np.complex128)), n)


def test_fft_by_factors_of_each_element():
    x, f = numbers(3, 60), numbers(120)
    got = one_pass(np.zeros_like(x), x, roots(60), 60, 60, 1, 2, STAGES[60], f, x_factor=60,
                   y_factor=0, conjugates=6)  # fmt: skip
    want = np.fft.fft(x.astype(np.complex128) * f[60:].conj()) * f[:60].conj()
    close(got, want, 60)
