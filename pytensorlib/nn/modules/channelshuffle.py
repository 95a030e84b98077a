"""Mixing groups of channels."""

from __future__ import annotations

from ... import Tensor
from .. import functional as F
from ..module import Module


class ChannelShuffle(Module):
    """Interleave ``groups`` groups of channels (arXiv:1707.01083)."""

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
