"""Image transforms on tensors (C, H, W); PIL images where PIL is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pytensorlib as pt

__all__ = [
    "CenterCrop",
    "Compose",
    "Grayscale",
    "Lambda",
    "Normalize",
    "RandomCrop",
    "RandomHorizontalFlip",
    "Resize",
    "ToTensor",
]


def _pair(size: int | Sequence[int]) -> tuple[int, int]:
    if isinstance(size, int):
        return size, size
    if len(size) == 1:
        return size[0], size[0]
    height, width = size
    return height, width


def _image(what: str, x: Any) -> Any:
    if not isinstance(x, pt.Tensor) or x.dim() < 2:
        found = tuple(x.shape) if isinstance(x, pt.Tensor) else type(x).__name__
        raise TypeError(f"{what}: needs a tensor (..., H, W), got {found}; use ToTensor first")
    return x


class Compose:
    """One transform after another.

    Parameters
    ----------
    transforms : sequence of callable
        Each takes what the one before returns.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import transforms
    >>> change = transforms.Compose([transforms.CenterCrop(2), transforms.Normalize([0.5], [0.5])])
    >>> change(torch.ones(1, 4, 4))
    tensor([[[1., 1.],
             [1., 1.]]])
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def __repr__(self) -> str:
        lines = "".join(f"\n    {transform}" for transform in self.transforms)
        return f"{type(self).__name__}({lines}\n)"


class ToTensor:
    """An array (H, W) or (H, W, C), or a PIL image, to a tensor (C, H, W).

    Bytes become float numbers from 0 to 1; other dtypes keep their values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> import numpy as np
    >>> torch.transforms.ToTensor()(np.array([[0, 255]], dtype=np.uint8))
    tensor([[[0., 1.]]])
    """

    def __call__(self, image: Any) -> Any:
        array = np.asarray(image)
        if array.ndim not in (2, 3):
            raise ValueError(f"ToTensor: needs (H, W) or (H, W, C), got shape {array.shape}")
        array = array[:, :, None] if array.ndim == 2 else array
        x = pt.from_numpy(np.array(array.transpose(2, 0, 1), order="C"))
        return x.to(pt.get_default_dtype()) / 255 if array.dtype == np.uint8 else x

    def __repr__(self) -> str:
        return "ToTensor()"


class Normalize:
    """``(x - mean) / std`` for each channel.

    Parameters
    ----------
    mean, std : sequence of float
        One number for each channel, or one for all.
    inplace : bool, default False
        Whether to change the image itself.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.transforms.Normalize([0.5], [0.5])(torch.tensor([[[0.0, 1.0]]]))
    tensor([[[-1.,  1.]]])
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        self.mean, self.std, self.inplace = mean, std, inplace

    def __call__(self, x: Any) -> Any:
        x = _image("Normalize", x)
        if not x.is_floating_point():
            raise TypeError(f"Normalize: needs a floating tensor, got {x.dtype}")
        mean = pt.as_tensor(self.mean, dtype=x.dtype, device=x.device).view(-1, 1, 1)
        std = pt.as_tensor(self.std, dtype=x.dtype, device=x.device).view(-1, 1, 1)
        if (std == 0).any():
            raise ValueError(f"Normalize: std must not be zero, got {self.std}")
        return x.sub_(mean).div_(std) if self.inplace else (x - mean) / std

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"


class Lambda:
    """A function as a transform.

    Parameters
    ----------
    lambd : callable
        Takes an image.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.transforms.Lambda(lambda x: 2 * x)(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Lambda: needs a function, got {type(lambd).__name__}")
        self.lambd = lambd

    def __call__(self, x: Any) -> Any:
        return self.lambd(x)

    def __repr__(self) -> str:
        return "Lambda()"


class RandomHorizontalFlip:
    """Mirrored with probability `p`.

    Parameters
    ----------
    p : float, default 0.5
        From 0 to 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.transforms.RandomHorizontalFlip(p=1.0)(torch.tensor([[[1, 2]]]))
    tensor([[[2, 1]]])
    """

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, x: Any) -> Any:
        x = _image("RandomHorizontalFlip", x)
        return x.flip(-1) if pt.rand(1).item() < self.p else x

    def __repr__(self) -> str:
        return f"RandomHorizontalFlip(p={self.p})"


class CenterCrop:
    """The middle `size` of an image; a smaller image gets zeros around it.

    Parameters
    ----------
    size : int or (height, width)
        One number is a square.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.transforms.CenterCrop(1)(torch.arange(9).reshape(1, 3, 3))
    tensor([[[4]]])
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = _pair(size)

    def __call__(self, x: Any) -> Any:
        x = _image("CenterCrop", x)
        height, width = self.size
        down, across = max(0, height - x.shape[-2]), max(0, width - x.shape[-1])
        if down or across:
            before = (across // 2, across - across // 2, down // 2, down - down // 2)
            x = pt.nn.functional.pad(x, before)
        top = round((x.shape[-2] - height) / 2)
        left = round((x.shape[-1] - width) / 2)
        return x[..., top : top + height, left : left + width]

    def __repr__(self) -> str:
        return f"CenterCrop(size={self.size})"


class RandomCrop:
    """A random `size` of an image, after `padding` it with zeros.

    Parameters
    ----------
    size : int or (height, width)
        One number is a square.
    padding : int, optional
        Zeros on all sides first.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.transforms.RandomCrop(2, padding=1)(torch.zeros(3, 4, 4)).shape
    torch.Size([3, 2, 2])
    """

    def __init__(self, size: int | Sequence[int], padding: int | None = None) -> None:
        self.size, self.padding = _pair(size), padding

    def __call__(self, x: Any) -> Any:
        x = _image("RandomCrop", x)
        if self.padding:
            x = pt.nn.functional.pad(x, (self.padding,) * 4)
        height, width = self.size
        down, across = x.shape[-2] - height, x.shape[-1] - width
        if down < 0 or across < 0:
            raise ValueError(
                f"Required crop size {self.size} is larger than input image size "
                f"{tuple(x.shape[-2:])}"
            )
        top = int(pt.randint(0, down + 1, (1,)).item())
        left = int(pt.randint(0, across + 1, (1,)).item())
        return x[..., top : top + height, left : left + width]

    def __repr__(self) -> str:
        return f"RandomCrop(size={self.size}, padding={self.padding})"


class Resize:
    """Bilinear to `size`; one number is the length of the shorter side.

    Parameters
    ----------
    size : int or (height, width)
        In pixels.
    antialias : bool, default True
        Whether to smooth where the image shrinks.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.transforms.Resize(2)(torch.zeros(3, 4, 8)).shape
    torch.Size([3, 2, 4])
    """

    def __init__(self, size: int | Sequence[int], antialias: bool = True) -> None:
        self.size, self.antialias = size, antialias

    def __call__(self, x: Any) -> Any:
        x = _image("Resize", x)
        height, width = x.shape[-2:]
        if isinstance(self.size, int):
            short = min(height, width)
            size = int(self.size * height / short), int(self.size * width / short)
        else:
            size = _pair(self.size)
        batch = x if x.dim() == 4 else x.reshape(1, -1, height, width)
        exact = batch if batch.is_floating_point() else batch.float()
        y = pt.nn.functional.interpolate(
            exact, size=size, mode="bilinear", align_corners=False, antialias=self.antialias
        )
        if not x.is_floating_point():
            y = y.round().to(x.dtype)
        return y.reshape(*x.shape[:-2], *size)

    def __repr__(self) -> str:
        return f"Resize(size={self.size})"


class Grayscale:
    """Red, green and blue to their brightness, in 1 or 3 equal channels.

    Parameters
    ----------
    num_output_channels : {1, 3}, default 1
        How many.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.transforms.Grayscale()(torch.ones(3, 1, 2)).shape
    torch.Size([1, 1, 2])
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        if num_output_channels not in (1, 3):
            raise ValueError(f"num_output_channels should be 1 or 3, got {num_output_channels}")
        self.num_output_channels = num_output_channels

    def __call__(self, x: Any) -> Any:
        x = _image("Grayscale", x)
        if x.dim() < 3 or x.shape[-3] not in (1, 3):
            raise TypeError(f"Grayscale: needs 1 or 3 channels, got shape {tuple(x.shape)}")
        if x.shape[-3] == 3:  # ITU-R 601-2
            red, green, blue = x.unbind(-3)
            x = (0.2989 * red + 0.587 * green + 0.114 * blue).to(x.dtype).unsqueeze(-3)
        return x.expand(*x.shape[:-3], self.num_output_channels, *x.shape[-2:])

    def __repr__(self) -> str:
        return f"Grayscale(num_output_channels={self.num_output_channels})"
