"""Functions of complex numbers on the GPU, with no operator run on the CPU, beside NumPy in
complex128 and, at infinities, NaN and zeros, the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import _C, wgpu
from pytensorlib.nn import functional as F

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]


def numbers(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return z.astype(np.complex64)


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "exp": (torch.exp, np.exp),
    "expm1": (torch.expm1, np.expm1),
    "exp2": (torch.exp2, np.exp2),
    "log": (torch.log, np.log),
    "log2": (torch.log2, np.log2),
    "log10": (torch.log10, np.log10),
    "log1p": (torch.log1p, np.log1p),
    "sqrt": (torch.sqrt, np.sqrt),
    "rsqrt": (torch.rsqrt, lambda z: 1 / np.sqrt(z)),
    "sin": (torch.sin, np.sin),
    "cos": (torch.cos, np.cos),
    "tan": (torch.tan, np.tan),
    "sinh": (torch.sinh, np.sinh),
    "cosh": (torch.cosh, np.cosh),
    "tanh": (torch.tanh, np.tanh),
    "asin": (torch.asin, np.arcsin),
    "acos": (torch.acos, np.arccos),
    "atan": (torch.atan, np.arctan),
    "asinh": (torch.asinh, np.arcsinh),
    "acosh": (torch.acosh, np.arccosh),
    "atanh": (torch.atanh, np.arctanh),
    "sigmoid": (torch.sigmoid, sigmoid),
    "silu": (F.silu, lambda z: z * sigmoid(z)),
    "reciprocal": (torch.reciprocal, lambda z: 1 / z),
    "square": (torch.square, lambda z: z * z),
    "sgn": (torch.sgn, lambda z: z / np.abs(z)),
    "angle": (torch.angle, np.angle),
    "abs": (torch.abs, np.abs),
    "sinc": (torch.sinc, np.sinc),
    "power": (lambda z: z**2.5, lambda z: z**2.5),
    "power_of_complex": (lambda z: z ** (1 - 2j), lambda z: z ** (1 - 2j)),
    "small_powers": (lambda z: z**3 + z**-2 + z**0.5, lambda z: z**3 + z**-2.0 + z**0.5),
    "number_to_a_power": (lambda z: 2.5**z, lambda z: 2.5**z),
    "powers_of_each_other": (lambda z: torch.pow(z, z.flip(0)), lambda z: z ** z[::-1]),
    "nan_to_num": (torch.nan_to_num, lambda z: z),
    "logaddexp": (
        lambda z: torch.logaddexp(z, 0.25 * z),
        lambda z: np.log(np.exp(z) + np.exp(0.25 * z)),
    ),
}  # fmt: skip
REAL = {"angle", "abs"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_matches_numpy(name: str) -> None:
    ours, reference = FUNCTIONS[name]
    z = numbers(6, 67)
    got = ours(torch.from_numpy(z).to("wgpu"))
    assert got.device.type == "wgpu" and got.dtype.is_complex == (name not in REAL)
    want = reference(z.astype(np.complex128))
    np.testing.assert_allclose(got.cpu().numpy(), want, rtol=3e-6, atol=2e-6)
    # Elements anywhere in memory.
    turned = ours(torch.from_numpy(z).to("wgpu").t()[::2])
    if name != "powers_of_each_other":
        np.testing.assert_array_equal(turned.cpu().numpy(), got.t()[::2].cpu().numpy())


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"nan_to_num", "silu", "sgn"}))
def test_gradients_are_those_of_complex128(name: str) -> None:
    ours = FUNCTIONS[name][0]
    z = numbers(5, 8)
    g = numbers(5, 8, seed=1)

    def gradient(device: str, dtype: Any) -> Any:
        x = torch.from_numpy(z).to(device, dtype).requires_grad_()
        y = ours(x)
        other = torch.from_numpy(g).to(dtype).to(device)
        y.backward(other.real if name in REAL else other)
        return x.grad.cpu().numpy()

    want = gradient("cpu", torch.complex128)
    error = np.abs(gradient("wgpu", torch.complex64) - want) / (1 + np.abs(want))
    assert error.max() <= 1e-5


ENDS = [0.0, -0.0, 0.5, -1.0, 3e38, 1e-40, np.inf, -np.inf, np.nan]
# What PyTorch has of these is what the compiler's arithmetic of infinite parts gives.
OPEN = {"sigmoid", "silu", "rsqrt", "reciprocal", "square", "sgn", "sinc", "logaddexp"}
OPEN |= {"power", "power_of_complex", "small_powers", "number_to_a_power", "powers_of_each_other"}


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - OPEN))
def test_infinities_nan_and_zeros_are_those_of_the_cpu(name: str) -> None:
    ours = FUNCTIONS[name][0]
    # Angles so large that no shader tells them from others.
    ends = [v for v in ENDS if name != "exp2" or v != 3e38]
    z = np.array([complex(*p) for p in product(ends, ends)], np.complex64)
    got = ours(torch.from_numpy(z).to("wgpu")).cpu().numpy()
    want = ours(torch.from_numpy(z)).numpy()
    for part in ("real", "imag"):
        a, b = getattr(got, part), getattr(want, part)
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-38, err_msg=f"{part} of {z}")
    if name in ("sqrt", "log", "asinh", "atanh", "sinh", "tanh"):
        known = ~(np.isnan(want.imag) | np.isnan(z.real))
        assert (np.signbit(got.imag) == np.signbit(want.imag))[known].all()


def test_tests_of_each_part() -> None:
    z = np.array([complex(*p) for p in product(ENDS, ENDS)], np.complex64)
    x = torch.from_numpy(z).to("wgpu")
    for ours, reference in [
        (torch.isnan, np.isnan), (torch.isinf, np.isinf), (torch.isfinite, np.isfinite)
    ]:  # fmt: skip
        assert (ours(x).cpu().numpy() == reference(z)).all(), ours
        assert (ours(torch.from_numpy(z)).numpy() == reference(z)).all(), ours


def chain(z: Any, w: Any) -> Any:
    y = torch.exp(z * w).sin() + z.conj() * 2
    y = torch.where(y.abs() > 1, y.log(), y * 1j)
    return (y.sqrt() - w).tanh() * y.abs()


def test_functions_that_run_as_one_give_the_same_bits() -> None:
    z, w = (torch.from_numpy(numbers(9, 50, seed=s)).to("wgpu") for s in (0, 1))
    results = []
    for on in (True, False):
        before = _C._wgpu_set_fuse(0, on)
        try:
            count = wgpu.memory_stats()["dispatches"]
            y = torch.view_as_real(chain(z, w)).cpu().numpy()
            results.append((wgpu.memory_stats()["dispatches"] - count, y.tobytes()))
        finally:
            _C._wgpu_set_fuse(0, before)
    (together, fused), (apart, single) = results
    assert fused == single
    assert together < apart
