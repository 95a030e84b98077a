"""Helpers of the functional families."""

from __future__ import annotations

import warnings
from typing import Any

from ... import Tensor
from ..._C import _is_interpreted

# Whether calls are recorded, or answered by somebody else.
is_watched = _is_interpreted

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def reduction_enum(reduction: str, size_average: Any = None, reduce: Any = None) -> int:
    """The operators' number for a reduction, honouring the two deprecated arguments."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    number = REDUCTIONS.get(reduction) if isinstance(reduction, str) else None
    if number is None:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return number


def legacy_reduction(size_average: Any, reduce: Any, emit_warning: bool = True) -> str:
    """The reduction that the deprecated ``size_average`` and ``reduce`` ask for."""
    average = True if size_average is None else size_average
    reduction = ("mean" if average else "sum") if reduce is None or reduce else "none"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
            stacklevel=3,
        )
    return reduction


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """``loss`` after its reduction."""
    number = reduction_enum(reduction)
    return loss if number == 0 else loss.mean() if number == 1 else loss.sum()


def ntuple(value: Any, n: int) -> tuple:
    """``value`` as a tuple, a single number repeated ``n`` times."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n
