"""Differences between operating systems in Python's own modules."""

from __future__ import annotations

import mmap
import os
import sys

__all__ = ["MAP_PRIVATE", "MAP_SHARED", "WINDOWS", "file_handle", "file_name", "is_running"]

WINDOWS = sys.platform == "win32"
# Windows has neither name; what they stand for it has.
MAP_SHARED: int = getattr(mmap, "MAP_SHARED", 1)
MAP_PRIVATE: int = getattr(mmap, "MAP_PRIVATE", 2)


def file_handle(fd: int) -> int:
    """Return what the system calls the file of a descriptor.

    On Windows descriptors are numbers of the C library, of which the extension may have another.
    """
    if sys.platform == "win32":
        import msvcrt

        return msvcrt.get_osfhandle(fd)
    return fd


def file_name(fd: int) -> str | None:
    """Return the path of the file of a descriptor, where the system tells."""
    try:
        if sys.platform == "darwin":
            import fcntl

            # The system fills the buffer, of its longest path, with the path and zeros.
            told = fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024))
            return os.fsdecode(told.partition(b"\0")[0])
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None


def is_running(pid: int) -> bool:
    """Return whether there is such a process.

    Where it is a child that nobody has asked about yet, it may have ended. On Windows ``os.kill``
    with signal 0 would be Ctrl-C.
    """
    if sys.platform == "win32":
        import _winapi

        synchronize = 0x0010_0000
        try:
            process = _winapi.OpenProcess(synchronize, False, pid)
        except PermissionError:
            return True
        except OSError:
            return False
        try:
            return _winapi.WaitForSingleObject(process, 0) == _winapi.WAIT_TIMEOUT
        finally:
            _winapi.CloseHandle(process)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
