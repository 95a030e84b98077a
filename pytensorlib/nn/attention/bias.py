"""Masks of attention by name."""

from __future__ import annotations

import enum

import pytensorlib as pt

__all__ = ["CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the diagonal of a causal mask that is not square begins.

    Examples
    --------
    >>> from pytensorlib.nn.attention.bias import CausalVariant
    >>> CausalVariant.UPPER_LEFT.value
    1
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


def causal_upper_left(*size: int) -> pt.Tensor:
    """Return a causal mask whose diagonal begins at the first query and key.

    Parameters
    ----------
    *size : int
        Numbers of queries and of keys.

    Returns
    -------
    Tensor
        Bool; True where a key may be seen.

    Examples
    --------
    >>> from pytensorlib.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3).tolist()
    [[True, False, False], [True, True, False]]
    """
    if len(size) != 2:
        raise RuntimeError("causal_upper_left only supports 2D tensors")
    return pt.ones(size, dtype=pt.bool).tril()


def causal_lower_right(*size: int) -> pt.Tensor:
    """Return a causal mask whose diagonal ends at the last query and key.

    Parameters
    ----------
    *size : int
        Numbers of queries and of keys.

    Returns
    -------
    Tensor
        Bool; True where a key may be seen.

    Examples
    --------
    >>> from pytensorlib.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3).tolist()
    [[True, True, False], [True, True, True]]
    """
    if len(size) != 2:
        raise RuntimeError("causal_lower_right only supports 2D tensors")
    return pt.ones(size, dtype=pt.bool).tril(size[1] - size[0])
