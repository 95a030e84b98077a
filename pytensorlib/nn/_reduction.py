"""The `reduction` of losses, as a number and from deprecated arguments."""

from __future__ import annotations

import warnings

from .functional._common import legacy_reduction, reduction_enum

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]


def get_enum(reduction: str) -> int:
    """Return the number of a reduction.

    Parameters
    ----------
    reduction : {"none", "mean", "sum"}
        Its name.

    Returns
    -------
    int
        0, 1 or 2.

    Raises
    ------
    ValueError
        It is no name of one.

    Examples
    --------
    >>> from pytensorlib.nn._reduction import get_enum
    >>> get_enum("mean")
    1
    """
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=2,
        )
        reduction = "mean"
    return reduction_enum(reduction)


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """Return the name of a reduction, of the arguments that told it long ago.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Whether it is the mean; whether there is one. None means True.
    emit_warning : bool, default True
        Whether to warn that they are old.

    Returns
    -------
    str
        "none", "mean" or "sum".

    Examples
    --------
    >>> from pytensorlib.nn._reduction import legacy_get_string
    >>> legacy_get_string(False, None, emit_warning=False)
    'sum'
    """
    return legacy_reduction(size_average, reduce, emit_warning)


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """Return the number of a reduction, of the arguments that told it long ago.

    Parameters
    ----------
    size_average, reduce, emit_warning
        As of `legacy_get_string`.

    Returns
    -------
    int
        0, 1 or 2.

    Examples
    --------
    >>> from pytensorlib.nn._reduction import legacy_get_enum
    >>> legacy_get_enum(True, False, emit_warning=False)
    0
    """
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
