"""Mixing groups of channels."""

from __future__ import annotations

from ... import Tensor
from .. import functional as F
from ..module import Module


class ChannelShuffle(Module):
    """Interleave groups of channels: (N, C, ...) to the same shape, channel ``i`` of each group
    in turn.

    Parameters
    ----------
    groups : int
        Divides C.

    References
    ----------
    Zhang et al. 2017, arXiv:1707.01083.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ChannelShuffle(2)(torch.arange(4.0).view(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
