"""Files on their way between processes, also from one that has ended by the time another asks.

A process hands the descriptor of a file, on Windows the handle of a section, to whoever asks for
it, as `DupFd` does. When it ends it leaves copies of those that nobody has asked for yet, under
names that the messages tell.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from multiprocessing import current_process, parent_process, reduction, resource_sharer, util
from multiprocessing.connection import Listener
from typing import Any

from .. import _C
from .._system import WINDOWS, is_running
from . import _handles

__all__ = ["sent"]

PATIENCE = 10.0  # seconds that a process which ends has for its copies
STEP = 1 << 20
BINARY = getattr(os, "O_BINARY", 0)
# What was sent from here and not asked for yet: handle, section's name and size, by its copy's.
_waiting: dict[str, tuple[int, str, int]] = {}
# Held while a handle there is looked up or taken out: none is sent that was closed meanwhile.
_lock = threading.Lock()


def sent(handle: int, name: str, size: int) -> Any:
    """Return what stands for a handle in a message; `detach` opens it where that arrives."""
    from multiprocessing.context import get_spawning_popen

    child = get_spawning_popen()
    if child is None:
        return Sent(handle, name, size)
    return Inherited(child.duplicate_for_child(handle)) if WINDOWS else reduction.DupFd(handle)


class Inherited:
    """A handle that a process which is being started has."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def detach(self) -> int:
        """Return the handle."""
        return self.handle


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

    def __init__(self, handle: int, section: str, size: int) -> None:
        self.name, own = f"{_prefix()}{uuid.uuid4().hex}", _handles.duplicate(handle)
        self.sender = os.getpid()
        _waiting[self.name] = own, section, size

        def send(connection: Any, pid: int) -> None:
            with _lock:
                if self.name not in _waiting:
                    raise OSError("this process ends, and leaves a copy")
                handle = _handles.duplicate(own)
            try:
                _handles.send(connection, handle, pid)
            finally:
                _handles.close(handle)

        def close() -> None:
            if _taken(self.name) is not None:
                _handles.close(own)

        self.ident = _sharer.register(send, close)

    def __getstate__(self) -> Any:
        return self.name, self.sender, self.ident

    def __setstate__(self, state: Any) -> None:
        self.name, self.sender, self.ident = state

    def detach(self) -> int:
        """Return a handle of the process that got the message.

        Raises
        ------
        RuntimeError
            The process that sent it has ended and left nothing.
        """
        limit = time.monotonic() + PATIENCE
        while True:
            gone = not is_running(self.sender)  # asked before the copy is looked for
            try:
                with _sharer.get_connection(self.ident) as connection:
                    return _handles.receive(connection)
            except (OSError, EOFError) as error:
                for folder in _folders():
                    path = os.path.join(folder, self.name)
                    if os.path.exists(path):
                        return _handles.from_file(path)
                if gone or time.monotonic() > limit:
                    raise RuntimeError(
                        "a tensor cannot be received: the process that sent it was killed, or "
                        "ended without its exit handlers; let it live until its messages are read"
                    ) from error
            time.sleep(0.01)


def _taken(name: str) -> tuple[int, str, int] | None:
    """Return what waits under a name, whose handle nobody else closes or sends from here on."""
    with _lock:
        return _waiting.pop(name, None)


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
    copies: dict[Any, str] = {}  # by what they are of: what is sent twice stays one
    for name in list(_waiting):
        found = _taken(name)
        if found is None:
            continue
        handle, section, size = found
        key = _handles.identity(handle, section)
        if key in copies:
            os.link(copies[key], os.path.join(os.path.dirname(copies[key]), name))
        else:
            copies[key] = _copy(_handles.mapped(handle, section, size), name)


def _copy(storage: Any, name: str) -> str:
    """Write the bytes to a file of a name, and return its path."""
    for folder in _folders():
        free = shutil.disk_usage(folder).free
        if free > storage.nbytes() + STEP or folder == tempfile.gettempdir():
            break
    path = os.path.join(folder, name)
    bytes_ = _C.empty((0,), dtype=_C.uint8, device="cpu").set_(storage, 0, (storage.nbytes(),))
    draft = os.open(f"{path}.draft", os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600)
    with open(draft, "wb") as file:
        file.write(_C._host_bytes(bytes_))
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
    global _lock
    _lock = threading.Lock()  # after a fork another thread may have held it
    _waiting.clear()
    # Queues send what is in them at -5.
    util.Finalize(None, _leave, exitpriority=-50)
    util.Finalize(None, _clear, exitpriority=-60)


_at_exit()
util.register_after_fork(Sent, _at_exit)
