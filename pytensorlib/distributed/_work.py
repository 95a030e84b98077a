"""Asynchronous calls: waiting with a deadline, and futures of results."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..futures import Future
from ._errors import DistBackendError

__all__ = ["Work", "poll"]

TRIES = 200  # before a wait lets go of its core: others are about to arrive
SPIN = 2e-3  # seconds of the shortest pauses
RATE = 100e6  # bytes a second; MPI moves data only while it is asked, so large calls ask longer
FIRST, LAST = 5e-5, 1e-3  # seconds between questions after that, at first and at last

# Calls that cannot end, and the memory that MPI still reads and writes for them.
ABANDONED: list[Any] = []


def poll(done: Callable[[], bool], seconds: float, size: int = 0) -> bool:
    """Ask until it is done; returns False when that took longer than `seconds`."""
    for _ in range(TRIES):
        if done():
            return True
    begin = time.monotonic()
    spin, pause = SPIN + size / RATE, FIRST
    while not done():
        passed = time.monotonic() - begin
        if passed > seconds:
            return done()
        if passed < spin:
            time.sleep(1e-6)  # to yield instead may cost all that others' work takes
        else:
            time.sleep(pause)
            pause = min(LAST, 1.2 * pause)
    return True


class WorkFuture(Future[Any]):
    """The result of a call under way: waiting for it lets the call go on."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def done(self) -> bool:
        """Return whether the call has ended."""
        self._work.is_completed()
        return super().done()

    def wait(self) -> Any:
        """Wait for the result."""
        self._work.wait()
        return super().wait()

    def _following(self) -> Future[Any]:
        return WorkFuture(self._work)


class Work:
    """A call under way, made by the functions of ``torch.distributed`` with ``async_op=True``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     work = dist.all_reduce(torch.ones(2), async_op=True)
    ...     done = work.wait()
    """

    def __init__(
        self,
        group: Any,
        op: str,
        where: str,
        requests: Sequence[Any],
        finish: Callable[[list[Any]], None] | None = None,
        tensors: Sequence[Any] = (),
        size: int = 0,
        keep: Any = None,
        mark: Any = None,
        arrived: Callable[[int], None] | None = None,
    ) -> None:
        self._group, self._op, self._where, self._size = group, op, where, size
        self._requests = list(requests)
        self._statuses: list[Any] = []
        self._finish = finish
        self._tensors = list(tensors)
        self._keep = keep  # memory that MPI reads or writes
        self._mark = mark  # what compares the processes' calls
        self._arrived = arrived  # takes what a request brought, while others are under way
        self._done = False
        self._error: BaseException | None = None
        self._future: WorkFuture | None = None
        self._lock = threading.RLock()
        self._source = -1

    def _poll(self) -> bool:
        with self._lock:
            if self._done:
                return True
            try:
                if self._mark is not None and not self._same_call():
                    return False
                while self._requests:
                    status = self._group._mpi.Status()
                    if not self._requests[0].Test(status):
                        return False
                    if self._arrived is not None:
                        self._arrived(len(self._statuses))
                    self._statuses.append(status)
                    del self._requests[0]
                if self._finish is not None:
                    self._finish(self._statuses)
            except self._group._mpi.Exception as error:
                self._error = self._group._failed(self._op, self._where, error)
            except DistBackendError as error:
                self._error = error
            self._done, self._finish, self._keep, self._arrived = True, None, None, None
        if self._future is not None:
            self._settle(self._future)
        return True

    def _same_call(self) -> bool:
        """Return whether all processes are known to make this call."""
        request, both = self._mark
        if not request.Test():
            return False
        if both[0] != -both[1]:
            ABANDONED.append((self._requests, self._keep))
            raise self._group._differs(self._op, self._where)
        self._mark = None
        return True

    def _settle(self, future: WorkFuture) -> None:
        if self._error is not None:
            future.set_exception(self._error)
        else:
            future.set_result(self._tensors)

    def wait(self, timeout: dt.timedelta | None = None) -> bool:
        """Wait until the call has ended.

        Parameters
        ----------
        timeout : timedelta, optional
            For how long; as long as the group waits by default.

        Returns
        -------
        bool
            True.

        Raises
        ------
        DistBackendError
            The call failed, or another process did not come in time.
        """
        limit = timeout or self._group._timeout
        if not poll(self._poll, limit.total_seconds(), self._size):
            raise self._group._late(self._op, self._where, limit)
        self._group._left(self._op, self._where)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        """Wait, as `wait` does."""
        self.wait()

    def is_completed(self) -> bool:
        """Return whether the call has ended."""
        return self._poll()

    def is_success(self) -> bool:
        """Return whether it has ended without an error."""
        return self._poll() and self._error is None

    def exception(self) -> BaseException | None:
        """Return the error with which it ended, if any."""
        return self._error

    def source_rank(self) -> int:
        """Return who sent what was received."""
        return self._source

    def result(self) -> list[Any]:
        """Return the tensors that the call wrote to."""
        self.wait()
        return self._tensors

    def get_future(self) -> Future:
        """Return a future for the tensors that the call writes to."""
        if self._future is None:
            self._future = WorkFuture(self)
            if self._done:
                self._settle(self._future)
        return self._future
