"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant, formula, same_as

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution: the largest of many numbers with exponential tails.

    Parameters
    ----------
    loc : float or Tensor
        The mode.
    scale : float or Tensor
        The scale.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> from pytensorlib.distributions import Gumbel
    >>> Gumbel(1.0, 2.0).mean
    tensor(2.1544)
    """

    support = constraints.real
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        finfo = pt.finfo(self.loc.dtype)
        low, high = (pt.full_like(self.loc, x) for x in (finfo.tiny, 1 - finfo.eps))
        # loc - scale log(-log(u))
        steps = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-pt.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=loc, scale=-self.scale),
        ]
        super().__init__(Uniform(low, high, validate_args=validate_args), steps, validate_args)

    mean = formula(lambda d: d.loc + d.scale * euler_constant)
    mode = same_as("loc")
    stddev = formula(lambda d: (math.pi / math.sqrt(6)) * d.scale)
    variance = formula(lambda d: d.stddev.pow(2))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
