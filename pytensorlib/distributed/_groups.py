"""Creates and destroys process groups."""

from __future__ import annotations

import atexit
import datetime as dt
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _faults, _mpi
from ._backend import check_backend
from ._board import FOLDER, Board
from ._process_group import NOT_IN, ProcessGroup, State, default_pg_timeout, member, world
from ._ranks import get_process_group_ranks
from ._work import poll

__all__ = [
    "destroy_process_group",
    "init_process_group",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "split_group",
]

START = dt.timedelta(minutes=1)  # at least this long may others take to begin: they import


def _wanted(rank: int, world_size: int, init_method: str | None, backend: Any) -> tuple[int, int]:
    """Return the number and the count of processes that the program asks for, or -1."""
    by_environment = init_method is None or init_method.startswith("env://")
    if by_environment:
        told = _mpi.launched_as() is not None or backend == "mpi"
        for name in ("RANK", "WORLD_SIZE"):
            given = rank if name == "RANK" else world_size
            if given < 0 and name not in os.environ and not told:
                raise ValueError(
                    "Error initializing torch.distributed using env:// rendezvous: environment "
                    f"variable {name} expected, but not set; {_mpi.only_process()}"
                )
        rank = rank if rank >= 0 else int(os.environ.get("RANK", "-1"))
        world_size = world_size if world_size >= 0 else int(os.environ.get("WORLD_SIZE", "-1"))
    return rank, world_size


def _communicator(mpi: Any, rank: int, size: int, limit: dt.timedelta) -> Any:
    """Return a communicator of all processes, in the order that the program wants."""
    all_of_them = mpi.COMM_WORLD
    found = all_of_them.Get_size()
    if size not in (-1, found):
        raise RuntimeError(
            f"init_process_group: {size} processes are wanted (WORLD_SIZE or world_size), and MPI "
            f"started {found} together; {_mpi.only_process()}"
        )
    if rank >= found:
        raise ValueError(f"init_process_group: rank {rank} is not below the world size {found}")
    comm, request = all_of_them.Idup()
    if not poll(request.Test, limit.total_seconds()):
        raise _faults.late_start(all_of_them.Get_rank(), found, limit)
    if rank not in (-1, comm.Get_rank()):
        numbered = comm.Split(0, rank)
        comm.Free()
        comm = numbered
        if comm.Get_rank() != rank:
            raise ValueError(
                f"init_process_group: the ranks of {found} processes must be 0 to {found - 1}, "
                f"each once, and one of them says {rank}"
            )
    return comm


def _post_board(comm: Any) -> None:
    """Put up what each process does where the others of its machine can read it."""
    folder = os.environ.get(FOLDER)
    if not folder:  # as on all: that it is not there is known only to those of another machine
        made = tempfile.mkdtemp(prefix="pytensorlib-") if comm.Get_rank() == 0 else None
        folder = comm.bcast(made)
    if folder and os.path.isdir(folder):
        State.board = Board(folder, comm.Get_rank())


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: dt.timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join all processes that MPI's launcher started: every one must call this.

    Parameters
    ----------
    backend : str, optional
        "mpi", or "gloo", which means the same here: MPI moves the data.
    init_method : str, optional
        "env://": ranks come from ``RANK`` and ``WORLD_SIZE`` where those are set, and from MPI.
        With another address, `rank` and `world_size` are what was given.
    timeout : timedelta, default 30 minutes
        How long a call waits for the other processes before it raises.
    world_size : int, optional
        How many processes there are, which must be what MPI started.
    rank : int, optional
        The number of this one; MPI's by default.
    store : Store, optional
        Kept: MPI needs none.
    group_name : str, optional
        Not used.
    pg_options : object, optional
        Not used.
    device_id : device, optional
        Not used: tensors on GPUs go through the host's memory.

    Raises
    ------
    RuntimeError
        MPI is not installed, or did not start as many processes.
    ValueError
        The process has joined already, or nothing tells its rank.

    Examples
    --------
    >>> import os
    >>> import pytensorlib as torch
    >>> if "WORLD_SIZE" in os.environ:
    ...     torch.distributed.init_process_group()
    """
    if State.world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if timeout is not None and not isinstance(timeout, dt.timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )
    if not _mpi.is_there():
        raise RuntimeError(
            "init_process_group: processes cannot communicate, because MPI is not installed: "
            f"{_mpi.INSTALL}. To train in one process, guard the call with "
            "torch.distributed.is_available()."
        )
    name = check_backend(backend)
    rank, world_size = _wanted(rank, world_size, init_method, name if backend else None)
    mpi, limit = _mpi.load(), timeout or default_pg_timeout
    start = max(limit, START)
    comm = _communicator(mpi, rank, world_size, start)
    _faults.install(mpi, comm.Get_rank(), comm.Get_size())
    _post_board(comm)
    ranks = range(comm.Get_size())
    joined = ProcessGroup(mpi, comm, ranks, "default_pg", limit, name)
    joined._barrier("init_process_group", start)
    State.world, State.groups, State.store = joined, {"default_pg": joined}, store
    atexit.register(_leave)


def _leave() -> None:
    """Take down what the process has put up; MPI ends itself."""
    State.world, State.groups, State.store = None, {}, None
    if State.board is not None:
        if State.board.end() and State.board.folder != Path(os.environ.get(FOLDER, "")):
            shutil.rmtree(State.board.folder, ignore_errors=True)
    State.board = None
    atexit.unregister(_leave)


def destroy_process_group(group: Any = None) -> None:
    """Leave a group, or with none given all of them.

    Parameters
    ----------
    group : ProcessGroup, optional
        A group of this process.

    Raises
    ------
    ValueError
        There is none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     torch.distributed.destroy_process_group()
    """
    if group == NOT_IN:
        return
    found = member("destroy_process_group", group)
    if found is None or found.group_name not in State.groups:
        raise ValueError("Invalid process group specified")
    if found is not State.world:
        del State.groups[found.group_name]
        found._comm.Free()
        return
    for work in State.pending:  # what was sent and not waited for may still be on its way
        poll(work._poll, min(5.0, found._timeout.total_seconds()))
    State.pending = []
    for one in reversed(list(State.groups.values())):
        one._comm.Free()
    _leave()


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: dt.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Make a group of some processes: every process must call this, also those outside.

    Parameters
    ----------
    ranks : list of int, optional
        Numbers in the world; all by default.
    timeout : timedelta, optional
        How long its calls wait; as long as the group of all by default.
    backend : str, optional
        As in `init_process_group`.
    pg_options : object, optional
        Not used.
    use_local_synchronization : bool, default False
        Only the members call this.
    group_desc : str, optional
        What messages call it.
    device_id : device, optional
        Not used.
    sort_ranks : bool, default True
        Number its processes as the world does, whatever the order of `ranks`.

    Returns
    -------
    ProcessGroup
        The group; outside of it ``GroupMember.NON_GROUP_MEMBER``.

    Raises
    ------
    ValueError
        `ranks` names a process twice, or one that is not there.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     first = dist.new_group([0])
    """
    everyone = world()
    wanted = list(range(everyone.size())) if ranks is None else [int(r) for r in ranks]
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"new_group: ranks must be different, got {wanted}")
    if not all(0 <= r < everyone.size() for r in wanted):
        raise ValueError(
            f"The new group's rank should be within the world_size set by init_process_group: "
            f"got {wanted} of {everyone.size()}"
        )
    wanted = sorted(wanted) if sort_ranks else wanted
    if use_local_synchronization and everyone.rank() not in wanted:
        return NOT_IN
    limit = timeout or everyone._timeout
    if use_local_synchronization:
        # Others may have made another number of groups: the members tell this one apart.
        tag = hash(tuple(wanted)) % 15000 + 15000
    else:
        everyone._barrier("new_group", limit)
        State.made += 1
        tag = State.made % 15000
    if everyone.rank() not in wanted:
        return NOT_IN
    chosen = everyone._comm.Get_group().Incl(wanted)
    comm = everyone._comm.Create_group(chosen, tag)
    chosen.Free()
    backend_name = check_backend(backend) if backend else everyone._backend
    name = str(tag)
    while name in State.groups:
        name += "'"
    made = ProcessGroup(everyone._mpi, comm, wanted, name, limit, backend_name, group_desc)
    State.groups[made.group_name] = made
    return made


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: dt.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Make several groups without common processes.

    Parameters
    ----------
    ranks_per_subgroup_list : list of list of int
        The members of each.
    timeout, backend, pg_options, group_desc : optional
        As in `new_group`.

    Returns
    -------
    tuple
        The group of this process, or None, and all of them.

    Raises
    ------
    ValueError
        There are no groups, or a process is in two.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     mine, groups = dist.new_subgroups_by_enumeration([[0], [1]])
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    named = [r for ranks in ranks_per_subgroup_list for r in ranks]
    twice = {r for r in named if named.count(r) > 1}
    if twice:
        raise ValueError(f"Rank {min(twice)} has appeared in two subgroups")
    groups = [
        new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    mine = [g for g in groups if g != NOT_IN]
    return (mine[0] if mine else None), groups


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: dt.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Cut the processes into groups of one size.

    Parameters
    ----------
    group_size : int, optional
        How many are in each; those of a machine by default.
    group : ProcessGroup, optional
        All processes by default.
    timeout, backend, pg_options, group_desc : optional
        As in `new_group`.

    Returns
    -------
    tuple
        The group of this process and all of them.

    Raises
    ------
    ValueError
        The size does not divide how many there are.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     mine, groups = dist.new_subgroups(1)
    """
    ranks = get_process_group_ranks(group)
    if group_size is None:
        told = _mpi.launched_as()
        group_size = told[3] if told else len(ranks)
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if group_size > len(ranks):
        raise ValueError(
            f"The arg 'group_size' ({group_size}) must not exceed the world size ({len(ranks)})"
        )
    if len(ranks) % group_size:
        raise ValueError(
            f"The world size ({len(ranks)}) must be divisible by 'group_size={group_size}'"
        )
    parts = [ranks[i : i + group_size] for i in range(0, len(ranks), group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def split_group(
    parent_pg: Any = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: dt.timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> Any:
    """Cut a group into parts, given by the numbers in it.

    Parameters
    ----------
    parent_pg : ProcessGroup, optional
        All processes by default.
    split_ranks : list of list of int
        The members of each part.
    timeout, pg_options, group_desc, backend : optional
        As in `new_group`.

    Returns
    -------
    ProcessGroup
        The part of this process, or None.

    Raises
    ------
    ValueError
        There are no parts.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     part = dist.split_group(split_ranks=[[0]])
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = get_process_group_ranks(parent_pg)
    mine = None
    for places in split_ranks:
        ranks = [parent[i] for i in places]
        if world().rank() not in ranks:
            continue  # only the members meet
        mine = new_group(
            ranks, timeout, backend, None, use_local_synchronization=True, group_desc=group_desc
        )
    return mine
