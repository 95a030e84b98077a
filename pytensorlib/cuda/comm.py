"""Tensors to several GPUs of a process, and from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from .. import _C
from ..nn.parallel.scatter_gather import place
from ._kind import GPU

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def _one_of(devices: Any, out: Any, what: str) -> None:
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified: {what} got devices={devices} "
            f"and out={out}"
        )


def broadcast(tensor: Any, devices: Any = None, *, out: Any = None) -> tuple[Any, ...]:
    """Copy a tensor to several devices.

    Parameters
    ----------
    tensor : Tensor
        On any device.
    devices : sequence of device, str or int, optional
        Where to; a number means a GPU.
    out : sequence of Tensor, optional
        What to write to, in the place of `devices`.

    Returns
    -------
    tuple of Tensor
        One for each; `out` where it is given.

    Raises
    ------
    RuntimeError
        Neither `devices` nor `out` is given, or both are.
    """
    _one_of(devices, out, "broadcast")
    if out is not None:
        return tuple(o.copy_(tensor) for o in out)
    return tuple(tensor.to(place(d)) for d in devices)


def broadcast_coalesced(
    tensors: Sequence[Any], devices: Sequence[Any], buffer_size: int = 10485760
) -> list[tuple[Any, ...]]:
    """Copy several tensors to several devices.

    Parameters
    ----------
    tensors : sequence of Tensor
        On the first of the devices.
    devices : sequence of device, str or int
        Where to; a number means a GPU.
    buffer_size : int
        Not used: copies wait for each other in one queue anyway.

    Returns
    -------
    list of tuple of Tensor
        One tuple for each device.
    """
    return [tuple(t.to(place(d)) for t in tensors) for d in devices]


def reduce_add(inputs: Sequence[Any], destination: Any = None) -> Any:
    """Add tensors of several devices.

    Parameters
    ----------
    inputs : sequence of Tensor
        Of one shape.
    destination : device, str or int, optional
        Where the sum goes; the current GPU where it is left out.

    Returns
    -------
    Tensor
        The sum.

    Raises
    ------
    RuntimeError, ValueError
        There is no input, or shapes differ.
    """
    if not inputs:
        raise RuntimeError("reduce_add expects at least one input tensor, but got none")
    shapes = {tuple(x.shape) for x in inputs}
    if len(shapes) > 1:
        raise ValueError(f"reduce_add expects inputs of one shape, but got {sorted(shapes)}")
    device = _here(destination, "comm.reduce_add")
    total = inputs[0].to(device)
    for x in inputs[1:]:
        total = total + x.to(device)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Any]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Any, ...]:
    """Add lists of tensors of several devices, element by element of the lists.

    Parameters
    ----------
    inputs : sequence of sequence of Tensor
        One list for each device.
    destination : device, str or int, optional
        Where the sums go; the current GPU where it is left out.
    buffer_size : int
        Not used.

    Returns
    -------
    tuple of Tensor
        The sums.
    """
    return tuple(reduce_add(column, destination) for column in zip(*inputs, strict=True))


def scatter(
    tensor: Any,
    devices: Any = None,
    chunk_sizes: Any = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Any = None,
) -> tuple[Any, ...]:
    """Cut a tensor into parts for several devices.

    Parameters
    ----------
    tensor : Tensor
        What is cut.
    devices : sequence of device, str or int, optional
        Where the parts go; a number means a GPU.
    chunk_sizes : sequence of int, optional
        Their sizes; equal ones where they are left out.
    dim : int, default 0
        Along which dimension.
    streams : optional
        Not used.
    out : sequence of Tensor, optional
        What to write to, in the place of `devices` and `chunk_sizes`.

    Returns
    -------
    tuple of Tensor
        The parts; `out` where it is given.

    Raises
    ------
    RuntimeError
        Neither `devices` nor `out` is given, or both are.
    """
    _one_of(devices, out, "scatter")
    if out is not None:
        parts = tensor.split([o.shape[dim] for o in out], dim)
        return tuple(o.copy_(p) for o, p in zip(out, parts, strict=True))
    if chunk_sizes is None:
        parts = tensor.chunk(len(devices), dim)
    else:
        parts = tensor.split(list(chunk_sizes), dim)
    return tuple(p.to(place(d)) for p, d in zip(parts, devices))


def gather(
    tensors: Sequence[Any], dim: int = 0, destination: Any = None, *, out: Any = None
) -> Any:
    """Join tensors of several devices on one.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of one shape but for `dim`.
    dim : int, default 0
        Along which dimension.
    destination : device, str or int, optional
        Where to; the current GPU where it is left out, the CPU where it is -1.
    out : Tensor, optional
        What to write to, in the place of `destination`.

    Returns
    -------
    Tensor
        The joined one; `out` where it is given.

    Raises
    ------
    RuntimeError
        `destination` and `out` are both given.
    """
    if out is not None:
        if destination is not None:
            raise RuntimeError(
                "'destination' must not be specified when 'out' is specified, but got "
                f"destination={destination}"
            )
        return out.copy_(pt.cat([t.to(out.device) for t in tensors], dim))
    device = _here(destination, "comm.gather")
    return pt.cat([t.to(device) for t in tensors], dim)


def _here(destination: Any, what: str) -> Any:
    """Return the device where results go."""
    if isinstance(destination, int) and destination < 0:
        return _C.device("cpu")
    if destination is None:
        return _C.device(GPU.name, GPU.index(None, what))
    return place(destination)
