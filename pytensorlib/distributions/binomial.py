"""The binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from ._odds import Odds
from .distribution import Distribution
from .utils import formula

__all__ = ["Binomial"]


def _clamp_by_zero(x: Tensor) -> Tensor:
    """Return `max(x, 0)` with a slope of one half at 0."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(Odds, Distribution):
    """The binomial distribution: the number of successes in `total_count` trials.

    Parameters
    ----------
    total_count : int or Tensor
        The number of trials.
    probs : float or Tensor, optional
        Probabilities.
    logits : float or Tensor, optional
        Log-odds; exactly one of the two is given.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Binomial
    >>> Binomial(4, torch.tensor([0.25, 0.5])).mean
    tensor([1., 2.])
    """

    has_enumerate_support = True
    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._take(probs, logits, total_count)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    mean = formula(lambda d: d.total_count * d.probs)
    mode = formula(lambda d: ((d.total_count + 1) * d.probs).floor().clamp(max=d.total_count))
    variance = formula(lambda d: d.total_count * d.probs * (1 - d.probs))

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with pt.no_grad():
            return pt.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, logits = self.total_count, self.logits
        normalizer = (
            n * _clamp_by_zero(logits) + n * pt.log1p(pt.exp(-pt.abs(logits))) - pt.lgamma(n + 1)
        )
        orders = pt.lgamma(value + 1), pt.lgamma(n - value + 1)
        return value * logits - orders[0] - orders[1] - normalizer

    def _one_count(self, name: str) -> int:
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{name}`.")
        return count

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(pt.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._numbered(1 + self._one_count("enumerate_support"), self._param, expand)
