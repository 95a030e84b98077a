"""The Bernoulli distribution."""

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
from .utils import broadcast_all, formula, same_as

__all__ = ["Bernoulli"]


class Bernoulli(Odds, ExponentialFamily):
    """The Bernoulli distribution: 1 with a probability, else 0.

    Parameters
    ----------
    probs : float or Tensor, optional
        Probabilities.
    logits : float or Tensor, optional
        Log-odds; exactly one of the two is given.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Bernoulli
    >>> Bernoulli(0.25).log_prob(torch.tensor([0.0, 1.0]))
    tensor([-0.2877, -1.3863])
    """

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    mean = same_as("probs")

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        return pt.where(self.probs == 0.5, math.nan, mode)

    variance = formula(lambda d: d.probs * (1 - d.probs))

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        with pt.no_grad():
            return pt.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._numbered(2, self._param, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (pt.logit(self.probs),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return pt.log1p(pt.exp(x))
