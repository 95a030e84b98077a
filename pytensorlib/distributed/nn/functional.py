"""Calls between processes that have derivatives: gradients travel the other way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from .. import _collectives, _reductions
from .._process_group import ProcessGroup, member
from .._reduce import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]

Function: Any = pt.autograd.Function


def _group(call: str, group: Any) -> ProcessGroup:
    found = member(call, group)
    if found is None:
        raise ValueError(f"distributed.nn.{call}: this process is not in the group")
    return found


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Any) -> Any:
        ctx.op, ctx.group = op, group
        out = tensor.clone()
        _reductions.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, g.contiguous())


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, root: int, group: Any, tensor: Any) -> Any:
        ctx.root, ctx.group = root, group
        out = tensor.clone()
        _collectives.broadcast(out, group=group, group_src=root)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, _Reduce.apply(ctx.root, ReduceOp.SUM, ctx.group, g)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, root: int, op: Any, group: Any, tensor: Any) -> Any:
        ctx.root, ctx.group = root, group
        out = tensor.clone()
        _reductions.reduce(out, op=op, group=group, group_dst=root)
        return out if group.rank() == root else pt.zeros_like(out)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, None, _Broadcast.apply(ctx.root, ctx.group, g)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> Any:
        ctx.group = group
        out = [pt.empty_like(tensor) for _ in range(group.size())]
        _collectives.all_gather(out, tensor, group)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, *gs)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, *parts: Any) -> Any:
        ctx.group = group
        out = pt.empty_like(parts[group.rank()])
        _reductions.reduce_scatter(out, list(parts), op, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, *_AllGather.apply(ctx.group, g)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, root: int, group: Any, tensor: Any) -> Any:
        ctx.root, ctx.group = root, group
        out = [pt.zeros_like(tensor) for _ in range(group.size())]
        here = group.rank() == root
        _collectives.gather(tensor, out if here else None, group=group, group_dst=root)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        return None, None, _Scatter.apply(ctx.root, ctx.group, *gs)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, root: int, group: Any, *tensors: Any) -> Any:
        ctx.root, ctx.group = root, group
        out = pt.empty_like(tensors[group.rank()])
        given = list(tensors) if group.rank() == root else None
        _collectives.scatter(out, given, group=group, group_src=root)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, *_Gather.apply(ctx.root, ctx.group, g)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, shapes: Sequence[Any], *tensors: Any) -> Any:
        ctx.group, ctx.shapes = group, [t.shape for t in tensors]
        out = [pt.empty(s, dtype=tensors[0].dtype, device=tensors[0].device) for s in shapes]
        _collectives.all_to_all(out, list(tensors), group)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        return None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *gs)


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """Return what one process has; its gradient is the sum of all processes'.

    Parameters
    ----------
    tensor : Tensor
        Of one shape everywhere.
    src : int
        The process, by its number in the world.
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    Tensor
        A new one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     y = torch.distributed.nn.broadcast(torch.ones(2), 0)
    """
    pg = _group("broadcast", group)
    return _Broadcast.apply(pg._place("broadcast", "src", src, None), pg, tensor)


def gather(tensor: Any, dst: int = 0, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all processes on one, zeros on the others.

    Parameters
    ----------
    tensor : Tensor
        Of one shape everywhere.
    dst : int, default 0
        The process that gets them, by its number in the world.
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    tuple of Tensor
        One of each process.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     parts = torch.distributed.nn.gather(torch.ones(2))
    """
    pg = _group("gather", group)
    return _Gather.apply(pg._place("gather", "dst", dst, None), pg, tensor)


def scatter(tensors: Sequence[Any], src: int = 0, group: Any = None) -> Any:
    """Return one of the tensors that one process has.

    Parameters
    ----------
    tensors : list of Tensor
        One for each process; on others than `src` only their shapes count.
    src : int, default 0
        The process that has them, by its number in the world.
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    Tensor
        The one of this process.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     y = dist.nn.scatter([torch.ones(2) for _ in range(dist.get_world_size())])
    """
    pg = _group("scatter", group)
    return _Scatter.apply(pg._place("scatter", "src", src, None), pg, *tensors)


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction of all processes' tensors on one, zeros on the others.

    Parameters
    ----------
    tensor : Tensor
        Of one shape everywhere.
    dst : int
        The process that gets it, by its number in the world.
    op : ReduceOp, default SUM
        How; the gradient is that of a sum.
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    Tensor
        A new one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     y = torch.distributed.nn.reduce(torch.ones(2), 0)
    """
    pg = _group("reduce", group)
    return _Reduce.apply(pg._place("reduce", "dst", dst, None), op, pg, tensor)


def reduce_scatter(
    output: Any, input_list: Sequence[Any], op: Any = ReduceOp.SUM, group: Any = None
) -> Any:
    """Return the reduction of all processes' tensors for this one.

    Parameters
    ----------
    output : Tensor
        Not used.
    input_list : list of Tensor
        One for each process.
    op : ReduceOp, default SUM
        How; the gradient is that of a sum.
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    Tensor
        A new one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     parts = [torch.ones(2) for _ in range(dist.get_world_size())]
    ...     y = dist.nn.reduce_scatter(torch.zeros(2), parts)
    """
    return _ReduceScatter.apply(op, _group("reduce_scatter", group), *input_list)


def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all processes.

    Parameters
    ----------
    tensor : Tensor
        Of one shape everywhere.
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    tuple of Tensor
        One of each process.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     parts = torch.distributed.nn.all_gather(torch.ones(2))
    """
    return _AllGather.apply(_group("all_gather", group), tensor)


def all_to_all(
    output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], group: Any = None
) -> tuple[Any, ...]:
    """Return a tensor of each process, and send it one.

    Parameters
    ----------
    output_tensor_list : list of Tensor
        Their shapes are those of what arrives.
    input_tensor_list : list of Tensor
        What each process gets.
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    tuple of Tensor
        New ones.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     some = [torch.ones(1) for _ in range(dist.get_world_size())]
    ...     parts = dist.nn.all_to_all(some, some)
    """
    shapes = [t.shape for t in output_tensor_list]
    return _AllToAll.apply(_group("all_to_all", group), shapes, *input_tensor_list)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Any:
    """Return what arrives of each process, and send it a part of a tensor.

    Parameters
    ----------
    output : Tensor
        Its shape is that of the result.
    input : Tensor
        Cut along the first dimension.
    output_split_sizes, input_split_sizes : list of int, optional
        How long the parts are; equal by default.
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    Tensor
        A new one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     x = torch.arange(torch.distributed.get_world_size()) * 1.0
    ...     y = torch.distributed.nn.all_to_all_single(x, x)
    """
    pg = _group("all_to_all_single", group)
    n = pg.size()
    sizes = [
        list(given) if given else [len(x) // n] * n
        for x, given in ((output, output_split_sizes), (input, input_split_sizes))
    ]
    shapes = [(k, *output.shape[1:]) for k in sizes[0]]
    return pt.cat(_AllToAll.apply(pg, shapes, *input.split(sizes[1])))


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction of all processes' tensors.

    Parameters
    ----------
    tensor : Tensor
        Of one shape everywhere.
    op : ReduceOp, default SUM
        How; gradients are reduced in the same way.
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    Tensor
        A new one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     y = torch.distributed.nn.all_reduce(torch.ones(2))
    """
    return _AllReduce.apply(op, _group("all_reduce", group), tensor)
