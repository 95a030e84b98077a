"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import _TWO, _factor, _given, _half_log_det
from .utils import Number, formula, lazy_property

__all__ = ["Wishart"]


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """Return the slope of the multivariate log-gamma function."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    half = pt.arange(p, dtype=x.dtype, device=x.device) / 2
    return pt.digamma(x.unsqueeze(-1) - half).sum(-1)


class Wishart(ExponentialFamily):
    """The Wishart distribution: the sum of `df` outer products of normal vectors with themselves.

    Samples come from Bartlett's decomposition. Exactly one of the three matrices is given; all is
    computed with `scale_tril`, so that it is the quickest.

    Parameters
    ----------
    df : float or Tensor
        Degrees of freedom, above the matrices' number of rows less 1.
    covariance_matrix : Tensor, optional
        Positive definite, of shape (..., p, p).
    precision_matrix : Tensor, optional
        The inverse of the covariance.
    scale_tril : Tensor, optional
        The lower triangular factor of the covariance, with a positive diagonal.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Wishart
    >>> Wishart(3.0, covariance_matrix=torch.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    _parts = (
        *("df", "covariance_matrix", "precision_matrix", "scale_tril"),
        *("_unbroadcasted_scale_tril", "_dist_chi2"),
    )
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = _given(AssertionError, covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            raise ValueError(f"scale_tril {_TWO}")
        if isinstance(df, Number):
            batch_shape = pt.Size(matrix.shape[:-2])
            self.df = pt.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = pt.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        p = event_shape[-1]
        if self.df.le(p - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {p - 1}.")
        if self.df.lt(p).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_scale_tril = _factor(name, matrix)
        row = pt.arange(p, dtype=matrix.dtype, device=matrix.device)
        # The squares of the diagonal of a sample's factor.
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - row.expand(batch_shape + (-1,)))

    def _within(self, part: Any, batch: pt.Size) -> pt.Size:
        if part is self._unbroadcasted_scale_tril:
            return batch + self._event_shape
        return super()._within(part, batch)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def _spread(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor of the covariance."""
        return self._spread(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        tril = self._unbroadcasted_scale_tril
        return self._spread(tril @ tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        tril = self._unbroadcasted_scale_tril
        identity = pt.eye(self._event_shape[-1], dtype=tril.dtype, device=tril.device)
        return self._spread(pt.cholesky_solve(identity, tril))

    def _of_matrices(self, x: Tensor) -> Tensor:
        return x.expand(self._batch_shape)[..., None, None]

    mean = formula(lambda d: d._of_matrices(d.df) * d.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = pt.where(factor <= 0, math.nan, factor)
        return self._of_matrices(factor) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._of_matrices(self.df) * (v.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        p, sample_shape = self._event_shape[-1], pt.Size(sample_shape)
        diagonal = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = diagonal.clamp(min=pt.finfo(diagonal.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = pt.tril_indices(p, p, offset=-1)
        below = sample_shape + self._batch_shape + (p * (p - 1) // 2,)
        noise[..., i, j] = pt.randn(below, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(
        self, sample_shape: Sequence[int] = pt.Size(), max_try_correction: int | None = None
    ) -> Tensor:
        """Return samples through which gradients reach the parameters.

        What is singular is drawn again, `max_try_correction` times at most (10 by default); then
        `log_prob` of it may be -inf.
        """
        tries = 10 if max_try_correction is None else max_try_correction
        sample_shape = pt.Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        if tries > 0:
            # PyTorch draws all matrices anew that were fine, so its numbers are the second ones.
            sample = self._bartlett_sampling(sample_shape)
        for _ in range(tries):
            singular = ~self.support.check(sample)
            if self._batch_shape:
                singular = singular.flatten(len(sample_shape)).any(-1)
            if not singular.any():
                break
            warnings.warn("Singular sample detected.", stacklevel=2)
            again = self._bartlett_sampling((int(singular.sum()),))
            sample = sample.index_put((singular,), again)
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        df, p = self.df, self._event_shape[-1]
        solved = pt.cholesky_solve(value, self._unbroadcasted_scale_tril)
        return (
            -df * (p * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril))
            - pt.mvlgamma(df / 2, p=p)
            + (df - p - 1) / 2 * pt.linalg.slogdet(value).logabsdet
            - solved.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2
        )

    def entropy(self) -> Tensor:
        df, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril))
            + pt.mvlgamma(df / 2, p=p)
            - (df - p - 1) / 2 * _mvdigamma(df / 2, p=p)
            + df * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        p = self._event_shape[-1]
        return -self.precision_matrix / 2, (self.df - p - 1) / 2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        volume = -pt.linalg.slogdet(-2 * x).logabsdet + math.log(2) * p
        return half * volume + pt.mvlgamma(half, p=p)
