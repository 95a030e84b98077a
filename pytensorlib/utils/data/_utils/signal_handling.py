"""Reports worker processes that end too early."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable
from typing import Any

__all__ = [
    "_error_if_any_worker_fails",
    "_remove_worker_pids",
    "_set_SIGCHLD_handler",
    "_set_worker_pids",
    "_set_worker_signal_handlers",
]

# The workers of each iterator, by a number of its own.
_workers: dict[int, tuple[int, ...]] = {}
_watching = False


def _set_worker_pids(key: int, pids: Iterable[int]) -> None:
    """Keep the workers of an iterator, so that `_error_if_any_worker_fails` looks at them.

    Parameters
    ----------
    key : int
        As ``id(iterator)``.
    pids : iterable of int
        Its processes.
    """
    if key in _workers:
        raise ValueError("_set_worker_pids should be called only once for each iterator")
    _workers[key] = tuple(pids)


def _remove_worker_pids(key: int) -> None:
    """Forget the workers of an iterator.

    Parameters
    ----------
    key : int
        As for `_set_worker_pids`.
    """
    if _workers.pop(key, None) is None:
        raise ValueError(f"cannot find worker information for iterator with id {key}")


def _error_if_any_worker_fails() -> None:
    """Raise a RuntimeError where a worker has been killed or has ended with an error."""
    if not hasattr(os, "waitid"):
        return
    for key, pids in list(_workers.items()):
        for pid in pids:
            try:
                # What becomes of the process stays there for those who wait for it.
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                continue
            if ended is None or (ended.si_code == os.CLD_EXITED and not ended.si_status):
                continue
            _workers[key] = ()
            exited = ended.si_code == os.CLD_EXITED
            raise RuntimeError(cause(pid, ended.si_status if exited else -ended.si_status))


def cause(pid: int, exit_code: int) -> str:
    """Return what ended a worker; a negative code is that of a signal."""
    if exit_code >= 0:
        return (
            f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {exit_code}. "
            "Details are lost due to multiprocessing. Rerunning with num_workers=0 may give better "
            "error trace."
        )
    text = f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(-exit_code)}. "
    if -exit_code == getattr(signal, "SIGBUS", None):
        text += (
            "It is possible that dataloader's workers are out of shared memory. Please try to "
            "raise your shared memory limit."
        )
    return text


def _set_worker_signal_handlers() -> None:
    """Do nothing: the process that started a worker tells which signal ended it."""


def _set_SIGCHLD_handler() -> None:  # noqa: N802  (PyTorch's name)
    """Look at the workers whenever a child of this process ends."""
    global _watching
    watches = hasattr(signal, "SIGCHLD") and not _watching
    if not watches or threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGCHLD)

    def handler(number: int, frame: Any) -> None:
        _error_if_any_worker_fails()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGCHLD, handler)
    _watching = True
