"""Losses with a margin between classes or pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..._C import _nn
from ._common import legacy_reduction, reduced, reduction_enum

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``x`` where the target is 1, ``max(0, margin - x)`` where it is -1; `input` is a distance.

    Parameters
    ----------
    input, target : Tensor
        Of shapes that broadcast; the target holds 1 and -1.
    margin : float, default 1.0
        How far dissimilar pairs should be apart.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of the broadcast shape.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.hinge_embedding_loss(torch.tensor([0.3, 0.3]), torch.tensor([1, -1]), reduction="none")
    tensor([0.3000, 0.7000])
    """
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
    """``max(0, -target (input1 - input2) + margin)``: a target of 1 wants the first to be the
    larger.

    Parameters
    ----------
    input1, input2, target : Tensor
        Of one number of dimensions; the target holds 1 and -1.
    margin : float, default 0
        By how much.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of the broadcast shape.

    Raises
    ------
    RuntimeError
        The numbers of dimensions differ.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
    tensor(2.)
    """
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
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1.

    Parameters
    ----------
    input1, input2 : Tensor
        (N, D) or (D,), floating point.
    target : Tensor
        (N,) or 0-d, of 1 and -1.
    margin : float, default 0
        The cosine that dissimilar pairs may have, in [-1, 1].
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of the target's shape.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> a, b = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> F.cosine_embedding_loss(a, b, torch.tensor([1]))
    tensor(1.)
    """
    number = reduction_enum(reduction, size_average, reduce)
    return pt.cosine_embedding_loss(input1, input2, target, margin, number)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))``, reduced.

    Parameters
    ----------
    input, target : Tensor
        Of one shape; the target holds 1 and -1.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of `input`'s shape.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.soft_margin_loss(torch.tensor([0.0, 2.0]), torch.tensor([1.0, -1.0]), reduction="none")
    tensor([0.6931, 2.1269])
    """
    return _nn.soft_margin_loss(input, target, reduction_enum(reduction, size_average, reduce))


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Hinge loss between every target class and every other class, divided by the number of
    classes.

    Parameters
    ----------
    input : Tensor
        Scores, (N, C) or (C,).
    target : Tensor
        int64, of the shape of `input`: classes, of which those before the first -1 count.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of shape (N,).

    Raises
    ------
    RuntimeError
        Shapes or classes are wrong.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.multilabel_margin_loss(torch.tensor([0.1, 0.2, 0.4]), torch.tensor([2, -1, -1]))
    tensor(0.5000)
    """
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
    """Binary cross entropy with logits, averaged over the classes.

    Parameters
    ----------
    input, target : Tensor
        (N, C) or (C,); the target holds 0 and 1.
    weight : Tensor, optional
        A factor for each class, of shape (C,).
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of shape (N,).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.multilabel_soft_margin_loss(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    one = weight is None and reduction == "mean" and input.dim() > 0
    if one and input.shape == target.shape:
        return pt._C._multilabel_soft_margin(input, target, 1)
    loss = pt._C._multilabel_soft_margin(input, target, 0)
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
    """``sum over other classes of max(0, margin - x[target] + x) ** p``, divided by the classes.

    Parameters
    ----------
    input : Tensor
        Scores, (N, C) or (C,).
    target : Tensor
        Classes, int64, (N,) or 0-d.
    p : {1, 2}, default 1
        The power.
    margin : float, default 1.0
        By how much the target's score is to be the largest.
    weight : Tensor, optional
        A factor for each class, of shape (C,).
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of shape (N,).

    Raises
    ------
    ValueError
        `p` is neither 1 nor 2, or `weight` is not 1-d.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.multi_margin_loss(torch.tensor([[0.1, 0.4]]), torch.tensor([1]))
    tensor(0.3500)
    """
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
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the p-norm distance.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        (N, D) or (D,), floating point.
    margin : float, default 1.0
        By how much the negative is to be farther away; positive.
    p : float, default 2
        Of the norm.
    eps : float, default 1e-6
        Added to the differences.
    swap : bool, default False
        Take the negative's distance to the positive where that is less.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of shape (N,).

    Raises
    ------
    ValueError
        `margin` is not positive.

    References
    ----------
    Balntas et al. 2016, Learning local feature descriptors with triplets, BMVC.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> a = torch.zeros(1, 2)
    >>> F.triplet_margin_loss(a, a + 3, a + 3, eps=0.0)
    tensor(1.)
    """
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
    """`triplet_margin_loss` with a distance of one's own.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        Of one number of dimensions.
    distance_function : callable, optional
        Takes two tensors; `pairwise_distance` by default.
    margin : float, default 1.0
        By how much the negative is to be farther away; positive.
    swap : bool, default False
        Take the negative's distance to the positive where that is less.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of what the distance returns.

    Raises
    ------
    ValueError
        `margin` is not positive.
    RuntimeError
        The numbers of dimensions differ.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> def distance(a, b):
    ...     return (a - b).abs().sum(-1)
    >>> a = torch.zeros(1, 2)
    >>> F.triplet_margin_with_distance_loss(a, a + 1, a + 2, distance_function=distance)
    tensor(0.)
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    number = reduction_enum(reduction)
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and "
            f"negative {negative.dim()}D inputs"
        )
    if distance_function is None:
        return pt.triplet_margin_loss(
            anchor, positive, negative, margin, swap=swap, reduction=number
        )  # fmt: skip
    near, far = distance_function(anchor, positive), distance_function(anchor, negative)
    if swap:
        far = pt.minimum(far, distance_function(positive, negative))
    return reduced(pt.clamp_min(margin + near - far, 0), reduction)
