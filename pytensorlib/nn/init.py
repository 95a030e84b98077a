"""Filling tensors with starting values, in place and outside autograd."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from .. import Tensor

_GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """Return the factor that keeps the variance of values through a nonlinearity.

    Parameters
    ----------
    nonlinearity : str
        'linear', 'conv1d' and the like, 'sigmoid', 'tanh', 'relu', 'leaky_relu' or 'selu'.
    param : float, optional
        The negative slope of 'leaky_relu', 0.01 by default.

    Returns
    -------
    float
        The recommended gain.

    Raises
    ------
    ValueError
        The nonlinearity is not known.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _fans(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, "
            f"got shape {tuple(tensor.shape)}"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


_calculate_fan_in_and_fan_out = _fans


def _correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _fans(tensor)[mode == "fan_out"]


_calculate_correct_fan = _correct_fan


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill from the uniform distribution on [a, b).

    Parameters
    ----------
    tensor : Tensor
        Changed in place, outside autograd.
    a, b : float
        The bounds, 0 and 1 by default.
    generator : Generator, optional
        Source of the numbers.

    Returns
    -------
    Tensor
        `tensor` itself.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> w = nn.init.uniform_(torch.empty(100), 2.0, 3.0)
    >>> bool(((w >= 2) & (w <= 3)).all())
    True
    """
    with pt.no_grad():
        if tensor.is_complex():
            pt.view_as_real(tensor).uniform_(a, b, generator=generator)
            return tensor
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill from the normal distribution.

    Parameters
    ----------
    tensor : Tensor
        Changed in place, outside autograd.
    mean, std : float
        0 and 1 by default.
    generator : Generator, optional
        Source of the numbers.

    Returns
    -------
    Tensor
        `tensor` itself.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.init.normal_(torch.empty(2), mean=3.0, std=0.0)
    tensor([3., 3.])
    """
    with pt.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fill from the normal distribution cut to [a, b].

    Parameters
    ----------
    tensor : Tensor
        Changed in place, outside autograd.
    mean, std : float
        Of the normal distribution, 0 and 1 by default.
    a, b : float
        The bounds, -2 and 2 by default.
    generator : Generator, optional
        Source of the numbers.

    Returns
    -------
    Tensor
        `tensor` itself.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> bool((nn.init.trunc_normal_(torch.empty(100)).abs() <= 2).all())
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    if tensor.is_meta:
        return tensor
    scale = std * math.sqrt(2.0)
    inside = (math.erf((b - mean) / scale) - math.erf((a - mean) / scale)) / 2.0
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

    def propose() -> tuple[Tensor, Tensor]:
        """A full set of proposals, and which of them are refused."""
        x = pt.empty_like(tensor)
        if inside > 0.3:
            x.normal_(mean, std, generator=generator)
            return x, (x < a) | (x > b)
        x.uniform_(a, b, generator=generator)
        density = ((x - mean) / std).pow_(2).mul_(-0.5).sub_(peak)
        return x, pt.empty_like(x).uniform_(generator=generator).log_().gt(density)

    with pt.no_grad():
        values, refused = propose()
        while refused.any():
            again, refused_again = propose()
            values = pt.where(refused, again, values)
            refused = refused & refused_again
        return tensor.copy_(values)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value.

    Parameters
    ----------
    tensor : Tensor
        Changed in place, outside autograd.
    val : float
        The value.

    Returns
    -------
    Tensor
        `tensor` itself.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.init.constant_(torch.empty(2), 0.3)
    tensor([0.3000, 0.3000])
    """
    with pt.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones.

    Parameters
    ----------
    tensor : Tensor
        Changed in place, outside autograd.

    Returns
    -------
    Tensor
        `tensor` itself.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.init.ones_(torch.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros.

    Parameters
    ----------
    tensor : Tensor
        Changed in place, outside autograd.

    Returns
    -------
    Tensor
        `tensor` itself.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.init.zeros_(torch.empty(2))
    tensor([0., 0.])
    """
    with pt.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity.

    Parameters
    ----------
    tensor : Tensor
        2-d.

    Returns
    -------
    Tensor
        `tensor` itself.

    Raises
    ------
    ValueError
        It has another number of dimensions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.init.eye_(torch.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with pt.no_grad():
        tensor.zero_().diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight so that it passes as many channels through as it can.

    Parameters
    ----------
    tensor : Tensor
        3-d to 5-d.
    groups : int, default 1
        The groups of the convolution.

    Returns
    -------
    Tensor
        `tensor` itself.

    Raises
    ------
    ValueError
        It has another number of dimensions, or no multiple of `groups` of channels.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.init.dirac_(torch.empty(2, 2, 3))
    tensor([[[0., 1., 0.],
             [0., 0., 0.]],
    <BLANKLINE>
            [[0., 0., 0.],
             [0., 1., 0.]]])
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out_channels = tensor.size(0)
    if out_channels % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = out_channels // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    with pt.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.size(1))):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform with variance ``2 gain^2 / (fan_in + fan_out)``.

    Parameters
    ----------
    tensor : Tensor
        At least 2-d; changed in place, outside autograd.
    gain : float, default 1.0
        As of `calculate_gain`.
    generator : Generator, optional
        Source of the numbers.

    Returns
    -------
    Tensor
        `tensor` itself.

    Raises
    ------
    ValueError
        It has fewer than 2 dimensions.

    References
    ----------
    Glorot and Bengio 2010, Understanding the difficulty of training deep feedforward neural
    networks, AISTATS.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> bool((nn.init.xavier_uniform_(torch.empty(3, 3)).abs() <= 1).all())
    True
    """
    std = gain * math.sqrt(2.0 / sum(_fans(tensor)))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with variance ``2 gain^2 / (fan_in + fan_out)``.

    Parameters
    ----------
    tensor : Tensor
        At least 2-d; changed in place, outside autograd.
    gain : float, default 1.0
        As of `calculate_gain`.
    generator : Generator, optional
        Source of the numbers.

    Returns
    -------
    Tensor
        `tensor` itself.

    Raises
    ------
    ValueError
        It has fewer than 2 dimensions.

    References
    ----------
    Glorot and Bengio 2010, Understanding the difficulty of training deep feedforward neural
    networks, AISTATS.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.init.xavier_normal_(torch.empty(3, 4), gain=0.0).sum()
    tensor(0.)
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


def _nothing_to_fill(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Uniform with variance ``gain^2 / fan``, which keeps that of the values (or of the
    gradients).

    Parameters
    ----------
    tensor : Tensor
        At least 2-d; changed in place, outside autograd.
    a : float, default 0
        The negative slope of 'leaky_relu'.
    mode : {'fan_in', 'fan_out'}, default 'fan_in'
        Keep the variance of values, or of gradients.
    nonlinearity : str, default 'leaky_relu'
        What follows the layer; for `calculate_gain`.
    generator : Generator, optional
        Source of the numbers.

    Returns
    -------
    Tensor
        `tensor` itself.

    Raises
    ------
    ValueError
        It has fewer than 2 dimensions, or an option is not known.

    References
    ----------
    He et al. 2015, arXiv:1502.01852.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> w = nn.init.kaiming_uniform_(torch.empty(3, 6), nonlinearity="relu")
    >>> bool((w.abs() <= 1).all())
    True
    """
    if _nothing_to_fill(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Normal with variance ``gain^2 / fan``, which keeps that of the values (or of the gradients).

    Parameters
    ----------
    tensor : Tensor
        At least 2-d; changed in place, outside autograd.
    a : float, default 0
        The negative slope of 'leaky_relu'.
    mode : {'fan_in', 'fan_out'}, default 'fan_in'
        Keep the variance of values, or of gradients.
    nonlinearity : str, default 'leaky_relu'
        What follows the layer; for `calculate_gain`.
    generator : Generator, optional
        Source of the numbers.

    Returns
    -------
    Tensor
        `tensor` itself.

    Raises
    ------
    ValueError
        It has fewer than 2 dimensions, or an option is not known.

    References
    ----------
    He et al. 2015, arXiv:1502.01852.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.init.kaiming_normal_(torch.empty(3, 6), mode="fan_out").shape
    torch.Size([3, 6])
    """
    if _nothing_to_fill(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Rows (or columns, where there are fewer) of the tensor as a matrix become orthonormal
    times `gain`.

    Parameters
    ----------
    tensor : Tensor
        At least 2-d; changed in place, outside autograd.
    gain : float, default 1
        Their length.
    generator : Generator, optional
        Source of the numbers.

    Returns
    -------
    Tensor
        `tensor` itself.

    Raises
    ------
    ValueError
        It has fewer than 2 dimensions.

    References
    ----------
    Saxe et al. 2013, arXiv:1312.6120.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> w = nn.init.orthogonal_(torch.empty(2, 5))
    >>> torch.allclose(w @ w.T, torch.eye(2), atol=1e-5)
    True
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with pt.no_grad():
        flat = pt.empty(rows, columns, dtype=tensor.dtype, device=tensor.device)
        flat.normal_(0, 1, generator=generator)
        wide = rows < columns
        q, r = pt.linalg.qr(flat.t() if wide else flat)
        q = q * pt.diag(r).sign()  # makes the distribution uniform (Mezzadri, math-ph/0609050)
        tensor.view(rows, columns).copy_(q.t() if wide else q)
        return tensor.mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal values, with the given fraction of each column set to zero.

    Parameters
    ----------
    tensor : Tensor
        2-d.
    sparsity : float
        The fraction.
    std : float, default 0.01
        Of the normal distribution.
    generator : Generator, optional
        Source of the numbers.

    Returns
    -------
    Tensor
        `tensor` itself.

    Raises
    ------
    ValueError
        It has another number of dimensions.

    References
    ----------
    Martens 2010, Deep learning via Hessian-free optimization, ICML.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> (nn.init.sparse_(torch.empty(4, 2), sparsity=0.5) == 0).sum(0)
    tensor([2, 2])
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with pt.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[pt.randperm(rows, generator=generator)[:zeros], column] = 0
    return tensor


def _old_name(fn: Callable) -> Callable:
    new = fn.__name__

    @functools.wraps(fn)
    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{new[:-1]}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=2,
        )
        return fn(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = new[:-1]
    deprecated.__doc__ = f"The deprecated name of `{new}`; it warns.\n\n    {fn.__doc__}"
    return deprecated


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Any = None) -> Tensor:
    """Fill from the uniform distribution on [a, b)."""
    return uniform_(tensor, a, b, generator)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Any = None) -> Tensor:
    """Fill from the normal distribution."""
    return normal_(tensor, mean, std, generator)


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> Tensor:
    """Fill from the normal distribution, cut off at both ends."""
    return trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    """Fill with a number."""
    return constant_(tensor, val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return zeros_(tensor)
