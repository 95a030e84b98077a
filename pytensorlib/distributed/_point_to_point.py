"""`send`, `recv` and their asynchronous forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._buffers import Room, checked, sent, shown
from ._errors import DistBackendError
from ._process_group import ProcessGroup, member
from ._work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def _check_tag(call: str, tag: int, pg: ProcessGroup) -> None:
    # The highest one is the monitored barrier's.
    limit = pg._comm.Get_attr(pg._mpi.TAG_UB) or 32767
    if not 0 <= tag < limit:
        raise ValueError(f"{call}: tag must be from 0 to {limit - 1}, got {tag}")


def _sent(
    call: str, tensor: Any, dst: Any, group: Any, tag: int, place: int | None, later: bool
) -> Work | None:
    pg = member(call, group)
    if pg is None:
        return None
    checked(call, "tensor", tensor)
    _check_tag(call, tag, pg)
    to = pg._place(call, "dst", dst, place)
    if to == pg.rank():
        raise ValueError(
            f"{call}: Invalid destination rank: destination rank should not be the same as the "
            "rank of the current process."
        )
    given = sent(tensor)
    return pg._run(
        f"{call} to rank {pg._ranks[to]}",
        lambda _: "",
        lambda comm: [comm.Isend(given, to, tag)],
        None,
        [tensor],
        later,
        given.nbytes,
        given,
        compare=False,
    )


def send(
    tensor: Any,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to another process.

    Parameters
    ----------
    tensor : Tensor
        What is sent.
    dst : int
        To whom, by its number in the world.
    group : ProcessGroup, optional
        All processes by default.
    tag : int, default 0
        Only a `recv` with the same one gets it.
    group_dst : int, optional
        Instead of `dst`, the number in the group.

    Raises
    ------
    ValueError
        It would go to the process itself.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized() and dist.get_rank() == 0:
    ...     dist.send(torch.ones(2), dst=1)
    """
    _sent("send", tensor, dst, group, tag, group_dst, False)


def isend(
    tensor: Any,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Start to send a tensor to another process.

    Parameters
    ----------
    tensor : Tensor
        What is sent; not to be written to before the call has ended.
    dst, group, tag, group_dst : optional
        As in `send`.

    Returns
    -------
    Work or None
        The call under way; None outside of the group.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized() and dist.get_rank() == 0:
    ...     work = dist.isend(torch.ones(2), dst=1)
    """
    return _sent("isend", tensor, dst, group, tag, group_dst, True)


def _receive(
    call: str, tensor: Any, src: Any, group: Any, tag: int, place: int | None
) -> Work | None:
    """Start to receive."""
    pg = member(call, group)
    if pg is None:
        return None
    checked(call, "tensor", tensor)
    _check_tag(call, tag, pg)
    anyone = src is None and place is None
    at = pg._mpi.ANY_SOURCE if anyone else pg._place(call, "src", src, place)
    if at == pg.rank():
        raise ValueError(
            f"{call}: Invalid source rank: source rank should not be the same as the rank of the "
            "current process."
        )
    room = Room(tensor)
    wanted = room.bytes.nbytes

    def finish(statuses: list[Any]) -> None:
        source = pg._ranks[statuses[-1].Get_source()]
        got = statuses[-1].Get_count(pg._mpi.BYTE)
        if got != wanted:
            raise DistBackendError(
                f"{call}: rank {pg._ranks[pg.rank()]} at {work._where}: expected {wanted} bytes "
                f"({shown(tensor)}), and rank {source} sent {got}"
            )
        work._source = source
        room.settle()

    # As an asynchronous call always, so that `finish` knows it.
    name = f"{call} from {'anyone' if anyone else f'rank {pg._ranks[at]}'}"
    work: Any = pg._run(
        name,
        lambda _: "",
        lambda comm: [comm.Irecv(room.bytes, at, tag)],
        finish,
        [tensor],
        True,
        wanted,
        room,
        compare=False,
    )
    return work


def recv(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from another process.

    Parameters
    ----------
    tensor : Tensor
        Written to: of the size of what is sent.
    src : int, optional
        From whom, by its number in the world; from anyone by default.
    group : ProcessGroup, optional
        All processes by default.
    tag : int, default 0
        The one that the sender gave.
    group_src : int, optional
        Instead of `src`, the number in the group.

    Returns
    -------
    int
        Who sent it; -1 outside of the group.

    Raises
    ------
    DistBackendError
        Something of another size was sent.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized() and dist.get_rank() == 1:
    ...     source = dist.recv(torch.zeros(2), src=0)
    """
    work = _receive("recv", tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


def irecv(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Start to receive a tensor from another process.

    Parameters
    ----------
    tensor : Tensor
        Written to; not to be used before the call has ended.
    src, group, tag, group_src : optional
        As in `recv`.

    Returns
    -------
    Work or None
        The call under way; None outside of the group.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized() and dist.get_rank() == 1:
    ...     work = dist.irecv(torch.zeros(2), src=0)
    """
    return _receive("irecv", tensor, src, group, tag, group_src)


class P2POp:
    """One of several sends and receives that start together.

    Parameters
    ----------
    op : callable
        `isend` or `irecv`.
    tensor : Tensor
        What is sent, or written to.
    peer : int, optional
        The other process, by its number in the world.
    group : ProcessGroup, optional
        All processes by default.
    tag : int, default 0
        As in `send`.
    group_peer : int, optional
        Instead of `peer`, the number in the group.

    Raises
    ------
    ValueError
        `op` is another function.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> op = dist.P2POp(dist.isend, torch.ones(2), peer=1)
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Any,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                f"``torch.distributed.irecv``, got {op}"
            )
        if (peer is None) == (group_peer is None):
            raise ValueError("P2POp: exactly one of peer and group_peer must be given")
        self.op, self.tensor, self.peer, self.group = op, tensor, peer, group
        self.tag, self.group_peer = tag, group_peer

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__} {shown(self.tensor)}, peer={self.peer})"


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start several sends and receives, in any order.

    Parameters
    ----------
    p2p_op_list : list of P2POp
        What to start.

    Returns
    -------
    list of Work
        The calls under way.

    Raises
    ------
    ValueError
        The list is empty or holds something else.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     before, after = ((dist.get_rank() + d) % dist.get_world_size() for d in (-1, 1))
    ...     there = dist.P2POp(dist.isend, torch.ones(2), after)
    ...     here = dist.P2POp(dist.irecv, torch.empty(2), before)
    ...     done = [work.wait() for work in dist.batch_isend_irecv([there, here])]
    """
    if not isinstance(p2p_op_list, (list, tuple)) or not p2p_op_list:
        raise ValueError("batch_isend_irecv: p2p_op_list must be a list of at least one P2POp")
    if not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type P2POp")
    works = []
    for one in p2p_op_list:
        names = ("dst", "group_dst") if one.op is isend else ("src", "group_src")
        whom = {names[0]: one.peer, names[1]: one.group_peer}
        works.append(one.op(one.tensor, group=one.group, tag=one.tag, **whom))
    return [work for work in works if work is not None]
