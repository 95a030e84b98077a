"""Special functions of one or two numbers, beside SciPy's and PyTorch's answers."""

from __future__ import annotations

import pytest

import pytensorlib as torch

inf, nan = float("inf"), float("nan")


@pytest.mark.parametrize("dtype", [torch.float32, torch.int16])
def test_logit_with_eps_nan_bounds_nothing(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1], dtype=dtype)
    assert torch.logit(x, nan).tolist() == [-inf, inf]
    y = torch.tensor([0.25], requires_grad=True)
    torch.logit(y, nan).backward()
    assert y.grad is not None
    assert y.grad.item() == pytest.approx(1 / (0.25 * 0.75))


def test_functions_of_integers_are_as_exact_as_of_their_float32() -> None:
    # SciPy's, in float64; PyTorch's are wrong in the second digit.
    got = torch.special.airy_ai(torch.tensor([-32768], dtype=torch.int16))
    assert got.item() == pytest.approx(-0.03453066, rel=1e-4)
    got = torch.special.bessel_y1(torch.tensor([1_000_000], dtype=torch.int32))
    assert got.item() == pytest.approx(-3.31043377e-04, rel=1e-4)


def test_incomplete_gamma_function_of_nan_is_nan() -> None:
    # PyTorch looks at the 0 first.
    for f in (torch.igamma, torch.igammac):
        assert f(torch.tensor(nan), torch.tensor(0)).isnan()
        assert f(torch.tensor(0.5), torch.tensor(nan)).isnan()


@pytest.mark.parametrize("a", [50.0, 1e5, 2e7, 1e10, 1e30])
@pytest.mark.parametrize("steps", [-1.0, 0.0, 1.0, 6.0])
def test_incomplete_gamma_of_large_numbers_is_near_the_normal_distribution(
    a: float, steps: float
) -> None:
    special = pytest.importorskip("scipy.special")
    x = a + steps * a**0.5
    pair = [torch.tensor(v, dtype=torch.float64) for v in (a, x)]
    got = [f(*pair).item() for f in (torch.igamma, torch.igammac)]
    want = [f(a, x) for f in (special.gammainc, special.gammaincc)]
    assert got == pytest.approx(want, rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("a", [2e7, 1e10])
def test_incomplete_gamma_far_below_a_large_number_is_the_normal_tail(a: float) -> None:
    special = pytest.importorskip("scipy.special")  # its own gammainc is wrong there
    pair = [torch.tensor(v, dtype=torch.float64) for v in (a, a - 6 * a**0.5)]
    assert torch.igamma(*pair).item() == pytest.approx(special.ndtr(-6.0), rel=0.03)
