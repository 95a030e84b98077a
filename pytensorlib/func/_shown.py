"""How tensors are printed within transforms, level by level."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent
from typing import Any

from .. import _C
from ..autograd._levels import Watch
from ..autograd.forward_ad import _Level
from ..autograd.function import _watching
from ._batch import Batch

__all__ = ["text"]


def text(x: Any, plain: Callable[[Any], str]) -> str | None:
    """Return the text of a tensor of a transform; None of one that is none of theirs.

    `plain` gives the text of others.
    """
    levels = [
        w
        for w in _watching.stack
        if isinstance(w, Batch)
        or (isinstance(w, _Level) and w.transform)
        or getattr(w, "level", None) is not None
    ]
    return _within(x, levels, plain) or _escaped(x, plain)


def _escaped(x: Any, plain: Callable[[Any], str]) -> str | None:
    """As `text`, of slices that are kept after their function has returned."""
    found = _C._slices_of(x)
    if found is None:
        return None
    (whole, dim), depth = found, 1
    inner = _C._slices_of(whole)
    while inner is not None:
        depth, inner = depth + 1, _C._slices_of(inner[0])
    shown = _escaped(whole, plain) or plain(whole)
    return f"BatchedTensor(lvl={depth}, bdim={dim}, value=\n{indent(shown, '    ')}\n)"


def _within(x: Any, levels: list[Any], plain: Callable[[Any], str]) -> str | None:
    """As `text`, for the first levels."""
    while levels:
        *outer, level = levels
        of: Any = _of_gradient
        if isinstance(level, (Batch, _Level)):
            of = _of_batch if isinstance(level, Batch) else _of_tangent
        inner = of(x, level)
        if inner is not None:
            how, value = inner
            shown = _within(value, outer, plain) or plain(value)
            return f"{how.format(lvl=len(levels))}, value=\n{indent(shown, '    ')}\n)"
        levels = outer
    return None


def _of_batch(x: Any, batch: Batch) -> tuple[str, Any] | None:
    """Return how a slice is called, and what it is a slice of."""
    if not batch.has(x):
        return None
    whole, dim = _C._slices_of(x)
    return f"BatchedTensor(lvl={{lvl}}, bdim={dim}", whole


def _of_tangent(x: Any, level: _Level) -> tuple[str, Any] | None:
    """Return how a tensor with a tangent is called, and its value."""
    if not level.core.has(x):
        return None
    return "GradTrackingTensor(lvl={lvl}", level.leave(x)[0]


def _of_gradient(x: Any, watch: Watch) -> tuple[str, Any] | None:
    """Return how a tensor of a differentiated function is called, and its value."""
    level = watch.level
    if level is None:
        return None
    for inside, given in zip(level.like, level.given, strict=True):
        if x is inside:
            return "GradTrackingTensor(lvl={lvl}", given
    if id(x) in watch.made or level.holds(x):
        return "GradTrackingTensor(lvl={lvl}", _C._detach(x)
    return None
