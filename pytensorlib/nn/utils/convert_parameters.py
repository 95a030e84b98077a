"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

import pytensorlib as pt

from ... import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters flattened and joined; differentiable.

    Parameters
    ----------
    parameters : iterable of Tensor
        On one device.

    Returns
    -------
    Tensor
        1-d.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.utils.parameters_to_vector([torch.ones(2), torch.zeros(1, 2)])
    tensor([1., 1., 0., 0.])
    """
    return pt.cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make each parameter's data the next slice of a vector, whose memory it then shares.

    Parameters
    ----------
    vec : Tensor
        1-d, as long as all parameters together.
    parameters : iterable of Tensor
        Changed in place.

    Raises
    ------
    TypeError
        `vec` is no tensor.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> w = nn.Parameter(torch.zeros(1, 2))
    >>> nn.utils.vector_to_parameters(torch.tensor([3.0, 4.0]), [w])
    >>> w.detach()
    tensor([[3., 4.]])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for param in parameters:
        end = start + param.numel()
        param.data = vec[start:end].view_as(param).data
        start = end
