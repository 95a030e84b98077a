"""The Pareto distribution."""

from __future__ import annotations

from typing import Any

from pytensorlib import Tensor

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all, same_as

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """The Pareto distribution of type 1.

    Parameters
    ----------
    scale : float or Tensor
        The least number.
    alpha : float or Tensor
        The shape: how fast the tail falls.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Pareto
    >>> Pareto(torch.tensor([1.0]), torch.tensor([3.0])).mean
    tensor([1.5000])
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(
            Exponential(self.alpha, validate_args),
            [ExpTransform(), AffineTransform(0, self.scale)],
            validate_args,
        )

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        shape = self.alpha.clamp(min=1)
        return shape * self.scale / (shape - 1)

    mode = same_as("scale")

    @property
    def variance(self) -> Tensor:
        shape = self.alpha.clamp(min=2)
        return self.scale.pow(2) * shape / ((shape - 1).pow(2) * (shape - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
