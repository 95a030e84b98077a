"""Activations."""

from __future__ import annotations

import warnings
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..._C import _nn

__all__ = [
    "alpha_dropout",
    "celu",
    "celu_",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "feature_alpha_dropout",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]

elu_ = _nn.elu_
hardtanh_ = _nn.hardtanh_
leaky_relu_ = _nn.leaky_relu_
relu_ = pt.relu_
celu_ = pt.celu_
selu_ = pt.selu_
rrelu_ = pt.rrelu_
threshold_ = pt.threshold_
gelu = _nn.gelu
hardshrink = pt.hardshrink
logsigmoid = _nn.log_sigmoid
prelu = pt.prelu
softplus = _nn.softplus
softshrink = _nn.softshrink


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(0, x)``."""
    return pt.relu_(input) if inplace else pt.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(0, x), 6)``."""
    return _nn.relu6_(input) if inplace else _nn.relu6(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``alpha * (exp(x) - 1)``."""
    return _nn.elu_(input, alpha) if inplace else _nn.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Scaled elu whose constants keep mean 0 and variance 1 (Klambauer et al., 2017)."""
    return pt.selu_(input) if inplace else pt.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``."""
    return pt.celu_(input, alpha) if inplace else pt.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``negative_slope * x``."""
    return (_nn.leaky_relu_ if inplace else _nn.leaky_relu)(input, negative_slope)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky relu with slopes drawn from [lower, upper) in training, their middle otherwise."""
    return (pt.rrelu_ if inplace else pt.rrelu)(input, lower, upper, training)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """``x`` clamped to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (_nn.hardtanh_ if inplace else _nn.hardtanh)(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``relu6(x + 3) / 6``."""
    return _nn.hardsigmoid_(input) if inplace else _nn.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * relu6(x + 3) / 6``."""
    return _nn.hardswish_(input) if inplace else _nn.hardswish(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``."""
    return _nn.silu_(input) if inplace else _nn.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``."""
    return _nn.mish_(input) if inplace else _nn.mish(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where above ``threshold``, else ``value``."""
    return (pt.threshold_ if inplace else pt.threshold)(input, threshold, value)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half times the sigmoid of the second half along ``dim``."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn.glu(input, dim)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return input.sigmoid()


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    return input - input.tanh()


def _implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``exp(x) / sum(exp(x))`` along ``dim``."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return pt.softmax(input, dim) if dtype is None else pt.softmax(input, dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``softmax(-x)``."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return softmax(-input, dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``log(softmax(x))``, computed without leaving the log domain."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    if dtype is None:
        return pt.log_softmax(input, dim)
    return pt.log_softmax(input, dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of the Gumbel-softmax distribution (arXiv:1611.01144).

    With ``hard`` it is one-hot, and its gradient is that of the soft sample.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = pt.empty_like(logits, memory_format=pt.legacy_contiguous_format)
    gumbels = -noise.exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = pt.zeros_like(logits, memory_format=pt.legacy_contiguous_format)
    return one_hot.scatter_(dim, index, 1.0) - soft.detach() + soft


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zero each element with probability ``p`` and scale the rest."""
    _check_probability(p)
    return (pt.dropout_ if inplace else pt.dropout)(input, p, training)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps the mean and variance that ``selu`` maintains."""
    _check_probability(p)
    return (pt.alpha_dropout_ if inplace else pt.alpha_dropout)(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """``alpha_dropout`` of whole channels."""
    _check_probability(p)
    return (pt.feature_alpha_dropout_ if inplace else pt.feature_alpha_dropout)(input, p, training)


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    drop = pt.feature_dropout_ if inplace else pt.feature_dropout
    if batched:
        return drop(input, p, training)
    if inplace:
        drop(input.unsqueeze(0), p, training)
        return input
    return drop(input.unsqueeze(0), p, training).squeeze(0)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of an (N, C, L) or (C, L) input."""
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input."
        )
    return _drop_channels(input, p, training, inplace, input.dim() == 3)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of an (N, C, H, W) input; 3-D inputs count as (N, C, L)."""
    _check_probability(p)
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated. "
            "Use dropout for other inputs.",
            stacklevel=2,
        )
    return _drop_channels(input, p, training, inplace, True)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of an (N, C, D, H, W) or (C, D, H, W) input."""
    _check_probability(p)
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated. "
            "Use dropout for other inputs.",
            stacklevel=2,
        )
    return _drop_channels(input, p, training, inplace, input.dim() != 4)
