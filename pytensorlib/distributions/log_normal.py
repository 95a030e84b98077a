"""The log-normal distribution."""

from __future__ import annotations

from typing import Any

from pytensorlib import Tensor

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import formula, same_as

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The log-normal distribution: e to the power of a normal number.

    Parameters
    ----------
    loc : float or Tensor
        The mean of the logarithm.
    scale : float or Tensor
        The standard deviation of the logarithm.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> from pytensorlib.distributions import LogNormal
    >>> LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    support = constraints.positive
    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    loc = same_as("base_dist.loc", "The mean of the logarithm.")
    scale = same_as("base_dist.scale", "The standard deviation of the logarithm.")
    mean = formula(lambda d: (d.loc + d.scale.pow(2) / 2).exp())
    mode = formula(lambda d: (d.loc - d.scale.square()).exp())

    @property
    def variance(self) -> Tensor:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
