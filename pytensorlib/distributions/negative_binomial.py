"""The negative binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from ..nn import functional as F
from . import constraints
from ._odds import Odds
from .distribution import Distribution
from .gamma import Gamma
from .utils import formula, lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Odds, Distribution):
    """The negative binomial distribution: the number of successes before `total_count` failures.

    Parameters
    ----------
    total_count : float or Tensor
        The number of failures that end the trials; it need not be whole.
    probs : float or Tensor, optional
        Probabilities of success.
    logits : float or Tensor, optional
        Log-odds of success; exactly one of the two is given.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import NegativeBinomial
    >>> NegativeBinomial(torch.tensor([4.0]), torch.tensor([0.5])).mean
    tensor([4.])
    """

    support = constraints.nonnegative_integer
    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._take(probs, logits, total_count)
        super().__init__(self._param.size(), validate_args=validate_args)

    mean = formula(lambda d: d.total_count * pt.exp(d.logits))
    mode = formula(lambda d: ((d.total_count - 1) * d.logits.exp()).floor().clamp(min=0.0))
    variance = formula(lambda d: d.mean / pt.sigmoid(-d.logits))

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(self.total_count, pt.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        with pt.no_grad():
            return pt.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        powers = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        normalizer = -pt.lgamma(n + value) + pt.lgamma(1.0 + value) + pt.lgamma(n)
        # Of no failures, nothing is certain.
        return powers - normalizer.masked_fill(n + value == 0.0, 0.0)
