"""Kullback-Leibler divergences between distributions of different families."""

from __future__ import annotations

import math
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

_LOG_2PI = math.log(2 * math.pi)

# Samples of the first lie where the second has none; with the parameter of the result's shape.
_INFINITE: list[tuple[type, str, list[type]]] = [
    (Beta, "concentration1", [Pareto]),
    (ContinuousBernoulli, "probs", [Pareto]),
    (Exponential, "rate", [Beta, ContinuousBernoulli, Pareto, Uniform]),
    (Gamma, "concentration", [Beta, ContinuousBernoulli, Pareto, Uniform]),
    (Gumbel, "loc", [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform]),
    (Laplace, "loc", [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform]),
    (Normal, "loc", [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform]),
    (Pareto, "scale", [Beta, ContinuousBernoulli, Uniform]),
    (Poisson, "rate", [Bernoulli, Binomial]),
]


def _register_infinite(first: type, parameter: str, second: type) -> None:
    @register_kl(first, second)
    def infinite(p: Any, q: Any) -> Tensor:
        return pt.full_like(getattr(p, parameter), math.inf)


for _first, _parameter, _seconds in _INFINITE:
    for _second in _seconds:
        _register_infinite(_first, _parameter, _second)


def _infinite_where(condition: Tensor, result: Tensor) -> Tensor:
    return pt.where(condition, math.inf, result)


def _x_log_x(x: Tensor) -> Tensor:
    return pt.special.xlogy(x, x)


def _mean_log(low: Tensor, high: Tensor) -> Tensor:
    """Return the mean of the logarithm of uniform numbers."""
    return (_x_log_x(high) - _x_log_x(low)) / (high - low) - 1


def _log_gamma_volume(q: Any) -> Tensor:
    return q.concentration.lgamma() - q.concentration * q.rate.log()


def _from_normal(p: Any, q: Any, mean: Tensor, variance: Tensor) -> Tensor:
    """Return the cross entropy of a normal distribution and one of these moments."""
    squares = variance + (mean - q.loc).pow(2)
    return 0.5 * _LOG_2PI + q.scale.log() + 0.5 * squares / q.scale.pow(2)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _to_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    cross = -p.mean * q.logits - pt.log1p(-q.probs) - q._cont_bern_log_norm()
    result = cross - p.entropy()
    if not isinstance(p, Uniform):
        return result
    return _infinite_where((p.high >= 1.0) | (p.low <= 0.0), result)


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _to_exponential(p: Any, q: Any) -> Tensor:
    return q.rate * p.mean - q.rate.log() - p.entropy()


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Tensor:
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    cross = _log_gamma_volume(q) - (q.concentration - 1) * mean_log + q.rate * p.mean
    return cross - p.entropy()


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Gamma, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p: Any, q: Any) -> Tensor:
    return _from_normal(p, q, p.mean, p.variance) - p.entropy()


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Tensor:
    # Moments of `Pareto` end where there are none; these go on.
    a, mean = p.alpha, p.alpha * p.scale / (p.alpha - 1)
    variance = a * (p.scale / (a - 1)).pow(2) / (a - 2)
    return _infinite_where(a <= 2, _from_normal(p, q, mean, variance) - p.entropy())


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Tensor:
    result = (q.high - q.low).log() - p.entropy()
    return _infinite_where((q.low > 0.0) | (q.high < 1.0), result)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Tensor:
    result = (q.high - q.low).log() - p.entropy()
    return _infinite_where((q.low >= 0.0) | (q.high <= 1.0), result)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Tensor:
    ratio, a = q.rate / p.rate, q.concentration
    cross = ratio + a.lgamma() + a * euler_constant - a * ratio.log()
    return cross - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Tensor:
    product, ratio = p.rate * q.scale, q.loc / q.scale
    tail = pt.exp(ratio) * product / (product + 1)
    return product.log() - 1 - ratio + tail + product.reciprocal()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Tensor:
    a, product, ratio = p.concentration, p.rate * q.scale, q.loc / q.scale
    own = (a - 1) * a.digamma() - a.lgamma() - a
    tail = pt.exp(ratio) * (1 + product.reciprocal()).pow(-a)
    return own + product.log() + a / product + tail - ratio


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Tensor:
    far, ratio = (p.loc - q.loc) / q.scale, (p.scale / q.scale).pow(2)
    tail = pt.exp(0.5 * ratio - far)
    return far + tail - 0.5 * ratio.log() - 0.5 * (1 + _LOG_2PI)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    far = p.loc - q.loc
    z = far / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * pt.exp(-0.5 * z.pow(2))
    distance = near + far * pt.erf(math.sqrt(0.5) * z)
    own = 0.5 * (1 + math.log(0.5 * math.pi))
    return distance / q.scale - (p.scale / q.scale).log() - own


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Tensor:
    product, a = p.scale * q.rate, p.alpha
    result = (a / product).log() - a.reciprocal() + a * product / (a - 1) - 1
    return _infinite_where(a <= 1, result)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Tensor:
    a, mean_log = p.alpha, p.scale.log() + p.alpha.reciprocal()
    cross = _log_gamma_volume(q) + (1 - q.concentration) * mean_log
    result = a.log() - mean_log + cross + q.rate * a * p.scale / (a - 1) - 1
    return _infinite_where(a <= 1, result)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    volume = a.lgamma() + b.lgamma() - (a + b).lgamma()
    logs = (a - 1) * _mean_log(p.low, p.high) + (b - 1) * _mean_log(1 - p.high, 1 - p.low)
    return _infinite_where((p.high > 1.0) | (p.low < 0.0), volume - logs - p.entropy())


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Tensor:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return _infinite_where(p.low < 0.0, result)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Tensor:
    logs = (1 - q.concentration) * _mean_log(p.low, p.high)
    result = _log_gamma_volume(q) + logs + q.rate * p.mean - p.entropy()
    return _infinite_where(p.low < 0.0, result)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Tensor:
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    tail = ratio * (pt.exp(-high) - pt.exp(-low))
    return ratio.log() + 0.5 * (high + low) - tail


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Tensor:
    own = (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    result = _mean_log(p.low, p.high) * (q.alpha + 1) - own
    return _infinite_where(p.low < q.scale, result)
