"""The multivariate normal distribution with a covariance of low rank."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .distribution import Distribution
from .multivariate_normal import _TWO, _batch_mahalanobis, _batch_mv, _half_log_det
from .utils import _standard_normal, lazy_property, same_as

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:
    """Return the Cholesky factor of I + W^T D^-1 W."""
    inner = pt.matmul(W.mT / D.unsqueeze(-2), W)
    return pt.linalg.cholesky(_with_identity(inner))


def _with_identity(matrix: Tensor) -> Tensor:
    return matrix + pt.eye(matrix.size(-1), dtype=matrix.dtype, device=matrix.device)


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:
    """Return the logarithm of the determinant of W W^T + D, by the matrix determinant lemma."""
    return 2 * _half_log_det(capacitance_tril) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W: Tensor, D: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """Return x^T (W W^T + D)^-1 x, by Woodbury's identity."""
    inner = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, inner)


class LowRankMultivariateNormal(Distribution):
    """The multivariate normal distribution with covariance W W^T + diag(D).

    It is quick where W has few columns: only matrices of that size are factorised.

    Parameters
    ----------
    loc : Tensor
        The mean, of shape (..., n).
    cov_factor : Tensor
        W, of shape (..., n, m).
    cov_diag : Tensor
        D, of shape (..., n), positive.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import LowRankMultivariateNormal
    >>> d = LowRankMultivariateNormal(torch.zeros(2), torch.tensor([[1.0], [0.0]]), torch.ones(2))
    >>> d.variance
    tensor([2., 1.])
    """

    support = constraints.real_vector
    has_rsample = True
    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        size = loc.shape[-1:]
        for wrong, what in (
            (loc.dim() < 1, "loc must be at least one-dimensional."),
            (cov_factor.dim() < 2, f"cov_factor {_TWO}"),
            (
                cov_factor.shape[-2:-1] != size,
                f"cov_factor must be a batch of matrices with shape {math.prod(size)} x m",
            ),
            (cov_diag.shape[-1:] != size, f"cov_diag must be a batch of vectors with shape {size}"),
        ):
            if wrong:
                raise ValueError(what)
        try:
            batch = pt.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as e:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from e
        self.loc = loc.expand(batch + (-1,))
        self.cov_factor = cov_factor.expand(batch + (-1, -1))
        self.cov_diag = cov_diag.expand(batch + (-1,))
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch, size, validate_args=validate_args)

    def _spread(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    mean = same_as("loc")
    mode = same_as("loc")

    @lazy_property
    def variance(self) -> Tensor:
        """The variances."""
        sums = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return sums.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor of the covariance."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = _with_identity(pt.matmul(scaled, scaled.mT))
        return self._spread(root * pt.linalg.cholesky(inner))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        w = self._unbroadcasted_cov_factor
        return self._spread(pt.matmul(w, w.mT) + pt.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        d = self._unbroadcasted_cov_diag
        scaled = self._unbroadcasted_cov_factor.mT / d.unsqueeze(-2)
        a = pt.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._spread(pt.diag_embed(d.reciprocal()) - a.mT @ a)

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        kind = self.loc.dtype, self.loc.device
        eps_w = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], *kind)
        eps_d = _standard_normal(shape, *kind)
        shared = _batch_mv(self._unbroadcasted_cov_factor, eps_w)
        return self.loc + shared + self._unbroadcasted_cov_diag.sqrt() * eps_d

    def _log_det(self) -> Tensor:
        return _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )

    def _squares(self, x: Tensor) -> Tensor:
        """Return x^T covariance^-1 x."""
        return _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, x, self._capacitance_tril
        )

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        squares = self._squares(value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + squares)

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (0.5 * (constant + self._log_det())).expand(self._batch_shape)
