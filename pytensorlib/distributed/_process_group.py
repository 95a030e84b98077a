"""A group of processes: an MPI communicator, with deadlines and errors that name who is late."""

from __future__ import annotations

import contextlib
import datetime as dt
import enum
import warnings
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._backend import Backend, DebugLevel, get_debug_level
from ._board import call_site
from ._buffers import counted, shown
from ._errors import DistBackendError
from ._work import Work, poll

__all__ = ["GroupMember", "ProcessGroup", "default_pg_timeout", "group", "member", "world"]

default_pg_timeout = dt.timedelta(minutes=30)
MARK = 480  # bytes that describe a call, for the comparison in debug mode
NOT_IN = -100
# The calls in which the first process takes part where none is named.
FIRST_BY_DEFAULT = {
    "broadcast_object_list",
    "gather",
    "gather_object",
    "scatter",
    "scatter_object_list",
}


class State:
    """The groups that this process has joined."""

    world: ProcessGroup | None = None
    groups: dict[str, ProcessGroup] = {}  # noqa: RUF012
    made = 0
    board: Any = None
    pending: list[Work] = []  # noqa: RUF012
    store: Any = None


class _World(type):
    @property
    def WORLD(cls) -> Any:  # noqa: N802
        """The group of all processes, or None."""
        return State.world


class GroupMember(metaclass=_World):
    """The group of all processes, and what `new_group` returns to those outside.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.GroupMember.WORLD is None
    True
    """

    NON_GROUP_MEMBER = NOT_IN


class group(metaclass=_World):
    """The group of all processes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.group.WORLD is None
    True
    """


class ProcessGroup:
    """Processes that communicate; `init_process_group` and `new_group` make one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     first = dist.new_group([0])
    """

    bound_device_id = None

    class BackendType(enum.IntEnum):
        """Libraries for communication, as PyTorch numbers them."""

        UNDEFINED = 0
        GLOO = 1
        NCCL = 2
        UCC = 3
        MPI = 4
        XCCL = 5
        CUSTOM = 6

    def __init__(
        self,
        mpi: Any,
        comm: Any,
        ranks: Sequence[int],
        name: str,
        timeout: dt.timedelta,
        backend: Backend,
        description: str | None = None,
    ) -> None:
        self._mpi, self._comm, self._timeout = mpi, comm, timeout
        self._ranks = list(ranks)  # numbers in the world, by number in the group
        self._places = {r: i for i, r in enumerate(self._ranks)}
        self._rank, self._size = comm.Get_rank(), comm.Get_size()
        self._backend = backend
        self._calls = 0
        self._other: ProcessGroup | None = None
        self.group_name = name
        self.group_desc = description or name

    def rank(self) -> int:
        """Return this process's number in the group."""
        return self._rank

    def size(self) -> int:
        """Return how many processes are in the group."""
        return self._size

    def name(self) -> str:
        """Return the name of the library that moves the data."""
        return self._backend

    def __repr__(self) -> str:
        what = f"{self.group_name}, rank {self._rank} of {self._size}"
        return f"<{type(self).__module__}.ProcessGroup {what}>"

    def _beside(self) -> ProcessGroup | None:
        """Return a group of the same processes for another thread, where MPI serves several.

        All processes must ask for the first one.
        """
        if self._mpi.Query_thread() < self._mpi.THREAD_MULTIPLE:
            return None
        if self._other is None:
            name = f"{self.group_name}, another thread"
            own = (self._mpi, self._comm.Dup(), self._ranks, name, self._timeout, self._backend)
            self._other = ProcessGroup(*own)
        return self._other

    def _late(self, op: str, where: str, limit: dt.timedelta) -> DistBackendError:
        """Return the error of a wait that took too long."""
        others = [r for i, r in enumerate(self._ranks) if i != self._rank]
        told = "; ".join(State.board.tell(r) for r in others[:16]) if State.board else ""
        return DistBackendError(
            f"{op}: rank {self._ranks[self._rank]} timed out after {limit.total_seconds():g} s in "
            f"the call at {where}: the other processes of {self.group_name} did not all make it"
            + (f"; {told}" if told else "")
        )

    def _failed(self, op: str, where: str, error: Exception) -> DistBackendError:
        """Return the error of a call that MPI refused."""
        text = " ".join(str(error).split())
        return DistBackendError(
            f"{op}: rank {self._ranks[self._rank]} at {where}: MPI says: {text}. Shapes and types "
            "must be the same on all processes; TORCH_DISTRIBUTED_DEBUG=DETAIL compares them"
        )

    def _left(self, op: str, where: str) -> None:
        if State.board is not None:
            State.board.leave(op, where)

    def _compare(self, op: str, what: str, where: str) -> None:
        """Raise where not all processes of the group are about to make the same call."""
        mine = f"{self._calls}\n{what}\n{where}".encode()[:MARK]
        marks = np.zeros((self._size, MARK), np.uint8)
        given = np.frombuffer(mine.ljust(MARK, b"\0"), np.uint8)
        request = self._comm.Iallgather(given, marks)
        work = Work(self, f"comparison before {op}", where, [request], keep=(given, marks))
        work.wait()
        rows = [m.tobytes().rstrip(b"\0").decode(errors="replace").split("\n") for m in marks]
        if len({tuple(r[:2]) for r in rows}) > 1:
            told = "; ".join(
                f"rank {rank} calls {row[1]} at {row[2]} (call {row[0]} of the group)"
                for rank, row in zip(self._ranks, rows)
            )
            raise DistBackendError(f"{op}: the processes do not make the same call: {told}")

    def _mark(self, call: str) -> tuple[Any, np.ndarray]:
        """Ask for the largest and the least of numbers made from the processes' calls."""
        number = zlib.crc32(call.encode())
        both = np.array([number, -number], np.int64)
        return self._comm.Iallreduce(self._mpi.IN_PLACE, both, self._mpi.MAX), both

    def _differs(self, op: str, where: str) -> DistBackendError:
        """Return the error of processes that do not make the same call."""
        mine = self._ranks[self._rank]
        told = [f"rank {mine} is in {op} at {where}"]
        if State.board is not None:
            told += [State.board.tell(r) for r in self._ranks[:16] if r != mine]
        return DistBackendError(
            f"{op}: the processes do not make the same call on tensors of the same type and number "
            f"of elements: {'; '.join(told)}; TORCH_DISTRIBUTED_DEBUG=DETAIL tells their shapes"
        )

    def _run(
        self,
        op: str,
        what: Callable[[Callable[[Any], str]], str],
        start: Callable[[Any], Sequence[Any]],
        finish: Callable[[list[Any]], None] | None,
        tensors: Sequence[Any],
        async_op: bool,
        size: int = 0,
        keep: Any = None,
        compare: bool = True,
        arrived: Callable[[int], None] | None = None,
    ) -> Work | None:
        """Start a call; wait for it unless it is asynchronous.

        `what` describes it, with its tensors described by what is given; `start` asks MPI, and
        `finish` brings what arrived to its tensors, or `arrived` what one request brought. With
        `compare` all processes make the call, and what they give is held together: in debug mode
        before it starts, else while it goes on.
        """
        where = call_site()
        self._calls += compare
        for work in [w for w in State.pending if w._poll()]:
            with contextlib.suppress(ValueError):  # another thread was first
                State.pending.remove(work)
        if State.board is not None:
            State.board.enter(op, where)
        if compare and get_debug_level() == DebugLevel.DETAIL:
            self._compare(op, f"{op}({what(shown)})", where)
        mark = self._mark(f"{op}({what(counted)})") if compare and self._size > 1 else None
        try:
            requests = start(self._comm)
        except self._mpi.Exception as error:
            raise self._failed(op, where, error) from None
        work = Work(self, op, where, requests, finish, tensors, size, keep, mark, arrived)
        if async_op:
            State.pending.append(work)
            return work
        work.wait()
        return None

    def _barrier(self, op: str, limit: dt.timedelta) -> None:
        """Wait until all processes are here."""
        request, where = self._comm.Ibarrier(), call_site()
        if State.board is not None:
            State.board.enter(op, where)
        if not poll(request.Test, limit.total_seconds()):
            raise self._late(op, where, limit)
        self._left(op, where)

    def _place(self, call: str, name: str, rank: int | None, place: int | None) -> int:
        """Return a number in the group, given as one of the world or of the group."""
        if rank is None and place is None:
            if call in FIRST_BY_DEFAULT:
                return 0
            raise ValueError(f"{call}: Must specify {name} or group_{name}")
        if rank is not None and place is not None:
            raise ValueError(f"{call}: Can't specify both group_{name} and {name}")
        if place is not None:
            if not 0 <= place < self._size:
                raise ValueError(f"{call}: group_{name} {place} is not in a group of {self._size}")
            return place
        if rank not in self._places:
            raise ValueError(
                f"{call}: Global rank {rank} is not part of group {self.group_name}, whose ranks "
                f"are {self._ranks}"
            )
        return self._places[rank]

    def barrier(self, opts: Any = None) -> Work | None:
        """Wait until all processes are here, later; returns what to wait for."""
        return self._run(
            "barrier", lambda _: "", lambda comm: [comm.Ibarrier()], None, [], async_op=True
        )


def world() -> ProcessGroup:
    """Return the group of all processes.

    Raises
    ------
    ValueError
        There is none yet.
    """
    if State.world is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return State.world


def member(call: str, group: Any) -> ProcessGroup | None:
    """Return the group that a call is for, or None, with a warning, outside of it."""
    if group is None:
        return world()
    if isinstance(group, ProcessGroup):
        return group
    if group == NOT_IN:
        rank = world().rank()
        warnings.warn(
            f"Running {call} on global rank {rank} which does not belong to the given group.",
            stacklevel=3,
        )
        return None
    raise TypeError(f"{call}: group must be a ProcessGroup, got {type(group).__name__}")
