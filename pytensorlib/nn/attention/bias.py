"""Masks of attention by name."""

from __future__ import annotations

import enum
import warnings
from typing import Any

import pytensorlib as pt

from .. import functional as F

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


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


class CausalBias(pt.Tensor):
    """A causal mask that knows its name, so that attention needs not read it.

    Parameters
    ----------
    variant : CausalVariant
        Where its diagonal begins.
    seq_len_q, seq_len_kv : int
        Numbers of queries and of keys.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.attention.bias import CausalBias, CausalVariant
    >>> CausalBias(CausalVariant.LOWER_RIGHT, 2, 3).tolist()
    [[True, True, False], [True, True, True]]
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        lower = variant == CausalVariant.LOWER_RIGHT
        if lower and seq_len_q > seq_len_kv:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > "
                "seq_len_kv!",
                stacklevel=2,
            )
        whole = pt.ones(seq_len_q, seq_len_kv, dtype=pt.bool)
        return whole.tril(seq_len_kv - seq_len_q if lower else 0).as_subclass(cls)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv

    def _materialize(self, device: Any = None) -> pt.Tensor:
        """Return it as a tensor like all others."""
        return self.to(device or "cpu")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is F.scaled_dot_product_attention:
            return _attention(*args, **kwargs)
        with pt.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Return the attention under a mask that may have a name."""
    if isinstance(attn_mask, CausalBias):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        is_causal = square or attn_mask.variant == CausalVariant.UPPER_LEFT
        attn_mask = None if is_causal else attn_mask._materialize(query.device)
    with pt.DisableTorchFunctionSubclass():
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )


def causal_upper_left(*size: int) -> CausalBias:
    """Return a causal mask whose diagonal begins at the first query and key.

    Parameters
    ----------
    *size : int
        Numbers of queries and of keys.

    Returns
    -------
    CausalBias
        Bool; True where a key may be seen.

    Raises
    ------
    AssertionError
        There are not two numbers.

    Examples
    --------
    >>> from pytensorlib.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3).tolist()
    [[True, False, False], [True, True, False]]
    """
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """Return a causal mask whose diagonal ends at the last query and key.

    Parameters
    ----------
    *size : int
        Numbers of queries and of keys.

    Returns
    -------
    CausalBias
        Bool; True where a key may be seen.

    Raises
    ------
    AssertionError
        There are not two numbers.

    Examples
    --------
    >>> from pytensorlib.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3).tolist()
    [[True, True, False], [True, True, True]]
    """
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
