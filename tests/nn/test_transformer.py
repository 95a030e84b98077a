"""Encoders of transformers: what becomes of padding."""

from __future__ import annotations

import math
from typing import Any

import pytensorlib as torch
from pytensorlib import nn


def encoder(**more: Any) -> Any:
    heads = more.pop("nhead", 2)
    layer = nn.TransformerEncoderLayer(8, heads, 16, **{"batch_first": True, **more})
    norm = nn.LayerNorm(8)
    nn.init.ones_(norm.bias)
    return nn.TransformerEncoder(layer, 2, norm).eval()


PADDING = torch.tensor([[0, 0, 1, 1], [0, 0, 0, 1]]).bool()


@torch.no_grad()
def is_dropped(net: Any, padding: Any = PADDING, **more: Any) -> bool:
    """Say whether what comes out at padded places is the norm of zeros."""
    x = torch.randn(2, 4, 8)
    if not net.layers[0].self_attn.batch_first:
        return bool((net(x.transpose(0, 1), **more).transpose(0, 1)[PADDING] == 1).all())
    return bool((net(x, src_key_padding_mask=padding, **more)[PADDING] == 1).all())


def test_encoder_in_evaluation_drops_padding_at_the_end() -> None:
    # PyTorch's layers work on sequences without padding there, and fill it with zeros after them.
    assert is_dropped(encoder())
    assert is_dropped(encoder(activation="gelu"))
    assert is_dropped(encoder(activation=nn.GELU()))
    assert is_dropped(encoder(), torch.zeros(2, 4).masked_fill(PADDING, -math.inf))
    assert is_dropped(encoder(), mask=None)


def test_encoder_keeps_padding_where_pytorch_does() -> None:
    for more in (
        {"norm_first": True},
        {"activation": torch.sigmoid},
        {"batch_first": False},
        {"bias": False},
        {"nhead": 1},
    ):
        assert not is_dropped(encoder(**more)), more
    net = encoder()
    assert not is_dropped(net, torch.tensor([[0, 1, 0, 1], [0, 0, 0, 1]]).bool())
    assert not is_dropped(net, mask=torch.zeros(4, 4).bool())
    with torch.enable_grad():
        y = net(torch.randn(2, 4, 8), src_key_padding_mask=PADDING)
    assert not (y[PADDING] == 1).any()
    assert not is_dropped(net.train())
    kept = nn.TransformerEncoder(net.layers[0], 2, net.norm, enable_nested_tensor=False).eval()
    assert not is_dropped(kept)


def test_encoder_in_evaluation_leaves_what_is_no_padding_as_it_is() -> None:
    net, x = encoder(), torch.randn(2, 4, 8)
    with torch.no_grad():
        dropped = net(x, src_key_padding_mask=PADDING)
    kept = net(x, src_key_padding_mask=PADDING)
    assert torch.equal(dropped[~PADDING], kept[~PADDING])
