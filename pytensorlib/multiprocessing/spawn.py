"""Processes that run one function, and the errors that come back from them."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """A process failed.

    Parameters
    ----------
    msg : str
        What is told.
    error_index : int
        Which of the processes.
    pid : int
        Its number in the system.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.multiprocessing.ProcessException("failed", 0, 1).error_index
    0
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised an exception, whose traceback is the message.

    Parameters
    ----------
    msg : str
        The traceback.
    error_index : int
        Which of the processes.
    error_pid : int
        Its number in the system.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.multiprocessing.ProcessRaisedException, Exception)
    True
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process ended without an exception, by a signal or with an exit code.

    Parameters
    ----------
    msg : str
        What is told.
    error_index : int
        Which of the processes.
    error_pid : int
        Its number in the system.
    exit_code : int
        As of `Process.exitcode`.
    signal_name : str, optional
        The signal.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.multiprocessing.ProcessExitedException("ended", 0, 1, 3).exit_code
    3
    """

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], i: int, args: tuple, error_file: str) -> None:
    """Call the function in a process, and write down what it raises."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted too
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that run one function.

    Parameters
    ----------
    processes : list of Process
        Started.
    error_files : list of str
        Where each writes what it raises.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.multiprocessing.ProcessContext([], []).join()
    True
    """

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the numbers of the processes in the system."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for a process to end, and raise where one failed, after ending the others.

        Parameters
        ----------
        timeout : float, optional
            Seconds; without it until one ends.
        grace_period : float, optional
            Seconds that the others have to end by themselves.

        Returns
        -------
        bool
            Whether all have ended.

        Raises
        ------
        ProcessRaisedException
            A process raised an exception.
        ProcessExitedException
            A process ended otherwise, with an exit code that is not 0.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            if not self.sentinels:
                self._forget()
            return not self.sentinels
        for process in self.processes:
            if grace_period is not None:
                process.join(grace_period)
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(None if grace_period is None else 30)
            if process.is_alive():
                process.kill()
                process.join()
        try:
            self._raise(failed)
        finally:
            self._forget()
        return False

    def _forget(self) -> None:
        for name in self.error_files:
            if os.path.exists(name):
                os.unlink(name)

    def _raise(self, index: int) -> None:
        process, name = self.processes[index], self.error_files[index]
        if os.path.getsize(name):
            with open(name, "rb") as file:
                text = pickle.load(file)
            raise ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{text}",
                index,
                process.pid,
            )
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        raise ProcessExitedException(
            f"process {index} terminated with exit code {code}", index, process.pid, code
        )


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in `nprocs` processes, each with its number `i`.

    Parameters
    ----------
    fn : callable
        A function of a module.
    args : tuple
        What it is called with; tensors are shared.
    nprocs : int, default 1
        How many.
    join : bool, default True
        Whether to wait for all of them.
    daemon : bool, default False
        Whether they end with this process.
    start_method : {"spawn", "fork", "forkserver"}
        How they come into being.

    Returns
    -------
    ProcessContext or None
        None where they were waited for.

    Raises
    ------
    ProcessRaisedException
        One raised an exception; the others were ended.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> start = torch.multiprocessing.start_processes
    >>> start(print, args=("in a process",), nprocs=1, start_method="fork")
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, files = [], []
    for i in range(nprocs):
        handle, name = tempfile.mkstemp(prefix="pytensorlib-errorfile-", suffix=".pickle")
        os.close(handle)
        process = context.Process(target=_run, args=(fn, i, args, name), daemon=daemon)
        process.start()
        processes.append(process)
        files.append(name)
    started = ProcessContext(processes, files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in `nprocs` new processes, each with its number `i`.

    Parameters
    ----------
    fn : callable
        A function of a module that can be imported.
    args : tuple
        What it is called with; tensors are shared.
    nprocs : int, default 1
        How many.
    join : bool, default True
        Whether to wait for all of them.
    daemon : bool, default False
        Whether they end with this process.
    start_method : str, default "spawn"
        `start_processes` is for others.

    Returns
    -------
    ProcessContext or None
        None where they were waited for.

    Raises
    ------
    ProcessRaisedException
        One raised an exception; the others were ended.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.multiprocessing.spawn(print, nprocs=0)
    """
    return start_processes(
        fn, args, nprocs, join, daemon, "spawn" if start_method is None else start_method
    )
