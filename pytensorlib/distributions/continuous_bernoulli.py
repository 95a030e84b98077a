"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._odds import Odds
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, formula, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Odds, ExponentialFamily):
    """The continuous Bernoulli distribution over [0, 1]: densities like p^x (1-p)^(1-x).

    Loaiza-Ganem and Cunningham 2019, arXiv:1907.06845. Near p = 0.5, where the formulas lose their
    digits, Taylor series stand in.

    Parameters
    ----------
    probs : float or Tensor, optional
        Probabilities.
    logits : float or Tensor, optional
        Log-odds; exactly one of the two is given.
    lims : tuple of float
        Between these probabilities series are used.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import ContinuousBernoulli
    >>> ContinuousBernoulli(0.25).mean
    tensor(0.4102)
    """

    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        if probs is not None:
            valid = constraints.unit_interval.check(self.probs)
            if validate_args is not None and not valid.all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        return pt.where(self._outside_unstable_region(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        p = self._cut_probs()
        low = p <= 0.5
        distance = pt.where(
            low,
            pt.log1p(-2.0 * pt.where(low, p, 0.0)),
            pt.log(2.0 * pt.where(p >= 0.5, p, 1.0) - 1.0),
        )
        exact = pt.log(pt.abs(pt.log1p(-p) - pt.log(p))) - distance
        x = pt.pow(self.probs - 0.5, 2)
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return pt.where(self._outside_unstable_region(), exact, series)

    @property
    def mean(self) -> Tensor:
        p = self._cut_probs()
        exact = p / (2.0 * p - 1.0) + 1.0 / (pt.log1p(-p) - pt.log(p))
        x = self.probs - 0.5
        series = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * pt.pow(x, 2)) * x
        return pt.where(self._outside_unstable_region(), exact, series)

    stddev = formula(lambda d: pt.sqrt(d.variance))

    @property
    def variance(self) -> Tensor:
        p = self._cut_probs()
        odds = pt.pow(pt.log1p(-p) - pt.log(p), 2)
        exact = p * (p - 1.0) / pt.pow(1.0 - 2.0 * p, 2) + 1.0 / odds
        x = pt.pow(self.probs - 0.5, 2)
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return pt.where(self._outside_unstable_region(), exact, series)

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        with pt.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(pt.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        cross = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return -cross + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        p = self._cut_probs()
        exact = pt.pow(p, value) * pt.pow(1.0 - p, 1.0 - value) + p - 1.0
        inside = pt.where(self._outside_unstable_region(), exact / (2.0 * p - 1.0), value)
        ends = pt.where(value >= 1.0, 1.0, inside)
        return pt.where(value <= 0.0, 0.0, ends)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut_probs()
        below = pt.log1p(-p)
        exact = (pt.log1p(-p + value * (2.0 * p - 1.0)) - below) / (pt.log(p) - below)
        return pt.where(self._outside_unstable_region(), exact, value)

    def entropy(self) -> Tensor:
        log0, log1 = pt.log1p(-self.probs), pt.log(self.probs)
        return self.mean * (log0 - log1) - self._cont_bern_log_norm() - log0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        low, high = (p - 0.5 for p in self._lims)
        outside = (x <= low) | (x > high)
        cut = pt.where(outside, x, low)
        exact = pt.log(pt.abs(pt.special.expm1(cut))) - pt.log(pt.abs(cut))
        series = 0.5 * x + pt.pow(x, 2) / 24.0 - pt.pow(x, 4) / 2880.0
        return pt.where(outside, exact, series)
