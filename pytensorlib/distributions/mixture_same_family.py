"""Mixtures of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .utils import _broadcastable, formula

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of distributions of one family.

    Parameters
    ----------
    mixture_distribution : Categorical
        Which component a sample comes from.
    component_distribution : Distribution
        The components, along the last dimension of its batch.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Categorical, MixtureSameFamily, Normal
    >>> parts = Normal(torch.tensor([-1.0, 1.0]), torch.ones(2))
    >>> MixtureSameFamily(Categorical(torch.tensor([0.5, 0.5])), parts).variance
    tensor(2.)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False
    _parts = ("_mixture_distribution", "_component_distribution")

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        mixed, batch_shape = (
            mixture_distribution.batch_shape,
            component_distribution.batch_shape[:-1],
        )
        if not _broadcastable(mixed, batch_shape):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                f"`component_distribution.batch_shape`({batch_shape})"
            )
        count, parts = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != parts:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({parts})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = count
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    @property
    def mixture_distribution(self) -> Categorical:
        """Which component a sample comes from."""
        return self._mixture_distribution

    def _mixed(self, x: Tensor) -> Tensor:
        """Return the mean over the components."""
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return pt.sum(probs * x, dim=-1 - self._event_ndims)

    mean = formula(lambda d: d._mixed(d.component_distribution.mean))

    @property
    def variance(self) -> Tensor:
        between = (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)
        return self._mixed(self.component_distribution.variance) + self._mixed(between)

    def cdf(self, x: Tensor) -> Tensor:
        parts = self.component_distribution.cdf(self._pad(x))
        return pt.sum(parts * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check(x)
        parts = self.component_distribution.log_prob(self._pad(x))
        weights = pt.log_softmax(self.mixture_distribution.logits, dim=-1)
        return pt.logsumexp(parts + weights, dim=-1)

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        with pt.no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            which = self.mixture_distribution.sample(sample_shape)
            parts = self.component_distribution.sample(sample_shape)
            index = which.reshape(which.shape + (1,) * (self._event_ndims + 1))
            index = index.repeat((1,) * (which.dim() + 1) + self.event_shape)
            return pt.gather(parts, dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        """Return `x` with a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Return weights that broadcast with numbers of the components."""
        mixed = len(self.mixture_distribution.batch_shape)
        more = 0 if mixed == 1 else len(self.batch_shape) - mixed
        return x.reshape(x.shape[:-1] + (1,) * more + x.shape[-1:] + (1,) * self._event_ndims)

    def __repr__(self) -> str:
        parts = f"\n  {self.mixture_distribution},\n  {self.component_distribution}"
        return f"MixtureSameFamily({parts})"
