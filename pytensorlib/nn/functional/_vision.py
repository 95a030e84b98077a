"""Padding, resampling and the rearrangement of images."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..._C import _nn
from ._common import ntuple
from ._pool import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

__all__ = [
    "affine_grid",
    "assert_int_or_pair",
    "channel_shuffle",
    "fold",
    "grid_sample",
    "interpolate",
    "native_channel_shuffle",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

pixel_shuffle = pt.pixel_shuffle
pixel_unshuffle = pt.pixel_unshuffle
channel_shuffle = pt.channel_shuffle
native_channel_shuffle = pt.native_channel_shuffle


def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions.

    Parameters
    ----------
    input : Tensor
        Any shape.
    pad : sequence of int
        Pairs (before, after), the last dimension first; negative numbers crop.
    mode : {'constant', 'reflect', 'replicate', 'circular'}, default 'constant'
        With what; the others than 'constant' pad 1 to 3 dimensions behind N and C.
    value : float, optional
        For 'constant'; 0 by default.

    Returns
    -------
    Tensor
        Larger than `input` by the pads.

    Raises
    ------
    RuntimeError
        `pad` has an odd length, or reflects more than there is.
    NotImplementedError
        `mode` is none of these.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.pad(torch.tensor([[1.0, 2.0]]), (1, 2, 0, 1))
    tensor([[0., 1., 2., 0., 0.],
            [0., 0., 0., 0., 0.]])
    >>> F.pad(torch.tensor([[1.0, 2.0, 3.0]]), (2, 0), mode="reflect")
    tensor([[3., 2., 1., 2., 3.]])
    """
    return _nn.pad(input, pad, mode, value)


def _pad_sequence(
    sequences: list[Tensor], batch_first: bool, padding_value: float, padding_side: str
) -> Tensor:
    """Stack sequences of different lengths, filled up on one side."""
    return _nn.pad_sequence(sequences, batch_first, padding_value, padding_side)


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Sum sliding blocks back into images: the transpose of `unfold`.

    Parameters
    ----------
    input : Tensor
        (N, C * block, L) or (C * block, L), floating point.
    output_size : int or tuple of int
        (H, W).
    kernel_size : int or tuple of int
        The size of a block.
    dilation, padding, stride : int or tuple of int
        The step inside a block, the zeros on both sides, the step between blocks.

    Returns
    -------
    Tensor
        (N, C, H, W).

    Raises
    ------
    RuntimeError
        L is not the number of blocks of such an image.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.fold(F.unfold(torch.ones(1, 1, 3, 3), 2), (3, 3), 2)
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """
    sizes = (ntuple(v, 2) for v in (output_size, kernel_size, dilation, padding, stride))
    return _nn.col2im(input, *sizes)


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Raise unless an argument is a number, or two.

    Parameters
    ----------
    arg : int or sequence of int
        The argument.
    arg_name : str
        Its name.
    message : str
        What the error says, with ``{}`` for the name.

    Raises
    ------
    AssertionError
        It is neither.

    Examples
    --------
    >>> from pytensorlib.nn import functional as F
    >>> F.assert_int_or_pair([1, 2, 3], "padding", "{} must be an int or a pair")
    Traceback (most recent call last):
        ...
    AssertionError: padding must be an int or a pair
    """
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The sliding blocks of images, as columns.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W), floating point.
    kernel_size : int or tuple of int
        The size of a block.
    dilation, padding, stride : int or tuple of int
        The step inside a block, the zeros on both sides, the step between blocks.

    Returns
    -------
    Tensor
        (N, C * block, L): one column for each of the L positions.

    Raises
    ------
    RuntimeError
        `input` has more dimensions, or no block fits.
    IndexError
        `input` has fewer dimensions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.unfold(torch.arange(6.0).view(1, 1, 2, 3), kernel_size=2)
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """
    sizes = (ntuple(v, 2) for v in (kernel_size, dilation, padding, stride))
    return _nn.im2col(input, *sizes)


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The sampling grid of a batch of affine maps, for `grid_sample`.

    Parameters
    ----------
    theta : Tensor
        (N, 2, 3) or (N, 3, 4), floating point.
    size : sequence of int
        Of the output, (N, C, H, W) or (N, C, D, H, W).
    align_corners : bool, optional
        Whether -1 and 1 are the centres of the corner elements, or their outer edges; not to
        say so warns.

    Returns
    -------
    Tensor
        (N, H, W, 2) or (N, D, H, W, 3), points as (x, y) or (x, y, z).

    Raises
    ------
    ValueError
        `theta` is not floating point, or shapes do not fit.

    References
    ----------
    Jaderberg et al. 2015, arXiv:1506.02025.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> same = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> F.affine_grid(same, (1, 1, 2, 2), align_corners=True)[0, 0]
    tensor([[-1., -1.],
            [ 1., -1.]])
    """
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False "
            "since 1.3.0. Please specify align_corners=True if the old behavior is desired. See "
            "the documentation of grid_sample for details.",
            stacklevel=2,
        )
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    n = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. "
            f"Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return pt.affine_grid_generator(theta, size, align_corners)


_GRID_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_GRID_PADDING = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample images at points whose coordinates run from -1 to 1.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (N, C, D, H, W), floating point.
    grid : Tensor
        (N, H', W', 2) or (N, D', H', W', 3), points as (x, y) or (x, y, z).
    mode : {'bilinear', 'nearest', 'bicubic'}, default 'bilinear'
        How values between elements are found.
    padding_mode : {'zeros', 'border', 'reflection'}, default 'zeros'
        What lies outside.
    align_corners : bool, optional
        Whether -1 and 1 are the centres of the corner elements, or their outer edges; not to
        say so warns.

    Returns
    -------
    Tensor
        (N, C, H', W') or (N, C, D', H', W').

    Raises
    ------
    ValueError
        A mode is none of these.
    RuntimeError
        Shapes do not fit.

    References
    ----------
    Jaderberg et al. 2015, arXiv:1506.02025.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> image, middle = torch.tensor([[[[1.0, 3.0]]]]), torch.zeros(1, 1, 1, 2)
    >>> F.grid_sample(image, middle, align_corners=True)
    tensor([[[[2.]]]])
    """
    if mode not in _GRID_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or "
            f"'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _GRID_PADDING:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False "
            "since 1.3.0. Please specify align_corners=True if the old behavior is desired. See "
            "the documentation of grid_sample for details.",
            stacklevel=2,
        )
        align_corners = False
    how, border = _GRID_MODES[mode], _GRID_PADDING[padding_mode]
    return pt.grid_sampler(input, grid, how, border, align_corners)


_PLAIN_MODES = ("nearest", "area", "nearest-exact")
_OPS = {
    ("nearest", 1): "upsample_nearest1d",
    ("nearest", 2): "upsample_nearest2d",
    ("nearest", 3): "upsample_nearest3d",
    ("nearest-exact", 1): "_upsample_nearest_exact1d",
    ("nearest-exact", 2): "_upsample_nearest_exact2d",
    ("nearest-exact", 3): "_upsample_nearest_exact3d",
    ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_bilinear2d",
    ("bicubic", 2): "upsample_bicubic2d",
    ("trilinear", 3): "upsample_trilinear3d",
}
_AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}


def _target_size(
    input: Tensor, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[list[int], list[float | None]]:
    """The output's size, and the scales that the operator should use instead of their ratio."""
    n = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    given = size if size is not None else scale_factor
    if isinstance(given, (list, tuple)) and len(given) != n:
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input "
            f"with spatial dimensions of {list(input.shape[2:])} and "
            f"{'output size' if size is not None else 'scale_factor'} of {given}. Give one "
            "number per spatial dimension, or one for all."
        )
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        sizes = ntuple(size, n)
        if any(isinstance(s, float) for s in sizes):
            raise TypeError(f"expected size to be one of int or sequence of int, but got {size}")
        return [s if hasattr(s, "__sym_float__") else int(s) for s in sizes], [None] * n
    scales = [float(s) for s in ntuple(scale_factor, n)]
    scaled = [math.floor(s * f) for s, f in zip(input.shape[2:], scales)]
    return scaled, [None] * n if recompute else list(scales)


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the spatial dimensions to a size or by a factor.

    Parameters
    ----------
    input : Tensor
        (N, C, d1, ...), with 1 to 3 spatial dimensions.
    size : int or tuple of int, optional
        The sizes wanted.
    scale_factor : float or tuple of float, optional
        The factors wanted, instead of `size`.
    mode : str, default 'nearest'
        'nearest', 'nearest-exact' or 'area'; 'linear' for one spatial dimension, 'bilinear'
        and 'bicubic' for two, 'trilinear' for three.
    align_corners : bool, optional
        In the linear and cubic modes: corners keep their values.
    recompute_scale_factor : bool, optional
        Use the ratio of the sizes rather than `scale_factor`.
    antialias : bool, default False
        Average over what a smaller image leaves out ('bilinear', 'bicubic').

    Returns
    -------
    Tensor
        (N, C, d1', ...).

    Raises
    ------
    ValueError
        Both or neither of `size` and `scale_factor` are given, or options contradict the
        mode.
    NotImplementedError
        The mode is not one for this number of dimensions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> x = torch.tensor([[[[1.0, 2.0]]]])
    >>> F.interpolate(x, scale_factor=2)
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]])
    >>> F.interpolate(x, size=(1, 3), mode="bilinear", align_corners=True)
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """
    if mode in _PLAIN_MODES:
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | "
                "bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    n = input.dim() - 2
    sizes, scales = _target_size(input, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError("Anti-alias option is only supported for bilinear and bicubic modes")
    if mode == "area" and n in _AREA:
        return _AREA[n](input, sizes)
    name = _OPS.get((mode, n))
    if name is None:
        known = {m for m, _ in _OPS} | {"area"}
        if mode in known and n in (1, 2, 3):
            dims = next(d for m, d in _OPS if m == mode) + 2
            raise NotImplementedError(f"Got {n + 2}D input, but {mode} mode needs {dims}D input")
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.dim()}D) for the modes: {' | '.join(sorted(known))} (got {mode})"
        )
    if antialias:
        name = f"_{name}_aa"
    corners = () if mode in _PLAIN_MODES else (align_corners,)
    return getattr(_nn, name)(input, sizes, *corners, *scales)


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The deprecated name of `interpolate`; it warns.

    Parameters
    ----------
    input : Tensor
        (N, C, d1, ...).
    size, scale_factor, mode, align_corners : optional
        As in `interpolate`.

    Returns
    -------
    Tensor
        (N, C, d1', ...).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     F.upsample(torch.ones(1, 1, 2), scale_factor=2).shape
    torch.Size([1, 1, 4])
    """
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The deprecated form of ``interpolate(..., mode="nearest")``; it warns.

    Parameters
    ----------
    input : Tensor
        (N, C, d1, ...).
    size, scale_factor : optional
        As in `interpolate`.

    Returns
    -------
    Tensor
        (N, C, d1', ...).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     F.upsample_nearest(torch.ones(1, 1, 2, 2), scale_factor=2).shape
    torch.Size([1, 1, 4, 4])
    """
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The deprecated form of ``interpolate(..., mode="bilinear", align_corners=True)``; it warns.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W).
    size, scale_factor : optional
        As in `interpolate`.

    Returns
    -------
    Tensor
        (N, C, H', W').

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     F.upsample_bilinear(torch.ones(1, 1, 2, 2), size=(3, 3)).shape
    torch.Size([1, 1, 3, 3])
    """
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
