"""Composed rows of functions, products and losses."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytensorlib as pt

from ._composed import composed, is_tensor


@composed("ger")
def _ger(t: Any, a: Any, b: Any) -> Any:
    return t.outer(a, b)


@composed("addr")
def _addr(t: Any, x: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    made = t.outer(a, b)
    made = made if alpha == 1 else t.mul(made, alpha)
    return made if beta == 0 else t.add(x if beta == 1 else t.mul(x, beta), made)


@composed("linalg_matmul")
def _linalg_matmul(t: Any, a: Any, b: Any) -> Any:
    return t.matmul(a, b)


@composed("linalg_vecdot")
def _vecdot(t: Any, a: Any, b: Any, dim: int = -1) -> Any:
    return t.sum(t.mul(a, b), [dim])


@composed("linalg_multi_dot", "chain_matmul")
def _multi_dot(t: Any, *given: Any) -> Any:
    tensors = given[0] if isinstance(given[0], list) else given
    return functools.reduce(t.matmul, tensors)


@composed("linalg_matrix_power", "matrix_power")
def _matrix_power(t: Any, x: Any, n: int) -> Any:
    if n < 1:
        raise t.c.error(t.c.at, f"the power is {n}")
    return functools.reduce(t.matmul, [x] * n)


@composed("_tensordot")
def _tensordot(t: Any, a: Any, b: Any, dims_a: Any, dims_b: Any) -> Any:
    of_a = [chr(97 + d) for d in range(a.rank)]
    of_b = [chr(65 + d) for d in range(b.rank)]
    pairs = [(i % a.rank, j % b.rank) for i, j in zip(dims_a, dims_b, strict=True)]
    for i, j in pairs:
        of_b[j] = of_a[i]
    kept = [d for i, d in enumerate(of_a) if i not in {p[0] for p in pairs}]
    kept += [d for j, d in enumerate(of_b) if j not in {p[1] for p in pairs}]
    return t.einsum(f"{''.join(of_a)},{''.join(of_b)}->{''.join(kept)}", [a, b])


@composed("frobenius_norm")
def _frobenius(t: Any, x: Any, dim: Any, keepdim: bool = False) -> Any:
    return t.sqrt(t.sum(t.mul(x, x), dim, keepdim))


@composed("linalg_matrix_norm")
def _matrix_norm(
    t: Any, x: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, dtype: Any = None
) -> Any:  # fmt: skip
    a, b = (d % x.rank for d in dim)
    if ord == "fro":
        return _frobenius(t, x, [a, b], keepdim)
    if ord not in (1, -1, math.inf, -math.inf):
        raise t.c.error(t.c.at, f"the norm is of order {ord!r}")
    first, then = (a, b) if abs(ord) == 1 else (b, a)
    sums = t.sum(t.abs(x), [first], True)
    made = (t.amax if ord > 0 else t.amin)(sums, [then], True)
    return made if keepdim else t.squeeze(made, [a, b])


@composed("dist")
def _dist(t: Any, x: Any, y: Any, p: Any = 2) -> Any:
    return t.linalg_vector_norm(t.sub(x, y), p)


@composed("pairwise_distance")
def _pairwise(
    t: Any, x: Any, y: Any, p: float = 2, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    return t.linalg_vector_norm(t.add(t.sub(x, y), eps), p, [-1], keepdim)


def _reduced(t: Any, x: Any, reduction: int) -> Any:
    return x if reduction == 0 else (t.mean if reduction == 1 else t.sum)(x)


@composed("cosine_embedding_loss")
def _cosine(t: Any, a: Any, b: Any, y: Any, margin: float = 0.0, reduction: int = 1) -> Any:
    like = t.cosine_similarity(a, b, -1)
    apart = t.relu(t.sub(like, margin))
    zero = t.zeros_like(like)
    made = t.where(t.eq(y, 1), t.rsub(like, 1), zero)
    return _reduced(t, t.add(made, t.where(t.eq(y, -1), apart, zero)), reduction)


@composed("hinge_embedding_loss")
def _hinge(t: Any, x: Any, y: Any, margin: float = 1.0, reduction: int = 1) -> Any:
    zero = t.zeros_like(x)
    apart = t.where(t.ne(y, 1), t.relu(t.rsub(x, margin)), zero)
    return _reduced(t, t.add(apart, t.where(t.ne(y, -1), x, zero)), reduction)


@composed("margin_ranking_loss")
def _ranking(t: Any, a: Any, b: Any, y: Any, margin: float = 0.0, reduction: int = 1) -> Any:
    return _reduced(t, t.relu(t.add(t.mul(t.neg(y), t.sub(a, b)), margin)), reduction)


@composed("soft_margin_loss")
def _soft_margin(t: Any, x: Any, y: Any, reduction: int = 1) -> Any:
    return _reduced(t, t.log1p(t.exp(t.mul(t.neg(y), x))), reduction)


@composed("triplet_margin_loss")
def _triplet(
    t: Any, a: Any, b: Any, c: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: int = 1,
) -> Any:  # fmt: skip
    near, far = _pairwise(t, a, b, p, eps), _pairwise(t, a, c, p, eps)
    if swap:
        far = t.minimum(far, _pairwise(t, b, c, p, eps))
    return _reduced(t, t.relu(t.add(t.sub(near, far), margin)), reduction)


@composed("copysign")
def _copysign(t: Any, x: Any, y: Any) -> Any:
    size = t.abs(x)
    if not is_tensor(y):
        return t.neg(size) if math.copysign(1.0, y) < 0 else size
    return t.where(t.signbit(y), t.neg(size), size)


@composed("float_power")
def _float_power(t: Any, x: Any, y: Any) -> Any:
    def wide(v: Any) -> Any:
        return t.to(v, pt.float64) if is_tensor(v) else float(v)

    return t.pow(wide(x), wide(y))


@composed("ldexp")
def _ldexp(t: Any, x: Any, y: Any) -> Any:
    return t.mul(x, t.exp2(t.to(y, x.dtype)))


@composed("logaddexp2")
def _logaddexp2(t: Any, x: Any, y: Any) -> Any:
    away = t.neg(t.abs(t.sub(x, y)))
    return t.add(t.maximum(x, y), t.mul(t.log1p(t.exp2(away)), 1 / math.log(2)))


@composed("isclose")
def _isclose(
    t: Any, x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    near = t.le(t.abs(t.sub(x, y)), t.add(t.mul(t.abs(y), rtol), atol))
    if x.dtype.is_floating_point:
        near = t.logical_and(near, t.isfinite(y))
    same = t.eq(x, y)
    if equal_nan and x.dtype.is_floating_point:
        same = t.logical_or(same, t.logical_and(t.isnan(x), t.isnan(y)))
    return t.logical_or(same, near)


@composed("kron")
def _kron(t: Any, a: Any, b: Any) -> Any:
    rank = max(a.rank, b.rank)
    of_a, of_b = ([1] * (rank - x.rank) + t.sizes(x) for x in (a, b))
    left = t.reshape(a, [n for s in of_a for n in (s, 1)])
    right = t.reshape(b, [n for s in of_b for n in (1, s)])
    return t.reshape(t.mul(left, right), [m * n for m, n in zip(of_a, of_b, strict=True)])


@composed("fake_quantize_per_tensor_affine")
def _fake_quantize(t: Any, x: Any, scale: Any, zero: Any, low: int, high: int) -> Any:
    if is_tensor(scale) or is_tensor(zero):
        zero = t.to(zero, x.dtype)
        placed = t.add(t.round(t.div(x, scale)), zero)
        return t.mul(t.sub(t.clamp(placed, low, high), zero), scale)
    placed = t.clamp(t.add(t.round(t.mul(x, 1 / scale)), zero), low, high)
    return t.mul(t.sub(placed, zero), scale)


@composed("special_entr")
def _entr(t: Any, x: Any) -> Any:
    made = t.neg(t.xlogy(x, x))
    return t.where(t.lt(x, 0), t.full_like(x, -math.inf), made)


@composed("special_xlog1py")
def _xlog1py(t: Any, x: Any, y: Any) -> Any:
    return t.xlogy(x, t.add(y, 1) if is_tensor(y) else y + 1)


@composed("special_ndtr")
def _ndtr(t: Any, x: Any) -> Any:
    return t.mul(t.erfc(t.mul(x, -math.sqrt(0.5))), 0.5)


@composed("logdet")
def _logdet(t: Any, x: Any) -> Any:
    return t.log(t.linalg_det(x))


@composed("slogdet", "linalg_slogdet")
def _slogdet(t: Any, x: Any) -> Any:
    found = t.linalg_det(x)
    return [t.sign(found), t.log(t.abs(found))]


@composed("cov")
def _cov(t: Any, x: Any, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    if fweights is not None or aweights is not None:
        raise t.c.error(t.c.at, "its observations have weights")
    n = t.size(x, -1)
    away = t.sub(x, t.mean(x, [-1], True))
    if x.rank < 2:
        return t.div(t.sum(t.mul(away, away)), float(n - correction))
    return t.div(t.matmul(away, t.transpose(away, 0, 1)), float(n - correction))


@composed("corrcoef")
def _corrcoef(t: Any, x: Any) -> Any:
    if x.rank < 2:
        made = _cov(t, x)
        return t.div(made, made)
    made = _cov(t, x)
    spread = t.sqrt(t.diagonal(made))
    made = t.div(t.div(made, t.unsqueeze(spread, 1)), t.unsqueeze(spread, 0))
    return t.clamp(made, -1, 1)


@composed("poisson_nll_loss")
def _poisson(
    t: Any, x: Any, y: Any, log_input: bool, full: bool, eps: float, reduction: int
) -> Any:
    if full:
        raise t.c.error(t.c.at, "Stirling's term is asked for")
    logs = x if log_input else t.log(t.add(x, eps))
    made = t.sub(t.exp(x) if log_input else x, t.mul(y, logs))
    return _reduced(t, made, reduction)


@composed("_multilabel_soft_margin")
def _multilabel(t: Any, x: Any, y: Any, reduction: int) -> Any:
    sides = t.add(t.mul(y, t.log_sigmoid(x)), t.mul(t.rsub(y, 1), t.log_sigmoid(t.neg(x))))
    return _reduced(t, t.neg(sides), reduction)


@composed("norm_except_dim")
def _norm_except(t: Any, x: Any, pow: int = 2, dim: int = 0) -> Any:
    if dim == -1:
        return t.linalg_vector_norm(x, pow)
    others = [d for d in range(x.rank) if d != dim]
    return t.linalg_vector_norm(x, pow, others, True)


@composed("vander")
def _vander(t: Any, x: Any, N: Any = None, increasing: bool = False) -> Any:  # noqa: N803
    n = t.size(x, 0) if N is None else N
    powers = range(n) if increasing else range(n - 1, -1, -1)
    return t.stack([t.pow(x, i) for i in powers], 1)


@composed("linalg_vander")
def _linalg_vander(t: Any, x: Any, N: Any = None) -> Any:  # noqa: N803
    n = t.size(x, -1) if N is None else N
    return t.stack([t.pow(x, i) for i in range(n)], -1)
