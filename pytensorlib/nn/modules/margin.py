"""Losses with a margin between classes or pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import Tensor
from .. import functional as F
from ._loss_base import _Loss, _WeightedLoss
from .distance import PairwiseDistance


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))`` for targets 1 and -1.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.SoftMarginLoss(reduction="none")(torch.tensor([0.0, 2.0]), torch.tensor([1.0, -1.0]))
    tensor([0.6931, 2.1269])
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Hinge loss between every target class and every other class, divided by the number of
    classes.

    Takes scores (N, C) or (C,) and int64 targets of that shape: classes, of which those before
    the first -1 count.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.MultiLabelMarginLoss()(torch.tensor([0.1, 0.2, 0.4]), torch.tensor([2, -1, -1]))
    tensor(0.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy with logits, averaged over the classes: (N, C) or (C,), targets 0
    and 1.

    Parameters
    ----------
    weight : Tensor, optional
        A factor for each class, of shape (C,).
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.MultiLabelSoftMarginLoss()(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """``sum over other classes of max(0, margin - x[target] + x) ** p``, divided by the classes.

    Takes scores (N, C) or (C,) and int64 classes (N,) or 0-d.

    Parameters
    ----------
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

    Raises
    ------
    ValueError
        `p` is neither 1 nor 2, or `weight` is not 1-d.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.MultiMarginLoss()(torch.tensor([[0.1, 0.4]]), torch.tensor([1]))
    tensor(0.3500)
    """

    __constants__ = ["p", "margin", "reduction"]

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class _MarginLoss(_Loss):
    __constants__ = ["margin", "reduction"]
    _default_margin = 0.0

    def __init__(
        self,
        margin: float | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = self._default_margin if margin is None else margin


class HingeEmbeddingLoss(_MarginLoss):
    """``x`` where the target is 1, ``max(0, margin - x)`` where it is -1; the input is a distance.

    Parameters
    ----------
    margin : float, optional
        How far dissimilar pairs should be apart; 1 by default.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.HingeEmbeddingLoss(reduction="none")(torch.tensor([0.3, 0.3]), torch.tensor([1, -1]))
    tensor([0.3000, 0.7000])
    """

    _default_margin = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """``max(0, -target (input1 - input2) + margin)``: a target of 1 wants the first to be the
    larger.

    Parameters
    ----------
    margin : float, optional
        By how much; 0 by default.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.MarginRankingLoss()(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
    tensor(2.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class CosineEmbeddingLoss(_MarginLoss):
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1.

    Takes two tensors (N, D) or (D,) and the targets, (N,) or 0-d.

    Parameters
    ----------
    margin : float, optional
        The cosine that dissimilar pairs may have, in [-1, 1]; 0 by default.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> a, b = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> nn.CosineEmbeddingLoss()(a, b, torch.tensor([1]))
    tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the p-norm distance.

    Takes three tensors (N, D) or (D,).

    Parameters
    ----------
    margin : float, default 1.0
        By how much the negative is to be farther away; positive.
    p : float, default 2.0
        Of the norm.
    eps : float, default 1e-6
        Added to the differences.
    swap : bool, default False
        Take the negative's distance to the positive where that is less.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

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
    >>> from pytensorlib import nn
    >>> a = torch.zeros(1, 2)
    >>> nn.TripletMarginLoss(eps=0.0)(a, a + 3, a + 3)
    tensor(1.)
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with a distance of one's own.

    Parameters
    ----------
    distance_function : callable, optional
        Takes two tensors; `PairwiseDistance` by default.
    margin : float, default 1.0
        By how much the negative is to be farther away; positive.
    swap : bool, default False
        Take the negative's distance to the positive where that is less.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Raises
    ------
    ValueError
        `margin` is not positive.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> def distance(a, b):
    ...     return (a - b).abs().sum(-1)
    >>> a = torch.zeros(1, 2)
    >>> nn.TripletMarginWithDistanceLoss(distance_function=distance)(a, a + 1, a + 2)
    tensor(0.)
    """

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                "TripletMarginWithDistanceLoss: expected margin to be greater than 0, "
                f"got {margin} instead"
            )
        self.distance_function: Any = (
            PairwiseDistance() if distance_function is None else distance_function
        )
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
