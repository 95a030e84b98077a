"""Ends a job when one process fails: its error is reported, and the others stop waiting."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import shutil
import stat
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from ._board import FOLDER, call_site, note_error
from ._errors import DistBackendError
from ._process_group import State

__all__ = ["deliver", "install", "late_start", "tell"]

DELIVERY = 1.0  # seconds for the launcher of MPI to read what was printed
installed = False


def late_start(rank: int, size: int, limit: dt.timedelta) -> DistBackendError:
    """Return the error where not all processes join."""
    return DistBackendError(
        f"init_process_group: rank {rank} timed out after {limit.total_seconds():g} s in the call "
        f"at {call_site()}: not all of the {size} processes made it"
    )


def tell(rank: int, kind: type[BaseException], error: BaseException, trace: Any) -> bool:
    """Leave the traceback for the launcher; returns whether there is one."""
    return note_error(rank, "".join(traceback.format_exception(kind, error, trace)))


def deliver() -> None:
    """Wait until what was printed is read: MPI's launcher drops the rest when a process aborts."""
    end = time.monotonic() + DELIVERY
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # no file, or closed
            stream.flush()
            while _unread(stream.fileno()) and time.monotonic() < end:
                time.sleep(0.001)


def _unread(file: int) -> bool:
    """Return whether a pipe holds bytes; False where the system does not tell."""
    if os.name != "posix" or not stat.S_ISFIFO(os.fstat(file).st_mode):
        return False
    import fcntl
    import termios

    return any(fcntl.ioctl(file, termios.FIONREAD, bytes(4)))


def _take_down() -> None:
    """Delete what the processes put up, where no launcher reads it and does that."""
    board = State.board
    if board is not None and board.folder != Path(os.environ.get(FOLDER, "")):
        shutil.rmtree(board.folder, ignore_errors=True)


def install(mpi: Any, rank: int, size: int) -> None:
    """Let an error that nobody catches end all processes of the job."""
    global installed
    if installed:
        return
    installed = True
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        quiet = issubclass(kind, KeyboardInterrupt)
        if not tell(rank, kind, error, trace) or quiet:
            print(f"rank {rank} of {size} ended by this error:", file=sys.stderr)
            before(kind, error, trace)
        deliver()
        if size > 1 and not mpi.Is_finalized():
            _take_down()
            mpi.COMM_WORLD.Abort(130 if quiet else 1)

    sys.excepthook = hook
