"""Pooling."""

from __future__ import annotations

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
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
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
    """``max_pool1d`` and where each maximum was found."""
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
    """``max_pool2d`` and where each maximum was found in its flattened plane."""
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
    """``max_pool3d`` and where each maximum was found in its flattened volume."""
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
    """The maximum of each window; the stride is the window's size when left out."""
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
    """The maximum of each window; the stride is the window's size when left out."""
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
    """The maximum of each window; the stride is the window's size when left out."""
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
    """Average over as many windows as ``output_size`` asks for."""
    return _nn.adaptive_avg_pool2d(input, _with_defaults(output_size, input))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Average over as many windows as ``output_size`` asks for."""
    return _nn.adaptive_avg_pool3d(input, _with_defaults(output_size, input))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """``adaptive_max_pool1d`` and where each maximum was found."""
    return pt.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """``adaptive_max_pool2d`` and where each maximum was found."""
    return _nn.adaptive_max_pool2d(input, _with_defaults(output_size, input))


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """``adaptive_max_pool3d`` and where each maximum was found."""
    return _nn.adaptive_max_pool3d(input, _with_defaults(output_size, input))


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum over as many windows as ``output_size`` asks for."""
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum over as many windows as ``output_size`` asks for."""
    found = adaptive_max_pool2d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum over as many windows as ``output_size`` asks for."""
    found = adaptive_max_pool3d_with_indices(input, output_size)
    return found if return_indices else found[0]


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
    """``fractional_max_pool2d`` and where each maximum was found."""
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
    """``fractional_max_pool3d`` and where each maximum was found."""
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
    """The maximum over windows at random places (arXiv:1412.6071)."""
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
    """The maximum over windows at random places (arXiv:1412.6071)."""
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
    """Put the maxima back where ``max_pool1d`` found them; zeros elsewhere."""
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
    """Put the maxima back where ``max_pool2d`` found them; zeros elsewhere."""
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
    """Put the maxima back where ``max_pool3d`` found them; zeros elsewhere."""
    kernel, steps, pads = _unpool_arguments(kernel_size, stride, padding, 3)
    size = _unpool_size(input, kernel, steps, pads, output_size)
    return _nn.max_unpool3d(input, indices, size, steps, pads)


def _lp(
    input: Tensor, norm_type: float, pool: Any, kernel: Any, stride: Any, ceil: bool, n: int
) -> Tensor:
    kernel = ntuple(kernel, n)
    count = 1
    for size in kernel:
        count *= size
    stride = kernel if stride is None else stride
    mean = pool(input.pow(norm_type), kernel, stride, 0, ceil)
    return (pt.sign(mean) * pt.relu(pt.abs(mean))).mul(count).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window."""
    return _lp(input, norm_type, avg_pool1d, kernel_size, stride, ceil_mode, 1)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window."""
    return _lp(input, norm_type, avg_pool2d, kernel_size, stride, ceil_mode, 2)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window."""
    return _lp(input, norm_type, avg_pool3d, kernel_size, stride, ceil_mode, 3)
