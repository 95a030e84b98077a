"""Activations."""

from __future__ import annotations

import warnings
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..._C import _nn

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
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
    """``max(0, x)``, elementwise. The gradient at 0 is 0; NaN stays NaN.

    Parameters
    ----------
    input : Tensor
        Any shape, real.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.relu(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """
    return pt.relu_(input) if inplace else pt.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(0, x), 6)``, elementwise.

    Parameters
    ----------
    input : Tensor
        Any shape, real.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    References
    ----------
    Howard et al. 2017, arXiv:1704.04861.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.relu6(torch.tensor([-1.0, 3.0, 9.0]))
    tensor([0., 3., 6.])
    """
    return _nn.relu6_(input) if inplace else _nn.relu6(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    input : Tensor
        Any shape, floating point.
    alpha : float, default 1.0
        Minus the limit for very negative inputs.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    References
    ----------
    Clevert et al. 2015, arXiv:1511.07289.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.elu(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _nn.elu_(input, alpha) if inplace else _nn.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Scaled elu, whose constants keep mean 0 and variance 1 through many layers.

    Parameters
    ----------
    input : Tensor
        Any shape, floating point.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    References
    ----------
    Klambauer et al. 2017, arXiv:1706.02515.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.selu(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return pt.selu_(input) if inplace else pt.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``: an elu that is smooth for every
    `alpha`.

    Parameters
    ----------
    input : Tensor
        Any shape, floating point.
    alpha : float, default 1.0
        Minus the limit for very negative inputs; not 0.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Raises
    ------
    RuntimeError
        `alpha` is 0.

    References
    ----------
    Barron 2017, arXiv:1704.07483.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.celu(torch.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    return pt.celu_(input, alpha) if inplace else pt.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``negative_slope * x``.

    Parameters
    ----------
    input : Tensor
        Any shape, floating point.
    negative_slope : float, default 0.01
        The slope below 0.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return (_nn.leaky_relu_ if inplace else _nn.leaky_relu)(input, negative_slope)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky relu with a slope for each element: drawn from [lower, upper) in training, else
    their middle.

    Parameters
    ----------
    input : Tensor
        Any shape, floating point.
    lower, upper : float
        The bounds of the slopes, 1/8 and 1/3 by default.
    training : bool, default False
        Draw the slopes.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    References
    ----------
    Xu et al. 2015, arXiv:1505.00853.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.rrelu(torch.tensor([-4.0, 2.0]), lower=0.25, upper=0.75)
    tensor([-2.,  2.])
    """
    return (pt.rrelu_ if inplace else pt.rrelu)(input, lower, upper, training)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """``x`` clamped to [min_val, max_val].

    Parameters
    ----------
    input : Tensor
        Any shape, real.
    min_val, max_val : float
        The bounds, -1 and 1 by default.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Raises
    ------
    ValueError
        `min_val` is greater than `max_val`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.hardtanh(torch.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (_nn.hardtanh_ if inplace else _nn.hardtanh)(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``relu6(x + 3) / 6``: a sigmoid of straight lines.

    Parameters
    ----------
    input : Tensor
        Any shape, floating point.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """
    return _nn.hardsigmoid_(input) if inplace else _nn.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * relu6(x + 3) / 6``: silu with straight lines for the sigmoid.

    Parameters
    ----------
    input : Tensor
        Any shape, floating point.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    References
    ----------
    Howard et al. 2019, arXiv:1905.02244.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.hardswish(torch.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """
    return _nn.hardswish_(input) if inplace else _nn.hardswish(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``, also called swish.

    Parameters
    ----------
    input : Tensor
        Any shape, floating point.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    References
    ----------
    Elfwing et al. 2017, arXiv:1702.03118.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.silu(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return _nn.silu_(input) if inplace else _nn.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``.

    Parameters
    ----------
    input : Tensor
        Any shape, floating point.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    References
    ----------
    Misra 2019, arXiv:1908.08681.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.mish(torch.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    return _nn.mish_(input) if inplace else _nn.mish(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where it is above a threshold, else a value.

    Parameters
    ----------
    input : Tensor
        Any shape, real.
    threshold : float
        Elements must be greater than this to stay.
    value : float
        What takes the place of the others.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.threshold(torch.tensor([0.1, 0.5]), 0.2, -1.0)
    tensor([-1.0000,  0.5000])
    """
    return (pt.threshold_ if inplace else pt.threshold)(input, threshold, value)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of `input` times the sigmoid of the second half.

    Parameters
    ----------
    input : Tensor
        Floating point, of even size along `dim`.
    dim : int, default -1
        Which dimension is halved.

    Returns
    -------
    Tensor
        Half of `input`'s size along `dim`.

    Raises
    ------
    RuntimeError
        The size along `dim` is odd, or `input` is 0-d.

    References
    ----------
    Dauphin et al. 2016, arXiv:1612.08083.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.glu(torch.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn.glu(input, dim)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent; the same as ``input.tanh()``.

    Parameters
    ----------
    input : Tensor
        Any shape; integers give the default dtype.

    Returns
    -------
    Tensor
        Values in [-1, 1].

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.tanh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``; the same as ``input.sigmoid()``.

    Parameters
    ----------
    input : Tensor
        Any shape; integers give the default dtype.

    Returns
    -------
    Tensor
        Values in [0, 1].

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.sigmoid(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """
    return input.sigmoid()


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``.

    Parameters
    ----------
    input : Tensor
        Any shape; integers give the default dtype.

    Returns
    -------
    Tensor
        Values in [-1, 1].

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.softsign(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return pt._C._softsign(input)


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``.

    Parameters
    ----------
    input : Tensor
        Any shape; integers give the default dtype.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.tanhshrink(torch.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """
    return input - input.tanh()


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``exp(x) / sum(exp(x))`` along a dimension: positive weights that sum to 1.

    A row that is minus infinity throughout gives NaN.

    Parameters
    ----------
    input : Tensor
        Floating point, any shape; integers only with `dtype`.
    dim : int
        Leaving it out is deprecated and warns.
    dtype : dtype, optional
        Convert `input` to this first.

    Returns
    -------
    Tensor
        The shape of `input`.

    Raises
    ------
    IndexError
        `dim` is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.softmax(torch.tensor([1.0, 2.0]), dim=0)
    tensor([0.2689, 0.7311])
    """
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return pt.softmax(input, dim) if dtype is None else pt.softmax(input, dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``softmax(-x)``: the smallest element gets the largest weight.

    Parameters
    ----------
    input : Tensor
        Floating point, any shape.
    dim : int
        Leaving it out is deprecated and warns.
    dtype : dtype, optional
        Convert `input` to this first.

    Returns
    -------
    Tensor
        The shape of `input`.

    Raises
    ------
    IndexError
        `dim` is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.softmin(torch.tensor([1.0, 2.0]), dim=0)
    tensor([0.7311, 0.2689])
    """
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return softmax(-input, dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``log(softmax(x))``, computed without leaving the log domain: exact where softmax
    underflows.

    Parameters
    ----------
    input : Tensor
        Floating point, any shape; integers only with `dtype`.
    dim : int
        Leaving it out is deprecated and warns.
    dtype : dtype, optional
        Convert `input` to this first.

    Returns
    -------
    Tensor
        The shape of `input`; at most 0.

    Raises
    ------
    IndexError
        `dim` is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.log_softmax(torch.tensor([0.0, 200.0]), dim=0)
    tensor([-200.,    0.])
    """
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    if dtype is None:
        return pt.log_softmax(input, dim)
    return pt.log_softmax(input, dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of the Gumbel-softmax distribution: a one-hot draw, made soft so that it has a
    gradient.

    Parameters
    ----------
    logits : Tensor
        Floating point: log-probabilities that need not be normalised.
    tau : float, default 1
        The temperature; the smaller, the closer to one-hot.
    hard : bool, default False
        Return a one-hot sample whose gradient is that of the soft one.
    eps : float
        Deprecated, without effect.
    dim : int, default -1
        The dimension that sums to 1.

    Returns
    -------
    Tensor
        The shape of `logits`.

    References
    ----------
    Jang et al. 2016, arXiv:1611.01144.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.gumbel_softmax(torch.zeros(2, 3), hard=True).sum(-1)
    tensor([1., 1.])
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
