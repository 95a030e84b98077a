"""Transforms of distributions: inverses, volumes, and the sets that they lead to."""

from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import distributions as dist
from pytensorlib.distributions import biject_to, constraints, transform_to

NAMES = {n: getattr(dist, n) for n in dist.__all__}


def t(*v: Any) -> torch.Tensor:
    return torch.tensor(v[0] if len(v) == 1 else v, dtype=torch.float64)


def made(text: str) -> Any:
    return eval(text, {**NAMES, "t": t})


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-8, atol=1e-8)


UNARY = [
    "ExpTransform()",
    "PowerTransform(t(2.0))",
    "SigmoidTransform()",
    "SoftplusTransform()",
    "TanhTransform()",
    "AffineTransform(t(1.0), t(-2.0))",
    "ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)])",
    "ExpTransform().inv",
    "CumulativeDistributionTransform(Normal(t(0.0), t(1.0)))",
]


@pytest.mark.parametrize("text", UNARY)
def test_transform_comes_back_and_knows_its_volume(text: str) -> None:
    f, x = made(text), t(0.3, 0.7, 1.6).requires_grad_()
    y = f(x)
    close(f.inv(y).detach(), x.detach())
    (slope,) = torch.autograd.grad(y.sum(), x)
    close(f.log_abs_det_jacobian(x, y).detach(), slope.abs().log())
    close(f.inv.log_abs_det_jacobian(y, x).detach(), -slope.abs().log())
    close((slope.sign() == torch.as_tensor(f.sign)).double(), np.ones(3))
    cached = f.with_cache(1) if "Compose" not in text else f.with_cache(1).parts[0]
    z = cached(x)
    assert cached.inv(z) is x
    assert f == f  # noqa: PLR0124
    assert f.inv.inv == f


@pytest.mark.parametrize(
    ("text", "shape"),
    [("StickBreakingTransform()", (3,)), ("CorrCholeskyTransform()", (3,))],
)
def test_transform_of_vectors_knows_its_volume(text: str, shape: tuple[int, ...]) -> None:
    f, x = made(text), t(0.3, -0.7, 1.6)
    y = f(x)
    assert f.codomain.check(y).all()
    assert f.forward_shape(x.shape) == y.shape
    assert f.inverse_shape(y.shape) == x.shape
    close(f.inv(y), x)
    # The free coordinates: all but the last, or those below the diagonal.
    free = (lambda x: f(x)[..., :-1]) if "Stick" in text else (lambda x: f(x)[[1, 2, 2], [0, 0, 1]])
    jacobian = torch.autograd.functional.jacobian(free, x)
    close(f.log_abs_det_jacobian(x, y), torch.linalg.slogdet(jacobian).logabsdet)


@pytest.mark.parametrize("registry", [biject_to, transform_to])
@pytest.mark.parametrize(
    "constraint",
    [
        constraints.real,
        constraints.positive,
        constraints.nonnegative,
        constraints.greater_than(2.0),
        constraints.less_than(-1.0),
        constraints.unit_interval,
        constraints.interval(-1.0, 3.0),
        constraints.half_open_interval(-1.0, 3.0),
        constraints.simplex,
        constraints.corr_cholesky,
        constraints.lower_cholesky,
        constraints.positive_definite,
        constraints.independent(constraints.positive, 1),
        constraints.cat([constraints.positive, constraints.unit_interval], dim=-1, lengths=[2, 1]),
        constraints.stack([constraints.positive, constraints.unit_interval, constraints.real], -1),
    ],
    ids=repr,
)
def test_registered_transform_leads_into_its_set(registry: Any, constraint: Any) -> None:
    matrix = constraint in {constraints.lower_cholesky, constraints.positive_definite}
    if matrix and registry is biject_to:
        with pytest.raises(NotImplementedError, match="Cannot transform"):
            registry(constraint)
        return
    f = registry(constraint)
    torch.manual_seed(0)
    shape = (4, 3, 3) if matrix else (4, 3)
    x = torch.randn(shape, dtype=torch.float64)
    y = f(x)
    assert constraint.check(y).all()
    assert registry is transform_to or f.bijective
    close(f(f.inv(y)), y)
    assert f.forward_shape(x.shape) == y.shape
