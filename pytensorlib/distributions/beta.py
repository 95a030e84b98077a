"""The beta distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .utils import broadcast_all, formula

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The beta distribution over [0, 1]: the first of a Dirichlet distribution's two numbers.

    Parameters
    ----------
    concentration1 : float or Tensor
        The weight of 1, often called alpha.
    concentration0 : float or Tensor
        The weight of 0, often called beta.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Beta
    >>> Beta(1.0, 3.0).mean
    tensor(0.2500)
    """

    support = constraints.unit_interval
    has_rsample = True
    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    _parts = ("_dirichlet",)

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        both = pt.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """The weight of 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The weight of 0."""
        return self._dirichlet.concentration[..., 1]

    mean = formula(lambda d: d.concentration1 / (d.concentration1 + d.concentration0))
    mode = formula(lambda d: d._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._dirichlet.log_prob(pt.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return pt.lgamma(x) + pt.lgamma(y) - pt.lgamma(x + y)
