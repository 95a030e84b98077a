"""Functions of complex numbers and their gradients: cuts, infinities, formulas, differences."""

from __future__ import annotations

import cmath
import math
import warnings
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F

inf, nan = float("inf"), float("nan")


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_nan_to_num_replaces_each_part(dtype: torch.dtype) -> None:
    top = torch.finfo(dtype).max
    x = torch.tensor([1 + 2j, complex(nan, 1), complex(inf, -inf), complex(0, nan)], dtype=dtype)
    assert torch.nan_to_num(x).tolist() == [1 + 2j, 1j, complex(top, -top), 0]
    want = [1 + 2j, 7 + 1j, 2 - 3j, 7j]
    assert torch.nan_to_num(x, nan=7.0, posinf=2.0, neginf=-3.0).tolist() == want
    out = torch.empty(0, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.nan_to_num(x, 7.0, 2.0, -3.0, out=out)
    assert out.tolist() == want
    assert x[::2].nan_to_num_(7.0, 2.0, -3.0).tolist() == want[::2]
    z = torch.tensor([1 + 2j, complex(nan, 1)], dtype=dtype, requires_grad=True)
    torch.nan_to_num(z).abs().sum().backward()
    assert z.grad is not None
    assert z.grad[0].item() == pytest.approx((1 + 2j) / math.sqrt(5), rel=1e-6)
    assert z.grad[1].item() == 0


def test_complex_ldexp_and_logaddexp_are_their_formulas() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2, 40)) + 1j * rng.uniform(-1, 1, (2, 40))).reshape(2, 40)
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    np.testing.assert_allclose(torch.ldexp(x, y).numpy(), a * 2**b, rtol=1e-12)
    n = torch.arange(40) % 7 - 3
    np.testing.assert_allclose(torch.ldexp(x, n).numpy(), a * 2.0 ** n.numpy(), rtol=1e-12)
    want = np.log(np.exp(a) + np.exp(b))
    np.testing.assert_allclose(torch.logaddexp(x, y).numpy(), want, rtol=1e-12)
    big = torch.tensor([1000 + 1j, inf, -inf], dtype=torch.complex128)
    got = torch.logaddexp(big, big)
    assert got[0].item() == pytest.approx(1000 + math.log(2) + 1j)
    assert got[1:].tolist() == [inf, -inf]
    out = torch.empty(40, dtype=torch.complex128)
    torch.logaddexp(x, y, out=out)
    assert out.equal(torch.logaddexp(x, y))
    for f in (torch.ldexp, torch.logaddexp):
        inputs = [t[:4].clone().requires_grad_() for t in (x, y)]
        assert torch.autograd.gradcheck(f, inputs)
        assert torch.autograd.gradgradcheck(f, inputs)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_sinc_is_its_formula(dtype: torch.dtype) -> None:
    z = [0.3 + 0.2j, -1.5 + 1j, 2j, 0.01 - 0.01j, 0, 1]
    x = torch.tensor(z, dtype=dtype, requires_grad=dtype == torch.complex128)
    want = [np.sin(np.pi * v) / (np.pi * v) if v else 1 for v in z]
    rtol = 1e-5 if dtype == torch.complex64 else 1e-12
    np.testing.assert_allclose(torch.sinc(x).detach().numpy(), want, rtol=rtol, atol=rtol)
    if x.requires_grad:
        assert torch.autograd.gradcheck(torch.sinc, [x])
        assert torch.autograd.gradgradcheck(torch.sinc, [x])


@pytest.mark.parametrize("dim", [0, -1])
def test_cumprod_of_complex_numbers_is_numpys_and_has_its_gradient(dim: int) -> None:
    rng = np.random.default_rng(5)
    a = rng.standard_normal((4, 3)) + 1j * rng.standard_normal((4, 3))
    a[1, 1] = 0
    x = torch.tensor(a, requires_grad=True)
    np.testing.assert_allclose(torch.cumprod(x, dim).detach().numpy(), np.cumprod(a, dim))
    assert torch.cumprod(x.to(torch.complex64), dim).dtype == torch.complex64
    assert torch.autograd.gradcheck(lambda x: torch.cumprod(x, dim), x)
    assert torch.autograd.gradgradcheck(lambda x: torch.cumprod(x, dim), x)


@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_logsumexp_of_complex_numbers_is_the_logarithm_of_the_sum(dim: int) -> None:
    rng = np.random.default_rng(6)
    a = rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))
    x = torch.tensor(a, requires_grad=True)
    want = np.log(np.exp(a).sum(dim, keepdims=True))
    np.testing.assert_allclose(torch.logsumexp(x, dim, keepdim=True).detach().numpy(), want)
    far = torch.logsumexp(x + 800, dim).detach().numpy()
    np.testing.assert_allclose(far, want.reshape(far.shape) + 800)
    assert torch.autograd.gradcheck(lambda x: torch.logsumexp(x, dim), x)


def test_complex_numbers_pass_where_they_were_refused() -> None:
    z = torch.tensor([[3 + 4j, 0j], [1j, 2 + 0j]])
    out = torch.zeros(2, 2, dtype=torch.complex64)
    assert torch.abs(z, out=out).tolist() == [[5, 0], [1, 2]]
    near = F.pairwise_distance(z, torch.zeros_like(z), eps=0)
    assert near.tolist() == pytest.approx([5, math.sqrt(5)])
    x = torch.tensor([1 + 1j, 2 - 1j, 3j], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: x.as_strided((2, 2), (1, 1)), x)


INF, NAN = math.inf, math.nan


def same_number(got: float, want: float) -> bool:
    """Whether two floats agree, zeros and infinities with their signs."""
    if math.isnan(want):
        return math.isnan(got)
    if want == 0 or math.isinf(want):
        return got == want and math.copysign(1, got) == math.copysign(1, want)
    return abs(got - want) <= 1e-12 * max(1, abs(want))


PARTS = [0.0, -0.0, 1e-200, -1e-200, 0.3, -0.3, 1.0, -1.0, 2.0, -2.0, 25.0, -25.0]

LARGE = [720.0, -720.0, 1e200, -1e200, INF, -INF]

INVERSES = ["sqrt", "log", "log10", "asin", "acos", "atan", "asinh", "acosh", "atanh"]

FORWARDS = ["exp", "sin", "cos", "tan", "sinh", "cosh", "tanh"]


@pytest.mark.parametrize("name", INVERSES + FORWARDS)
def test_complex_functions_keep_to_their_side_of_a_cut(name: str) -> None:
    # Python's functions are those of C's Annex G: defined at signed zeros and infinities.
    parts = PARTS + (LARGE if name in INVERSES else [INF, -INF])
    grid = [complex(x, y) for x in parts for y in parts]
    got = getattr(torch, name)(torch.tensor(grid, dtype=torch.complex128)).tolist()
    checked = 0
    for z, w in zip(grid, got, strict=True):
        try:
            want = getattr(cmath, name)(z)
        except (ValueError, OverflowError):
            continue
        if cmath.isinf(z) and not cmath.isfinite(want) and name in FORWARDS:
            # The sign of an infinity or of a zero beside it is not determined.
            assert cmath.isnan(w) == cmath.isnan(want), (z, w, want)
            continue
        if cmath.isinf(z) and name in ("tan", "tanh"):
            assert w == want, (z, w, want)
            continue
        assert same_number(w.real, want.real) and same_number(w.imag, want.imag), (z, w, want)
        checked += 1
    assert checked >= 140


@pytest.mark.parametrize(
    ("name", "z", "want"),
    [
        ("asin", 2 + 0j, 1.5707963267948966 + 1.3169578969248166j),
        ("acos", 2 + 0j, complex(0, -1.3169578969248166)),
        ("atan", complex(INF, 0), 1.5707963267948966 + 0j),
        ("atanh", 1 + 0j, complex(INF, 0)),
        ("atanh", complex(-1, -0.0), complex(-INF, -0.0)),
        ("log2", 0j, complex(-INF, 0)),
        ("exp2", complex(INF, 0), complex(INF, 0)),
        ("log1p", complex(-1, 0), complex(-INF, 0)),
        ("expm1", complex(800, 0), complex(INF, 0)),
        ("sqrt", complex(1e308, 1e308), complex(1.09868411346781e154, 4.5508986056222735e153)),
    ],
)
def test_complex_functions_at_one_number(name: str, z: complex, want: complex) -> None:
    got = getattr(torch, name)(torch.tensor(z, dtype=torch.complex128)).item()
    assert same_number(got.real, want.real) and same_number(got.imag, want.imag), got


def numerical(f: Any, z: Any, eps: float = 1e-6) -> Any:
    """Return the gradient of a real function of complex numbers, d/dx + i d/dy, by differences."""
    out = torch.zeros_like(z)
    for i in range(z.numel()):
        for part in (1, 1j):
            step = torch.zeros_like(z)
            step[i] = part * eps
            out[i] += part * (f(z + step) - f(z - step)).item() / (2 * eps)
    return out


Z = torch.tensor([1.5 - 0.5j, -0.3 + 0.8j, 2j, -1.0], dtype=torch.complex128)

W = torch.tensor([0.7 + 1.1j, -1.2 + 0.4j, 0.3 - 0.9j, 1.0 + 0.5j], dtype=torch.complex128)


def slope_of_size(z: Any) -> Any:
    """Return a real number made of the gradient of a sum of sizes."""
    if not z.requires_grad:
        z = z.detach().requires_grad_()
    (g,) = torch.autograd.grad((z * z).abs().pow(1.5).sum(), z, create_graph=True)
    return (g * W).real.sum()


@pytest.mark.parametrize(
    "f",
    [
        lambda z: (z.sgn() * W).real.sum(),
        lambda z: (z.sgn() * z.conj() * z).imag.pow(2).sum(),
        slope_of_size,
    ],
)
def test_gradient_of_the_direction_of_complex_numbers_is_that_of_differences(f: Any) -> None:
    z = Z.clone().requires_grad_()
    (got,) = torch.autograd.grad(f(z), z)
    assert torch.allclose(got, numerical(lambda z: f(z).detach(), Z), rtol=1e-6, atol=1e-7)


def test_direction_of_zero_has_gradient_zero_of_every_order() -> None:
    z = torch.zeros(2, dtype=torch.complex128, requires_grad=True)
    (g,) = torch.autograd.grad(z.sgn().real.sum(), z, create_graph=True)
    (h,) = torch.autograd.grad(g.abs().sum(), z)
    assert g.tolist() == h.tolist() == [0, 0]


@pytest.mark.parametrize("p", [1, 2, 3, math.inf])
def test_norms_of_complex_numbers_have_second_derivatives(p: float) -> None:
    def f(z: Any) -> Any:
        z = z if z.requires_grad else z.detach().requires_grad_()
        (g,) = torch.autograd.grad(torch.linalg.vector_norm(z, p), z, create_graph=True)
        return (g * W).real.sum()

    z = Z.clone().requires_grad_()
    (got,) = torch.autograd.grad(f(z), z)
    assert torch.allclose(got, numerical(lambda z: f(z).detach(), Z), rtol=1e-5, atol=1e-6)
