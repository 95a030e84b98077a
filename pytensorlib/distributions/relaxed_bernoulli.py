"""The relaxed Bernoulli distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from ._odds import Odds, Relaxed
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(Odds, Distribution):
    """The relaxed Bernoulli distribution's log-odds.

    Parameters
    ----------
    temperature : Tensor
        How far the numbers are from 0 and 1.
    probs : float or Tensor, optional
        Probabilities.
    logits : float or Tensor, optional
        Log-odds; exactly one of the two is given.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(torch.tensor(2.0), 0.5).log_prob(torch.tensor(0.0))
    tensor(-0.6931)
    """

    support = constraints.real

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        p = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(pt.rand(shape, dtype=p.dtype, device=p.device))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        return self.temperature.log() + diff - 2 * diff.exp().log1p()


class RelaxedBernoulli(Relaxed, TransformedDistribution):
    """The relaxed Bernoulli distribution: numbers near 0 and 1 that carry gradients.

    Maddison et al. 2017, arXiv:1611.00712; Jang et al. 2017, arXiv:1611.01144.

    Parameters
    ----------
    temperature : Tensor
        How far the numbers are from 0 and 1.
    probs : float or Tensor, optional
        Probabilities.
    logits : float or Tensor, optional
        Log-odds; exactly one of the two is given.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import RelaxedBernoulli
    >>> RelaxedBernoulli(torch.tensor(2.0), 0.5).log_prob(torch.tensor(0.5))
    tensor(0.6931)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
