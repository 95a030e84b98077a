"""Kullback-Leibler divergences: the table of pairs, and those within a family."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from ..nn import functional as F
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis, _half_log_det
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
# What was found for classes that have no row of their own; forgotten when a row is added.
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Return a decorator that makes a function the divergence of a pair of classes.

    It is used for their subclasses too; where several pairs fit, the most specific one counts.

    Parameters
    ----------
    type_p, type_q : type
        Classes of distributions.

    Returns
    -------
    callable
        The decorator.

    Raises
    ------
    TypeError
        One is no class. (It need not be of `Distribution`: libraries have their own.)

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Normal, kl_divergence, register_kl
    >>> class Mine(Normal):
    ...     pass
    >>> @register_kl(Mine, Normal)
    ... def kl_of_mine(p, q):
    ...     return torch.zeros(1)
    >>> kl_divergence(Mine(0.0, 1.0), Normal(1.0, 1.0))
    tensor([0.])
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a class of distributions but got {kind}")

    def decorator(fun: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


def _most_specific(pairs: list[tuple[type, type]]) -> tuple[type, type]:
    """Return the pair whose first class, or if that is shared whose second, is the most derived."""
    best = pairs[0]
    for pair in pairs[1:]:
        which = 0 if pair[0] is not best[0] else 1
        if issubclass(pair[which], best[which]):
            best = pair
    return best


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """Return the function of the most specific pair, or NotImplemented."""
    fits = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not fits:
        return NotImplemented
    left_p, left_q = _most_specific(fits)
    right_q, right_p = _most_specific([(q, p) for p, q in fits])
    found = _KL_REGISTRY[left_p, left_q]
    if found is not _KL_REGISTRY[right_p, right_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return found


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergence KL(p || q), the mean under p of log p(x) - log q(x).

    Parameters
    ----------
    p : Distribution
        Where the mean is taken.
    q : Distribution
        What stands in for it.

    Returns
    -------
    Tensor
        In nats, of the shape to which the batches broadcast.

    Raises
    ------
    NotImplementedError
        There is no formula for this pair.

    Examples
    --------
    >>> from pytensorlib.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    types = type(p), type(q)
    fun = _KL_MEMOIZE.get(types)
    if fun is None:
        fun = _KL_MEMOIZE[types] = _dispatch_kl(*types)
    if fun is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return fun(p, q)


@register_kl(ExponentialFamily, ExponentialFamily)
def _families(p: Any, q: Any) -> Tensor:
    """Return the Bregman divergence of the log normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    normalizer, theta, slopes = p._dual_params()
    others = q._natural_params
    result = q._log_normalizer(*others) - normalizer
    for x, y, g in zip(theta, others, slopes):
        result = result - _sum_rightmost((y - x) * g, len(q.event_shape))
    return result


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p: Any, q: Any) -> Tensor:
    ones = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    ones = pt.where(q.probs == 0, math.inf, ones)
    ones = pt.where(p.probs == 0, 0.0, ones)
    zeros = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    zeros = pt.where(q.probs == 1, math.inf, zeros)
    return ones + pt.where(p.probs == 1, 0.0, zeros)


@register_kl(Beta, Beta)
def _betas(p: Any, q: Any) -> Tensor:
    p1, p0, q1, q0 = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    p_all, q_all = p1 + p0, q1 + q0
    of_q = q1.lgamma() + q0.lgamma() + p_all.lgamma()
    of_p = p1.lgamma() + p0.lgamma() + q_all.lgamma()
    slopes = (p1 - q1) * p1.digamma() + (p0 - q0) * p0.digamma()
    return of_q - of_p + slopes + (q_all - p_all) * p_all.digamma()


@register_kl(Binomial, Binomial)
def _binomials(p: Any, q: Any) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    one = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return pt.where(p.total_count > q.total_count, math.inf, p.total_count * one)


@register_kl(Categorical, Categorical)
def _categoricals(p: Any, q: Any) -> Tensor:
    terms = pt.where(q.probs == 0, math.inf, p.probs * (p.logits - q.logits))
    return pt.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hots(p: Any, q: Any) -> Tensor:
    return _categoricals(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchys(p: Any, q: Any) -> Tensor:
    squares = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return squares.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoullis(p: Any, q: Any) -> Tensor:
    of_p = p._cont_bern_log_norm() + pt.log1p(-p.probs)
    of_q = q._cont_bern_log_norm() + pt.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + of_p - of_q


@register_kl(Dirichlet, Dirichlet)
def _dirichlets(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    a_all, b_all = a.sum(-1), b.sum(-1)
    slopes = (a - b) * (a.digamma() - a_all.digamma().unsqueeze(-1))
    return a_all.lgamma() - b_all.lgamma() - (a.lgamma() - b.lgamma()).sum(-1) + slopes.sum(-1)


@register_kl(Exponential, Exponential)
def _exponentials(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gammas(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + pt.lgamma(b)
        - pt.lgamma(a)
        + (a - b) * pt.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Geometric, Geometric)
def _geometrics(p: Any, q: Any) -> Tensor:
    return -p.entropy() - pt.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbels(p: Any, q: Any) -> Tensor:
    ratio, far = p.scale / q.scale, (p.loc - q.loc) / q.scale
    tail = pt.exp((1 + ratio).lgamma() - far)
    return far - ratio.log() + ratio * euler_constant + tail - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _half_normals(p: Any, q: Any) -> Tensor:
    return _normals(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independents(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Laplace, Laplace)
def _laplaces(p: Any, q: Any) -> Tensor:
    ratio, far = p.scale / q.scale, (p.loc - q.loc).abs()
    return far / q.scale - ratio.log() + ratio * pt.exp(-far / p.scale) - 1


@register_kl(Normal, Normal)
def _normals(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _paretos(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return pt.where(p.scale < q.scale, math.inf, result)


@register_kl(Poisson, Poisson)
def _poissons(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniforms(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return pt.where((q.low > p.low) | (q.high < p.high), math.inf, result)


def _sum_of_squares(matrix: Tensor) -> Tensor:
    """Return the trace of the matrix times its transpose."""
    return matrix.pow(2).sum((-2, -1))


def _need_one_event_shape(p: Any, q: Any, what: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {what} with different event shapes cannot be computed"
        )


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normals(p: Any, q: Any) -> Tensor:
    _need_one_event_shape(p, q, "Multivariate Normals")
    p_tril, q_tril = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    ratio = pt.linalg.solve_triangular(q_tril, p_tril, upper=False)
    squares = _sum_of_squares(ratio) + _batch_mahalanobis(q_tril, q.loc - p.loc)
    return _half_log_det(q_tril) - _half_log_det(p_tril) + 0.5 * (squares - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_and_full(p: Any, q: Any) -> Tensor:
    _need_one_event_shape(p, q, "(Low Rank) Multivariate Normals")
    tril, root = q._unbroadcasted_scale_tril, p._unbroadcasted_cov_diag.sqrt()
    parts = [p._unbroadcasted_cov_factor, pt.diag_embed(root)]
    solved = [pt.linalg.solve_triangular(tril, part, upper=False) for part in parts]
    trace = _sum_of_squares(solved[0]) + _sum_of_squares(solved[1])
    squares = trace + _batch_mahalanobis(tril, q.loc - p.loc)
    return 0.5 * (2 * _half_log_det(tril) - p._log_det() + squares - p.event_shape[0])


def _solved_factor(q: Any) -> Tensor:
    """Return the factor whose products with covariances `q`'s low rank takes away."""
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    return pt.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_and_low_rank(p: Any, q: Any) -> Tensor:
    _need_one_event_shape(p, q, "(Low Rank) Multivariate Normals")
    tril = p._unbroadcasted_scale_tril
    whole = tril * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    trace = _sum_of_squares(whole) - _sum_of_squares(_solved_factor(q).matmul(tril))
    squares = trace + q._squares(q.loc - p.loc)
    return 0.5 * (q._log_det() - 2 * _half_log_det(tril) + squares - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_ranks(p: Any, q: Any) -> Tensor:
    _need_one_event_shape(p, q, "Low Rank Multivariate Normals")
    w, d, q_d = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag, q._unbroadcasted_cov_diag
    a = _solved_factor(q)
    whole = (d / q_d).sum(-1) + _sum_of_squares(w * q_d.rsqrt().unsqueeze(-1))
    away = _sum_of_squares(a * d.sqrt().unsqueeze(-2)) + _sum_of_squares(a.matmul(w))
    squares = whole - away + q._squares(q.loc - p.loc)
    return 0.5 * (q._log_det() - p._log_det() + squares - p.event_shape[0])


def __getattr__(name: str) -> Callable[..., Any]:
    """Return the formula of a pair by PyTorch's private name: ``_kl_normal_normal``."""
    for (p, q), formula in _KL_REGISTRY.items():
        names = [_EXPONENTIAL.get(kind, kind.__name__.lower()) for kind in (p, q)]
        if name == f"_kl_{names[0]}_{names[1]}":
            return formula
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# What PyTorch calls a class in these names.
_EXPONENTIAL: dict[Any, str] = {ExponentialFamily: "expfamily"}
