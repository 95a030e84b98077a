"""Pooling."""

from __future__ import annotations

import math
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..._C import _nn
from ._common import ntuple

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
]

avg_pool1d = pt.avg_pool1d
avg_pool2d = _nn.avg_pool2d
avg_pool3d = _nn.avg_pool3d
adaptive_avg_pool1d = pt.adaptive_avg_pool1d


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool1d` and where each maximum was found.

    Parameters
    ----------
    input : Tensor
        (N, C, L) or (C, L).
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    padding : int or tuple of int, default 0
        Added on both sides; at most half the window.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    ceil_mode : bool, default False
        Round sizes up: count windows that begin inside and end outside.
    return_indices : bool
        Without effect: they are always returned.

    Returns
    -------
    tuple of Tensor
        The maxima and their positions along L, int64, both (N, C, L').

    Raises
    ------
    RuntimeError
        The windows do not fit into the input.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.max_pool1d_with_indices(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    stride = [] if stride is None else stride
    return pt.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool2d` and where each maximum was found.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    padding : int or tuple of int, default 0
        Added on both sides; at most half the window.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    ceil_mode : bool, default False
        Round sizes up: count windows that begin inside and end outside.
    return_indices : bool
        Without effect: they are always returned.

    Returns
    -------
    tuple of Tensor
        The maxima and their positions in the flattened plane, int64, both (N, C, H', W').

    Raises
    ------
    RuntimeError
        The windows do not fit into the input.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.max_pool2d_with_indices(torch.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2)
    (tensor([[[3.]]]), tensor([[[1]]]))
    """
    stride = [] if stride is None else stride
    return _nn.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool3d` and where each maximum was found.

    Parameters
    ----------
    input : Tensor
        (N, C, D, H, W) or (C, D, H, W).
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    padding : int or tuple of int, default 0
        Added on both sides; at most half the window.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    ceil_mode : bool, default False
        Round sizes up: count windows that begin inside and end outside.
    return_indices : bool
        Without effect: they are always returned.

    Returns
    -------
    tuple of Tensor
        The maxima and their positions in the flattened volume, int64, both (N, C, D', H',
        W').

    Raises
    ------
    RuntimeError
        The windows do not fit into the input.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.max_pool3d_with_indices(torch.arange(8.0).view(1, 2, 2, 2), 2)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    stride = [] if stride is None else stride
    return _nn.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of a sequence. NaN wins; padding never does.

    L' is ``(L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1``, rounded down.

    Parameters
    ----------
    input : Tensor
        (N, C, L) or (C, L).
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    padding : int or tuple of int, default 0
        Added on both sides; at most half the window.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    ceil_mode : bool, default False
        Round sizes up: count windows that begin inside and end outside.
    return_indices : bool, default False
        Return where each maximum was found too, for `max_unpool1d`.

    Returns
    -------
    Tensor or tuple of Tensor
        (N, C, L').

    Raises
    ------
    RuntimeError
        The windows do not fit into the input.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    stride = [] if stride is None else stride
    pool = pt.max_pool1d_with_indices if return_indices else pt.max_pool1d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of an image. NaN wins; padding never does.

    H' is ``(H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1``, rounded down;
    so is W'.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    padding : int or tuple of int, default 0
        Added on both sides; at most half the window.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    ceil_mode : bool, default False
        Round sizes up: count windows that begin inside and end outside.
    return_indices : bool, default False
        Return where each maximum was found too, for `max_unpool2d`.

    Returns
    -------
    Tensor or tuple of Tensor
        (N, C, H', W').

    Raises
    ------
    RuntimeError
        The windows do not fit into the input.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.max_pool2d(torch.arange(16.0).view(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    stride = [] if stride is None else stride
    pool = _nn.max_pool2d_with_indices if return_indices else pt.max_pool2d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of a volume. NaN wins; padding never does.

    Parameters
    ----------
    input : Tensor
        (N, C, D, H, W) or (C, D, H, W).
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    padding : int or tuple of int, default 0
        Added on both sides; at most half the window.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    ceil_mode : bool, default False
        Round sizes up: count windows that begin inside and end outside.
    return_indices : bool, default False
        Return where each maximum was found too, for `max_unpool3d`.

    Returns
    -------
    Tensor or tuple of Tensor
        (N, C, D', H', W'), sizes as in `max_pool2d`.

    Raises
    ------
    RuntimeError
        The windows do not fit into the input.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.max_pool3d(torch.arange(8.0).view(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    stride = [] if stride is None else stride
    pool = _nn.max_pool3d_with_indices if return_indices else pt.max_pool3d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def _with_defaults(output_size: Any, input: Tensor) -> Any:
    """``output_size`` with each None replaced by the input's own size."""
    if isinstance(output_size, (int, float)):
        return output_size
    if input.dim() <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    own = input.shape[-len(output_size) :]
    return [s if s is not None else o for s, o in zip(output_size, own)]


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Average over as many windows as are asked for; together they cover the image.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W), floating point.
    output_size : int or tuple of (int or None)
        H' and W'; None keeps the input's size.

    Returns
    -------
    Tensor
        (N, C, H', W').

    Raises
    ------
    ValueError
        `input` has too few dimensions.

    References
    ----------
    He et al. 2014, arXiv:1406.4729 (pooling to a fixed size).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.adaptive_avg_pool2d(torch.arange(4.0).view(1, 2, 2), (1, None))
    tensor([[[1., 2.]]])
    """
    return _nn.adaptive_avg_pool2d(input, _with_defaults(output_size, input))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Average over as many windows as are asked for; together they cover the volume.

    Parameters
    ----------
    input : Tensor
        (N, C, D, H, W) or (C, D, H, W), floating point.
    output_size : int or tuple of (int or None)
        D', H' and W'; None keeps the input's size.

    Returns
    -------
    Tensor
        (N, C, D', H', W').

    Raises
    ------
    ValueError
        `input` has too few dimensions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.adaptive_avg_pool3d(torch.arange(8.0).view(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    return _nn.adaptive_avg_pool3d(input, _with_defaults(output_size, input))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool1d` and where each maximum was found.

    Parameters
    ----------
    input : Tensor
        (N, C, L) or (C, L).
    output_size : int
        L'.
    return_indices : bool
        Without effect: they are always returned.

    Returns
    -------
    tuple of Tensor
        The maxima and their positions along L, int64, both (N, C, L').

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.adaptive_max_pool1d_with_indices(torch.tensor([[1.0, 3.0, 2.0]]), 1)
    (tensor([[3.]]), tensor([[1]]))
    """
    return pt.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d` and where each maximum was found.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    output_size : int or tuple of (int or None)
        H' and W'; None keeps the input's size.
    return_indices : bool
        Without effect: they are always returned.

    Returns
    -------
    tuple of Tensor
        The maxima and their positions in the flattened plane, int64.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.adaptive_max_pool2d_with_indices(torch.arange(4.0).view(1, 2, 2), 1)
    (tensor([[[3.]]]), tensor([[[3]]]))
    """
    return _nn.adaptive_max_pool2d(input, _with_defaults(output_size, input))


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool3d` and where each maximum was found.

    Parameters
    ----------
    input : Tensor
        (N, C, D, H, W) or (C, D, H, W).
    output_size : int or tuple of (int or None)
        D', H' and W'; None keeps the input's size.
    return_indices : bool
        Without effect: they are always returned.

    Returns
    -------
    tuple of Tensor
        The maxima and their positions in the flattened volume, int64.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.adaptive_max_pool3d_with_indices(torch.arange(8.0).view(1, 2, 2, 2), 1)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    return _nn.adaptive_max_pool3d(input, _with_defaults(output_size, input))


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum over as many windows as are asked for; together they cover the sequence.

    Parameters
    ----------
    input : Tensor
        (N, C, L) or (C, L).
    output_size : int
        L'.
    return_indices : bool, default False
        Return where each maximum was found too.

    Returns
    -------
    Tensor or tuple of Tensor
        (N, C, L').

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.adaptive_max_pool1d(torch.tensor([[1.0, 3.0, 2.0]]), 2)
    tensor([[3., 3.]])
    """
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum over as many windows as are asked for; together they cover the image.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    output_size : int or tuple of (int or None)
        H' and W'; None keeps the input's size.
    return_indices : bool, default False
        Return where each maximum was found too.

    Returns
    -------
    Tensor or tuple of Tensor
        (N, C, H', W').

    Raises
    ------
    ValueError
        `input` has too few dimensions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.adaptive_max_pool2d(torch.arange(4.0).view(1, 2, 2), (1, 2))
    tensor([[[2., 3.]]])
    """
    found = adaptive_max_pool2d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum over as many windows as are asked for; together they cover the volume.

    Parameters
    ----------
    input : Tensor
        (N, C, D, H, W) or (C, D, H, W).
    output_size : int or tuple of (int or None)
        D', H' and W'; None keeps the input's size.
    return_indices : bool, default False
        Return where each maximum was found too.

    Returns
    -------
    Tensor or tuple of Tensor
        (N, C, D', H', W').

    Raises
    ------
    ValueError
        `input` has too few dimensions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.adaptive_max_pool3d(torch.arange(8.0).view(1, 2, 2, 2), (1, 1, 2))
    tensor([[[[6., 7.]]]])
    """
    found = adaptive_max_pool3d_with_indices(input, output_size)
    return found if return_indices else found[0]


def _lp(input: Tensor, norm_type: float, kernel: Any, stride: Any, ceil: bool, n: int) -> Tensor:
    kernel = ntuple(kernel, n)
    count = 1
    for size in kernel:
        count *= size
    stride = kernel if stride is None else stride
    if math.isinf(norm_type):
        # The limit: the largest, or the least, distance from zero.
        sign = math.copysign(1, norm_type)
        pool = (max_pool1d, max_pool2d, max_pool3d)[n - 1]
        return pool(input.abs() * sign, kernel, stride, 0, 1, ceil) * sign
    average = (avg_pool1d, avg_pool2d, avg_pool3d)[n - 1]
    mean = average(input.pow(norm_type), kernel, stride, 0, ceil)
    return (pt.sign(mean) * pt.relu(pt.abs(mean))).mul(count).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """``(sum of x ** norm_type) ** (1 / norm_type)`` over each window of a sequence.

    Parameters
    ----------
    input : Tensor
        (N, C, L) or (C, L), floating point.
    norm_type : float
        The exponent; not 0. An infinite one gives the largest, or the least, ``abs(x)``.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    ceil_mode : bool, default False
        Count windows that end outside.

    Returns
    -------
    Tensor
        (N, C, L').

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.lp_pool1d(torch.tensor([[3.0, 4.0]]), 2, kernel_size=2)
    tensor([[5.]])
    """
    return _lp(input, norm_type, kernel_size, stride, ceil_mode, 1)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """``(sum of x ** norm_type) ** (1 / norm_type)`` over each window of an image.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W), floating point.
    norm_type : float
        The exponent; not 0. An infinite one gives the largest, or the least, ``abs(x)``.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    ceil_mode : bool, default False
        Count windows that end outside.

    Returns
    -------
    Tensor
        (N, C, H', W').

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.lp_pool2d(torch.ones(1, 2, 2), 2, kernel_size=2)
    tensor([[[2.]]])
    """
    return _lp(input, norm_type, kernel_size, stride, ceil_mode, 2)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """``(sum of x ** norm_type) ** (1 / norm_type)`` over each window of a volume.

    Parameters
    ----------
    input : Tensor
        (N, C, D, H, W) or (C, D, H, W), floating point.
    norm_type : float
        The exponent; not 0. An infinite one gives the largest, or the least, ``abs(x)``.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    ceil_mode : bool, default False
        Count windows that end outside.

    Returns
    -------
    Tensor
        (N, C, D', H', W').

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.lp_pool3d(torch.ones(1, 2, 2, 2), 1, kernel_size=2)
    tensor([[[[8.]]]])
    """
    return _lp(input, norm_type, kernel_size, stride, ceil_mode, 3)
