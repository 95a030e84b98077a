"""The relaxed categorical distribution."""

from __future__ import annotations

from collections.abc import Sequence

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from ._odds import Relaxed, Wrapped
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Wrapped, Distribution):
    """The logarithms of a relaxed one-hot vector.

    Parameters
    ----------
    temperature : Tensor
        How far the vectors are from one-hot ones.
    probs : Tensor, optional
        Probabilities of shape (..., K), up to a factor.
    logits : Tensor, optional
        Their logarithms, up to a constant; exactly one of the two is given.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.relaxed_categorical import ExpRelaxedCategorical
    >>> sums = ExpRelaxedCategorical(torch.tensor(2.0), torch.ones(3)).rsample((4,)).exp().sum(-1)
    >>> torch.allclose(sums, torch.ones(4))
    True
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._wrap(Categorical(probs, logits), validate_args)

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(pt.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self._categorical._num_events
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        order = pt.full_like(self.temperature, float(k)).lgamma()
        score = logits - value.mul(self.temperature)
        score = (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1)
        return score + (order + self.temperature.log().mul(k - 1))


class RelaxedOneHotCategorical(Relaxed, TransformedDistribution):
    """The relaxed one-hot categorical distribution: vectors near one-hot ones that carry gradients.

    Maddison et al. 2017, arXiv:1611.00712; Jang et al. 2017, arXiv:1611.01144.

    Parameters
    ----------
    temperature : Tensor
        How far the vectors are from one-hot ones.
    probs : Tensor, optional
        Probabilities of shape (..., K), up to a factor.
    logits : Tensor, optional
        Their logarithms, up to a constant; exactly one of the two is given.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import RelaxedOneHotCategorical
    >>> RelaxedOneHotCategorical(torch.tensor(2.0), torch.ones(3)).rsample((2,)).shape
    torch.Size([2, 3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
