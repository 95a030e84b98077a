"""Parts of a batch to devices, and results back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from ... import _gpu

__all__ = ["gather", "scatter", "scatter_kwargs"]


def place(device: Any) -> Any:
    """Return the device that a device, its name or the number of a GPU means."""
    return pt.device(_gpu.name(), device) if isinstance(device, int) else pt.device(device)


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Cut tensors into parts for devices, wherever they are in containers.

    Parameters
    ----------
    inputs : object
        Tensors are cut along `dim`; anything else goes to every device.
    target_gpus : sequence of device or int
        A number means a GPU.
    dim : int, default 0
        The dimension of the batch.

    Returns
    -------
    tuple
        The inputs of each device; fewer than devices where the batch is smaller.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.nn.parallel.scatter(torch.arange(3), ["cpu", "cpu"])
    (tensor([0, 1]), tensor([2]))
    """
    devices = [place(d) for d in target_gpus]

    def parts(value: Any) -> list[Any]:
        if isinstance(value, pt.Tensor):
            return [p.to(d) for p, d in zip(value.chunk(len(devices), dim), devices)]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [type(value)(*items) for items in zip(*map(parts, value))]
        if isinstance(value, (tuple, list)) and value:
            return [type(value)(items) for items in zip(*map(parts, value))]
        if isinstance(value, dict) and value:
            pairs = [[(k, p) for p in parts(v)] for k, v in value.items()]
            return [type(value)(items) for items in zip(*pairs)]
        return [value for _ in devices]

    found = parts(inputs)
    return found if isinstance(inputs, list) else tuple(found)


def scatter_kwargs(
    inputs: Any, kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Cut the arguments of a call into parts for devices.

    Parameters
    ----------
    inputs : tuple
        By position.
    kwargs : dict, optional
        By name.
    target_gpus : sequence of device or int
        A number means a GPU.
    dim : int, default 0
        The dimension of the batch.

    Returns
    -------
    tuple
        The positional arguments of each device, and those by name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.nn.parallel.scatter_kwargs((torch.arange(2),), {"n": 1}, ["cpu", "cpu"])
    (((tensor([0]),), (tensor([1]),)), ({'n': 1}, {'n': 1}))
    """
    args = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    args += [() for _ in range(len(named) - len(args))]
    named += [{} for _ in range(len(args) - len(named))]
    return tuple(args), tuple(named)


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Join results of devices on one of them.

    Parameters
    ----------
    outputs : sequence
        Of one form: tensors, or containers of them.
    target_device : device or int
        Where the joined tensors live; a number means a GPU.
    dim : int, default 0
        The dimension of the batch; tensors without dimensions become a vector.

    Returns
    -------
    object
        Of the form of each result.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.nn.parallel.gather([torch.ones(1), torch.zeros(2)], "cpu")
    tensor([1., 0., 0.])
    """
    device, first = place(target_device), outputs[0]
    if isinstance(first, pt.Tensor):
        moved = [o.to(device) for o in outputs]
        return pt.stack(moved) if first.dim() == 0 else pt.cat(moved, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(o) != len(first) for o in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((k, gather([o[k] for o in outputs], device, dim)) for k in first)
    if hasattr(first, "_fields"):
        return type(first)(*(gather(items, device, dim) for items in zip(*outputs)))
    return type(first)(gather(items, device, dim) for items in zip(*outputs))
