"""Collectives that reduce: `all_reduce`, `reduce`, `reduce_scatter`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pytensorlib as pt

from ._buffers import (
    check_count,
    check_own,
    checked,
    checked_list,
    numbers,
    same_types,
    size_of,
    write,
)
from ._process_group import ProcessGroup, member
from ._reduce import ReduceOp, Reduction, reduction
from ._staged import Staged, pieces, started
from ._work import Work

__all__ = [
    "all_reduce",
    "all_reduce_coalesced",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
]


def _reduced_in_place(tensor: Any, how: Reduction) -> tuple[Any, np.ndarray]:
    """Return the numbers to reduce, which are the tensor's own where they can be."""
    x = how.before(tensor)
    if how.changes and x.data_ptr() == tensor.data_ptr():
        x = x.clone()
    return x, numbers(x)


def _given_back(tensor: Any, how: Reduction, x: Any) -> Callable[[Any], None]:
    """Return what gives a tensor its reduced numbers."""

    def finish(_: Any) -> None:
        how.after(x)
        if x.data_ptr() == tensor.data_ptr() and x.dtype == tensor.dtype:
            pt.autograd.graph.increment_version(tensor)
        else:
            write(tensor, x)

    return finish


def all_reduce(
    tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce a tensor over all processes; all get the result, with the same bits.

    Parameters
    ----------
    tensor : Tensor
        Replaced by the result. Of one shape and type everywhere; float16 and bfloat16 are
        reduced in float32 and rounded once.
    op : ReduceOp, default SUM
        How. Sums of bools are whether any is true.
    group : ProcessGroup, optional
        All processes by default.
    async_op : bool, default False
        Return what to wait for.

    Returns
    -------
    Work or None
        With `async_op`, the call under way.

    Raises
    ------
    ValueError, RuntimeError
        The type does not have the operation.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> x = torch.ones(2)
    >>> if dist.is_initialized():
    ...     _ = dist.all_reduce(x)
    """
    call = "all_reduce"
    pg = member(call, group)
    if pg is None:
        return None
    checked(call, "tensor", tensor)
    how = reduction(call, op, tensor.dtype, pg.size())
    mpi = pg._mpi
    staged = Staged(tensor, lambda part: _reduced_in_place(part, how))

    def arrived(i: int) -> None:
        part, x = staged.parts[i], staged.hosts[i]
        _given_back(part, how, x)(None)

    return pg._run(
        call,
        lambda shown: f"{how.op.name}, {shown(tensor)}",
        lambda comm: staged.start(
            lambda own: comm.Iallreduce(mpi.IN_PLACE, own, getattr(mpi, how.name))
        ),
        staged.finish,
        [tensor],
        async_op,
        2 * size_of(tensor),
        staged,
        arrived=arrived,
    )


def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce several tensors over all processes in one call.

    Parameters
    ----------
    tensors : Tensor or list of Tensor
        Each replaced by the result; all of one type.
    op, group, async_op : optional
        As in `all_reduce`.

    Returns
    -------
    Work or None
        With `async_op`, the call under way.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     _ = dist.all_reduce_coalesced([torch.ones(2), torch.ones(1)])
    """
    call = "all_reduce_coalesced"
    pg = member(call, group)
    if pg is None:
        return None
    given = [tensors] if isinstance(tensors, pt.Tensor) else tensors
    given = checked_list(call, "tensors", given)
    if not given:
        raise ValueError(f"{call}: needs at least one tensor")
    how = reduction(call, op, given[0].dtype, pg.size())
    flat = pt.cat([how.before(t).reshape(-1) for t in given])
    own, mpi = numbers(flat), pg._mpi

    def finish(_: Any) -> None:
        for t, part in zip(given, how.after(flat).split([t.numel() for t in given])):
            write(t, part.reshape(t.shape))

    return pg._run(
        call,
        lambda shown: f"{how.op.name}, {[shown(t) for t in given]}",
        lambda comm: [comm.Iallreduce(mpi.IN_PLACE, own, getattr(mpi, how.name))],
        finish,
        given,
        async_op,
        2 * size_of(flat),
        own,
    )


def reduce(
    tensor: Any,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce a tensor over all processes; one gets the result.

    Parameters
    ----------
    tensor : Tensor
        On `dst` replaced by the result; elsewhere left as it is.
    dst : int, optional
        The process that gets it, by its number in the world; 0 by default.
    op, group, async_op : optional
        As in `all_reduce`.
    group_dst : int, optional
        Instead of `dst`, the number in the group.

    Returns
    -------
    Work or None
        With `async_op`, the call under way.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     _ = dist.reduce(torch.ones(2), dst=0)
    """
    call = "reduce"
    pg = member(call, group)
    if pg is None:
        return None
    checked(call, "tensor", tensor)
    root = pg._place(call, "dst", dst, group_dst)
    how = reduction(call, op, tensor.dtype, pg.size())
    x, own = _reduced_in_place(tensor, how)
    mpi, mine = pg._mpi, root == pg.rank()
    return pg._run(
        call,
        lambda shown: f"{how.op.name}, {shown(tensor)}, dst={pg._ranks[root]}",
        lambda comm: [
            comm.Ireduce(mpi.IN_PLACE, own, getattr(mpi, how.name), root)
            if mine
            else comm.Ireduce(own, None, getattr(mpi, how.name), root)
        ],
        _given_back(tensor, how, x) if mine else None,
        [tensor],
        async_op,
        size_of(tensor),
        own,
    )


def _reduce_scattered(
    call: str,
    output: Any,
    parts: list[Any],
    op: Any,
    pg: ProcessGroup,
    async_op: bool,
) -> Work | None:
    """Reduce parts over all processes; each process gets one."""
    same_types(call, [*parts, output])
    how = reduction(call, op, output.dtype, pg.size())
    mpi, counts = pg._mpi, [p.numel() for p in parts]
    # Parts of one size are cut alike.
    same = len(set(counts)) == 1
    cuts = pieces(counts[0], how.dtype.itemsize) if same else [(0, max(counts))]
    flats = [p.detach().reshape(-1) for p in parts]
    outs: list[Any] = []
    kept: list[Any] = []

    def ask(comm: Any, cut: tuple[int, int]) -> Any:
        given = [how.before(x[slice(*cut)]) for x in flats]
        x = pt.cat(given)
        outs.append(pt.empty(given[pg.rank()].shape, dtype=how.dtype))
        kept.append((numbers(x), numbers(outs[-1])))
        each = [g.numel() for g in given]
        return comm.Ireduce_scatter(*kept[-1], each, getattr(mpi, how.name))

    def arrived(i: int) -> None:
        how.after(outs[i])
        if output.is_contiguous():
            write(output.detach().view(-1)[slice(*cuts[i])], outs[i])
        elif i == len(cuts) - 1:
            write(output, pt.cat(outs).view(output.shape))

    return pg._run(
        call,
        lambda shown: f"{how.op.name}, {[shown(p) for p in parts]}",
        lambda comm: started(lambda cut: ask(comm, cut), cuts),
        None,
        [output],
        async_op,
        sum(counts) * how.dtype.itemsize,
        kept,
        arrived=arrived,
    )


def reduce_scatter(
    output: Any,
    input_list: list[Any],
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce a list of tensors over all processes; each process gets one result.

    Parameters
    ----------
    output : Tensor
        Written to.
    input_list : list of Tensor
        One for each process, of the shape that `output` has there.
    op, group, async_op : optional
        As in `all_reduce`.

    Returns
    -------
    Work or None
        With `async_op`, the call under way.

    Raises
    ------
    RuntimeError
        The list has another length, or the place of this process another size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     parts = [torch.ones(2) for _ in range(dist.get_world_size())]
    ...     _ = dist.reduce_scatter(torch.zeros(2), parts)
    """
    call = "reduce_scatter"
    pg = member(call, group)
    if pg is None:
        return None
    checked(call, "output", output)
    parts = checked_list(call, "input_list", input_list)
    check_count(call, "input list", parts, pg.size())
    check_own(call, "the input list", parts, output, pg.rank())
    return _reduce_scattered(call, output, parts, op, pg, async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce a tensor over all processes; each process gets one part of the result.

    Parameters
    ----------
    output : Tensor
        Written to.
    input : Tensor
        As many elements as all outputs together.
    op, group, async_op : optional
        As in `all_reduce`.

    Returns
    -------
    Work or None
        With `async_op`, the call under way.

    Raises
    ------
    ValueError
        The input has another type or number of elements.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     parts = torch.ones(dist.get_world_size(), 2)
    ...     _ = dist.reduce_scatter_tensor(torch.zeros(2), parts)
    """
    call = "reduce_scatter_tensor"
    pg = member(call, group)
    if pg is None:
        return None
    checked(call, "output", output)
    checked(call, "input", input)
    if input.numel() != output.numel() * pg.size():
        raise ValueError(
            f"{call}: the input must have {pg.size()} times the elements of the output "
            f"{tuple(output.shape)}, got {tuple(input.shape)}"
        )
    parts = list(input.reshape(pg.size(), -1))
    return _reduce_scattered(call, output, parts, op, pg, async_op)


reduce_scatter_single = reduce_scatter_tensor
