"""The categorical distribution over one-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence

import pytensorlib as pt
from pytensorlib import Tensor

from ..nn import functional as F
from . import constraints
from ._odds import Wrapped
from .categorical import Categorical
from .distribution import Distribution
from .utils import formula, same_as

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Wrapped, Distribution):
    """The categorical distribution over vectors with a single 1.

    Parameters
    ----------
    probs : Tensor, optional
        Probabilities of shape (..., K), up to a factor.
    logits : Tensor, optional
        Their logarithms, up to a constant; exactly one of the two is given.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import OneHotCategorical
    >>> OneHotCategorical(torch.tensor([1.0, 1.0, 2.0])).mode
    tensor([0., 0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._wrap(Categorical(probs, logits), validate_args)

    mean = same_as("probs")
    mode = formula(lambda d: d._vectors(d.probs.argmax(dim=-1)))
    variance = formula(lambda d: d.probs * (1 - d.probs))

    def _vectors(self, indices: Tensor) -> Tensor:
        return F.one_hot(indices, self._categorical._num_events).to(self.probs)

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        return self._vectors(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = pt.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + self.batch_shape + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same with gradients that pass through a sample as if it were the probabilities.

    Bengio et al. 2013, arXiv:1308.3432.

    Parameters
    ----------
    probs : Tensor, optional
        Probabilities of shape (..., K), up to a factor.
    logits : Tensor, optional
        Their logarithms, up to a constant; exactly one of the two is given.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import OneHotCategoricalStraightThrough
    >>> p = torch.tensor([0.5, 0.5], requires_grad=True)
    >>> OneHotCategoricalStraightThrough(p).rsample()[0].backward()
    >>> p.grad
    tensor([ 0.5000, -0.5000])
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
