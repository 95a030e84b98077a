"""Transforms of vectors and matrices, of parts, and by distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from ..nn import functional as F
from . import constraints
from ._transform import Transform, _need_dims, _with_caches
from ._transforms_of_numbers import _Alike, _inside
from .distribution import Distribution
from .utils import (
    _sum_rightmost,
    lazy_property,
    same_as,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

__all__ = [
    "CatTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
]


class CorrCholeskyTransform(Transform):
    """Turns vectors of D (D - 1) / 2 numbers into Cholesky factors of D x D correlation matrices.

    Each number becomes a partial correlation by tanh; those of a row are broken off a stick, so
    that the row's length is 1.

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import CorrCholeskyTransform
    >>> CorrCholeskyTransform()(torch.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    bijective = True
    domain, codomain = constraints.real_vector, constraints.corr_cholesky

    def _call(self, x: Tensor) -> Tensor:
        eps = pt.finfo(x.dtype).eps
        r = vec_to_tril_matrix(pt.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + pt.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - pt.cumsum(y * y, dim=-1)
        before = tril_matrix_to_vec(F.pad(left[..., :-1], [1, 0], value=1), diag=-1)
        t = tril_matrix_to_vec(y, diag=-1) / before.sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Any:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        sticks = 0.5 * left.log().sum(-1)
        return sticks - 2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)

    def forward_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape: Any) -> Any:
        _need_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        d = shape[-1]
        return shape[:-2] + (d * (d - 1) // 2,)


class SoftmaxTransform(_Alike):
    """y = softmax(x); its inverse gives one of many, the logarithms.

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import SoftmaxTransform
    >>> SoftmaxTransform()(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        powers = (x - x.max(-1, True)[0]).exp()
        return powers / powers.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Alike):
    """Turns vectors of K - 1 numbers into K numbers whose sum is 1, each broken off what is left.

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import StickBreakingTransform
    >>> StickBreakingTransform()(torch.zeros(1))
    tensor([0.5000, 0.5000])
    """

    bijective = True
    domain, codomain = constraints.real_vector, constraints.simplex

    @staticmethod
    def _pieces(x: Tensor) -> Tensor:
        """Return how many pieces are left before each break, as logarithms."""
        return (x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)).log()

    def _call(self, x: Tensor) -> Tensor:
        z = _inside(pt.sigmoid(x - self._pieces(x)))
        left = (1 - z).cumprod(-1)
        return F.pad(z, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        broken = y[..., :-1]
        # Rounding may leave less than nothing.
        left = (1 - broken.cumsum(-1)).clamp(min=pt.finfo(y.dtype).tiny)
        return broken.log() - left.log() + self._pieces(broken)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        x = x - self._pieces(x)
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_Alike):
    """Turns square matrices into lower triangular ones with a positive diagonal, by exp.

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import LowerCholeskyTransform
    >>> LowerCholeskyTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Alike):
    """Turns square matrices into positive definite ones, by their factor.

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import PositiveDefiniteTransform
    >>> PositiveDefiniteTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(pt.linalg.cholesky(y))


class _Sequence(Transform):
    """Transforms for parts of a tensor along one dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.dim, self.transforms = dim, list(_with_caches(tseq, cache_size))

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _set_of(self, sets: list[Any]) -> Any:
        raise NotImplementedError

    @constraints.dependent_property
    def domain(self) -> Any:
        return self._set_of([t.domain for t in self.transforms])

    @constraints.dependent_property
    def codomain(self) -> Any:
        return self._set_of([t.codomain for t in self.transforms])

    def _call(self, x: Tensor) -> Tensor:
        return self._join([t(part) for t, part in zip(self.transforms, self._parts(x))])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._parts(y))])

    def _need_length(self, x: Tensor, length: int, name: str) -> None:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for tensor with {x.dim()} dimensions"
            )
        if x.size(self.dim) != length:
            raise AssertionError(
                f"x.size({self.dim}) = {x.size(self.dim)} must equal {name} {length}"
            )


class CatTransform(_Sequence):
    """Transforms for parts of a tensor, as `torch.cat` joins them.

    Parameters
    ----------
    tseq : sequence of Transform
        One for each part.
    dim : int
        The dimension along which they lie.
    lengths : sequence of int, optional
        How long each is, 1 by default.
    cache_size : int
        That of each transform.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import *
    >>> CatTransform([ExpTransform(), identity_transform], lengths=[1, 2])(torch.zeros(3))
    tensor([1., 0., 0.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @lazy_property
    def event_dim(self) -> int:
        """The most dimensions that belong together for one of them."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The length of all parts."""
        return sum(self.lengths)

    def _cached(self, cache_size: int) -> Transform:
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        self._need_length(x, self.length, "length")
        return x.split(self.lengths, self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return pt.cat(parts, dim=self.dim)

    def _set_of(self, sets: list[Any]) -> Any:
        return constraints.cat(sets, self.dim, self.lengths)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        terms = []
        for t, before, after in zip(self.transforms, self._parts(x), self._parts(y)):
            term = t.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, self.event_dim - t.event_dim))
        # Joined where the dimension is still there, added where it belongs to the event.
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return pt.cat(terms, dim=dim) if dim < 0 else sum(terms)


class StackTransform(_Sequence):
    """Transforms for the slices of a tensor, as `torch.stack` joins them.

    Parameters
    ----------
    tseq : sequence of Transform
        One for each slice.
    dim : int
        The dimension along which they lie.
    cache_size : int
        That of each transform.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import *
    >>> StackTransform([ExpTransform(), identity_transform])(torch.zeros(2))
    tensor([1., 0.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _cached(self, cache_size: int) -> Transform:
        return StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        self._need_length(x, len(self.transforms), "len(transforms)")
        return x.unbind(self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return pt.stack(parts, dim=self.dim)

    def _set_of(self, sets: list[Any]) -> Any:
        return constraints.stack(sets, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        parts = zip(self.transforms, self._parts(x), self._parts(y))
        terms = [t.log_abs_det_jacobian(before, after) for t, before, after in parts]
        return self._join(terms)


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution, which makes its samples uniform.

    Parameters
    ----------
    distribution : Distribution
        One with `cdf` and `icdf`.
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Normal
    >>> from pytensorlib.distributions.transforms import CumulativeDistributionTransform
    >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(torch.zeros(1))
    tensor([0.5000])
    """

    bijective, sign = True, 1
    codomain = constraints.unit_interval
    domain: Any = same_as("distribution.support")

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        self.distribution = distribution
        super().__init__(cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return self.distribution.log_prob(x)

    def _cached(self, cache_size: int) -> Transform:
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
