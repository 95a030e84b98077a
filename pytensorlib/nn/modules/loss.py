"""Losses; each has ``reduction`` "mean", "sum" or "none"."""

from __future__ import annotations

import warnings
from typing import Any

from ... import Tensor
from .. import functional as F
from ..module import Module
from ._loss_base import _Loss, _WeightedLoss
from .linear import Linear
from .margin import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss",
    "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss",
    "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss",
    "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip

# Where PyTorch's pickles look for them.
for _class in (
    _Loss,
    _WeightedLoss,
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
):
    _class.__module__ = __name__


class L1Loss(_Loss):
    """``|input - target|``, reduced.

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
    >>> nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]))
    tensor(1.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """``(input - target) ** 2``, reduced.

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
    >>> nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]))
    tensor(2.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """Minus the log-probability of the target class; with `LogSoftmax` before it, cross entropy.

    Takes log-probabilities (N, C), (N, C, d1, ...) or (C,) and classes, int64 of shape (N, d1,
    ...).

    Parameters
    ----------
    weight : Tensor, optional
        A factor for each class, of shape (C,).
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    ignore_index : int, default -100
        Targets of this class count for nothing.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Raises
    ------
    IndexError
        A target is no class.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.NLLLoss()(torch.tensor([[-1.0, -2.0]]), torch.tensor([1]))
    tensor(2.)
    """

    __constants__ = ["ignore_index", "reduction"]

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class NLLLoss2d(NLLLoss):
    """The deprecated name of `NLLLoss` for images; it warns.

    Parameters
    ----------
    weight, size_average, ignore_index, reduce, reduction : optional
        As in `NLLLoss`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     nn.NLLLoss2d()(torch.zeros(1, 2, 1, 1), torch.tensor([[[1]]]))
    tensor(0.)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in "
            "replacement.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Minus the log-softmax at the target classes, or its mean under target probabilities.

    Takes logits (N, C), (N, C, d1, ...) or (C,) and targets: classes, int64 of shape (N, d1,
    ...), or probabilities of the shape of the logits. Softmax is part of it: give it no
    softmax.

    Parameters
    ----------
    weight : Tensor, optional
        A factor for each class, of shape (C,).
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    ignore_index : int, default -100
        Targets of this class count for nothing.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.
    label_smoothing : float, default 0.0
        How much of the target is spread over all classes, in [0, 1].

    Raises
    ------
    IndexError
        A target is no class.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> loss = nn.CrossEntropyLoss()
    >>> loss(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]))
    tensor(0.2201)
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            None,
            self.ignore_index,
            None,
            self.reduction,
            self.label_smoothing,
        )


class LinearCrossEntropyLoss(Module):
    """A linear layer followed by `CrossEntropyLoss`: takes (N, in_features) and the targets.

    Parameters
    ----------
    in_features, num_classes : int
        The width of the input, and C.
    out_features : tuple of int, default ()
        Further sizes of the logits, behind C.
    bias : bool, default False
        Learn an offset for each class.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.
    weight : Tensor, optional
        A factor for each class, of shape (C,).
    ignore_index : int, optional
        Targets of this class count for nothing; -100 by default.
    label_smoothing : float, default 0.0
        As in `CrossEntropyLoss`.
    options : optional
        How PyTorch is to save memory; the loss does not depend on it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> loss = nn.LinearCrossEntropyLoss(4, 3)
    >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
    tensor(1.0986)
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.out_features = out_features
        self.reduction = reduction
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        self.register_buffer("weight", weight)
        width = num_classes
        for size in out_features:
            width *= size
        self.linear = Linear(in_features, width, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        linear_weight: Tensor = self.linear.weight
        bias: Tensor | None = self.linear.bias
        if self.out_features:  # stored flat
            outer = (self.num_classes, *self.out_features)
            linear_weight = linear_weight.view(*outer, -1)
            bias = None if bias is None else bias.view(outer)
        return F.linear_cross_entropy(
            input,
            linear_weight,
            target,
            linear_bias=bias,
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities: ``-(t log x + (1 - t) log(1 - x))``, logs at least
    -100.

    Parameters
    ----------
    weight : Tensor, optional
        A factor for each element; broadcasts.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Raises
    ------
    ValueError
        The shapes differ.
    RuntimeError
        A probability is not in [0, 1].

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.BCELoss()(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
    tensor(0.3466)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of ``sigmoid(input)``, computed without overflow.

    Parameters
    ----------
    weight : Tensor, optional
        A factor for each element; broadcasts.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.
    pos_weight : Tensor, optional
        A factor for the positive term of each class; broadcasts.

    Raises
    ------
    ValueError
        The shapes differ.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.BCEWithLogitsLoss()(torch.tensor([0.0, 900.0]), torch.tensor([1.0, 0.0]))
    tensor(450.3466)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """``target * (log target - input)``: the divergence of log-probabilities from a target.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'batchmean', 'sum', 'none'}, default 'mean'
        'batchmean', the divergence as it is defined, divides the sum by the first size;
        'mean' divides by the number of elements and warns.
    log_target : bool, default False
        The target holds log-probabilities too.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> p = torch.tensor([[0.5, 0.5]])
    >>> nn.KLDivLoss(reduction="batchmean")(torch.tensor([[0.25, 0.75]]).log(), p)
    tensor(0.1438)
    """

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class SmoothL1Loss(_Loss):
    """``0.5 d^2 / beta`` where ``d = |input - target| < beta``, else ``d - 0.5 beta``, reduced.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.
    beta : float, default 1.0
        Where the parabola ends; 0 gives `L1Loss`.

    References
    ----------
    Girshick 2015, arXiv:1504.08083.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.SmoothL1Loss(reduction="none")(torch.tensor([0.5, 2.0]), torch.zeros(2))
    tensor([0.1250, 1.5000])
    """

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """``0.5 d^2`` where ``d = |input - target| < delta``, else ``delta (d - 0.5 delta)``, reduced.

    Parameters
    ----------
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.
    delta : float, default 1.0
        Where the parabola ends; positive.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.HuberLoss(reduction="none", delta=2.0)(torch.tensor([0.5, 3.0]), torch.zeros(2))
    tensor([0.1250, 4.0000])
    """

    __constants__ = ["reduction", "delta"]

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class PoissonNLLLoss(_Loss):
    """Minus the log-likelihood of counts: ``exp(x) - t x``, or ``x - t log(x + eps)``.

    Parameters
    ----------
    log_input : bool, default True
        The input is the logarithm of the rate.
    full : bool, default False
        Add Stirling's approximation of ``log(t!)`` for targets above 1.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    eps : float, default 1e-8
        Keeps the logarithm finite where `log_input` is false.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.PoissonNLLLoss()(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
    tensor(0.8591)
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """``0.5 (log var + (input - target)^2 / var)``: takes means, targets and variances.

    Parameters
    ----------
    full : bool, default False
        Add the constant ``0.5 log(2 pi)``.
    eps : float, default 1e-6
        The least variance.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Raises
    ------
    ValueError
        A variance is negative or has a wrong shape.

    References
    ----------
    Nix and Weigend 1994, Estimating the mean and variance of the target probability
    distribution, ICNN.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.GaussianNLLLoss()(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([4.0]))
    tensor(1.1931)
    """

    __constants__ = ["full", "eps", "reduction"]

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class CTCLoss(_Loss):
    """Minus the log-probability of a sequence of labels, summed over all its alignments to the
    frames.

    Takes log-probabilities (T, N, C), targets (N, S), and the lengths of both, (N,).

    Parameters
    ----------
    blank : int, default 0
        The class of no label.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        'mean' first divides by the target lengths.
    zero_infinity : bool, default False
        Count sequences that cannot be aligned as 0, not infinity.

    References
    ----------
    Graves et al. 2006, Connectionist temporal classification, ICML.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> frames = torch.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
    >>> nn.CTCLoss()(frames, torch.tensor([[1]]), [2], [1])
    tensor(0.2877)
    """

    __constants__ = ["blank", "reduction"]

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
