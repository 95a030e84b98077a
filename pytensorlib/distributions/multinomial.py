"""The multinomial distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from ._odds import Wrapped
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all, formula

__all__ = ["Multinomial"]


class Multinomial(Wrapped, Distribution):
    """The multinomial distribution: how often each category came in `total_count` trials.

    `log_prob` takes counts of any number of trials.

    Parameters
    ----------
    total_count : int
        The number of trials.
    probs : Tensor, optional
        Probabilities of shape (..., K), up to a factor.
    logits : Tensor, optional
        Their logarithms, up to a constant; exactly one of the two is given.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Multinomial
    >>> Multinomial(8, torch.tensor([1.0, 1.0, 2.0])).mean
    tensor([2., 2., 4.])
    """

    _parts = ("_categorical", "_binomial")

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self._categorical, self.total_count = Categorical(probs, logits), total_count
        self._binomial = Binomial(total_count, self.probs)
        self._wrap(self._categorical, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    mean = formula(lambda d: d.probs * d.total_count)
    variance = formula(lambda d: d.total_count * d.probs * (1 - d.probs))

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        sample_shape = pt.Size(sample_shape)
        drawn = self._categorical.sample(pt.Size((self.total_count,)) + sample_shape)
        drawn = drawn.movedim(0, -1)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, pt.ones_like(drawn))
        return counts.type_as(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        # What is impossible and did not come says nothing.
        logits = pt.where((value == 0) & (logits == -math.inf), 0.0, logits)
        orders = pt.lgamma(value.sum(-1) + 1) - pt.lgamma(value + 1).sum(-1)
        return orders + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = self._categorical.probs.new_tensor(self.total_count)
        one = n * self._categorical.entropy() - pt.lgamma(n + 1)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        weights = pt.exp(self._binomial.log_prob(counts)) * pt.lgamma(counts + 1)
        return one + weights.sum([0, -1])
