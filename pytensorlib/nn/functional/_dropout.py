"""Dropout."""

from __future__ import annotations

import warnings

import pytensorlib as pt

from ... import Tensor

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zero each element with probability `p` and divide the others by ``1 - p``.

    Parameters
    ----------
    input : Tensor
        Any shape, floating point.
    p : float, default 0.5
        The probability of a zero, in [0, 1].
    training : bool, default True
        Otherwise `input` is returned as it is.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Raises
    ------
    ValueError
        `p` is not in [0, 1].

    References
    ----------
    Hinton et al. 2012, arXiv:1207.0580.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.dropout(torch.ones(3), p=0.5, training=False)
    tensor([1., 1., 1.])
    """
    _check_probability(p)
    return (pt.dropout_ if inplace else pt.dropout)(input, p, training)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps the mean and variance that `selu` maintains: it sets elements to
    selu's limit.

    Parameters
    ----------
    input : Tensor
        Any shape, floating point.
    p : float, default 0.5
        The probability of being dropped, in [0, 1].
    training : bool, default False
        Otherwise `input` is returned as it is.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Raises
    ------
    ValueError
        `p` is not in [0, 1].

    References
    ----------
    Klambauer et al. 2017, arXiv:1706.02515.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.alpha_dropout(torch.ones(3), p=0.5)
    tensor([1., 1., 1.])
    """
    _check_probability(p)
    return (pt.alpha_dropout_ if inplace else pt.alpha_dropout)(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels, (N, C, ...): all of a channel is dropped or none of it.

    Parameters
    ----------
    input : Tensor
        Floating point, at least 2-d.
    p : float, default 0.5
        The probability of being dropped, in [0, 1].
    training : bool, default False
        Otherwise `input` is returned as it is.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Raises
    ------
    ValueError
        `p` is not in [0, 1].

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.feature_alpha_dropout(torch.ones(1, 2, 3)).shape
    torch.Size([1, 2, 3])
    """
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


def _other_dims(function: str, input: Tensor, spatial: str, dims: str) -> str:
    """Say that an input has another number of dimensions than a function is for."""
    return (
        f"{function}: Received a {input.dim()}-D input to {function}, which is deprecated and will "
        "result in an error in a future release. To retain the behavior and silence this warning, "
        f"please use dropout instead. Note that {function} exists to provide channel-wise dropout "
        f"on inputs with {spatial} dimensions, a channel dimension, and an optional batch "
        f"dimension (i.e. {dims} inputs)."
    )


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """In training, zero whole channels of an (N, C, L) or (C, L) input and divide the others by
    ``1 - p``.

    Parameters
    ----------
    input : Tensor
        Floating point, 2-d or 3-d.
    p : float, default 0.5
        The probability of a zero channel, in [0, 1].
    training : bool, default True
        Otherwise `input` is returned as it is.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Raises
    ------
    ValueError
        `p` is not in [0, 1].
    RuntimeError
        `input` has another number of dimensions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> x = F.dropout1d(torch.ones(1, 4, 3))
    >>> bool((x == x[..., :1]).all())
    True
    """
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _drop_channels(input, p, training, inplace, input.dim() == 3)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """In training, zero whole channels of an (N, C, H, W) input and divide the others by ``1 -
    p``.

    A 3-d input counts as (N, C, L).

    Parameters
    ----------
    input : Tensor
        Floating point; other numbers of dimensions warn.
    p : float, default 0.5
        The probability of a zero channel, in [0, 1].
    training : bool, default True
        Otherwise `input` is returned as it is.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Raises
    ------
    ValueError
        `p` is not in [0, 1].

    References
    ----------
    Tompson et al. 2014, arXiv:1411.4280.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> x = F.dropout2d(torch.ones(1, 4, 3, 3))
    >>> bool((x == x[..., :1, :1]).all())
    True
    """
    _check_probability(p)
    if input.dim() not in (3, 4):
        warnings.warn(_other_dims("dropout2d", input, "2 spatial", "3D or 4D"), stacklevel=2)
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _drop_channels(input, p, training, inplace, True)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """In training, zero whole channels of an (N, C, D, H, W) or (C, D, H, W) input, and scale
    the others.

    Parameters
    ----------
    input : Tensor
        Floating point; other numbers of dimensions warn.
    p : float, default 0.5
        The probability of a zero channel, in [0, 1].
    training : bool, default True
        Otherwise `input` is returned as it is.
    inplace : bool, default False
        Overwrite the input with the result.

    Returns
    -------
    Tensor
        The shape and dtype of `input`.

    Raises
    ------
    ValueError
        `p` is not in [0, 1].

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> x = F.dropout3d(torch.ones(1, 4, 2, 2, 2))
    >>> bool((x == x[..., :1, :1, :1]).all())
    True
    """
    _check_probability(p)
    if input.dim() not in (4, 5):
        warnings.warn(_other_dims("dropout3d", input, "3 spatial", "4D or 5D"), stacklevel=2)
    return _drop_channels(input, p, training, inplace, input.dim() == 5)
