"""Complex numbers on the GPU, with no operator run on the CPU, beside NumPy in complex128."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import wgpu

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]


def numbers(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return z.astype(np.complex64)


# The call and the same over NumPy's arrays.
CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda a, b: torch.add(a, b, alpha=2), lambda a, b: a + 2 * b),
    "sub": (lambda a, b: a - b, lambda a, b: a - b),
    "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "div": (lambda a, b: a / b, lambda a, b: a / b),
    "number": (lambda a, b: a * (2 - 3j) + 1, lambda a, b: a * (2 - 3j) + 1),
    "real_number": (lambda a, b: 2 * a - 0.5, lambda a, b: 2 * a - 0.5),
    "neg": (lambda a, b: -a, lambda a, b: -a),
    "conj": (lambda a, b: a.conj().resolve_conj() * b, lambda a, b: np.conj(a) * b),
    "abs": (lambda a, b: a.abs(), lambda a, b: np.abs(a)),
    "sgn": (lambda a, b: a.sgn(), lambda a, b: a / np.abs(a)),
    "broadcast": (lambda a, b: a * b[0], lambda a, b: a * b[0]),
    "transposed": (lambda a, b: a.t() + b.t(), lambda a, b: a.T + b.T),
    "with_real": (lambda a, b: a * b.real, lambda a, b: a * b.real),
    "square": (lambda a, b: a.square(), lambda a, b: a * a),
    "reciprocal": (lambda a, b: a.reciprocal(), lambda a, b: 1 / a),
}


@pytest.mark.parametrize("name", CALLS)
def test_matches_numpy(name: str) -> None:
    ours, reference = CALLS[name]
    a, b = numbers(7, 65), numbers(7, 65, seed=1)
    got = ours(torch.from_numpy(a).to("wgpu"), torch.from_numpy(b).to("wgpu"))
    assert got.device.type == "wgpu"
    want = reference(a.astype(np.complex128), b.astype(np.complex128))
    assert got.dtype.is_complex == np.iscomplexobj(want)
    np.testing.assert_allclose(got.cpu().numpy(), want, rtol=2e-6, atol=1e-6)


def test_comparison() -> None:
    a = numbers(5, 33)
    b = np.where(np.arange(33) % 3 == 0, a, a.conj())
    x, y = torch.from_numpy(a).to("wgpu"), torch.from_numpy(b).to("wgpu")
    assert ((x == y).cpu().numpy() == (a == b)).all()
    assert ((x != y).cpu().numpy() == (a != b)).all()


def test_gradients_are_conjugate() -> None:
    a, b = numbers(4, 6), numbers(4, 6, seed=1)
    x = torch.from_numpy(a).to("wgpu").requires_grad_()
    y = torch.from_numpy(b).to("wgpu").requires_grad_()
    (x * y).backward(torch.ones_like(x.detach()))
    # d(xy) = y dx + x dy, and PyTorch's gradient is the conjugate.
    np.testing.assert_allclose(x.grad.cpu().numpy(), b.conj(), rtol=1e-6)
    np.testing.assert_allclose(y.grad.cpu().numpy(), a.conj(), rtol=1e-6)
