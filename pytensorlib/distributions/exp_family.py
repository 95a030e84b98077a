"""Exponential families: entropies and divergences from the gradient of the log normalizer."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """The base of families with density exp(<t(x), theta> - F(theta) + k(x)).

    Parameters
    ----------
    batch_shape : Size
        The shape of the parameters, one distribution for each element.
    event_shape : Size
        The shape of a single sample of one of them.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> from pytensorlib.distributions import ExponentialFamily, Normal
    >>> issubclass(Normal, ExponentialFamily)
    True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def _dual_params(self) -> tuple[Tensor, list[Tensor], tuple[Tensor, ...]]:
        """Return the log normalizer, the natural parameters, and its gradient by each."""
        theta = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*theta)
        slopes = pt.autograd.grad(normalizer.sum(), theta, create_graph=True)
        return normalizer, theta, slopes

    def entropy(self) -> Tensor:
        result = -self._mean_carrier_measure
        normalizer, theta, slopes = self._dual_params()
        result = result + normalizer
        for p, g in zip(theta, slopes):
            result = result - (p * g).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
