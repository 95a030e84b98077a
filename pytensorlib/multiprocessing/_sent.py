"""Files on their way between processes, also from one that has ended by the time another asks.

A process hands the descriptor of a file to whoever asks for it, as `DupFd` does. When it
ends it leaves copies of those that nobody has asked for yet, under names that the messages tell.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from multiprocessing import current_process, parent_process, reduction, resource_sharer, util
from multiprocessing.connection import Listener
from typing import Any

__all__ = ["sent"]

PATIENCE = 10.0  # seconds that a process which ends has for its copies
STEP = 1 << 20
# What was sent from here and not asked for yet: its descriptor, by the name of its copy.
_waiting: dict[str, int] = {}


def sent(fd: int) -> Any:
    """Return what stands for a descriptor in a message; `detach` opens it where that arrives."""
    from multiprocessing.context import get_spawning_popen

    return reduction.DupFd(fd) if get_spawning_popen() is not None else Sent(fd)


class Sharer(resource_sharer._ResourceSharer):  # type: ignore[name-defined]
    """Hands out descriptors until the process is gone.

    Python's own removes its address when the process begins to end, before queues send what is in
    them; an address of Linux that is no file stays.
    """

    def _start(self) -> None:
        if sys.platform != "linux":
            super()._start()
            return
        key = current_process().authkey
        self._address = f"\0{_prefix()}{uuid.uuid4().hex}"
        self._listener = Listener(self._address, "AF_UNIX", backlog=64, authkey=key)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()


_sharer = Sharer()


class Sent:
    """A file that this process has, in a message."""

    def __init__(self, fd: int) -> None:
        self.name, own = f"{_prefix()}{uuid.uuid4().hex}", os.dup(fd)
        self.sender = os.getpid()
        _waiting[self.name] = own

        def send(connection: Any, pid: int) -> None:
            reduction.send_handle(connection, own, pid)

        def close() -> None:
            if _waiting.pop(self.name, None) is not None:
                os.close(own)

        self.ident = _sharer.register(send, close)

    def __getstate__(self) -> Any:
        return self.name, self.sender, self.ident

    def __setstate__(self, state: Any) -> None:
        self.name, self.sender, self.ident = state

    def detach(self) -> int:
        """Return the descriptor in the process that got the message.

        Raises
        ------
        RuntimeError
            The process that sent it has ended and left nothing.
        """
        limit = time.monotonic() + PATIENCE
        while True:
            gone = not _is_running(self.sender)  # asked before the copy is looked for
            try:
                with _sharer.get_connection(self.ident) as connection:
                    return reduction.recv_handle(connection)
            except (OSError, EOFError) as error:
                for folder in _folders():
                    path = os.path.join(folder, self.name)
                    if os.path.exists(path):
                        fd = os.open(path, os.O_RDWR)
                        os.unlink(path)
                        return fd
                if gone or time.monotonic() > limit:
                    raise RuntimeError(
                        "a tensor cannot be received: the process that sent it was killed, or "
                        "ended without its exit handlers; let it live until its messages are read"
                    ) from error
            time.sleep(0.01)


def _is_running(pid: int) -> bool:
    """Return whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _prefix() -> str:
    """Return how names of copies begin that processes of this tree leave."""
    token = hashlib.sha256(bytes(current_process().authkey)).hexdigest()[:16]
    return f"pytensorlib-{token}-"


def _folders() -> Iterator[str]:
    """Yield where copies are left: in memory where there is room, else on the disk."""
    if os.path.isdir("/dev/shm"):  # noqa: S108  (the place for shared memory)
        yield "/dev/shm"  # noqa: S108
    yield tempfile.gettempdir()


def _leave() -> None:
    """Copy what nobody has asked for yet, at the end of this process."""
    copies: dict[tuple[int, int], str] = {}  # by the file: what is sent twice stays one
    for name in list(_waiting):
        fd = _waiting.pop(name, None)  # from here on nobody else closes it
        if fd is None:
            continue
        told = os.fstat(fd)
        key = (told.st_dev, told.st_ino)
        if key in copies:
            os.link(copies[key], os.path.join(os.path.dirname(copies[key]), name))
        else:
            copies[key] = _copy(fd, told.st_size, name)


def _copy(fd: int, size: int, name: str) -> str:
    """Write a file's bytes to a copy of a name, and return its path."""
    for folder in _folders():
        room = os.statvfs(folder)
        if room.f_bavail * room.f_frsize > size + STEP or folder == tempfile.gettempdir():
            break
    path = os.path.join(folder, name)
    draft = os.open(f"{path}.draft", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        done = 0
        while done < size:
            done += os.pwrite(draft, os.pread(fd, min(STEP, size - done), done), done)
    finally:
        os.close(draft)
    os.rename(f"{path}.draft", path)  # who looks for it finds all of it
    return path


def _clear() -> None:
    """Remove what nobody asked for in the end, when the first process of the tree ends."""
    if parent_process() is not None:
        return
    begin = _prefix()
    for folder in _folders():
        for name in os.listdir(folder):
            if name.startswith(begin):
                os.unlink(os.path.join(folder, name))


def _at_exit(_: Any = None) -> None:
    """Have this process leave its copies once its queues have sent what is in them."""
    _waiting.clear()
    # Queues send what is in them at -5.
    util.Finalize(None, _leave, exitpriority=-50)
    util.Finalize(None, _clear, exitpriority=-60)


_at_exit()
util.register_after_fork(Sent, _at_exit)
