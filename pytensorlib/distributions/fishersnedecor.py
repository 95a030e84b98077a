"""Fisher and Snedecor's F-distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """Fisher and Snedecor's F-distribution: the ratio of two mean squares of normal numbers.

    Parameters
    ----------
    df1 : float or Tensor
        Degrees of freedom above.
    df2 : float or Tensor
        Degrees of freedom below.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import FisherSnedecor
    >>> FisherSnedecor(torch.tensor([1.0]), torch.tensor([4.0])).mean
    tensor([2.])
    """

    support = constraints.positive
    has_rsample = True
    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    _parts = ("_gamma1", "_gamma2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = pt.where(self.df2 <= 2, math.nan, self.df2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return pt.where(self.df1 <= 2, math.nan, mode)

    @property
    def variance(self) -> Tensor:
        df2 = pt.where(self.df2 <= 4, math.nan, self.df2)
        above = 2 * df2.pow(2) * (self.df1 + df2 - 2)
        return above / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        above = self._gamma1.rsample(sample_shape)
        below = self._gamma2.rsample(sample_shape)
        tiny = pt.finfo(below.dtype).tiny
        below.clamp_(min=tiny)
        ratio = above / below
        ratio.clamp_(min=tiny)
        return ratio

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normalizer = (a + b).lgamma() - a.lgamma() - b.lgamma()
        powers = a * ratio.log() + (a - 1) * pt.log(value)
        return normalizer + powers - (a + b) * pt.log1p(ratio * value)
