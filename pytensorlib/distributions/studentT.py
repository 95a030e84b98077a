"""Student's t-distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all, formula, same_as

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t-distribution: a normal number over the root of a chi-squared one's mean square.

    Parameters
    ----------
    df : float or Tensor
        Degrees of freedom.
    loc : float or Tensor
        The middle.
    scale : float or Tensor
        What the numbers are multiplied by.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import StudentT
    >>> StudentT(torch.tensor([3.0])).variance
    tensor([3.])
    """

    support = constraints.real
    has_rsample = True
    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    _parts = ("_chi2",)

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    mean = formula(lambda d: pt.where(d.df <= 1, math.nan, d.loc))
    mode = same_as("loc")

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        df = pt.where(finite, self.df, 3.0)
        fat = pt.where(self.df > 1, math.inf, math.nan)
        return pt.where(finite, self.scale.pow(2) * df / (df - 2), fat).type_as(self.df)

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * pt.rsqrt(z / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + pt.lgamma(0.5 * self.df)
            - pt.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * pt.log1p(y**2.0 / self.df) - normalizer

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = pt.lgamma(half) + math.lgamma(0.5) - pt.lgamma(more)
        slope = more * (pt.digamma(more) - pt.digamma(half))
        return self.scale.log() + slope + 0.5 * self.df.log() + log_beta
