"""The multivariate normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property, same_as

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Return the products of matrices and vectors, whose batches broadcast."""
    return pt.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """Return |L^-1 x|^2; the batch of `bL` broadcasts to that of `bx`.

    The dimensions of `bx` over which one matrix holds become columns of one system, so that no
    matrix is copied.
    """
    n, batch = bx.size(-1), bx.shape[:-1]
    own = bL.shape[:-2]
    free = len(batch) - len(own)
    # Each shared dimension is split into what the matrix repeats over and what it has.
    split: list[int] = [*batch[:free]]
    for have, want in zip(own, batch[free:]):
        split += [want // have, have]
    order = [*range(free), *range(free, len(split), 2), *range(free + 1, len(split), 2)]
    x = bx.reshape([*split, n]).permute([*order, len(split)])
    flat = bL.reshape(-1, n, n)
    columns = x.reshape(-1, flat.size(0), n).permute(1, 2, 0)
    solved = pt.linalg.solve_triangular(flat, columns, upper=False).pow(2).sum(-2)
    back = [order.index(i) for i in range(len(order))]
    return solved.t().reshape(x.shape[:-1]).permute(back).reshape(batch)


def _half_log_det(tril: Tensor) -> Tensor:
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """Return the Cholesky factor of the inverse without computing the inverse."""
    turned = pt.linalg.cholesky(pt.flip(P, (-2, -1)))
    inverse = pt.transpose(pt.flip(turned, (-2, -1)), -2, -1)
    identity = pt.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return pt.linalg.solve_triangular(inverse, identity, upper=False)


_TWO = "must be at least two-dimensional, with optional leading batch dimensions"
_MATRICES = ("covariance_matrix", "precision_matrix", "scale_tril")


def _given(error: type[Exception], *matrices: Tensor | None) -> tuple[str, Tensor]:
    """Return the one matrix that is given, of those in the order of `_MATRICES`, and its name."""
    found = [(name, m) for name, m in zip(_MATRICES, matrices) if m is not None]
    if len(found) != 1:
        raise error(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        )
    return found[0]


def _factor(name: str, matrix: Tensor) -> Tensor:
    """Return the factor of the covariance by what is given."""
    if name == "precision_matrix":
        return _precision_to_scale_tril(matrix)
    return pt.linalg.cholesky(matrix) if name == "covariance_matrix" else matrix


class MultivariateNormal(Distribution):
    """The multivariate normal distribution.

    Exactly one of the three matrices is given; all is computed with `scale_tril`, so that it is
    the quickest.

    Parameters
    ----------
    loc : Tensor
        The mean, of shape (..., n).
    covariance_matrix : Tensor, optional
        Positive definite, of shape (..., n, n).
    precision_matrix : Tensor, optional
        The inverse of the covariance.
    scale_tril : Tensor, optional
        The lower triangular factor of the covariance, with a positive diagonal.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import MultivariateNormal
    >>> MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    support = constraints.real_vector
    has_rsample = True
    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = _given(ValueError, covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{what} {_TWO}")
        batch = pt.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(batch + (-1,))
        setattr(self, name, matrix.expand(batch + (-1, -1)))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = _factor(name, matrix)

    def _spread(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor of the covariance."""
        return self._spread(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        tril = self._unbroadcasted_scale_tril
        return self._spread(pt.matmul(tril, tril.mT))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._spread(pt.cholesky_inverse(self._unbroadcasted_scale_tril))

    mean = same_as("loc")
    mode = same_as("loc")

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        squares = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        half = -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + squares)
        return half - _half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        half = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (half + _half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)
