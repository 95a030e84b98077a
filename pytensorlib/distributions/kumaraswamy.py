"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant, formula

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution over [0, 1], whose `cdf` is 1 - (1 - x^a)^b.

    Parameters
    ----------
    concentration1 : float or Tensor
        a.
    concentration0 : float or Tensor
        b.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Kumaraswamy
    >>> Kumaraswamy(torch.tensor([1.0]), torch.tensor([3.0])).mean
    tensor([0.2500])
    """

    support = constraints.unit_interval
    has_rsample = True
    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        a, b = broadcast_all(concentration1, concentration0)
        self.concentration1, self.concentration0 = a, b
        base = Uniform(pt.zeros_like(b), pt.ones_like(b), validate_args=validate_args)
        steps = [
            PowerTransform(exponent=b.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=a.reciprocal()),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * pt.exp(pt.lgamma(a) + pt.lgamma(b) - pt.lgamma(a + b))

    mean = formula(lambda d: d._moment(1))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        logs = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return pt.where((b < 1) | (a < 1), math.nan, logs).exp()

    variance = formula(lambda d: d._moment(2) - pt.pow(d.mean, 2))

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = pt.digamma(b + 1) + euler_constant
        whole = (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic
        return whole - pt.log(a) - pt.log(b)
