"""Tensors to several devices and back, without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from .scatter_gather import place

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def _one_of(devices: Any, out: Any, names: str) -> None:
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of {names} must be specified, but got {devices} and out={out}"
        )


@pt.no_grad()
def broadcast(tensor: Any, devices: Any = None, *, out: Any = None) -> tuple[Any, ...]:
    """Copy a tensor to devices.

    Parameters
    ----------
    tensor : Tensor
        What is copied.
    devices : iterable of device or int, optional
        A number means a GPU.
    out : sequence of Tensor, optional
        Where the copies are written instead.

    Returns
    -------
    tuple of Tensor
        The copies; on its own device the first is the tensor itself.

    Raises
    ------
    RuntimeError
        Both `devices` and `out` are given, or neither, or a shape differs.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.nn.parallel.comm.broadcast(torch.ones(2), ["cpu", "cpu"])
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    _one_of(devices, out, "'devices' and 'out'")
    if out is None:
        copies = [tensor.to(place(d)) for d in devices]
        return tuple(c.clone() if i and c is tensor else c for i, c in enumerate(copies))
    for i, t in enumerate(out):
        if t.shape != tensor.shape:
            raise RuntimeError(
                f"broadcast: expected all out tensors to have shape {tuple(tensor.shape)}, but got "
                f"output tensor {i} with shape {tuple(t.shape)}"
            )
        t.copy_(tensor)
    return tuple(out)


def broadcast_coalesced(
    tensors: Sequence[Any], devices: Any, buffer_size: int = 10485760
) -> tuple[Any, ...]:
    """Copy several tensors to devices.

    Parameters
    ----------
    tensors : sequence of Tensor
        What is copied.
    devices : iterable of device or int
        A number means a GPU.
    buffer_size : int
        Not used.

    Returns
    -------
    tuple
        For each device, a tuple with its copies.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> len(torch.nn.parallel.comm.broadcast_coalesced([torch.ones(2)], ["cpu", "cpu"]))
    2
    """
    devices = list(devices)
    return tuple(zip(*(broadcast(t, devices) for t in tensors), strict=True))


@pt.no_grad()
def reduce_add(inputs: Sequence[Any], destination: Any = None) -> Any:
    """Add tensors of several devices up.

    Parameters
    ----------
    inputs : sequence of Tensor
        Of one shape.
    destination : device or int, optional
        Where the sum is; the device of the first one by default.

    Returns
    -------
    Tensor
        The sum.

    Raises
    ------
    ValueError
        The shapes differ.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.nn.parallel.comm.reduce_add([torch.ones(2), torch.ones(2)])
    tensor([2., 2.])
    """
    shape = inputs[0].shape
    for i, t in enumerate(inputs):
        if t.shape != shape:
            raise ValueError(
                f"input {i} has invalid size: got {tuple(t.shape)}, but expected {tuple(shape)}"
            )
    device = inputs[0].device if destination is None else place(destination)
    total = inputs[0].to(device, copy=True)
    for t in inputs[1:]:
        total += t.to(device)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Any]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Any, ...]:
    """Add several tensors of several devices up.

    Parameters
    ----------
    inputs : sequence of sequence of Tensor
        Those of each device.
    destination : device or int, optional
        Where the sums are.
    buffer_size : int
        Not used.

    Returns
    -------
    tuple of Tensor
        The sums.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.nn.parallel.comm.reduce_add_coalesced([[torch.ones(2)], [torch.ones(2)]])
    (tensor([2., 2.]),)
    """
    return tuple(reduce_add(each, destination) for each in zip(*inputs, strict=True))


@pt.no_grad()
def scatter(
    tensor: Any,
    devices: Any = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Any = None,
) -> tuple[Any, ...]:
    """Cut a tensor into parts for devices.

    Parameters
    ----------
    tensor : Tensor
        What is cut.
    devices : iterable of device or int, optional
        A number means a GPU.
    chunk_sizes : sequence of int, optional
        How long the parts are; equal ones by default.
    dim : int, default 0
        Along which dimension.
    streams : optional
        Not used.
    out : sequence of Tensor, optional
        Where the parts are written instead; they say how long parts are.

    Returns
    -------
    tuple of Tensor
        The parts.

    Raises
    ------
    RuntimeError
        Both `devices` and `out` are given, or neither, or sizes with `out`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.nn.parallel.comm.scatter(torch.arange(3), ["cpu", "cpu"], [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    _one_of(devices, out, "'devices' and 'out'")
    if out is None:
        devices = [place(d) for d in devices]
        parts = tensor.split(list(chunk_sizes), dim) if chunk_sizes else None
        parts = tensor.chunk(len(devices), dim) if parts is None else parts
        return tuple(part.to(device) for part, device in zip(parts, devices, strict=False))
    if chunk_sizes is not None:
        raise RuntimeError(
            f"'chunk_sizes' must not be specified when 'out' is specified, but got {chunk_sizes}"
        )
    for t, part in zip(out, tensor.split([t.shape[dim] for t in out], dim), strict=True):
        t.copy_(part)
    return tuple(out)


@pt.no_grad()
def gather(
    tensors: Sequence[Any], dim: int = 0, destination: Any = None, *, out: Any = None
) -> Any:
    """Put parts of several devices together.

    Parameters
    ----------
    tensors : sequence of Tensor
        The parts.
    dim : int, default 0
        Along which dimension.
    destination : device or int, optional
        Where the result is; the device of the first one by default, -1 means the CPU.
    out : Tensor, optional
        Where it is written instead.

    Returns
    -------
    Tensor
        The whole.

    Raises
    ------
    RuntimeError
        Both `destination` and `out` are given.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.nn.parallel.comm.gather([torch.ones(1), torch.zeros(2)])
    tensor([1., 0., 0.])
    """
    if out is not None and destination is not None:
        raise RuntimeError(
            f"'destination' must not be specified when 'out' is specified, but got {destination}"
        )
    device = out.device if out is not None else tensors[0].device
    if destination is not None:
        device = pt.device("cpu") if destination == -1 else place(destination)
    whole = pt.cat([t.to(device) for t in tensors], dim)
    return whole if out is None else out.copy_(whole)
