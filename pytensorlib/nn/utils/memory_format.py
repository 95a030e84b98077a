"""The memory format of convolutions' weights."""

from __future__ import annotations

from typing import Any

from ..module import Module
from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Module, kinds: tuple[type, ...], memory_format: Any) -> Module:
    for layer in module.modules():
        if isinstance(layer, kinds):
            weight: Any = layer.weight
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Bring the weights of 2-d convolutions into a memory format.

    Parameters
    ----------
    module : Module
        Whose convolutions, its own and those inside, are changed in place.
    memory_format : memory_format
        Such as ``torch.channels_last``.

    Returns
    -------
    Module
        Itself.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> layer = nn.Conv2d(4, 2, 3)
    >>> nn.utils.convert_conv2d_weight_memory_format(layer, torch.channels_last)
    Conv2d(4, 2, kernel_size=(3, 3), stride=(1, 1))
    >>> layer.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Bring the weights of 3-d convolutions into a memory format.

    Parameters
    ----------
    module : Module
        Whose convolutions, its own and those inside, are changed in place.
    memory_format : memory_format
        Such as ``torch.channels_last_3d``.

    Returns
    -------
    Module
        Itself.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> layer = nn.Conv3d(4, 2, 3)
    >>> layer = nn.utils.convert_conv3d_weight_memory_format(layer, torch.channels_last_3d)
    >>> layer.weight.is_contiguous(memory_format=torch.channels_last_3d)
    True
    """
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
