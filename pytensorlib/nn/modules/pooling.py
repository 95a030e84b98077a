"""Pooling."""

from __future__ import annotations

from typing import Any

from ... import Tensor
from .. import functional as F
from ..module import Module
from .utils import ntuple


class _MaxPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
    _op: Any = None

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._op(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of (N, C, L) or (C, L).

    Parameters
    ----------
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    padding : int or tuple of int, default 0
        Added on both sides; at most half the window. It never wins.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    return_indices : bool, default False
        Return where each maximum was found too, for unpooling.
    ceil_mode : bool, default False
        Round sizes up: count windows that begin inside and end outside.

    Raises
    ------
    RuntimeError
        The windows do not fit into the input.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.MaxPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    _op = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of (N, C, H, W) or (C, H, W).

    H' is ``(H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1``, rounded down;
    so is W'.

    Parameters
    ----------
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    padding : int or tuple of int, default 0
        Added on both sides; at most half the window. It never wins.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    return_indices : bool, default False
        Return where each maximum was found too, for unpooling.
    ceil_mode : bool, default False
        Round sizes up: count windows that begin inside and end outside.

    Raises
    ------
    RuntimeError
        The windows do not fit into the input.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.MaxPool2d(2)(torch.arange(16.0).view(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    _op = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of (N, C, D, H, W) or (C, D, H, W).

    Parameters
    ----------
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    padding : int or tuple of int, default 0
        Added on both sides; at most half the window. It never wins.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    return_indices : bool, default False
        Return where each maximum was found too, for unpooling.
    ceil_mode : bool, default False
        Round sizes up: count windows that begin inside and end outside.

    Raises
    ------
    RuntimeError
        The windows do not fit into the input.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.MaxPool3d(2)(torch.arange(8.0).view(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """

    _op = staticmethod(F.max_pool3d)


class _MaxUnpoolNd(Module):
    _n = 0
    _op: Any = None

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = ntuple(kernel_size, self._n)
        self.stride = self.kernel_size if stride is None else ntuple(stride, self._n)
        self.padding = ntuple(padding, self._n)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return self._op(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Put maxima back where `MaxPool1d` found them; zeros elsewhere.

    The call takes the maxima, their indices, and an optional ``output_size``.

    Parameters
    ----------
    kernel_size, stride, padding : int or tuple of int
        Those of the pooling; the stride is `kernel_size` by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> y, at = nn.MaxPool1d(2, return_indices=True)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    >>> nn.MaxUnpool1d(2)(y, at)
    tensor([[0., 3., 2., 0.]])
    """

    _n = 1
    _op = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    """Put maxima back where `MaxPool2d` found them; zeros elsewhere.

    The call takes the maxima, their indices, and an optional ``output_size``.

    Parameters
    ----------
    kernel_size, stride, padding : int or tuple of int
        Those of the pooling; the stride is `kernel_size` by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> y, at = nn.MaxPool2d(2, return_indices=True)(torch.tensor([[[1.0, 3.0], [2.0, 0.0]]]))
    >>> nn.MaxUnpool2d(2)(y, at)
    tensor([[[0., 3.],
             [0., 0.]]])
    """

    _n = 2
    _op = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    """Put maxima back where `MaxPool3d` found them; zeros elsewhere.

    The call takes the maxima, their indices, and an optional ``output_size``.

    Parameters
    ----------
    kernel_size, stride, padding : int or tuple of int
        Those of the pooling; the stride is `kernel_size` by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> y, at = nn.MaxPool3d(2, return_indices=True)(torch.arange(8.0).view(1, 2, 2, 2))
    >>> nn.MaxUnpool3d(2)(y, at).sum()
    tensor(7.)
    """

    _n = 3
    _op = staticmethod(F.max_unpool3d)


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of (N, C, L) or (C, L).

    Parameters
    ----------
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    padding : int or tuple of int, default 0
        Zeros on both sides; at most half the window.
    ceil_mode : bool, default False
        Round sizes up: count windows that begin inside and end outside.
    count_include_pad : bool, default True
        Let the zeros count in the mean.

    Raises
    ------
    RuntimeError
        The windows do not fit into the input.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.AvgPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = ntuple(kernel_size, 1)
        self.stride = ntuple(kernel_size if stride is None else stride, 1)
        self.padding = ntuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _WindowAvgPool(_AvgPoolNd):
    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]
    _op: Any = None

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._op(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_WindowAvgPool):
    """The mean of each window of (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    padding : int or tuple of int, default 0
        Zeros on both sides; at most half the window.
    ceil_mode : bool, default False
        Round sizes up: count windows that begin inside and end outside.
    count_include_pad : bool, default True
        Let the zeros count in the mean.
    divisor_override : int, optional
        Divide the sums by this instead of the number of elements.

    Raises
    ------
    RuntimeError
        The windows do not fit into the input.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.AvgPool2d(2)(torch.arange(16.0).view(1, 4, 4))
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """

    _op = staticmethod(F.avg_pool2d)


class AvgPool3d(_WindowAvgPool):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W).

    Parameters
    ----------
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    padding : int or tuple of int, default 0
        Zeros on both sides; at most half the window.
    ceil_mode : bool, default False
        Round sizes up: count windows that begin inside and end outside.
    count_include_pad : bool, default True
        Let the zeros count in the mean.
    divisor_override : int, optional
        Divide the sums by this instead of the number of elements.

    Raises
    ------
    RuntimeError
        The windows do not fit into the input.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.AvgPool3d(2)(torch.arange(8.0).view(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """

    _op = staticmethod(F.avg_pool3d)


class _FractionalMaxPool(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _n = 0
    _op: Any = None

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = ntuple(kernel_size, self._n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else ntuple(output_size, self._n)
        self.output_ratio = None if output_ratio is None else ntuple(output_ratio, self._n)
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        return self._op(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maximum over windows at random places, so that images shrink by any ratio.

    Parameters
    ----------
    kernel_size : int or tuple of int
        The size of the window.
    output_size : int or tuple of int, optional
        The spatial sizes wanted.
    output_ratio : tuple of float, optional
        The ratio of output to input size, in (0, 1), instead of `output_size`.
    return_indices : bool, default False
        Return where each maximum was found too.

    Raises
    ------
    ValueError
        Neither or both of a size and a ratio are given, or a ratio is not in (0, 1).

    References
    ----------
    Graham 2014, arXiv:1412.6071.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.FractionalMaxPool2d(2, output_size=3)(torch.ones(1, 5, 5)).shape
    torch.Size([1, 3, 3])
    """

    _n = 2
    _op = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maximum over windows at random places, so that volumes shrink by any ratio.

    Parameters
    ----------
    kernel_size : int or tuple of int
        The size of the window.
    output_size : int or tuple of int, optional
        The spatial sizes wanted.
    output_ratio : tuple of float, optional
        The ratio of output to input size, in (0, 1), instead of `output_size`.
    return_indices : bool, default False
        Return where each maximum was found too.

    Raises
    ------
    ValueError
        Neither or both of a size and a ratio are given, or a ratio is not in (0, 1).

    References
    ----------
    Graham 2014, arXiv:1412.6071.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.FractionalMaxPool3d(2, output_size=3)(torch.ones(1, 5, 5, 5)).shape
    torch.Size([1, 3, 3, 3])
    """

    _n = 3
    _op = staticmethod(F.fractional_max_pool3d)


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    _op: Any = None

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        power = float(self.norm_type)
        return self._op(input, power, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """``(sum of x ** norm_type) ** (1 / norm_type)`` over each window of (N, C, L) or (C, L).

    Parameters
    ----------
    norm_type : float
        The exponent; not 0.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    ceil_mode : bool, default False
        Count windows that end outside.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.LPPool1d(2, 2)(torch.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """

    _op = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """``(sum of x ** norm_type) ** (1 / norm_type)`` over each window of (N, C, H, W) or (C, H,
    W).

    Parameters
    ----------
    norm_type : float
        The exponent; not 0.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    ceil_mode : bool, default False
        Count windows that end outside.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.LPPool2d(2, 2)(torch.ones(1, 2, 2))
    tensor([[[2.]]])
    """

    _op = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """``(sum of x ** norm_type) ** (1 / norm_type)`` over each window of (N, C, D, H, W) or (C,
    D, H, W).

    Parameters
    ----------
    norm_type : float
        The exponent; not 0.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The step between windows; `kernel_size` by default.
    ceil_mode : bool, default False
        Count windows that end outside.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.LPPool3d(1, 2)(torch.ones(1, 2, 2, 2))
    tensor([[[[8.]]]])
    """

    _op = staticmethod(F.lp_pool3d)


class _AdaptivePool(Module):
    __constants__ = ["output_size"]
    _op: Any = None

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Any:
        return self._op(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPoolNd(_AdaptivePool):
    pass


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The mean over as many windows of (N, C, L) or (C, L) as are asked for.

    Parameters
    ----------
    output_size : int
        L'.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.AdaptiveAvgPool1d(2)(torch.arange(4.0).view(1, 4))
    tensor([[0.5000, 2.5000]])
    """

    _op = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The mean over as many windows of (N, C, H, W) or (C, H, W) as are asked for; 1 gives
    global pooling.

    Parameters
    ----------
    output_size : int or tuple of (int or None)
        H' and W'; None keeps the input's size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.AdaptiveAvgPool2d((1, None))(torch.arange(4.0).view(1, 2, 2))
    tensor([[[1., 2.]]])
    """

    _op = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The mean over as many windows of (N, C, D, H, W) or (C, D, H, W) as are asked for.

    Parameters
    ----------
    output_size : int or tuple of (int or None)
        D', H' and W'; None keeps the input's size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.AdaptiveAvgPool3d(1)(torch.arange(8.0).view(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """

    _op = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPoolNd(_AdaptivePool):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return self._op(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maximum over as many windows of (N, C, L) or (C, L) as are asked for.

    Parameters
    ----------
    output_size : int
        L'.
    return_indices : bool, default False
        Return where each maximum was found too.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.AdaptiveMaxPool1d(2)(torch.tensor([[1.0, 3.0, 2.0]]))
    tensor([[3., 3.]])
    """

    _op = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maximum over as many windows of (N, C, H, W) or (C, H, W) as are asked for.

    Parameters
    ----------
    output_size : int or tuple of (int or None)
        H' and W'; None keeps the input's size.
    return_indices : bool, default False
        Return where each maximum was found too.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.AdaptiveMaxPool2d((1, 2))(torch.arange(4.0).view(1, 2, 2))
    tensor([[[2., 3.]]])
    """

    _op = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maximum over as many windows of (N, C, D, H, W) or (C, D, H, W) as are asked for.

    Parameters
    ----------
    output_size : int or tuple of (int or None)
        D', H' and W'; None keeps the input's size.
    return_indices : bool, default False
        Return where each maximum was found too.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.AdaptiveMaxPool3d((1, 1, 2))(torch.arange(8.0).view(1, 2, 2, 2))
    tensor([[[[6., 7.]]]])
    """

    _op = staticmethod(F.adaptive_max_pool3d)
