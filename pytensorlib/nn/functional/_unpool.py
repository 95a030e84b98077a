"""Fractional max pooling and unpooling."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..._C import _nn
from ._common import ntuple

__all__ = [
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]


def _fractional(
    pool: Any,
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    samples: Tensor | None,
    n: int,
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{n}d"
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        ratios = ntuple(output_ratio, n)
        output_size = [int(s * r) for s, r in zip(input.shape[-n:], ratios)]
    if samples is None:
        batch = 1 if input.dim() == n + 1 else input.size(0)
        shape = (batch, input.size(-n - 1), n)
        samples = pt.rand(shape, dtype=input.dtype, device=input.device)
    return pool(input, kernel_size, output_size, samples)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` and where each maximum was found.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    kernel_size : int or tuple of int
        The size of the window.
    output_size : int or tuple of int, optional
        The spatial sizes wanted.
    output_ratio : tuple of float, optional
        The ratio of output to input size, in (0, 1), instead of `output_size`.
    return_indices : bool
        Without effect: they are always returned.

    Returns
    -------
    tuple of Tensor
        The maxima and their positions in the flattened plane, int64.

    Raises
    ------
    ValueError
        Neither a size nor a ratio is given.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> y, at = F.fractional_max_pool2d_with_indices(torch.ones(1, 5, 5), 2, output_size=3)
    >>> y.shape, at.shape
    (torch.Size([1, 3, 3]), torch.Size([1, 3, 3]))
    """
    pool = _nn.fractional_max_pool2d
    return _fractional(pool, input, kernel_size, output_size, output_ratio, _random_samples, 2)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool3d` and where each maximum was found.

    Parameters
    ----------
    input : Tensor
        (N, C, D, H, W) or (C, D, H, W).
    kernel_size : int or tuple of int
        The size of the window.
    output_size : int or tuple of int, optional
        The spatial sizes wanted.
    output_ratio : tuple of float, optional
        The ratio of output to input size, in (0, 1), instead of `output_size`.
    return_indices : bool
        Without effect: they are always returned.

    Returns
    -------
    tuple of Tensor
        The maxima and their positions in the flattened volume, int64.

    Raises
    ------
    ValueError
        Neither a size nor a ratio is given.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> y, at = F.fractional_max_pool3d_with_indices(torch.ones(1, 5, 5, 5), 2, output_size=3)
    >>> y.shape, at.shape
    (torch.Size([1, 3, 3, 3]), torch.Size([1, 3, 3, 3]))
    """
    pool = _nn.fractional_max_pool3d
    return _fractional(pool, input, kernel_size, output_size, output_ratio, _random_samples, 3)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maximum over windows at random places, so that the size shrinks by any ratio.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    kernel_size : int or tuple of int
        The size of the window.
    output_size : int or tuple of int, optional
        The spatial sizes wanted.
    output_ratio : tuple of float, optional
        The ratio of output to input size, in (0, 1), instead of `output_size`.
    return_indices : bool, default False
        Return where each maximum was found too.

    Returns
    -------
    Tensor or tuple of Tensor
        (N, C, H', W').

    Raises
    ------
    ValueError
        Neither a size nor a ratio is given.

    References
    ----------
    Graham 2014, arXiv:1412.6071.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.fractional_max_pool2d(torch.ones(1, 5, 5), 2, output_ratio=(0.7, 0.7)).shape
    torch.Size([1, 3, 3])
    """
    found = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, _random_samples=_random_samples
    )
    return found if return_indices else found[0]


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maximum over windows at random places, so that the size shrinks by any ratio.

    Parameters
    ----------
    input : Tensor
        (N, C, D, H, W) or (C, D, H, W).
    kernel_size : int or tuple of int
        The size of the window.
    output_size : int or tuple of int, optional
        The spatial sizes wanted.
    output_ratio : tuple of float, optional
        The ratio of output to input size, in (0, 1), instead of `output_size`.
    return_indices : bool, default False
        Return where each maximum was found too.

    Returns
    -------
    Tensor or tuple of Tensor
        (N, C, D', H', W').

    Raises
    ------
    ValueError
        Neither a size nor a ratio is given.

    References
    ----------
    Graham 2014, arXiv:1412.6071.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.fractional_max_pool3d(torch.ones(1, 5, 5, 5), 2, output_size=3).shape
    torch.Size([1, 3, 3, 3])
    """
    found = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, _random_samples=_random_samples
    )
    return found if return_indices else found[0]


def _unpool_size(
    input: Tensor, kernel: tuple, stride: tuple, padding: tuple, output_size: Any
) -> list[int]:
    n = len(kernel)
    sizes = input.shape[-n:]
    default = [(s - 1) * t + k - 2 * p for s, t, k, p in zip(sizes, stride, kernel, padding)]
    if output_size is None:
        return default
    output_size = list(output_size)
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, "
            f"but it has a length of '{len(output_size)}'"
        )
    for d, (asked, own, step) in enumerate(zip(output_size, default, stride)):
        if not own - step < asked < own + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between '
                f"{own - step} and {own + step})"
            )
    return output_size


def _unpool_arguments(kernel_size: Any, stride: Any, padding: Any, n: int) -> tuple:
    kernel = ntuple(kernel_size, n)
    return kernel, kernel if stride is None else ntuple(stride, n), ntuple(padding, n)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Put maxima back where `max_pool1d` found them; zeros elsewhere.

    Parameters
    ----------
    input, indices : Tensor
        (N, C, L) or (C, L): what the pooling returned, indices int64.
    kernel_size, stride, padding : int or tuple of int
        Those of the pooling; the stride is `kernel_size` by default.
    output_size : sequence of int, optional
        The size before the pooling, where several give the same size after it.

    Returns
    -------
    Tensor
        (N, C, L').

    Raises
    ------
    ValueError
        `output_size` cannot come from this pooling.
    RuntimeError
        An index is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> y, at = F.max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2, return_indices=True)
    >>> F.max_unpool1d(y, at, 2)
    tensor([[0., 3., 2., 0.]])
    """
    kernel, steps, pads = _unpool_arguments(kernel_size, stride, padding, 1)
    size = _unpool_size(input, kernel, steps, pads, output_size)
    return _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Put maxima back where `max_pool2d` found them; zeros elsewhere.

    Parameters
    ----------
    input, indices : Tensor
        (N, C, H, W) or (C, H, W): what the pooling returned, indices int64.
    kernel_size, stride, padding : int or tuple of int
        Those of the pooling; the stride is `kernel_size` by default.
    output_size : sequence of int, optional
        The size before the pooling, where several give the same size after it.

    Returns
    -------
    Tensor
        (N, C, H', W').

    Raises
    ------
    ValueError
        `output_size` cannot come from this pooling.
    RuntimeError
        An index is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> y, at = F.max_pool2d(torch.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2, return_indices=True)
    >>> F.max_unpool2d(y, at, 2)
    tensor([[[0., 3.],
             [0., 0.]]])
    """
    kernel, steps, pads = _unpool_arguments(kernel_size, stride, padding, 2)
    size = _unpool_size(input, kernel, steps, pads, output_size)
    return _nn.max_unpool2d(input, indices, size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Put maxima back where `max_pool3d` found them; zeros elsewhere.

    Parameters
    ----------
    input, indices : Tensor
        (N, C, D, H, W) or (C, D, H, W): what the pooling returned, indices int64.
    kernel_size, stride, padding : int or tuple of int
        Those of the pooling; the stride is `kernel_size` by default.
    output_size : sequence of int, optional
        The size before the pooling, where several give the same size after it.

    Returns
    -------
    Tensor
        (N, C, D', H', W').

    Raises
    ------
    ValueError
        `output_size` cannot come from this pooling.
    RuntimeError
        An index is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> y, at = F.max_pool3d(torch.arange(8.0).view(1, 2, 2, 2), 2, return_indices=True)
    >>> F.max_unpool3d(y, at, 2).sum()
    tensor(7.)
    """
    kernel, steps, pads = _unpool_arguments(kernel_size, stride, padding, 3)
    size = _unpool_size(input, kernel, steps, pads, output_size)
    return _nn.max_unpool3d(input, indices, size, steps, pads)
