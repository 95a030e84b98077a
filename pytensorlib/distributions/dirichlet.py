"""The Dirichlet distribution."""

from __future__ import annotations

from collections.abc import Sequence

import pytensorlib as pt
from pytensorlib import Tensor

from ..nn import functional as F
from . import constraints
from .exp_family import ExponentialFamily
from .utils import formula

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution over vectors of numbers from 0 on whose sum is 1.

    Parameters
    ----------
    concentration : Tensor
        One for each category, of shape (..., categories); often called alpha.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Dirichlet
    >>> Dirichlet(torch.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    support = constraints.simplex
    has_rsample = True
    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    mean = formula(lambda d: d.concentration / d.concentration.sum(-1, True))

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        # Where all weight lies in the corners, the first of them.
        corner = F.one_hot(mode.argmax(dim=-1), mode.shape[-1]).to(mode)
        return pt.where((self.concentration < 1).all(dim=-1, keepdim=True), corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return pt._C._sample_dirichlet(self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return (
            pt.xlogy(self.concentration - 1.0, value).sum(-1)
            + pt.lgamma(self.concentration.sum(-1))
            - pt.lgamma(self.concentration).sum(-1)
        )

    def entropy(self) -> Tensor:
        k, total = self.concentration.size(-1), self.concentration.sum(-1)
        return (
            pt.lgamma(self.concentration).sum(-1)
            - pt.lgamma(total)
            - (k - total) * pt.digamma(total)
            - ((self.concentration - 1.0) * pt.digamma(self.concentration)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return x.lgamma().sum(-1) - pt.lgamma(x.sum(-1))
