"""Activations."""

from __future__ import annotations

import warnings
from typing import Any

import pytensorlib as pt

from ... import Tensor
from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter
from .attention import MultiheadAttention
from .shrinkage import Hardshrink, Softshrink, Tanhshrink
from .softmax import LogSoftmax, Softmax, Softmax2d, Softmin

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU",
    "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus",
    "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip

for _class in (
    MultiheadAttention, Hardshrink, Softshrink, Tanhshrink, LogSoftmax, Softmax, Softmax2d, Softmin
):  # fmt: skip
    _class.__module__ = __name__  # where PyTorch's pickles look for it


class _Inplace(Module):
    """An activation whose only option is to overwrite its input."""

    __constants__ = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def _inplace_suffix(self) -> str:
        return ", inplace=True" if self.inplace else ""

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """``max(0, x)``, elementwise.

    Parameters
    ----------
    inplace : bool, default False
        Overwrite the input with the result.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class SELU(_Inplace):
    """Scaled elu, whose constants keep mean 0 and variance 1 through many layers.

    Parameters
    ----------
    inplace : bool, default False
        Overwrite the input with the result.

    References
    ----------
    Klambauer et al. 2017, arXiv:1706.02515.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.SELU()(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(_Inplace):
    """``x * sigmoid(x)``, elementwise; also called swish.

    Parameters
    ----------
    inplace : bool, default False
        Overwrite the input with the result.

    References
    ----------
    Elfwing et al. 2017, arXiv:1702.03118.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.SiLU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """``x * tanh(softplus(x))``, elementwise.

    Parameters
    ----------
    inplace : bool, default False
        Overwrite the input with the result.

    References
    ----------
    Misra 2019, arXiv:1908.08681.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Mish()(torch.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardsigmoid(_Inplace):
    """``relu6(x + 3) / 6``, elementwise: a sigmoid of straight lines.

    Parameters
    ----------
    inplace : bool, default False
        Overwrite the input with the result.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_Inplace):
    """``x * relu6(x + 3) / 6``, elementwise: silu with straight lines for the sigmoid.

    Parameters
    ----------
    inplace : bool, default False
        Overwrite the input with the result.

    References
    ----------
    Howard et al. 2019, arXiv:1905.02244.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Hardswish()(torch.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Threshold(_Inplace):
    """``x`` where it is above a threshold, else a value.

    Parameters
    ----------
    threshold : float
        Elements must be greater than this to stay.
    value : float
        What takes the place of the others.
    inplace : bool, default False
        Overwrite the input with the result.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Threshold(0.2, -1.0)(torch.tensor([0.1, 0.5]))
    tensor([-1.0000,  0.5000])
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}{self._inplace_suffix()}"


class RReLU(_Inplace):
    """Leaky relu with a slope for each element: drawn from [lower, upper) in training, else
    their middle.

    Parameters
    ----------
    lower, upper : float
        The bounds of the slopes, 1/8 and 1/3 by default.
    inplace : bool, default False
        Overwrite the input with the result.

    References
    ----------
    Xu et al. 2015, arXiv:1505.00853.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.RReLU(0.25, 0.75).eval()(torch.tensor([-4.0, 2.0]))
    tensor([-2.,  2.])
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{self._inplace_suffix()}"


class Hardtanh(_Inplace):
    """``x`` clamped to [min_val, max_val].

    Parameters
    ----------
    min_val, max_val : float
        The bounds, -1 and 1 by default.
    inplace : bool, default False
        Overwrite the input with the result.
    min_value, max_value : float, optional
        Deprecated names of the bounds.

    Raises
    ------
    AssertionError
        `max_val` is not greater than `min_val`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Hardtanh()(torch.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__(inplace)
        for old, new, value in (
            ("min_value", "min_val", min_value),
            ("max_value", "max_val", max_value),
        ):
            if value is not None:
                text = f"keyword argument `{old}` is deprecated and rename to `{new}`"
                warnings.warn(text, FutureWarning, stacklevel=2)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val must be larger than min_val, got {self.max_val} and {self.min_val}"
            )

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}{self._inplace_suffix()}"


class ReLU6(Hardtanh):
    """``min(max(0, x), 6)``, elementwise.

    Parameters
    ----------
    inplace : bool, default False
        Overwrite the input with the result.

    References
    ----------
    Howard et al. 2017, arXiv:1704.04861.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ReLU6()(torch.tensor([-1.0, 3.0, 9.0]))
    tensor([0., 3., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ELU(_Inplace):
    """``x`` where positive, else ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    alpha : float, default 1.0
        Minus the limit for very negative inputs.
    inplace : bool, default False
        Overwrite the input with the result.

    References
    ----------
    Clevert et al. 2015, arXiv:1511.07289.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.ELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{self._inplace_suffix()}"


class CELU(ELU):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``: an elu that is smooth for every
    `alpha`.

    Parameters
    ----------
    alpha : float, default 1.0
        Minus the limit for very negative inputs; not 0.
    inplace : bool, default False
        Overwrite the input with the result.

    References
    ----------
    Barron 2017, arXiv:1704.07483.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.CELU(alpha=2.0)(torch.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(_Inplace):
    """``x`` where positive, else ``negative_slope * x``.

    Parameters
    ----------
    negative_slope : float, default 0.01
        The slope below 0.
    inplace : bool, default False
        Overwrite the input with the result.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}{self._inplace_suffix()}"


class PReLU(Module):
    """Leaky relu whose slope is learned: one for all channels, or one for each.

    Takes (N, C, ...); with fewer than 2 dimensions there is one channel.

    Parameters
    ----------
    num_parameters : int, default 1
        1, or C.
    init : float, default 0.25
        The slope at first.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    References
    ----------
    He et al. 2015, arXiv:1502.01852.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.PReLU()(torch.tensor([-4.0, 2.0])).detach()
    tensor([-1.,  2.])
    """

    __constants__ = ["num_parameters"]

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        self.num_parameters = num_parameters
        super().__init__()
        self.init = init
        self.weight = Parameter(pt.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the slopes with ``init``."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class GELU(Module):
    """``x`` times the normal distribution's cumulative function.

    Parameters
    ----------
    approximate : {'none', 'tanh'}, default 'none'
        'tanh' replaces the exact function by one of tanh.

    References
    ----------
    Hendrycks and Gimpel 2016, arXiv:1606.08415.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.GELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``, elementwise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Sigmoid()(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return pt.sigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent, elementwise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Tanh()(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return pt.tanh(input)


class LogSigmoid(Module):
    """``log(sigmoid(x))``, elementwise, computed without underflow.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.LogSigmoid()(torch.tensor([-200.0, 0.0]))
    tensor([-200.0000,   -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """``x / (1 + |x|)``, elementwise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Softsign()(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Softplus(Module):
    """``log(1 + exp(beta x)) / beta``: a relu without a corner.

    Parameters
    ----------
    beta : float, default 1.0
        How sharp the bend is.
    threshold : float, default 20.0
        Where ``beta x`` is greater, the result is ``x``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Softplus()(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class GLU(Module):
    """The first half of the input times the sigmoid of the second half.

    Parameters
    ----------
    dim : int, default -1
        Which dimension is halved; of even size.

    References
    ----------
    Dauphin et al. 2016, arXiv:1612.08083.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.GLU()(torch.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
