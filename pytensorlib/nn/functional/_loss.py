"""Losses."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..._C import _nn
from ._common import legacy_reduction, reduced, reduction_enum

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def _same_size(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size "
        f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        stacklevel=3,
    )
    input, target = pt.broadcast_tensors([input, target])
    return input, target


def _weighted(loss: Tensor, weight: Tensor, reduction: int) -> Tensor:
    if weight.shape != loss.shape:
        raise ValueError(
            f"Weights and input must have the same size, got {weight.size()} and {loss.size()}."
        )
    loss = loss * weight
    if reduction == 0:
        return loss
    return loss.sum() if reduction == 2 else loss.sum() / weight.sum()


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``(input - target) ** 2``, reduced."""
    number = reduction_enum(reduction, size_average, reduce)
    input, target = _same_size(input, target)
    if weight is None:
        return _nn.mse_loss(input, target, number)
    return _weighted(_nn.mse_loss(input, target, 0), weight, number)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``|input - target|``, reduced."""
    number = reduction_enum(reduction, size_average, reduce)
    input, target = _same_size(input, target)
    if weight is None:
        return _nn.l1_loss(input, target, number)
    return _weighted(_nn.l1_loss(input, target, 0), weight, number)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """``0.5 d^2 / beta`` where ``d = |input - target| < beta``, else ``d - 0.5 beta``."""
    number = reduction_enum(reduction, size_average, reduce)
    input, target = _same_size(input, target)
    if beta == 0.0:
        return _nn.l1_loss(input, target, number)
    return _nn.smooth_l1_loss(input, target, number, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """``0.5 d^2`` where ``d = |input - target| < delta``, else ``delta (d - 0.5 delta)``."""
    number = reduction_enum(reduction)
    input, target = _same_size(input, target)
    if weight is None:
        return _nn.huber_loss(input, target, number, delta)
    # Unlike the two above, the mean divides by the count and not by the sum of the weights.
    loss = _weighted(_nn.huber_loss(input, target, 0, delta), weight, 0)
    return reduced(loss, reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Minus the log-softmax of ``input`` at the target classes or probabilities."""
    number = reduction_enum(reduction, size_average, reduce)
    return _nn.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``.

    A weight of shape (C, d1, ..., dK, in_features) gives logits of shape (N, C, d1, ..., dK).
    ``options`` asks PyTorch to save memory; the loss does not depend on it.
    """
    outer = linear_weight.shape[:-1]
    if len(outer) > 1:
        if input.dim() != 2:
            width = linear_weight.size(-1)
            raise RuntimeError(
                "linear_cross_entropy: K-dimensional loss defined by linear_weight shape "
                f"{tuple(linear_weight.shape)} requires batched input, (N, {width}), "
                f"got {tuple(input.shape)}"
            )
        bias = None if linear_bias is None else linear_bias.flatten()
        logits = _nn.linear(input, linear_weight.flatten(0, -2), bias).unflatten(-1, outer)
    else:
        logits = _nn.linear(input, linear_weight, linear_bias)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits,
        target,
        weight,
        ignore_index=ignored,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probabilities ``input`` at the target classes."""
    number = reduction_enum(reduction, size_average, reduce)
    return _nn.nll_loss_nd(input, target, weight, number, ignore_index)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``-(t log x + (1 - t) log(1 - x))`` for probabilities ``x``, logs taken as at least -100."""
    number = reduction_enum(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None and weight.shape != input.shape:
        weight = weight.expand(pt.broadcast_shapes(weight.shape, target.shape))
    return _nn.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """``binary_cross_entropy`` of ``sigmoid(input)``, computed without overflow."""
    number = reduction_enum(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    return pt.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``target * (log target - input)`` for log-probabilities ``input``."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size. 'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.",
            stacklevel=2,
        )
    if reduction == "batchmean":
        total = pt.kl_div(input, target, 2, log_target=log_target)
        return total / input.size(0) if input.dim() else total
    return pt.kl_div(input, target, reduction_enum(reduction), log_target=log_target)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification (Graves et al., 2006)."""
    number = reduction_enum(reduction)
    return pt.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity
    )


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``exp(x) - t x``, or ``x - t log(x + eps)`` when ``log_input`` is false."""
    number = reduction_enum(reduction, size_average, reduce)
    return pt.poisson_nll_loss(input, target, log_input, full, eps, number)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """``0.5 (log var + (input - target)^2 / var)``, with ``var`` taken as at least ``eps``."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * pt.ones_like(input)
    elif pt.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = pt.unsqueeze(var, -1)
        else:
            pairs = list(zip(reversed(var.shape), reversed(input.shape)))
            if var.dim() > input.dim() or any(v not in (1, s) for v, s in pairs):
                raise ValueError(f"var is of incorrect size: {var.size()} for {input.size()}")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with pt.no_grad():  # the floor does not stop the gradient
        var.clamp_(min=eps)
    loss = 0.5 * (pt.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``x`` where the target is 1, ``max(0, margin - x)`` where it is -1."""
    number = reduction_enum(reduction, size_average, reduce)
    return pt.hinge_embedding_loss(input, target, margin, number)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, -target (input1 - input2) + margin)``."""
    number = reduction_enum(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return pt.margin_ranking_loss(input1, input2, target, margin, number)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1."""
    number = reduction_enum(reduction, size_average, reduce)
    return pt.cosine_embedding_loss(input1, input2, target, margin, number)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))``."""
    return _nn.soft_margin_loss(input, target, reduction_enum(reduction, size_average, reduce))


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Hinge loss between every target class and every other class; targets end at the first -1."""
    number = reduction_enum(reduction, size_average, reduce)
    return _nn.multilabel_margin_loss(input, target, number)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy with logits, averaged over the classes."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    loss = -(target * _nn.log_sigmoid(input) + (1 - target) * _nn.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(input.dim() - 1) / input.size(-1), reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``sum over other classes of max(0, margin - x[target] + x) ** p / classes``."""
    number = reduction_enum(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"weight must be one-dimensional, got {weight.dim()} dimensions")
    return _nn.multi_margin_loss(input, target, p, margin, weight, number)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the p-norm distance."""
    number = reduction_enum(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return pt.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """``triplet_margin_loss`` with a distance of one's own."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    reduction_enum(reduction)
    distance = pt.pairwise_distance if distance_function is None else distance_function
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and "
            f"negative {negative.dim()}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = pt.minimum(far, distance(positive, negative))
    return reduced(pt.clamp_min(margin + near - far, 0), reduction)
