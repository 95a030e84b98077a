"""Normalisation, linear maps and embeddings."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..._C import _nn

__all__ = [
    "batch_norm",
    "bilinear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_similarity",
    "embedding",
    "embedding_bag",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "linear",
    "local_response_norm",
    "normalize",
    "one_hot",
    "pairwise_distance",
    "pdist",
    "rms_norm",
]

linear = _nn.linear
bilinear = pt.bilinear
conv1d = pt.conv1d
conv2d = pt.conv2d
conv3d = pt.conv3d
conv_transpose1d = pt.conv_transpose1d
conv_transpose2d = pt.conv_transpose2d
conv_transpose3d = pt.conv_transpose3d
conv_tbc = pt.conv_tbc
one_hot = _nn.one_hot
cosine_similarity = pt.cosine_similarity
pairwise_distance = pt.pairwise_distance
pdist = pt.pdist


def _check_statistics(size: Any, count: int, what: str) -> None:
    if count == 1:
        raise ValueError(f"Expected more than 1 {what} when training, got input size {size}")


def _verify_batch_size(size: Any) -> None:
    """Refuse a batch whose channels have one value each."""
    _check_statistics(size, size[0] * math.prod(size[2:]), "value per channel")


def _verify_spatial_size(size: Any) -> None:
    """Refuse samples whose channels have one value each."""
    _check_statistics(size, math.prod(size[2:]), "spatial element")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel by the batch's mean and variance, or by the running ones.

    ``(x - mean) / sqrt(var + eps) * weight + bias``, with the biased variance.

    Parameters
    ----------
    input : Tensor
        (N, C) or (N, C, d1, ...), floating point.
    running_mean, running_var : Tensor or None
        (C,); in training they are updated in place, the variance with the unbiased one of the
        batch.
    weight, bias : Tensor, optional
        (C,).
    training : bool, default False
        Use the batch's statistics.
    momentum : float, default 0.1
        The batch's share in the running statistics.
    eps : float, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor
        The shape of `input`.

    Raises
    ------
    ValueError
        There is one value per channel in training.
    RuntimeError
        The statistics have a wrong size.

    References
    ----------
    Ioffe and Szegedy 2015, arXiv:1502.03167.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.batch_norm(torch.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if training:
        size = input.shape
        _check_statistics(size, size[0] * math.prod(size[2:]), "value per channel")
    return pt.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each sample by its own statistics.

    Parameters
    ----------
    input : Tensor
        (N, C, d1, ...), floating point.
    running_mean, running_var : Tensor, optional
        (C,); updated in place.
    weight, bias : Tensor, optional
        (C,).
    use_input_stats : bool, default True
        Otherwise the running statistics are used.
    momentum : float, default 0.1
        The batch's share in the running statistics.
    eps : float, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor
        The shape of `input`.

    Raises
    ------
    ValueError
        There is one spatial element.

    References
    ----------
    Ulyanov et al. 2016, arXiv:1607.08022.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.instance_norm(torch.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if use_input_stats:
        _check_statistics(input.shape, math.prod(input.shape[2:]), "spatial element")
    return pt.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last dimensions: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    Parameters
    ----------
    input : Tensor
        Floating point, ending in `normalized_shape`.
    normalized_shape : sequence of int
        The sizes of the dimensions to normalise over.
    weight, bias : Tensor, optional
        Of shape `normalized_shape`.
    eps : float, default 1e-5
        Added to the biased variance.

    Returns
    -------
    Tensor
        The shape of `input`.

    Raises
    ------
    RuntimeError
        Shapes do not fit.

    References
    ----------
    Ba et al. 2016, arXiv:1607.06450.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.layer_norm(torch.tensor([[1.0, 3.0]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    return pt.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root of the mean square over the last dimensions.

    Parameters
    ----------
    input : Tensor
        Floating point, ending in `normalized_shape`.
    normalized_shape : sequence of int
        The sizes of the dimensions to normalise over.
    weight : Tensor, optional
        Of shape `normalized_shape`.
    eps : float, optional
        Added to the mean square; the dtype's epsilon by default.

    Returns
    -------
    Tensor
        The shape of `input`.

    Raises
    ------
    RuntimeError
        Shapes do not fit.

    References
    ----------
    Zhang and Sennrich 2019, arXiv:1910.07467.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.rms_norm(torch.tensor([3.0, 4.0]), (2,))
    tensor([0.8485, 1.1314])
    """
    return pt.rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each group of channels of each sample by its own statistics.

    Parameters
    ----------
    input : Tensor
        (N, C, d1, ...), floating point.
    num_groups : int
        Divides C.
    weight, bias : Tensor, optional
        (C,).
    eps : float, default 1e-5
        Added to the biased variance.

    Returns
    -------
    Tensor
        The shape of `input`.

    Raises
    ------
    RuntimeError
        `input` has fewer than 2 dimensions, or C is no multiple of the groups.
    ValueError
        There is one value per group.

    References
    ----------
    Wu and He 2018, arXiv:1803.08494.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.group_norm(torch.tensor([[1.0, 3.0, 5.0, 9.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    size = input.shape
    if num_groups:
        count = size[0] * size[1] // num_groups * math.prod(size[2:])
        _check_statistics(size, count, "value per channel")
    return pt.group_norm(input, num_groups, weight, bias, eps, False)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide by ``(k + alpha * mean of squares) ** beta`` over `size` neighbouring channels.

    Parameters
    ----------
    input : Tensor
        (N, C, d1, ...), at least 3-d.
    size : int
        How many channels are neighbours.
    alpha : float, default 1e-4
        The factor of the mean.
    beta : float, default 0.75
        The power.
    k : float, default 1.0
        What is added.

    Returns
    -------
    Tensor
        The shape of `input`.

    Raises
    ------
    ValueError
        `input` has fewer than 3 dimensions.

    References
    ----------
    Krizhevsky et al. 2012, ImageNet classification with deep convolutional neural networks,
    NIPS.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.local_response_norm(torch.ones(1, 2, 1), size=2, alpha=1.0)
    tensor([[[0.7378],
             [0.5946]]])
    """
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    square = input.mul(input)
    before, after = size // 2, (size - 1) // 2
    if input.dim() == 3:
        padded = _nn.pad(square.unsqueeze(1), (0, 0, before, after))
        mean = _nn.avg_pool2d(padded, (size, 1), 1).squeeze(1)
    else:
        shape = input.shape
        planes = square.view(shape[0], 1, shape[1], shape[2], -1)
        padded = _nn.pad(planes, (0, 0, 0, 0, before, after))
        mean = _nn.avg_pool3d(padded, (size, 1, 1), 1).squeeze(1).view(shape)
    return input / mean.mul(alpha).add(k).pow(beta)


def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divide by the p-norm along a dimension, which is taken as at least `eps`.

    Parameters
    ----------
    input : Tensor
        Floating point, any shape.
    p : float, default 2.0
        Of the norm.
    dim : int or tuple of int, default 1
        What is summed over.
    eps : float, default 1e-12
        The least divisor: a vector of zeros stays.
    out : Tensor, optional
        Where the result is written.

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
    >>> F.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    vectors = out is None and type(eps) is float and dim is not None and type(p) in (int, float)
    if vectors and input.dim() > 0 and type(input) in (Tensor, pt.nn.Parameter):
        plain = input.dtype in (pt.float32, pt.float64) and not input.is_sparse
        # By other norms the chain of kernels below is as good on the CPU, where records fuse it.
        other = input._is_gpu and (p == 1 or 2 < p < math.inf)
        if plain and (p == 2 or other):
            return pt._C._unit(input, eps, dim, p)
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / norm if out is None else pt.div(input, norm, out=out)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a table that indices name.

    Parameters
    ----------
    input : Tensor
        Indices, int64 or int32, any shape.
    weight : Tensor
        The table, (rows, width).
    padding_idx : int, optional
        This row gets no gradient.
    max_norm : float, optional
        Rows that are longer are first shortened, in place.
    norm_type : float, default 2.0
        Of the norm that `max_norm` bounds.
    scale_grad_by_freq : bool, default False
        Divide gradients by how often the row occurs.
    sparse : bool, default False
        Whether the gradient of the table is sparse.

    Returns
    -------
    Tensor
        The shape of `input` followed by the width.

    Raises
    ------
    IndexError
        An index names no row.
    AssertionError
        `padding_idx` names no row.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> F.embedding(torch.tensor([1, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    padding_idx = _padding_row(padding_idx, weight)
    if max_norm is not None:
        input = input.contiguous()
        with pt.no_grad():
            pt.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    row = -1 if padding_idx is None else padding_idx
    return pt.embedding(weight, input, row, scale_grad_by_freq, sparse)


def _padding_row(padding_idx: int | None, weight: Tensor, bags: bool = False) -> int | None:
    if padding_idx is None:
        return None
    rows = weight.size(0)
    if bags and not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but "
            f"got {padding_idx}"
        )
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % rows


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows of each bag; a bag without rows gives zeros.

    Parameters
    ----------
    input : Tensor
        Indices: (bags, size), or 1-d and cut at `offsets`.
    weight : Tensor
        The table, (rows, width).
    offsets : Tensor, optional
        Where each bag begins; for a 1-d input.
    max_norm : float, optional
        Rows that are longer are first shortened, in place.
    norm_type : float, default 2
        Of the norm that `max_norm` bounds.
    scale_grad_by_freq : bool, default False
        Divide gradients by how often the row occurs.
    mode : {'mean', 'sum', 'max'}, default 'mean'
        What is made of the rows.
    sparse : bool, default False
        Whether the gradient of the table is sparse.
    per_sample_weights : Tensor, optional
        Of the shape of `input`; factors, for 'sum' only.
    include_last_offset : bool, default False
        The last offset is the end of the last bag.
    padding_idx : int, optional
        This row does not count and gets no gradient.

    Returns
    -------
    Tensor
        (bags, width).

    Raises
    ------
    ValueError
        Shapes or `mode` are wrong.
    NotImplementedError
        `per_sample_weights` with another mode than 'sum'.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn import functional as F
    >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> F.embedding_bag(torch.tensor([0, 1, 1]), table, torch.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [3., 4.]])
    """
    if weight.dtype in (pt.int64, pt.int32) and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. "
            "Usage `embedding_bag(weight, input, ...)` is deprecated, "
            "and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        input, weight = weight, input
    weights = per_sample_weights
    if weights is not None and input.shape != weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({tuple(weights.shape)}) is not None, "
            f"then it must have the same shape as the input ({tuple(input.shape)})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated as a "
                f"mini-batch of fixed length sequences. However, found {type(offsets)}"
            )
        offsets = pt.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        weights = None if weights is None else weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    modes = {"sum": 0, "mean": 1, "max": 2}
    if mode not in modes:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        with pt.no_grad():
            pt.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    if weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only "
            f"supported for mode='sum' (got mode='{mode}')."
        )
    return pt.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        modes[mode],
        sparse,
        weights,
        include_last_offset,
        _padding_row(padding_idx, weight, bags=True),
    )[0]
