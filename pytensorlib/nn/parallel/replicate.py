"""Copies of a module whose gradients go to the module itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from .scatter_gather import place

__all__ = ["replicate"]


def replicate(network: Any, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """Return a copy of a module for each device.

    Parameters
    ----------
    network : Module
        Stays as it is; gradients of the copies go to its parameters.
    devices : sequence of device or int
        A number means a GPU.
    detach : bool, default False
        Whether the copies are to have no part in its gradients.

    Returns
    -------
    list of Module
        With tensors in the place of parameters.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Linear(1, 1)
    >>> a, b = torch.nn.parallel.replicate(net, ["cpu", "cpu"])
    >>> (a(torch.ones(1)) + b(torch.ones(1))).backward()
    >>> net.bias.grad
    tensor([2.])
    """
    return [_copy(network, place(d), detach, {}) for d in devices]


def _copy(module: Any, device: Any, detach: bool, known: dict[int, Any]) -> Any:
    if id(module) in known:
        return known[id(module)]
    twin = known[id(module)] = module._replicate_for_data_parallel()
    twin._buffers.clear()
    twin._modules.clear()
    for name, table in (("_parameters", module._parameters), ("_buffers", module._buffers)):
        for key, value in table.items():
            # A plain attribute: results of an operation are no parameters.
            if value is None:
                getattr(twin, name)[key] = None
            else:
                moved = pt.Tensor.to(value.detach() if detach else value, device)
                twin.__dict__[key] = moved.view_as(moved) if moved is value else moved
    for name, child in module._modules.items():
        twin._modules[name] = None if child is None else _copy(child, device, detach, known)
    return twin
