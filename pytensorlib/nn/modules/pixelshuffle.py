"""Moving values between channels and pixels."""

from __future__ import annotations

from ... import Tensor
from .. import functional as F
from ..module import Module


class PixelShuffle(Module):
    """Make images larger out of channels: (N, C r^2, H, W) to (N, C, H r, W r).

    Parameters
    ----------
    upscale_factor : int
        r.

    References
    ----------
    Shi et al. 2016, arXiv:1609.05158.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.PixelShuffle(2)(torch.arange(4.0).view(1, 4, 1, 1))
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Make channels out of pixels: (N, C, H r, W r) to (N, C r^2, H, W).

    Parameters
    ----------
    downscale_factor : int
        r.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.PixelUnshuffle(2)(torch.arange(4.0).view(1, 1, 2, 2)).shape
    torch.Size([1, 4, 1, 1])
    """

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
