"""Collectives that move data: broadcast, gather, scatter, all-to-all; any strides and device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pytensorlib as pt

from ._buffers import (
    Room,
    check_count,
    check_own,
    checked,
    checked_list,
    joined,
    same_types,
    sent,
    settle_all,
    shown,
    size_of,
    sizes_of,
    split,
    write,
)
from ._process_group import ProcessGroup, member
from ._staged import Staged, pieces, started
from ._work import Work

__all__ = [
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "scatter",
]

MiB = 1 << 20


def broadcast(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give all processes what one has.

    Parameters
    ----------
    tensor : Tensor
        Read on `src`, written to elsewhere; of one shape and type everywhere.
    src : int, optional
        The process that has it, by its number in the world; 0 by default.
    group : ProcessGroup, optional
        All processes by default.
    async_op : bool, default False
        Return what to wait for.
    group_src : int, optional
        Instead of `src`, the number in the group.

    Returns
    -------
    Work or None
        With `async_op`, the call under way.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> x = torch.zeros(2)
    >>> if dist.is_initialized():
    ...     _ = dist.broadcast(x, src=0)
    """
    call = "broadcast"
    pg = member(call, group)
    if pg is None:
        return None
    checked(call, "tensor", tensor)
    root = pg._place(call, "src", src, group_src)
    mine = root == pg.rank()

    def host(part: Any) -> tuple[Room, Any]:
        room = Room(part)
        if mine:
            room.load()
        return room, room.bytes

    staged = Staged(tensor, host)
    return pg._run(
        call,
        lambda shown: f"{shown(tensor)}, src={pg._ranks[root]}",
        lambda comm: staged.start(lambda own: comm.Ibcast(own, root)),
        None if mine else staged.finish,
        [tensor],
        async_op,
        size_of(tensor),
        staged,
        arrived=None if mine else lambda i: staged.hosts[i].settle(),
    )


def all_gather(
    tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give all processes the tensors of all.

    Parameters
    ----------
    tensor_list : list of Tensor
        Written to: one for each process, of the shape that it has there; shapes may differ.
    tensor : Tensor
        What this process gives.
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
    RuntimeError
        The list has another length, or the place of this process another size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     parts = [torch.zeros(2) for _ in range(dist.get_world_size())]
    ...     _ = dist.all_gather(parts, torch.ones(2))
    """
    call = "all_gather"
    pg = member(call, group)
    if pg is None:
        return None
    checked_list(call, "tensor_list", tensor_list)
    checked(call, "tensor", tensor)
    check_count(call, "output tensor list", tensor_list, pg.size())
    check_own(call, "the output tensor list", tensor_list, tensor, pg.rank())
    out = list(tensor_list)
    sizes, given = sizes_of(out), sent(tensor)
    flat = np.empty(sum(sizes), np.uint8)
    return pg._run(
        call,
        lambda shown: f"{[shown(t) for t in out]}",
        lambda comm: [comm.Iallgatherv(given, [flat, sizes])],
        lambda _: split(flat, out),
        out,
        async_op,
        flat.nbytes,
        (given, flat),
    )


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give all processes the tensors of all, one after the other in one tensor.

    Parameters
    ----------
    output_tensor : Tensor
        Written to: as many elements as all processes give together.
    input_tensor : Tensor
        What this process gives, of one shape everywhere.
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
        The output has another type or number of elements.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     out = torch.zeros(dist.get_world_size(), 2)
    ...     _ = dist.all_gather_into_tensor(out, torch.ones(2))
    """
    call = "all_gather_into_tensor"
    pg = member(call, group)
    if pg is None:
        return None
    checked(call, "output_tensor", output_tensor)
    checked(call, "input_tensor", input_tensor)
    same_types(call, [output_tensor, input_tensor])
    if output_tensor.numel() != input_tensor.numel() * pg.size():
        raise ValueError(
            f"{call}: the output must have {pg.size()} times the elements of the input "
            f"{tuple(input_tensor.shape)}, got {tuple(output_tensor.shape)}"
        )
    room, n, size = Room(output_tensor), input_tensor.numel(), input_tensor.element_size()
    flat, parts, kept = input_tensor.detach().reshape(-1), pieces(n, size), []

    def ask(comm: Any, part: tuple[int, int]) -> Any:
        given = sent(flat[slice(*part)])
        if np.may_share_memory(given, room.bytes):
            given = given.copy()
        kept.append(given)
        if len(parts) == 1:
            return comm.Iallgather(given, room.bytes)
        places = [(rank * n + part[0]) * size for rank in range(pg.size())]
        return comm.Iallgatherv(given, (room.bytes, ([given.nbytes] * pg.size(), places)))

    return pg._run(
        call,
        lambda shown: shown(input_tensor),
        lambda comm: started(lambda part: ask(comm, part), parts),
        settle_all([room]) if len(parts) == 1 else None,
        [output_tensor],
        async_op,
        size_of(output_tensor),
        (kept, room),
        arrived=None if len(parts) == 1 else lambda i: room.settle_columns(n, parts[i]),
    )


all_gather_single = all_gather_into_tensor


def all_gather_coalesced(
    output_tensor_lists: list[list[Any]],
    input_tensor_list: list[Any],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Give all processes several tensors of all, in one call.

    Parameters
    ----------
    output_tensor_lists : list of list of Tensor
        Written to: for each process a list of the shapes of what it gives.
    input_tensor_list : list of Tensor
        What this process gives.
    group, async_op : optional
        As in `all_gather`.

    Returns
    -------
    Work or None
        With `async_op`, the call under way.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     out = [[torch.zeros(2)] for _ in range(dist.get_world_size())]
    ...     _ = dist.all_gather_coalesced(out, [torch.ones(2)])
    """
    call = "all_gather_coalesced"
    pg = member(call, group)
    if pg is None:
        return None
    given = checked_list(call, "input_tensor_list", input_tensor_list)
    out = [checked_list(call, "output_tensor_lists", o) for o in output_tensor_lists]
    check_count(call, "output lists", out, pg.size())
    for one in out:
        if sizes_of(one) != sizes_of(given):
            raise ValueError(f"{call}: each list must have the shapes of what is given")
    mine = joined(given)
    flat = np.empty(mine.nbytes * pg.size(), np.uint8)
    return pg._run(
        call,
        lambda shown: f"{[shown(t) for t in given]}",
        lambda comm: [comm.Iallgather(mine, flat)],
        lambda _: split(flat, [t for one in out for t in one]),
        out,
        async_op,
        flat.nbytes,
        (mine, flat),
    )


def gather(
    tensor: Any,
    gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Give one process the tensors of all.

    Parameters
    ----------
    tensor : Tensor
        What this process gives.
    gather_list : list of Tensor, optional
        On `dst`, and only there: written to, one for each process.
    dst : int, optional
        The process that gets them, by its number in the world; 0 by default.
    group, async_op : optional
        As in `all_gather`.
    group_dst : int, optional
        Instead of `dst`, the number in the group.

    Returns
    -------
    Work or None
        With `async_op`, the call under way.

    Raises
    ------
    ValueError
        The list is missing on `dst`, or given elsewhere.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     n = dist.get_world_size() if dist.get_rank() == 0 else 0
    ...     _ = dist.gather(torch.ones(2), [torch.zeros(2) for _ in range(n)] or None)
    """
    call = "gather"
    pg = member(call, group)
    if pg is None:
        return None
    checked(call, "tensor", tensor)
    root = pg._place(call, "dst", dst, group_dst)
    given, mine = sent(tensor), root == pg.rank()
    out = checked_list(call, "gather_list", gather_list or [])
    if mine and not out:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not mine and out:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    if mine:
        check_count(call, "gather_list", out, pg.size())
        check_own(call, "gather_list", out, tensor, root)
    sizes = sizes_of(out)
    flat = np.empty(sum(sizes), np.uint8)
    return pg._run(
        call,
        lambda shown: f"{shown(tensor)}, dst={pg._ranks[root]}",
        lambda comm: [comm.Igatherv(given, [flat, sizes] if mine else None, root)],
        (lambda _: split(flat, out)) if mine else None,
        out,
        async_op,
        given.nbytes * pg.size(),
        (given, flat),
    )


def scatter(
    tensor: Any,
    scatter_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give each process one of the tensors that one has.

    Parameters
    ----------
    tensor : Tensor
        Written to.
    scatter_list : list of Tensor, optional
        On `src`, and only there: what each process gets.
    src : int, optional
        The process that has them, by its number in the world; 0 by default.
    group, async_op : optional
        As in `all_gather`.
    group_src : int, optional
        Instead of `src`, the number in the group.

    Returns
    -------
    Work or None
        With `async_op`, the call under way.

    Raises
    ------
    ValueError
        The list is missing on `src`, or given elsewhere.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     n = dist.get_world_size() if dist.get_rank() == 0 else 0
    ...     _ = dist.scatter(torch.zeros(2), [torch.ones(2) for _ in range(n)] or None)
    """
    call = "scatter"
    pg = member(call, group)
    if pg is None:
        return None
    checked(call, "tensor", tensor)
    root = pg._place(call, "src", src, group_src)
    mine = root == pg.rank()
    given = checked_list(call, "scatter_list", scatter_list or [])
    if mine and not given:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if not mine and given:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    if mine:
        check_count(call, "scatter_list", given, pg.size())
        check_own(call, "scatter_list", given, tensor, root)
    flat, sizes, room = joined(given), sizes_of(given), Room(tensor)
    return pg._run(
        call,
        lambda shown: f"{shown(tensor)}, src={pg._ranks[root]}",
        lambda comm: [comm.Iscatterv([flat, sizes] if mine else None, room.bytes, root)],
        settle_all([room]),
        [tensor],
        async_op,
        room.bytes.nbytes * pg.size(),
        (flat, room),
    )


def _exchanged(
    call: str,
    out: list[Any],
    given: list[Any],
    pg: ProcessGroup,
    async_op: bool,
    results: list[Any],
) -> Work | None:
    """Send each process its tensor, and receive one of each."""
    same_types(call, [*out, *given])
    to, back = sizes_of(given), sizes_of(out)
    if to[pg.rank()] != back[pg.rank()]:
        raise RuntimeError(
            f"{call}: what this process sends to itself, {shown(given[pg.rank()])}, does not fit "
            f"into {shown(out[pg.rank()])}"
        )
    flat, arrived = joined(given), np.empty(sum(back), np.uint8)
    return pg._run(
        call,
        lambda _: str(given[0].dtype),
        lambda comm: [comm.Ialltoallv([flat, to], [arrived, back])],
        lambda _: split(arrived, out),
        results,
        async_op,
        flat.nbytes + arrived.nbytes,
        (flat, arrived),
    )


def all_to_all(
    output_tensor_list: list[Any],
    input_tensor_list: list[Any],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process a tensor, and receive one of each.

    Parameters
    ----------
    output_tensor_list : list of Tensor
        Written to: of the shapes of what is sent here.
    input_tensor_list : list of Tensor
        What each process gets; shapes may differ.
    group, async_op : optional
        As in `all_gather`.

    Returns
    -------
    Work or None
        With `async_op`, the call under way.

    Raises
    ------
    RuntimeError
        A list has another length.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     out = [torch.zeros(1) for _ in range(dist.get_world_size())]
    ...     _ = dist.all_to_all(out, [torch.ones(1) for _ in out])
    """
    call = "all_to_all"
    pg = member(call, group)
    if pg is None:
        return None
    out = checked_list(call, "output_tensor_list", output_tensor_list)
    given = checked_list(call, "input_tensor_list", input_tensor_list)
    check_count(call, "output tensor list", out, pg.size())
    check_count(call, "input tensor list", given, pg.size())
    return _exchanged(call, out, given, pg, async_op, out)


def _cut(call: str, name: str, x: Any, sizes: Sequence[int] | None, n: int) -> list[Any]:
    """Return views of the parts of a tensor along its first dimension."""
    if x.dim() == 0:
        raise RuntimeError(f"{call}: {name} must have a first dimension to cut, got a scalar")
    if not sizes:
        if len(x) % n:
            raise RuntimeError(
                f"{call}: the first dimension of {name}, {len(x)}, does not divide equally among "
                f"{n} processes: give the sizes of its parts"
            )
        sizes = [len(x) // n] * n
    if len(sizes) != n or sum(sizes) != len(x):
        raise RuntimeError(
            f"{call}: the sizes of the parts of {name} must be {n} that sum up to {len(x)}, got "
            f"{list(sizes)}"
        )
    return list(x.detach().split(list(sizes)))


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process a part of a tensor, and receive one of each.

    Parameters
    ----------
    output : Tensor
        Written to: what arrives, along the first dimension.
    input : Tensor
        Cut along the first dimension.
    output_split_sizes, input_split_sizes : list of int, optional
        How long the parts are; equal by default.
    group, async_op : optional
        As in `all_gather`.

    Returns
    -------
    Work or None
        With `async_op`, the call under way.

    Raises
    ------
    RuntimeError
        The sizes do not fit.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     x = torch.arange(dist.get_world_size())
    ...     _ = dist.all_to_all_single(torch.empty_like(x), x)
    """
    call = "all_to_all_single"
    pg = member(call, group)
    if pg is None:
        return None
    checked(call, "output", output)
    checked(call, "input", input)
    out = _cut(call, "output", output, output_split_sizes, pg.size())
    given = _cut(call, "input", input, input_split_sizes, pg.size())
    return _exchanged(call, out, given, pg, async_op, [output])


def _broadcast_coalesced(
    pg: ProcessGroup, tensors: Sequence[Any], buffer_size: int = 25 * MiB, src: int = 0
) -> None:
    """Give all processes several tensors of one, in calls of about `buffer_size` bytes."""
    kinds: dict[Any, list[Any]] = {}
    for t in tensors:
        kinds.setdefault(t.dtype, []).append(t)
    for same in kinds.values():
        at = 0
        while at < len(same):
            end, size = at, 0
            while end < len(same) and (end == at or size + size_of(same[end]) <= buffer_size):
                size += size_of(same[end])
                end += 1
            some = same[at:end]
            flat = pt.cat([t.detach().cpu().reshape(-1) for t in some])
            broadcast(flat, group=pg, group_src=src)
            if pg.rank() != src:
                for t, part in zip(some, flat.split([t.numel() for t in some])):
                    write(t, part.reshape(t.shape))
            at = end
