"""Sums and copies among the GPUs of a process.

There is no NCCL: what NCCL does among processes MPI does (`torch.distributed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from .._absent.modules import fill

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"]

fill(
    globals(),
    'processes meet by MPI here: torch.distributed.init_process_group("nccl") is that.',
    "init_rank unique_id",
)
SUM = 0
# As NCCL numbers them.
_WAYS = {0: "sum", 1: "product", 2: "max", 3: "min"}


def is_available(tensors: Any) -> bool:
    """Return False: there is no NCCL; the functions below do what it would."""
    return False


def version() -> tuple[int, int, int]:
    """Return the version of NCCL: zeros, for none."""
    return (0, 0, 0)


def _joined(inputs: Sequence[Any], op: int, device: Any) -> Any:
    if isinstance(inputs, pt.Tensor) or not isinstance(inputs, Sequence):
        raise TypeError("Inputs should be a collection of tensors")
    if op not in _WAYS:
        raise ValueError(f"nccl: op must be one of {list(_WAYS)}, got {op!r}")
    first, *others = (x.to(device) for x in inputs)
    for x in others:
        way = _WAYS[op]
        if way in ("sum", "product"):
            first = first + x if way == "sum" else first * x
        else:
            first = pt.maximum(first, x) if way == "max" else pt.minimum(first, x)
    return first


def all_reduce(
    inputs: Any, outputs: Any = None, op: int = SUM, streams: Any = None, comms: Any = None
) -> None:
    """Write the sum of tensors of GPUs to each of them.

    Parameters
    ----------
    inputs : sequence of Tensor
        Of one shape and type.
    outputs : sequence of Tensor, optional
        Where it is written; the inputs where it is left out.
    op : int, default 0
        0 adds, 1 multiplies, 2 takes the largest and 3 the smallest.
    streams, comms : optional
        Not used.
    """
    total = _joined(inputs, op, inputs[0].device)
    for out in inputs if outputs is None else outputs:
        out.copy_(total)


def reduce(
    inputs: Sequence[Any],
    output: Any = None,
    root: int = 0,
    op: int = SUM,
    streams: Any = None,
    comms: Any = None,
    *,
    outputs: Any = None,
) -> None:
    """Write the sum of tensors of GPUs to one.

    Parameters
    ----------
    inputs : sequence of Tensor
        Of one shape and type.
    output : Tensor, optional
        Where it is written; ``inputs[root]`` where it is left out.
    root : int, default 0
        Which input is written to.
    op : int, default 0
        As of `all_reduce`.
    streams, comms, outputs : optional
        Not used; ``outputs[root]`` is an older way to say `output`.
    """
    if output is None:
        output = inputs[root] if outputs is None else outputs[root]
    output.copy_(_joined(inputs, op, output.device))


def broadcast(inputs: Sequence[Any], root: int = 0, streams: Any = None, comms: Any = None) -> None:
    """Write one of several tensors to the others.

    Parameters
    ----------
    inputs : sequence of Tensor
        Of one shape and type.
    root : int, default 0
        Which one.
    streams, comms : optional
        Not used.
    """
    for i, x in enumerate(inputs):
        if i != root:
            x.copy_(inputs[root])


def all_gather(
    inputs: Sequence[Any], outputs: Sequence[Any], streams: Any = None, comms: Any = None
) -> None:
    """Write all tensors, one after the other, to each of the outputs.

    Parameters
    ----------
    inputs : sequence of Tensor
        Of one number of elements.
    outputs : sequence of Tensor
        Each with room for all.
    streams, comms : optional
        Not used.
    """
    for out in outputs:
        found = pt.cat([x.reshape(-1).to(out.device) for x in inputs])
        out.copy_(found.reshape(out.shape))


def reduce_scatter(
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    op: int = SUM,
    streams: Any = None,
    comms: Any = None,
) -> None:
    """Write a part of the sum of tensors to each of the outputs.

    Parameters
    ----------
    inputs : sequence of Tensor
        Of one shape and type.
    outputs : sequence of Tensor
        Together of as many elements as one input.
    op : int, default 0
        As of `all_reduce`.
    streams, comms : optional
        Not used.
    """
    total = _joined(inputs, op, inputs[0].device).reshape(-1)
    for out, part in zip(outputs, total.chunk(len(outputs)), strict=True):
        out.copy_(part.reshape(out.shape))
