"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
import zlib
from collections.abc import Callable
from typing import IO, Any

from .._system import WINDOWS

__all__ = ["open_whole", "write_whole"]

# Seconds for which a system keeps the memory of the file that was replaced before.
RECENT = 1.0
# Seconds after which a draft that nobody has open was left, and those that a rename waits, and an
# opening.
ABANDONED, PATIENCE = 60.0, 2.0
OPENING = 0.5


def write_whole(path: Any, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file beside `path` and put it in its place when it is complete.

    A process that ends halfway leaves what was there. When the system brings it to the disk is left
    to the system, as with any file.
    """
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):  # a pipe or a device
        with open(path, "wb") as stream:
            write(stream)
        return
    with Draft(os.path.dirname(path), os.path.basename(path)) as draft:
        if old is not None and hasattr(os, "fchmod"):
            os.fchmod(draft.stream.fileno(), stat.S_IMODE(old.st_mode))
            if time.time() - old.st_mtime > RECENT:
                _uncache(path)
        write(draft.stream)
        draft.stream.flush()
        draft.publish()


def open_whole(path: Any) -> IO[bytes]:
    """Open a file to read it, such as `write_whole` may put in its place at that moment.

    Windows refuses to open a file while another one takes its name.
    """
    end = time.monotonic() + OPENING
    while True:
        try:
            return open(path, "rb")  # noqa: SIM115
        except PermissionError:
            if not WINDOWS or time.monotonic() > end or os.path.isdir(path):
                raise
        time.sleep(0.005)


class Draft:
    """A file that takes the place of another when it is complete, and else leaves nothing.

    On Linux it has no name until then, so that the system drops it with a process that is killed.
    Elsewhere the next `save` to the same name removes what such a process left.
    """

    stream: IO[bytes]

    def __init__(self, folder: str, name: str) -> None:
        self.folder, self.name = folder, name
        # Short, however long the name is; locked while it is written.
        self.family = f".{zlib.crc32(os.fsencode(name)):08x}."
        self.path = os.path.join(folder, f"{self.family}{secrets.token_hex(4)}.tmp")
        self.unnamed = False

    def __enter__(self) -> Draft:
        if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                fd = os.open(self.folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
                self.stream, self.unnamed = os.fdopen(fd, "wb"), True
                return self
        self.sweep()
        self.stream = open(self.path, "xb")  # noqa: SIM115
        _lock(self.stream.fileno())
        return self

    def publish(self) -> None:
        """Put the file in its place."""
        if self.unnamed:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                # The folder's descriptor makes Python follow the link to the file.
                here = f"/proc/self/fd/{self.stream.fileno()}"
                os.link(here, os.path.basename(self.path), src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                os.close(folder)
            self.unnamed = False
        target = os.path.join(self.folder, self.name)
        if WINDOWS:
            self.stream.close()  # what is open has no other name there
            _replace_closed(self.path, target)
        else:
            os.replace(self.path, target)

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            self.stream.close()
        finally:
            if kind is not None and not self.unnamed:
                with contextlib.suppress(OSError):
                    os.unlink(self.path)

    def sweep(self) -> None:
        """Remove drafts of the same name whose writers are gone."""
        with contextlib.suppress(OSError):
            for entry in os.scandir(self.folder):
                if entry.name.startswith(self.family) and entry.name.endswith(".tmp"):
                    with contextlib.suppress(OSError):
                        if WINDOWS:
                            if time.time() - entry.stat().st_mtime > ABANDONED:
                                os.unlink(entry.path)  # fails while its writer has it open
                            continue
                        with open(entry.path, "r+b") as stream:
                            if _lock(stream.fileno()):
                                os.unlink(entry.path)


def _replace_closed(source: str, target: str) -> None:
    """Rename a file on Windows, where a scanner that looks at it may be in the way for a moment.

    Raises
    ------
    PermissionError
        The target stays in use.
    """
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return os.replace(source, target)
        except PermissionError as error:
            if time.monotonic() > end:
                raise PermissionError(
                    error.errno,
                    "the file cannot be replaced while it is open, or mapped as by "
                    "load(mmap=True): let that go first, or save under another name",
                    target,
                ) from error
        time.sleep(0.005)


def _uncache(path: str) -> None:
    """Let the cached pages of a file go that is about to be replaced; on the disk it stays.

    The new file's pages take their memory, where a virtual machine would ask its host for more.
    """
    with contextlib.suppress(AttributeError, OSError), open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _lock(fd: int) -> bool:
    """Lock a file against other processes; false where that cannot be."""
    try:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
