"""The geometric distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._odds import Odds
from .distribution import Distribution
from .utils import broadcast_all, formula

__all__ = ["Geometric"]


class Geometric(Odds, Distribution):
    """The geometric distribution: the number of failures before the first success.

    `Tensor.geometric_` counts the success too.

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
    >>> from pytensorlib.distributions import Geometric
    >>> Geometric(0.25).mean
    tensor(3.)
    """

    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs
            valid = value > 0
            if not valid.all():
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to be positive but found "
                    f"invalid values:\n{value.data[~valid]}"
                )

    mean = formula(lambda d: 1.0 / d.probs - 1.0)
    mode = formula(lambda d: pt.zeros_like(d.probs))
    variance = formula(lambda d: (1.0 / d.probs - 1.0) / d.probs)

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        tiny = pt.finfo(self.probs.dtype).tiny
        with pt.no_grad():
            u = self.probs.new(self._extended_shape(sample_shape)).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        failures = pt.where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-failures).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        cross = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return cross / self.probs
