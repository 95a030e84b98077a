"""ONNX for losses of classes and of differences."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ._graph import TYPES
from ._rows import row


def _smoothed(
    c: Any, x: Any, target: Any, weight: Any, reduction: int, ignore_index: int, smoothing: float
) -> Any:
    """Write the loss of probabilities, or of labels that are smoothed."""
    axis = 1 if x.rank > 1 else 0
    n = x.known(axis)
    if n is None:
        raise c.error(c.at, "the number of classes is open")
    logs = c.op("Neg", c.op("LogSoftmax", x, axis=axis))
    if weight is not None:
        shape = c.ints([-1, *[1] * (x.rank - axis - 1)])
        weight = c.op("Reshape", weight, shape)
        logs = c.op("Mul", logs, weight)
    labels = not target.dtype.is_floating_point
    counted = None
    if labels:
        kept = c.op("Not", c.op("Equal", target, c.constant(ignore_index, target.dtype)))
        zero = c.constant(0, target.dtype)
        hot = c.op(
            "OneHot", c.op("Where", kept, target, zero), c.constant(n),
            c.op("Cast", c.constant([0.0, 1.0], pt.float32), to=TYPES[x.dtype]), axis=axis,
        )  # fmt: skip
        counted = c.op("Cast", kept, to=TYPES[x.dtype])
        target = c.op("Mul", hot, c.op("Unsqueeze", counted, c.ints([axis])))
        if weight is not None:
            one = c.op("ReduceSum", c.op("Mul", target, weight), c.ints([axis]), keepdims=0)
        total = c.op("ReduceSum", counted if weight is None else one, keepdims=0)
    mixed: Any = target
    if smoothing:
        rest = c.constant(smoothing / n, x.dtype)
        if labels:  # nothing of what is ignored
            rest = c.op("Mul", c.op("Unsqueeze", counted, c.ints([axis])), rest)
        mixed = c.op("Add", c.op("Mul", target, c.constant(1.0 - smoothing, x.dtype)), rest)
    each = c.op("ReduceSum", c.op("Mul", logs, mixed), c.ints([axis]), keepdims=0)
    if reduction == 0:
        return each
    if reduction == 2 or labels:
        made = c.op("ReduceSum", each, keepdims=0)
        return made if reduction == 2 else c.op("Div", made, total)
    return c.op("ReduceMean", each, keepdims=0)


@row("cross_entropy_loss", "nll_loss", "nll_loss_nd")
def _cross_entropy(
    c: Any, x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    if label_smoothing or target.dtype.is_floating_point:
        return _smoothed(c, x, target, weight, reduction, ignore_index, label_smoothing)
    kind = "SoftmaxCrossEntropyLoss" if "cross" in str(c.at.target) else "NegativeLogLikelihoodLoss"
    how = ("none", "mean", "sum")[reduction]
    return c.op(kind, x, target, weight, reduction=how, ignore_index=ignore_index)


@row("mse_loss", "l1_loss")
def _difference(c: Any, x: Any, y: Any, reduction: int = 1) -> Any:
    away = c.op("Sub", x, y)
    made = c.op("Mul", away, away) if "mse" in str(c.at.target) else c.op("Abs", away)
    if reduction == 0:
        return made
    return c.op("ReduceMean" if reduction == 1 else "ReduceSum", made, keepdims=0)
