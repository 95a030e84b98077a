"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform
from .utils import same_as

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """The logistic-normal distribution: vectors of sum 1, broken off a stick by normal numbers.

    Parameters
    ----------
    loc : float or Tensor
        The means, of shape (..., K - 1).
    scale : float or Tensor
        The standard deviations.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import LogisticNormal
    >>> LogisticNormal(torch.zeros(3), torch.ones(3)).event_shape
    torch.Size([4])
    """

    support = constraints.simplex
    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = same_as("base_dist.base_dist.loc", "The means.")
    scale = same_as("base_dist.base_dist.scale", "The standard deviations.")
