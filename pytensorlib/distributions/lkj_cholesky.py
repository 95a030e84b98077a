"""Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices with density in proportion to det(M)^(eta - 1).

    Samples are made row by row, a length and a direction each: the onion method of Lewandowski,
    Kurowicka and Joe (2009), doi:10.1016/j.jmva.2009.04.008.

    Parameters
    ----------
    dim : int
        The number of rows, at least 2.
    concentration : float or Tensor
        eta: with 1 all matrices are as likely, with more those near the identity are more so.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import LKJCholesky
    >>> LKJCholesky(3, 1.0).log_prob(torch.eye(3))
    tensor(-1.5963)
    """

    support = constraints.corr_cholesky
    arg_constraints = {"concentration": constraints.positive}
    _parts = ("_beta",)

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        (self.concentration,) = broadcast_all(concentration)
        self.dim = dim
        kind: Any = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        # The squared length of row i: 0 for the first.
        row = pt.arange(-1, dim - 1, **kind).clamp(min=0)
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(row + 0.5, marginal.unsqueeze(-1) - 0.5 * row)
        super().__init__(self.concentration.size(), pt.Size((dim, dim)), validate_args)

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        normal = pt.randn(shape, dtype=y.dtype, device=y.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)
        w = pt.sqrt(y) * direction
        left = 1 - pt.sum(w**2, dim=-1)
        return w + pt.diag_embed(left.clamp(min=pt.finfo(w.dtype).tiny).sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        # Powers of the diagonal, over their integral.
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        row = pt.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - row
        density = pt.sum(order * diagonal.log(), dim=-1)
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        volume = pt.mvlgamma(alpha - 0.5, n) - pt.lgamma(alpha) * n
        return density - (0.5 * n * math.log(math.pi) + volume)
