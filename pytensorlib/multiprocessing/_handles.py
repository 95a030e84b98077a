"""Handles of shared memory: a file's descriptor, or a section's handle."""

from __future__ import annotations

import os
import sys
import tempfile
from multiprocessing import reduction
from typing import Any

from .. import _C

__all__ = [
    "close",
    "duplicate",
    "from_file",
    "identity",
    "make_shared",
    "mapped",
    "receive",
    "send",
]

if sys.platform == "win32":
    import _winapi

    duplicate = reduction.duplicate
    close = _winapi.CloseHandle

    def make_shared(storage: Any) -> None:
        """Move a storage to memory that other processes can map."""
        storage._share()

    def identity(handle: int, name: str) -> Any:
        """Return what is equal for all handles of one memory."""
        return name

    def mapped(handle: int, name: str, size: int) -> Any:
        """Return the memory as a storage, which owns the handle from here on."""
        return _C._map_section(handle, name, size)

    def send(connection: Any, handle: int, pid: int) -> None:
        """Give the process at the other end a handle of its own."""
        process = _winapi.OpenProcess(_winapi.PROCESS_DUP_HANDLE, False, pid)
        try:
            connection.send(duplicate(handle, process))
        finally:
            _winapi.CloseHandle(process)

    def receive(connection: Any) -> int:
        """Return the handle that `send` gave."""
        return connection.recv()

    def from_file(path: str) -> int:
        """Return a handle of memory that holds what the file does, and remove the file."""
        storage = _C.UntypedStorage.from_file(path, False, os.path.getsize(path)).clone()
        os.unlink(path)
        storage._share()
        return duplicate(storage._map_handle())


else:
    duplicate = os.dup
    close = os.close
    send = reduction.send_handle
    receive = reduction.recv_handle

    def make_shared(storage: Any) -> None:
        """Move a storage to memory that other processes can map."""
        fd = _unnamed_file(storage.nbytes())
        try:
            storage._share(fd)
        finally:
            os.close(fd)

    def _unnamed_file(size: int) -> int:
        """Return the descriptor of a file in memory that goes with its last map."""
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("pytensorlib", os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        try:
            os.ftruncate(fd, size)
        except OSError:
            os.close(fd)
            raise
        return fd

    def identity(handle: int, name: str) -> Any:
        """Return what is equal for all descriptors of one file."""
        told = os.fstat(handle)
        return told.st_dev, told.st_ino

    def mapped(handle: int, name: str, size: int) -> Any:
        """Return the memory as a storage, which owns the descriptor from here on."""
        try:
            return _C._map_file(handle, size, True)
        finally:
            os.close(handle)

    def from_file(path: str) -> int:
        """Return the descriptor of a file, which has no name any more."""
        fd = os.open(path, os.O_RDWR)
        os.unlink(path)
        return fd
