"""Losses."""

from __future__ import annotations

import warnings
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..._C import _nn
from ._common import legacy_reduction, reduced, reduction_enum

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "mse_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
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


def _reshaped(input: Tensor, target: Tensor) -> str:
    same = input.numel() == target.numel()
    return " They have as many elements: target.view_as(input) fits." if same else ""


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
    """``(input - target) ** 2``, reduced.

    Parameters
    ----------
    input, target : Tensor
        Floating point, of one shape; other shapes broadcast and warn.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.
    weight : Tensor, optional
        A factor for each element; the mean then divides by its sum.

    Returns
    -------
    Tensor
        0-d, or with 'none' of `input`'s shape.

    Raises
    ------
    ValueError
        `reduction` is none of these, or `weight` has another shape.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]))
    tensor(2.5000)
    """
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
    """``|input - target|``, reduced. The gradient where they are equal is 0.

    Parameters
    ----------
    input, target : Tensor
        Floating point, of one shape; other shapes broadcast and warn.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.
    weight : Tensor, optional
        A factor for each element; the mean then divides by its sum.

    Returns
    -------
    Tensor
        0-d, or with 'none' of `input`'s shape.

    Raises
    ------
    ValueError
        `reduction` is none of these, or `weight` has another shape.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]))
    tensor(1.5000)
    """
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
    """``0.5 d^2 / beta`` where ``d = |input - target| < beta``, else ``d - 0.5 beta``, reduced.

    Parameters
    ----------
    input, target : Tensor
        Floating point, of one shape; other shapes broadcast and warn.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.
    beta : float, default 1.0
        Where the parabola ends; 0 gives `l1_loss`.

    Returns
    -------
    Tensor
        0-d, or with 'none' of `input`'s shape.

    Raises
    ------
    ValueError
        `reduction` is none of these.
    RuntimeError
        `beta` is negative.

    References
    ----------
    Girshick 2015, arXiv:1504.08083.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.smooth_l1_loss(torch.tensor([0.5, 2.0]), torch.zeros(2), reduction="none")
    tensor([0.1250, 1.5000])
    """
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
    """``0.5 d^2`` where ``d = |input - target| < delta``, else ``delta (d - 0.5 delta)``, reduced.

    Parameters
    ----------
    input, target : Tensor
        Floating point, of one shape; other shapes broadcast and warn.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.
    delta : float, default 1.0
        Where the parabola ends.
    weight : Tensor, optional
        A factor for each element; the mean still divides by their number.

    Returns
    -------
    Tensor
        0-d, or with 'none' of `input`'s shape.

    Raises
    ------
    ValueError
        `reduction` is none of these, or `weight` has another shape.
    RuntimeError
        `delta` is not positive.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.huber_loss(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none", delta=2.0)
    tensor([0.1250, 4.0000])
    """
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
    """Minus the log-softmax of `input` at the target classes, or its mean under target
    probabilities.

    The mean over classes divides by the sum of the weights of the targets that count.

    Parameters
    ----------
    input : Tensor
        Logits, (N, C), (N, C, d1, ...) or (C,); floating point.
    target : Tensor
        Classes, int64 of shape (N, d1, ...), or probabilities of the shape of `input`.
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

    Returns
    -------
    Tensor
        0-d, or with 'none' of the shape (N, d1, ...).

    Raises
    ------
    IndexError
        A target is no class.
    RuntimeError
        Shapes do not fit, or the targets are of a wrong dtype.

    References
    ----------
    Szegedy et al. 2015, arXiv:1512.00567 (label smoothing).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.cross_entropy(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]))
    tensor(0.2201)
    """
    number = reduction_enum(reduction, size_average, reduce)
    return _nn.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def _check_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Raise where the shapes of `linear_cross_entropy` do not fit."""
    shape, width, wrong = tuple(weight.shape), input.size(-1) if input.dim() else 0, ""
    if input.dim() not in (1, 2):
        wrong = f"expected input with dimensionality 1 or 2, got {input.dim()}"
    elif weight.dim() < 2:
        wrong = f"expected linear_weight with dimensionality at least 2, got {weight.dim()}"
    elif width != shape[-1]:
        wrong = (
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {width} and {shape[-1]}, respectively"
        )
    elif weight.dim() > 2 and input.dim() != 2:
        wrong = (
            f"K-dimensional loss defined by linear_weight shape {shape} requires batched input, "
            f"(N, {width}), got unbatched input with shape {tuple(input.shape)}"
        )
    elif bias is not None and tuple(bias.shape) != shape[:-1]:
        wrong = f"expected linear_bias shape {shape[:-1]}, got {tuple(bias.shape)}"
    if wrong:
        raise RuntimeError(f"linear_cross_entropy: {wrong}")


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

    Parameters
    ----------
    input : Tensor
        (N, in_features) or (in_features,), floating point.
    linear_weight : Tensor
        (C, in_features).
    target : Tensor
        As in `cross_entropy`.
    linear_bias : Tensor, optional
        (C,).
    weight : Tensor, optional
        A factor for each class, of shape (C,).
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.
    ignore_index : int, optional
        Targets of this class count for nothing; -100 by default.
    label_smoothing : float, default 0.0
        As in `cross_entropy`.
    options : optional
        How PyTorch is to save memory; the loss does not depend on it.

    Returns
    -------
    Tensor
        0-d, or with 'none' of the shape of the classes.

    Raises
    ------
    RuntimeError
        Shapes do not fit.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.linear_cross_entropy(torch.ones(1, 2), torch.eye(2), torch.tensor([0]))
    tensor(0.6931)
    """
    _check_linear(input, linear_weight, linear_bias)
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError(
            "linear_cross_entropy: ignore_index cannot be specified when target contains "
            "probabilities"
        )
    outer = linear_weight.shape[:-1]
    if len(outer) > 1:
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
    """Minus the log-probabilities `input` at the target classes.

    The mean divides by the sum of the weights of the targets that count.

    Parameters
    ----------
    input : Tensor
        Log-probabilities, (N, C), (N, C, d1, ...) or (C,).
    target : Tensor
        Classes, int64, of shape (N, d1, ...).
    weight : Tensor, optional
        A factor for each class, of shape (C,).
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    ignore_index : int, default -100
        Targets of this class count for nothing.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of the target's shape.

    Raises
    ------
    IndexError
        A target is no class.
    RuntimeError
        Shapes do not fit, or the targets are not integers.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.nll_loss(torch.tensor([[-1.0, -2.0]]), torch.tensor([1]))
    tensor(2.)
    """
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
    """``-(t log x + (1 - t) log(1 - x))`` for probabilities `input`, logs taken as at least -100.

    Parameters
    ----------
    input : Tensor
        Probabilities, in [0, 1].
    target : Tensor
        Floating point, of the shape of `input`.
    weight : Tensor, optional
        A factor for each element; broadcasts.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of `input`'s shape.

    Raises
    ------
    ValueError
        The shapes differ.
    RuntimeError
        An element of `input` is not in [0, 1].

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.binary_cross_entropy(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
    tensor(0.3466)
    """
    number = reduction_enum(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
            + _reshaped(input, target)
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
    """`binary_cross_entropy` of ``sigmoid(input)``, computed without overflow.

    Parameters
    ----------
    input, target : Tensor
        Floating point, of one shape.
    weight : Tensor, optional
        A factor for each element; broadcasts.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.
    pos_weight : Tensor, optional
        A factor for the positive term of each class; broadcasts.

    Returns
    -------
    Tensor
        0-d, or with 'none' of `input`'s shape.

    Raises
    ------
    ValueError
        The shapes differ.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.binary_cross_entropy_with_logits(torch.tensor([0.0, 900.0]), torch.tensor([1.0, 0.0]))
    tensor(450.3466)
    """
    number = reduction_enum(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
            + _reshaped(input, target)
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
    """``target * (log target - input)``: the divergence of log-probabilities `input` from
    `target`.

    Parameters
    ----------
    input : Tensor
        Log-probabilities, any shape.
    target : Tensor
        Probabilities that broadcast with `input`.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    reduction : {'mean', 'batchmean', 'sum', 'none'}, default 'mean'
        'batchmean', the divergence as it is defined, divides the sum by the first size;
        'mean' divides by the number of elements and warns.
    log_target : bool, default False
        The target holds log-probabilities too.

    Returns
    -------
    Tensor
        0-d, or with 'none' of the broadcast shape.

    Raises
    ------
    ValueError
        `reduction` is none of these.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> p = torch.tensor([[0.5, 0.5]])
    >>> F.kl_div(torch.tensor([[0.25, 0.75]]).log(), p, reduction="batchmean")
    tensor(0.1438)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
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
    """Minus the log-probability of a sequence of labels, summed over all its alignments to the
    frames.

    Parameters
    ----------
    log_probs : Tensor
        (T, N, C) or (T, C): log-probabilities of the classes in each frame.
    targets : Tensor
        (N, S), or all sequences one after the other; classes that are not `blank`.
    input_lengths, target_lengths : Tensor or sequence of int
        (N,): how much of each counts.
    blank : int, default 0
        The class of no label.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        'mean' first divides by the target lengths.
    zero_infinity : bool, default False
        Count sequences that cannot be aligned as 0, not infinity.

    Returns
    -------
    Tensor
        0-d, or with 'none' of shape (N,).

    Raises
    ------
    RuntimeError
        Lengths or classes are out of range.

    References
    ----------
    Graves et al. 2006, Connectionist temporal classification, ICML.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> frames = torch.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
    >>> F.ctc_loss(frames, torch.tensor([[1]]), [2], [1])
    tensor(0.2877)
    """
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
    """``exp(x) - t x``, or ``x - t log(x + eps)`` where `input` is the rate itself.

    Parameters
    ----------
    input, target : Tensor
        Of shapes that broadcast.
    log_input : bool, default True
        `input` is the logarithm of the rate.
    full : bool, default False
        Add Stirling's approximation of ``log(t!)`` for targets above 1.
    size_average, reduce : bool, optional
        Deprecated: use `reduction`.
    eps : float, default 1e-8
        Keeps the logarithm finite where `log_input` is false.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of the broadcast shape.

    Raises
    ------
    ValueError
        `reduction` is none of these.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.poisson_nll_loss(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
    tensor(0.8591)
    """
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
    """``0.5 (log var + (input - target)^2 / var)``, with `var` taken as at least `eps`.

    Parameters
    ----------
    input, target : Tensor
        Floating point, of shapes that broadcast.
    var : Tensor or float
        Of `input`'s shape, that without the last dimension, or one that broadcasts.
    full : bool, default False
        Add the constant ``0.5 log(2 pi)``.
    eps : float, default 1e-6
        The least variance; its gradient is as if it were not there.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        The mean of the losses, their sum, or each of them.

    Returns
    -------
    Tensor
        0-d, or with 'none' of `input`'s shape.

    Raises
    ------
    ValueError
        A variance is negative or `var` has a wrong shape.

    References
    ----------
    Nix and Weigend 1994, Estimating the mean and variance of the target probability
    distribution, ICNN.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.gaussian_nll_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([4.0]))
    tensor(1.1931)
    """
    least: Any = var
    if isinstance(var, Tensor):
        least = var.detach().amin().item() if var.numel() else eps
    else:
        var = var * pt.ones_like(input)
    if least < 0:
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = pt.unsqueeze(var, -1)
        else:
            others = [v for v, s in zip(var.shape, input.shape) if v != s]
            if var.dim() != input.dim() or others != [1]:
                raise ValueError(f"var is of incorrect size: {var.size()} for {input.size()}")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    if not least >= eps:  # NaN too
        var = var.clone()
        with pt.no_grad():  # the floor does not stop the gradient
            var.clamp_(min=eps)
    return pt._C._gaussian_nll(input, target, var, full, reduction_enum(reduction))
