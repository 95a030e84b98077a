"""Bounding gradients."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..._ops import foreach as _foreach
from ..functional._common import is_watched


def _list(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads(parameters: Any) -> list[Tensor]:
    return [p.grad for p in _list(parameters) if p.grad is not None]


def _over_processes(parameters: list[Any], norm_type: float) -> list[Tensor]:
    """Return the gradients; in the place of shards' ones their norm over all processes."""
    sharing: Any = sys.modules.get(f"{pt.__name__}.distributed.fsdp._shards")
    shards = [p for p in parameters if sharing and sharing.place_of(p) is not None]
    if not shards:
        return _grads(parameters)
    known = {id(p) for p in shards}
    whole = _grads([p for p in parameters if id(p) not in known])
    return [*whole, sharing.norm_of_all(shards, float(norm_type))]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors taken as one vector, without a gradient.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensor
        As a rule gradients.
    norm_type : float, default 2.0
        Which norm; may be infinity.
    error_if_nonfinite : bool, default False
        Raise where the norm is not finite.
    foreach : bool, optional
        Accepted as PyTorch does.

    Returns
    -------
    Tensor
        0-d.

    Raises
    ------
    RuntimeError
        The norm is not finite and `error_if_nonfinite` is true.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
    tensor(5.)
    """
    found = _list(tensors)
    if not found:
        return pt.tensor(0.0)
    norm_type = float(norm_type)
    first = found[0].device
    with pt.no_grad():
        if first._is_gpu and all(t.device == first for t in found):
            norms = _foreach.norms(found, norm_type)
        else:
            norms = pt.stack([pt.linalg.vector_norm(t, norm_type).to(first) for t in found])
        total = pt.linalg.vector_norm(norms, norm_type)
    if error_if_nonfinite and not pt.isfinite(total).item():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is "
            "non-finite, so it cannot be clipped. To disable this error and scale the gradients "
            "by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scale the gradients by ``max_norm / total_norm`` where that is below 1, in place.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those without a gradient do not count.
    max_norm : float
        The bound.
    total_norm : Tensor
        The norm, as `get_total_norm` returns it.
    foreach : bool, optional
        Accepted as PyTorch does.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> w = torch.zeros(1, requires_grad=True)
    >>> w.grad = torch.tensor([3.0])
    >>> nn.utils.clip_grads_with_norm_([w], 1.0, torch.tensor(3.0))
    >>> w.grad
    tensor([1.0000])
    """
    factor = pt.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    watched = is_watched()  # a recorded call has the products, whatever the factor is
    if factor.device.type == "cpu" and not watched and factor.item() == 1.0:
        return  # a product with one changes nothing
    grads = _grads(parameters)
    with pt.no_grad():
        if factor._is_gpu:
            _foreach.scale_(grads, factor)
            return
        for grad in grads:
            grad.mul_(factor.to(grad.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients in place so that their common norm is at most `max_norm`.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those without a gradient do not count.
    max_norm : float
        The bound.
    norm_type : float, default 2.0
        Which norm; may be infinity.
    error_if_nonfinite : bool, default False
        Raise where the norm is not finite.
    foreach : bool, optional
        Accepted as PyTorch does.

    Returns
    -------
    Tensor
        The norm before, 0-d.

    Raises
    ------
    RuntimeError
        The norm is not finite and `error_if_nonfinite` is true.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> w = torch.zeros(2, requires_grad=True)
    >>> w.grad = torch.tensor([3.0, 4.0])
    >>> nn.utils.clip_grad_norm_([w], max_norm=1.0)
    tensor(5.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    parameters = _list(parameters)
    with pt.no_grad():
        total = get_total_norm(
            _over_processes(parameters, norm_type), norm_type, error_if_nonfinite
        )
        clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The deprecated name of `clip_grad_norm_`; it warns.

    Parameters
    ----------
    parameters, max_norm, norm_type, error_if_nonfinite, foreach : optional
        As in `clip_grad_norm_`.

    Returns
    -------
    Tensor
        The norm before, 0-d.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     nn.utils.clip_grad_norm([], 1.0)
    tensor(0.)
    """
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamp every element of the gradients to [-clip_value, clip_value], in place.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those without a gradient do not count.
    clip_value : float
        The bound.
    foreach : bool, optional
        Accepted as PyTorch does.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> w = torch.zeros(2, requires_grad=True)
    >>> w.grad = torch.tensor([-3.0, 0.5])
    >>> nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad
    tensor([-1.0000,  0.5000])
    """
    bound = float(clip_value)
    with pt.no_grad():
        for grad in _grads(parameters):
            grad.clamp_(min=-bound, max=bound)
