"""Attention."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..._C import _nn
from ._activation import softmax
from ._dropout import dropout

__all__ = [
    "multi_head_attention_forward",
    "scaled_dot_product_attention",
]

scaled_dot_product_attention = _nn.scaled_dot_product_attention


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Tensor | None:
    """Return a mask as numbers to add to the scores: True becomes minus infinity.

    Parameters
    ----------
    mask : Tensor or None
        Bool or floating point; None is returned as it is.
    mask_name, other_name : str
        How messages call the masks.
    other_type : dtype or None
        That of another mask; a different one warns.
    target_type : dtype
        That of the result, where `mask` is bool.
    check_other : bool, default True
        Whether to compare with `other_type`.

    Returns
    -------
    Tensor or None
        The shape of `mask`.

    Raises
    ------
    AssertionError
        The mask holds integers.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> mask = torch.tensor([True, False])
    >>> F._canonical_mask(mask, "mask", None, "", torch.float32)
    tensor([-inf, 0.])
    """
    if mask is None:
        return None
    is_bool = mask.dtype == pt.bool
    if not is_bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. "
            "Use same type for both instead.",
            stacklevel=3,
        )
    if not is_bool:
        return mask
    return pt.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _mha_shape_check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether the input is batched; raises where the shapes do not fit."""
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor"
        )
    kind = "batched" if dims == 3 else "unbatched"
    if not key.dim() == value.dim() == dims:
        raise AssertionError(
            f"For {kind} ({dims}-D) `query`, expected `key` and `value` to be {dims}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"For {kind} ({dims}-D) `query`, expected `key_padding_mask` to be `None` or "
            f"{dims - 1}-D but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} ({dims}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D "
                f"but found {attn_mask.dim()}-D tensor instead"
            )
        want = (num_heads, query.shape[0], key.shape[0])
        if dims == 2 and attn_mask.dim() == 3 and tuple(attn_mask.shape) != want:
            raise AssertionError(
                f"Expected `attn_mask` shape to be {want} but got {attn_mask.shape}"
            )
    return dims == 3


def _none_or_dtype(input: Tensor | None) -> Any:
    """Return a tensor's type; None where there is no tensor."""
    if input is not None and not isinstance(input, Tensor):
        raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")
    return None if input is None else input.dtype


def _batch_first(x: Tensor) -> bool:
    """Whether batches come first in memory: products then read plain rows, and stay that way."""
    return not x.is_contiguous() and x.transpose(0, 1).is_contiguous()


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None) -> Any:
    """The three input projections from one stacked weight, in as few products as they allow."""
    width = q.size(-1)
    if k is v and q is k:
        swapped = _batch_first(q)
        packed = _nn.linear(q.transpose(0, 1) if swapped else q, w, b)
        packed = packed.transpose(0, 1) if swapped else packed
        return packed.unflatten(-1, (3, width)).unbind(-2)
    weights = w.chunk(3)
    biases = (None,) * 3 if b is None else b.chunk(3)
    return tuple(_nn.linear(x, m, c) for x, m, c in zip((q, k, v), weights, biases))


def _project(
    q: Tensor, k: Tensor, v: Tensor, weights: tuple, bias: Tensor | None, width: int
) -> Any:
    """The three input projections from separate weights."""
    w_q, w_k, w_v = weights
    if tuple(w_q.shape) != (width, q.size(-1)):
        raise AssertionError(
            f"expecting query weights shape of {(width, q.size(-1))}, but got {w_q.shape}"
        )
    for name, w, x in (("key", w_k, k), ("value", w_v, v)):
        if tuple(w.shape) != (width, x.size(-1)):
            raise AssertionError(
                f"expecting {name} weights shape of {(width, x.size(-1))}, but got {w.shape}"
            )
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(_nn.linear(x, w, b) for x, w, b in zip((q, k, v), weights, biases))


def _static(x: Tensor, name: str, heads: int, head_dim: int) -> Tensor:
    if x.size(0) != heads or x.size(2) != head_dim:
        raise AssertionError(
            f"expecting {name} of size ({heads}, ..., {head_dim}), but got {tuple(x.shape)}"
        )
    return x


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Project, attend with every head, and project back: what `nn.MultiheadAttention` computes.

    Inputs are (length, batch, width), or (length, width) without a batch; E is the width.

    Parameters
    ----------
    query, key, value : Tensor
        Floating point, (L, N, E), (S, N, Ek) and (S, N, Ev).
    embed_dim_to_check : int
        E, checked against `query`.
    num_heads : int
        Divides E.
    in_proj_weight : Tensor or None
        (3E, E), when all inputs have width E.
    in_proj_bias : Tensor or None
        (3E,).
    bias_k, bias_v : Tensor or None
        (1, 1, E): one more key and value, the same for all.
    add_zero_attn : bool
        Add a key and a value of zeros.
    dropout_p : float
        Of the weights, in training.
    out_proj_weight : Tensor
        (E, E).
    out_proj_bias : Tensor or None
        (E,).
    training : bool, default True
        Whether to drop weights.
    key_padding_mask : Tensor, optional
        (N, S): True, or a number to add, hides a key.
    need_weights : bool, default True
        Return the weights too, which is slower.
    attn_mask : Tensor, optional
        (L, S) or (N * num_heads, L, S): True, or a number to add, hides a key from a query.
    use_separate_proj_weight : bool, default False
        Use the three weights that follow.
    q_proj_weight, k_proj_weight, v_proj_weight : Tensor, optional
        (E, E), (E, Ek) and (E, Ev).
    static_k, static_v : Tensor, optional
        (N * num_heads, S, E / num_heads): projected already.
    average_attn_weights : bool, default True
        Return the mean over the heads.
    is_causal : bool, default False
        Says that `attn_mask` is the causal one.

    Returns
    -------
    tuple of (Tensor, Tensor or None)
        The output, shaped as `query`, and the weights, (N, L, S) or with all heads (N,
        num_heads, L, S).

    Raises
    ------
    AssertionError
        Shapes do not fit.
    RuntimeError
        `attn_mask` has the wrong shape, or `is_causal` stands without it.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> x, w = torch.ones(3, 1, 2), torch.eye(2)
    >>> y, p = F.multi_head_attention_forward(
    ...     x, x, x, 2, 1, torch.cat([w, w, w]), None, None, None, False, 0.0, w, None
    ... )
    >>> y.shape, p.shape
    (torch.Size([3, 1, 2]), torch.Size([1, 3, 3]))
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_key, same_value = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)

    target_length, batch, width = query.shape
    source_length = key.shape[0]
    other = None if attn_mask is None else attn_mask.dtype
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", other, "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. "
            "You may use the Transformer module method `generate_square_subsequent_mask`."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the operator masks by itself
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        is_causal = is_causal and key_padding_mask is None and not need_weights
    if width != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}"
        )
    head_dim = width // num_heads
    if head_dim * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")

    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                f"{value.shape[:2]}"
            )
        separate = (q_proj_weight, k_proj_weight, v_proj_weight)
        if any(w is None for w in separate):
            raise AssertionError(
                "use_separate_proj_weight is True but q, k or v_proj_weight is None"
            )
        q, k, v = _project(query, key, value, separate, in_proj_bias, width)
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)

    if attn_mask is not None:
        if attn_mask.dim() == 2:
            want: tuple = (target_length, source_length)
            attn_mask = attn_mask.unsqueeze(0)
            got = tuple(attn_mask.shape[1:])
        else:
            want = (batch * num_heads, target_length, source_length)
            got = tuple(attn_mask.shape)
        if got != want:
            raise RuntimeError(
                f"The shape of the {len(want)}D attn_mask is {got}, but should be {want}."
            )

    extra = 0
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = pt.cat([k, bias_k.repeat(1, batch, 1)])
        v = pt.cat([v, bias_v.repeat(1, batch, 1)])
        extra += 1
    elif bias_k is not None or bias_v is not None:
        raise AssertionError("bias_k and bias_v must be given together")

    heads = batch * num_heads

    def by_head(x: Tensor) -> Tensor:
        return x.contiguous().view(x.shape[0], heads, head_dim).transpose(0, 1)

    # The operator reads heads where they lie; the other ways want them one after the other.
    strided = not (need_weights or add_zero_attn) and static_k is None and static_v is None
    if not strided:
        q = by_head(q)
        k = by_head(k) if static_k is None else _static(static_k, "static_k", heads, head_dim)
        v = by_head(v) if static_v is None else _static(static_v, "static_v", heads, head_dim)
    if add_zero_attn:
        zeros = pt.zeros((heads, 1, head_dim), dtype=k.dtype, device=k.device)
        k, v = pt.cat([k, zeros], dim=1), pt.cat([v, zeros], dim=1)
        extra += 1
    if extra and attn_mask is not None:
        attn_mask = _nn.pad(attn_mask, (0, extra))
    if extra and key_padding_mask is not None:
        key_padding_mask = _nn.pad(key_padding_mask, (0, extra))
    source_length = k.size(0 if strided else 1)

    if key_padding_mask is not None:
        if tuple(key_padding_mask.shape) != (batch, source_length):
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, source_length)}, "
                f"but got {tuple(key_padding_mask.shape)}"
            )
        rows = key_padding_mask.view(batch, 1, 1, source_length).expand(-1, num_heads, -1, -1)
        rows = rows.reshape(heads, 1, source_length)
        attn_mask = rows if attn_mask is None else attn_mask + rows

    p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        scores = (q * math.sqrt(1.0 / head_dim)) @ k.transpose(-2, -1)
        weights = softmax(scores if attn_mask is None else scores + attn_mask, dim=-1)
        weights = dropout(weights, p) if p > 0.0 else weights
        mixed = pt.bmm(weights, v).transpose(0, 1)
    else:
        if attn_mask is not None:
            if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
                attn_mask = attn_mask.unsqueeze(0)
            else:
                attn_mask = attn_mask.view(batch, num_heads, -1, source_length)
        if strided:
            split = [x.unflatten(-1, (num_heads, head_dim)).permute(1, 2, 0, 3) for x in (q, k, v)]
        else:
            split = [x.view(batch, num_heads, -1, head_dim) for x in (q, k, v)]
        q, k, v = split
        mixed = scaled_dot_product_attention(q, k, v, attn_mask, p, is_causal)
    # In training the result lies as (L, N, E): what drops elements draws numbers in that order.
    if weights is None and not training and _batch_first(query):
        out = mixed.transpose(1, 2).reshape(batch, target_length, width)
        out = _nn.linear(out, out_proj_weight, out_proj_bias).transpose(0, 1)
    else:
        mixed = mixed if weights is not None else mixed.permute(2, 0, 1, 3)
        out = mixed.contiguous().view(target_length * batch, width)
        out = _nn.linear(out, out_proj_weight, out_proj_bias)
        out = out.view(target_length, batch, out.size(1))
    if weights is not None:
        weights = weights.view(batch, num_heads, target_length, source_length)
        weights = weights.mean(dim=1) if average_attn_weights else weights
    if not batched:
        out = out.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return out, weights
