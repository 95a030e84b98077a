"""Transformers."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ... import Tensor
from .. import functional as F
from .. import init
from ..module import Module
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .normalization import LayerNorm


def _generate_square_subsequent_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    dtype = pt.get_default_dtype() if dtype is None else dtype
    full = pt.full((size, size), float("-inf"), dtype=dtype, device=device)
    return pt.triu(full, diagonal=1)


def _get_clones(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _detect_is_causal_mask(mask: Tensor | None, asked: bool | None, size: int | None) -> bool:
    """Whether ``mask`` is the causal one; compared only where the caller did not say."""
    if asked is not None:
        return asked
    if mask is None or size is None or tuple(mask.shape[-2:]) != (size, size):
        return False
    causal = _generate_square_subsequent_mask(size, device=mask.device, dtype=mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())


def _get_seq_len(x: Tensor, batch_first: bool) -> int:
    return x.shape[0 if x.dim() == 2 else int(batch_first)]


def _get_activation_fn(activation: Any) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _kind_of_activation(activation: Any) -> int:
    if activation is F.relu or isinstance(activation, ReLU):
        return 1
    return 2 if activation is F.gelu or isinstance(activation, GELU) else 0


class _Layer(Module):
    """The feed-forward block that both kinds of layer end with."""

    __constants__ = ["norm_first"]
    linear1: Linear
    linear2: Linear
    activation: Any

    def _make_feed_forward(
        self, d_model: int, hidden: int, dropout: float, bias: bool, made: dict[str, Any]
    ) -> None:
        self.linear1 = Linear(d_model, hidden, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(hidden, d_model, bias=bias, **made)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block, each with a residual: (S, N, E) to the same shape.

    Parameters
    ----------
    d_model : int
        The width of the model.
    nhead : int
        Heads; divides `d_model`.
    dim_feedforward : int, default 2048
        The width inside the feed-forward block.
    dropout : float, default 0.1
        Of each block's result and of the attention weights.
    activation : callable or {'relu', 'gelu'}, default relu
        Inside the feed-forward block.
    layer_norm_eps : float, default 1e-5
        Of the layer norms.
    batch_first : bool, default False
        Inputs are (N, L, E) instead of (L, N, E).
    norm_first : bool, default False
        Normalise before each block instead of after it.
    bias : bool, default True
        Learn offsets.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.TransformerEncoderLayer(8, 2, 16)(torch.ones(5, 2, 8)).shape
    torch.Size([5, 2, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **made
        )
        self._make_feed_forward(d_model, dim_feedforward, dropout, bias, made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        activation = _get_activation_fn(activation)
        self.activation_relu_or_gelu = _kind_of_activation(activation)
        self.activation = activation

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        dtype = None if src_mask is None else src_mask.dtype
        padding = F._canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", dtype, "src_mask", src.dtype
        )
        mask = F._canonical_mask(src_mask, "src_mask", None, "", src.dtype, False)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, mask: Any, padding: Any, is_causal: bool = False) -> Tensor:
        x = self.self_attn(
            x,
            x,
            x,
            attn_mask=mask,
            key_padding_mask=padding,
            need_weights=False,
            is_causal=is_causal,
        )[0]
        return self.dropout1(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._feed_forward(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to `memory` and a feed-forward block, each with a residual.

    The call takes `tgt` (T, N, E) and `memory` (S, N, E), and returns (T, N, E).

    Parameters
    ----------
    d_model : int
        The width of the model.
    nhead : int
        Heads; divides `d_model`.
    dim_feedforward : int, default 2048
        The width inside the feed-forward block.
    dropout : float, default 0.1
        Of each block's result and of the attention weights.
    activation : callable or {'relu', 'gelu'}, default relu
        Inside the feed-forward block.
    layer_norm_eps : float, default 1e-5
        Of the layer norms.
    batch_first : bool, default False
        Inputs are (N, L, E) instead of (L, N, E).
    norm_first : bool, default False
        Normalise before each block instead of after it.
    bias : bool, default True
        Learn offsets.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.TransformerDecoderLayer(8, 2, 16)(torch.ones(3, 2, 8), torch.ones(5, 2, 8)).shape
    torch.Size([3, 2, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        super().__init__()
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **made}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self._make_feed_forward(d_model, dim_feedforward, dropout, bias, made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, mask: Any, padding: Any, is_causal: bool = False) -> Tensor:
        x = self.self_attn(
            x,
            x,
            x,
            attn_mask=mask,
            key_padding_mask=padding,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout1(x)

    def _mha_block(
        self, x: Tensor, mem: Tensor, mask: Any, padding: Any, is_causal: bool = False
    ) -> Tensor:
        x = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=mask,
            key_padding_mask=padding,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout2(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._feed_forward(x))


def _kept_padding(layer: Any) -> str:
    """Say why PyTorch's fast path, which knows no padding, does not take an encoder layer."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention: Any = layer.self_attn
    if not isinstance(attention, MultiheadAttention):
        return "encoder_layer.self_attn was not MultiheadAttention"
    reasons = {
        "encoder_layer.norm_first was True": layer.norm_first,
        "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference "
        "performance)": not attention.batch_first,
        "encoder_layer.self_attn was passed bias=False": attention.in_proj_bias is None,
        "encoder_layer.activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
        "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps": (
            layer.norm1.eps != layer.norm2.eps
        ),
        "encoder_layer.self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }
    return next((why for why, holds in reasons.items() if holds), "")


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer.

    The call takes `src` (S, N, E), a `mask` (S, S) and a `src_key_padding_mask` (N, S).

    Parameters
    ----------
    encoder_layer : TransformerEncoderLayer
        What is copied.
    num_layers : int
        How many.
    norm : Module, optional
        Applied at the end.
    enable_nested_tensor : bool, default True
        In evaluation, where nothing requires grad, PyTorch's sequences then have no padding
        between the layers. So what comes out of the last one is zero there: if there is no
        `mask`, padding is at the end only, and the layer has ``batch_first``, relu or gelu,
        biases, an even number of heads and no ``norm_first``.
    mask_check : bool, default True
        Without it padding is taken to be at the end.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> nn.TransformerEncoder(layer, 2)(torch.ones(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        why = _kept_padding(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not why
        if enable_nested_tensor and why:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why}",
                stacklevel=2,
            )
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        dtype = None if mask is None else mask.dtype
        padding = F._canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", dtype, "mask", src.dtype
        )
        mask = F._canonical_mask(mask, "mask", None, "", src.dtype, False)
        attention = getattr(self.layers[0], "self_attn", None) if len(self.layers) else None
        length = _get_seq_len(src, getattr(attention, "batch_first", False))
        causal = _detect_is_causal_mask(mask, is_causal, length)
        dropped = self._dropped(src, mask, padding)
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if dropped is not None:
            src = src.masked_fill(dropped, 0.0)
        return src if self.norm is None else self.norm(src)

    def _dropped(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Return where PyTorch's layers see no padding, as a mask of `src`; None without any."""
        # Modules that old versions pickled have no such attribute.
        if self.training or padding is None or not getattr(self, "use_nested_tensor", False):
            return None
        if mask is not None or src.dim() != 3:
            return None
        from ...amp.autocast_mode import is_autocast_enabled  # slow to load

        if is_autocast_enabled(src.device.type):
            return None
        if pt.is_grad_enabled() and any(
            t.requires_grad for t in (src, *self.layers[0].parameters())
        ):
            return None
        hidden = padding if padding.dtype == pt.bool else padding == -math.inf
        at_the_end = not (self.mask_check and bool((hidden[:, :-1] & ~hidden[:, 1:]).any()))
        return hidden.unsqueeze(2) if at_the_end else None


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer.

    The call takes `tgt` (T, N, E), `memory` (S, N, E) and masks for both.

    Parameters
    ----------
    decoder_layer : TransformerDecoderLayer
        What is copied.
    num_layers : int
        How many.
    norm : Module, optional
        Applied at the end.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> nn.TransformerDecoder(layer, 2)(torch.ones(2, 3, 8), torch.ones(2, 5, 8)).shape
    torch.Size([2, 3, 8])
    """

    __constants__ = ["norm"]

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        attention = getattr(self.layers[0], "self_attn", None) if len(self.layers) else None
        length = _get_seq_len(tgt, getattr(attention, "batch_first", False))
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder that reads a sequence, and a decoder that writes another while attending to it.

    The call takes `src` (S, N, E) and `tgt` (T, N, E), and returns (T, N, E).

    Parameters
    ----------
    d_model : int, default 512
        E, the width of the model.
    nhead : int, default 8
        Heads; divides `d_model`.
    num_encoder_layers, num_decoder_layers : int, default 6
        How many layers there are of each kind.
    dim_feedforward : int, default 2048
        The width inside the feed-forward blocks.
    dropout : float, default 0.1
        Of each block's result and of the attention weights.
    activation : callable or {'relu', 'gelu'}, default relu
        Inside the feed-forward blocks.
    custom_encoder, custom_decoder : Module, optional
        Instead of stacks of layers.
    layer_norm_eps : float, default 1e-5
        Of the layer norms.
    batch_first : bool, default False
        Inputs are (N, S, E) and (N, T, E).
    norm_first : bool, default False
        Normalise before each block instead of after it.
    bias : bool, default True
        Learn offsets.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(torch.ones(2, 5, 8), torch.ones(2, 3, 8)).shape
    torch.Size([2, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward)
        options: tuple = (dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer = TransformerEncoderLayer(*sizes, *options, **made)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            decoder_layer = TransformerDecoderLayer(*sizes, *options, **made)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for param in self.parameters():
            if param.dim() > 1:
                init.xavier_uniform_(param)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        axis = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(axis) != tgt.size(axis):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Zeros on and below the diagonal, minus infinity above."""
        return _generate_square_subsequent_mask(sz, device, dtype)
