"""Convolutions."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytensorlib as pt

from ... import Tensor
from .. import functional as F
from .. import init
from .._advice import advise
from ..module import Module
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .utils import ntuple

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    _n = 0  # spatial dimensions
    weight: Any
    bias: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple,
        stride: tuple,
        padding: Any,
        dilation: tuple,
        transposed: bool,
        output_padding: tuple,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of ('same', 'valid')"
                )
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            raise ValueError(
                f"padding_mode must be one of {list(_MODES)}, but got padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # (before, after) for F.pad, the last dimension first
        self._reversed_padding_repeated_twice = self._pads()
        if transposed:
            shape = (in_channels, out_channels // groups, *kernel_size)
        else:
            shape = (out_channels, in_channels // groups, *kernel_size)
        self.weight = Parameter(pt.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(pt.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _pads(self) -> Any:
        if not isinstance(self.padding, str):
            return tuple(p for size in reversed(self.padding) for p in (size, size))
        pads = []
        for kernel, dilation in zip(reversed(self.kernel_size), reversed(self.dilation)):
            total = dilation * (kernel - 1) if self.padding == "same" else 0
            pads += [total // 2, total - total // 2]
        return pads

    def reset_parameters(self) -> None:
        """Draw weight and bias from U(-b, b) with ``b = 1/sqrt(fan_in)``."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._fans(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding != (0,) * len(self.kernel_size):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        n = self._n
        super().__init__(
            in_channels,
            out_channels,
            ntuple(kernel_size, n),
            ntuple(stride, n),
            padding if isinstance(padding, str) else ntuple(padding, n),
            ntuple(dilation, n),
            False,
            (0,) * n,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            padding = (0,) * self._n
        return self._op(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    _op: Any = None

    def forward(self, input: Tensor) -> Tensor:
        try:
            return self._conv_forward(input, self.weight, self.bias)
        except RuntimeError as error:
            advise(error, input, self.weight, self.in_channels)
            raise


class Conv1d(_Conv):
    """Convolution of (N, C, L) or (C, L) with learned windows.

    L' is ``(L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1``, rounded down.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the input and the output; multiples of `groups`.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, default 1
        The step between windows.
    padding : int, tuple of int, 'valid' or 'same', default 0
        Added on both sides; 'same' keeps the size, for a stride of 1.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    groups : int, default 1
        Independent groups of channels; `in_channels` gives a depthwise convolution.
    bias : bool, default True
        Learn an offset for each output channel.
    padding_mode : {'zeros', 'reflect', 'replicate', 'circular'}, default 'zeros'
        What is added.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Attributes
    ----------
    weight : Parameter
        (out_channels, in_channels / groups, kernel_size).

    Raises
    ------
    RuntimeError
        The input has another number of channels, or is smaller than the window.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Conv1d(3, 8, kernel_size=5, padding=2)(torch.ones(2, 3, 10)).shape
    torch.Size([2, 8, 10])
    """

    _n = 1
    _op = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Convolution of (N, C, H, W) or (C, H, W) with learned windows. Channels come before the
    pixels.

    H' is ``(H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1``, rounded down;
    so is W'.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the input and the output; multiples of `groups`.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, default 1
        The step between windows.
    padding : int, tuple of int, 'valid' or 'same', default 0
        Added on both sides; 'same' keeps the size, for a stride of 1.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    groups : int, default 1
        Independent groups of channels; `in_channels` gives a depthwise convolution.
    bias : bool, default True
        Learn an offset for each output channel.
    padding_mode : {'zeros', 'reflect', 'replicate', 'circular'}, default 'zeros'
        What is added.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Attributes
    ----------
    weight : Parameter
        (out_channels, in_channels / groups, height, width).

    Raises
    ------
    ValueError
        `in_channels` or `out_channels` is no multiple of `groups`.
    RuntimeError
        The input has another number of channels, or is smaller than the window.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Conv2d(3, 8, kernel_size=3, padding=1)(torch.ones(2, 3, 10, 12)).shape
    torch.Size([2, 8, 10, 12])
    """

    _n = 2
    _op = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Convolution of (N, C, D, H, W) or (C, D, H, W) with learned windows; sizes as in `Conv2d`.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the input and the output; multiples of `groups`.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, default 1
        The step between windows.
    padding : int, tuple of int, 'valid' or 'same', default 0
        Added on both sides; 'same' keeps the size, for a stride of 1.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    groups : int, default 1
        Independent groups of channels; `in_channels` gives a depthwise convolution.
    bias : bool, default True
        Learn an offset for each output channel.
    padding_mode : {'zeros', 'reflect', 'replicate', 'circular'}, default 'zeros'
        What is added.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Attributes
    ----------
    weight : Parameter
        (out_channels, in_channels / groups, depth, height, width).

    Raises
    ------
    RuntimeError
        The input has another number of channels, or is smaller than the window.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Conv3d(1, 2, kernel_size=3)(torch.ones(1, 1, 4, 5, 6)).shape
    torch.Size([1, 2, 2, 3, 4])
    """

    _n = 3
    _op = staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
    _op: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        n = self._n
        super().__init__(
            in_channels,
            out_channels,
            ntuple(kernel_size, n),
            ntuple(stride, n),
            ntuple(padding, n),
            ntuple(dilation, n),
            True,
            ntuple(output_padding, n),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Any, *known: Any) -> Any:
        """The padding that makes the output as large as ``output_size`` asks.

        Layers of a program's own also hand in stride, padding, kernel_size, the number of spatial
        dimensions and dilation: as they are here, which is what counts.
        """
        if output_size is None:
            return self.output_padding
        n = self._n
        spatial = input.dim() - n
        size = list(output_size)
        if len(size) == spatial + n:
            size = size[spatial:]
        if len(size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or "
                f"{spatial + n} elements (got {len(size)})"
            )
        least = [
            (i - 1) * s - 2 * p + d * (k - 1) + 1
            for i, s, p, d, k in zip(
                input.shape[spatial:], self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        most = [low + s - 1 for low, s in zip(least, self.stride)]
        if any(not low <= got <= high for got, low, high in zip(size, least, most)):
            raise ValueError(
                f"requested an output size of {size}, but valid sizes range from {least} to "
                f"{most} (for an input of {list(input.shape[spatial:])})"
            )
        return [got - low for got, low in zip(size, least)]

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        try:
            return self._op(
                input,
                self.weight,
                self.bias,
                self.stride,
                self.padding,
                extra,
                self.groups,
                self.dilation,
            )
        except RuntimeError as error:
            advise(error, input, self.weight, self.in_channels)
            raise


class _ConvTransposeMixin(_ConvTransposeNd):
    """The old name of the base of transposed convolutions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "_ConvTransposeMixin is a deprecated internal class. "
            "Please consider using public APIs.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of a convolution, on (N, C, L) or (C, L): it enlarges by its stride.

    L' is ``(L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding +
    1``. The call takes an optional ``output_size`` that chooses the output padding.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the input and the output; multiples of `groups`.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, default 1
        The step between windows in the output.
    padding : int or tuple of int, default 0
        Cut off on both sides of the output.
    output_padding : int or tuple of int, default 0
        Added to one side of the output; less than the stride or the dilation.
    groups : int, default 1
        Independent groups of channels.
    bias : bool, default True
        Learn an offset for each output channel.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    padding_mode : {'zeros'}, default 'zeros'
        There is no other.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Attributes
    ----------
    weight : Parameter
        (in_channels, out_channels / groups, kernel_size).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ConvTranspose1d(3, 8, kernel_size=2, stride=2)(torch.ones(2, 3, 10)).shape
    torch.Size([2, 8, 20])
    """

    _n = 1
    _op = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of a convolution, on (N, C, H, W) or (C, H, W): it enlarges by its stride.

    Sizes as in `ConvTranspose1d`. The call takes an optional ``output_size``.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the input and the output; multiples of `groups`.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, default 1
        The step between windows in the output.
    padding : int or tuple of int, default 0
        Cut off on both sides of the output.
    output_padding : int or tuple of int, default 0
        Added to one side of the output; less than the stride or the dilation.
    groups : int, default 1
        Independent groups of channels.
    bias : bool, default True
        Learn an offset for each output channel.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    padding_mode : {'zeros'}, default 'zeros'
        There is no other.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Attributes
    ----------
    weight : Parameter
        (in_channels, out_channels / groups, height, width).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ConvTranspose2d(3, 8, kernel_size=2, stride=2)(torch.ones(2, 3, 5, 6)).shape
    torch.Size([2, 8, 10, 12])
    """

    _n = 2
    _op = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of a convolution, on (N, C, D, H, W) or (C, D, H, W): it enlarges by its
    stride.

    Sizes as in `ConvTranspose1d`. The call takes an optional ``output_size``.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the input and the output; multiples of `groups`.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, default 1
        The step between windows in the output.
    padding : int or tuple of int, default 0
        Cut off on both sides of the output.
    output_padding : int or tuple of int, default 0
        Added to one side of the output; less than the stride or the dilation.
    groups : int, default 1
        Independent groups of channels.
    bias : bool, default True
        Learn an offset for each output channel.
    dilation : int or tuple of int, default 1
        The step between the window's elements.
    padding_mode : {'zeros'}, default 'zeros'
        There is no other.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Attributes
    ----------
    weight : Parameter
        (in_channels, out_channels / groups, depth, height, width).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ConvTranspose3d(1, 2, kernel_size=2, stride=2)(torch.ones(1, 1, 2, 3, 4)).shape
    torch.Size([1, 2, 4, 6, 8])
    """

    _n = 3
    _op = staticmethod(F.conv_transpose3d)


class _LazyConvXdMixin(LazyModuleMixin):
    """Takes ``in_channels`` from the first input."""

    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        *args: Any,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        if len(args) > 4:  # bias by position, after four other options
            bias, args = args[4], (*args[:4], False, *args[5:])
        else:
            kwargs["bias"] = False
        super().__init__(0, 0, kernel_size, *args, device=device, dtype=dtype, **kwargs)
        own: Any = self
        own.weight = UninitializedParameter(device=device, dtype=dtype)
        own.out_channels = out_channels
        if bias:
            own.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the starting values, once the sizes are known."""
        own: Any = self
        if not self.has_uninitialized_params() and own.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        own: Any = self
        if not self.has_uninitialized_params():
            if own.in_channels == 0:  # its state was loaded
                own.in_channels = input.shape[-own._n - 1]
            return
        if input.dim() not in (own._n + 1, own._n + 2):
            raise RuntimeError(
                f"Expected {own._n + 1}D (unbatched) or {own._n + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        own.in_channels = input.shape[-own._n - 1]
        if own.in_channels % own.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        ends = (own.out_channels, own.in_channels // own.groups)
        if own.transposed:
            ends = (own.in_channels, own.out_channels // own.groups)
        own.weight.materialize((*ends, *own.kernel_size))
        if own.bias is not None:
            own.bias.materialize((own.out_channels,))
        self.reset_parameters()


class LazyConv1d(_LazyConvXdMixin, Conv1d):
    """Conv1d that takes `in_channels` from its first input.

    Parameters
    ----------
    out_channels : int
        Channels of the output.
    kernel_size : int or tuple of int
        The size of the window.
    *args, **kwargs
        The other options of the layer, in its order or by name.
    bias : bool, default True
        Learn an offset for each output channel.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> layer = nn.LazyConv1d(4, 3)
    >>> _ = layer(torch.ones(1, 2, 5))
    >>> layer.weight.shape
    torch.Size([4, 2, 3])
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvXdMixin, Conv2d):
    """Conv2d that takes `in_channels` from its first input.

    Parameters
    ----------
    out_channels : int
        Channels of the output.
    kernel_size : int or tuple of int
        The size of the window.
    *args, **kwargs
        The other options of the layer, in its order or by name.
    bias : bool, default True
        Learn an offset for each output channel.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> layer = nn.LazyConv2d(4, 3)
    >>> _ = layer(torch.ones(1, 2, 5, 5))
    >>> layer.weight.shape
    torch.Size([4, 2, 3, 3])
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvXdMixin, Conv3d):
    """Conv3d that takes `in_channels` from its first input.

    Parameters
    ----------
    out_channels : int
        Channels of the output.
    kernel_size : int or tuple of int
        The size of the window.
    *args, **kwargs
        The other options of the layer, in its order or by name.
    bias : bool, default True
        Learn an offset for each output channel.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> layer = nn.LazyConv3d(4, 1)
    >>> _ = layer(torch.ones(1, 2, 1, 1, 1))
    >>> layer.weight.shape
    torch.Size([4, 2, 1, 1, 1])
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvXdMixin, ConvTranspose1d):
    """ConvTranspose1d that takes `in_channels` from its first input.

    Parameters
    ----------
    out_channels : int
        Channels of the output.
    kernel_size : int or tuple of int
        The size of the window.
    *args, **kwargs
        The other options of the layer, in its order or by name.
    bias : bool, default True
        Learn an offset for each output channel.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> layer = nn.LazyConvTranspose1d(4, 3)
    >>> _ = layer(torch.ones(1, 2, 5))
    >>> layer.weight.shape
    torch.Size([2, 4, 3])
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvXdMixin, ConvTranspose2d):
    """ConvTranspose2d that takes `in_channels` from its first input.

    Parameters
    ----------
    out_channels : int
        Channels of the output.
    kernel_size : int or tuple of int
        The size of the window.
    *args, **kwargs
        The other options of the layer, in its order or by name.
    bias : bool, default True
        Learn an offset for each output channel.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> layer = nn.LazyConvTranspose2d(4, 3)
    >>> _ = layer(torch.ones(1, 2, 5, 5))
    >>> layer.weight.shape
    torch.Size([2, 4, 3, 3])
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvXdMixin, ConvTranspose3d):
    """ConvTranspose3d that takes `in_channels` from its first input.

    Parameters
    ----------
    out_channels : int
        Channels of the output.
    kernel_size : int or tuple of int
        The size of the window.
    *args, **kwargs
        The other options of the layer, in its order or by name.
    bias : bool, default True
        Learn an offset for each output channel.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> layer = nn.LazyConvTranspose3d(4, 1)
    >>> _ = layer(torch.ones(1, 2, 1, 1, 1))
    >>> layer.weight.shape
    torch.Size([2, 4, 1, 1, 1])
    """

    cls_to_become = ConvTranspose3d
