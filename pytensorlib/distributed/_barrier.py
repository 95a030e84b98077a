"""`barrier` and `monitored_barrier`."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import numpy as np

from ._board import call_site
from ._errors import DistBackendError
from ._process_group import ProcessGroup, State, member
from ._work import Work, poll

__all__ = ["barrier", "monitored_barrier"]


def barrier(
    group: Any = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: dt.timedelta | None = None,
) -> Work | None:
    """Wait until all processes are here.

    Parameters
    ----------
    group : ProcessGroup, optional
        All processes by default.
    async_op : bool, default False
        Return what to wait for.
    device_ids : list of int, optional
        Not used.
    timeout : timedelta, optional
        For how long; as long as the group waits by default.

    Returns
    -------
    Work or None
        With `async_op`, the call under way.

    Raises
    ------
    DistBackendError
        Not all came in time.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     _ = torch.distributed.barrier()
    """
    pg = member("barrier", group)
    if pg is None:
        return None
    work: Any = pg._run(
        "barrier", lambda _: "", lambda comm: [comm.Ibarrier()], None, [], async_op=True
    )
    if async_op:
        return work
    work.wait(timeout)
    return None


def monitored_barrier(
    group: Any = None, timeout: dt.timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all processes are here; the first one tells who is not.

    Parameters
    ----------
    group : ProcessGroup, optional
        All processes by default.
    timeout : timedelta, optional
        For how long; as long as the group waits by default.
    wait_all_ranks : bool, default False
        Tell all that are late, not only one.

    Raises
    ------
    DistBackendError
        Not all came in time.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     torch.distributed.monitored_barrier()
    """
    pg = member("monitored_barrier", group)
    if pg is None:
        return
    limit = timeout or pg._timeout
    where = call_site()
    if State.board is not None:
        State.board.enter("monitored_barrier", where)
    tag = pg._comm.Get_attr(pg._mpi.TAG_UB) or 32767
    (_meet if pg.rank() == 0 else _report)(pg, tag, limit, where, wait_all_ranks)
    pg._left("monitored_barrier", where)


def _report(pg: ProcessGroup, tag: int, limit: dt.timedelta, where: str, wait: bool) -> None:
    """Tell the first process, and wait for its word."""
    mark, answer = np.zeros(1, np.uint8), np.zeros(1, np.uint8)
    requests = [pg._comm.Isend(mark, 0, tag), pg._comm.Irecv(answer, 0, tag)]
    # The first one waits as long for the others, and then has to say so.
    if not poll(lambda: all(r.Test() for r in requests), 2 * limit.total_seconds() + 1):
        raise pg._late("monitored_barrier", where, limit)


def _meet(pg: ProcessGroup, tag: int, limit: dt.timedelta, where: str, wait: bool) -> None:
    """Wait for the word of all others, and give the first one's."""
    others = range(1, pg.size())
    marks = {i: np.zeros(1, np.uint8) for i in others}
    requests = {i: pg._comm.Irecv(marks[i], i, tag) for i in others}
    end = time.monotonic() + limit.total_seconds()
    late = []
    for i in others:
        if not poll(requests[i].Test, max(0.0, end - time.monotonic())):
            late.append(i)
            if not wait:
                break
    if late:
        for i in others:
            if not requests[i].Test():
                requests[i].Cancel()
        ranks = [pg._ranks[i] for i in late]
        told = "; ".join(State.board.tell(r) for r in ranks) if State.board else ""
        who = f"Ranks {', '.join(map(str, ranks))}" if wait else f"Rank {ranks[0]}"
        raise DistBackendError(
            f"{who} failed to pass monitoredBarrier in {limit.total_seconds() * 1e3:g} ms, at "
            f"{where}" + (f": {told}" if told else "")
        )
    answers = [pg._comm.Isend(np.zeros(1, np.uint8), i, tag) for i in others]
    poll(lambda: all(a.Test() for a in answers), limit.total_seconds())
