"""What each process does now, in a file that the others of its machine may read.

It names the one that a collective waits for, and is all that is left of a process that was killed.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import time
from pathlib import Path
from typing import Any

from .._system import is_running

__all__ = ["FOLDER", "Board", "call_site", "note_error", "read_line"]

FOLDER = "PYTENSORLIB_RUN_FOLDER"  # the launcher's; without it the group makes one
LINE = 256
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def call_site() -> str:
    """Return the file and line of the program that called into the package."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((PACKAGE, "<frozen")):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


class Board:
    """The lines of all processes of a job.

    Parameters
    ----------
    folder : str
        Where the files are.
    rank : int
        This process.
    """

    def __init__(self, folder: str, rank: int) -> None:
        self.folder = Path(folder)
        path = self.folder / f"{rank}.now"
        with open(path, "a+b") as f:
            f.truncate(LINE)
            self._map = mmap.mmap(f.fileno(), LINE)
        self._say("ready", "has called nothing yet")

    def _say(self, state: str, text: str) -> None:
        line = f"{os.getpid()}\n{state}\n{text}".encode(errors="replace")[: LINE - 1]
        self._map[:] = line.ljust(LINE, b"\0")

    def enter(self, op: str, where: str) -> None:
        """Note that a call begins."""
        self._say("in", f"is in {op} at {where}")

    def leave(self, op: str, where: str) -> None:
        """Note that it has ended."""
        self._say("out", f"is in no collective; its last one was {op} at {where}")

    def tell(self, rank: int) -> str:
        """Return what a process of this machine does, in words."""
        found = read_line(self.folder, rank)
        if found is None:
            return f"rank {rank} is on another machine"
        pid, state, text = found
        if state != "ended" and not is_alive(pid):
            return f"rank {rank} has died ({text.replace('is in', 'was in', 1)})"
        return f"rank {rank} {text}"

    def end(self) -> bool:
        """Note that the process leaves the job; returns whether it is the last one."""
        self._say("ended", "has left the group")
        try:
            ranks = [int(path.stem) for path in self.folder.glob("*.now")]
        except OSError:  # another was the last, and has taken the folder away
            return False
        lines = [read_line(self.folder, rank) for rank in ranks]
        return all(line is None or line[1] == "ended" or not is_alive(line[0]) for line in lines)

    def done(self) -> None:
        """Note that the script has run to its end."""
        self._say("done", "has finished its script")


def read_line(folder: Path, rank: int) -> tuple[int, str, str] | None:
    """Return a process's id, its state and what it says of itself."""
    try:
        line = (folder / f"{rank}.now").read_bytes().rstrip(b"\0").decode(errors="replace")
        pid, state, text = line.split("\n", 2)
        return int(pid), state, text
    except (OSError, ValueError):
        return None


def is_alive(pid: int) -> bool:
    """Return whether a process of this machine runs."""
    if not is_running(pid):
        return False
    try:  # one that ended and that nobody asked about yet
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


def note_error(rank: int, text: str) -> bool:
    """Leave a traceback for the launcher; returns whether there is one that reads it."""
    folder = os.environ.get(FOLDER)
    if not folder or not os.path.isdir(folder):
        return False
    # The first error is the cause: what follows in this process is not.
    try:
        with open(os.path.join(folder, f"{rank}.error"), "x") as f:
            json.dump({"rank": rank, "pid": os.getpid(), "time": time.time(), "text": text}, f)
    except FileExistsError:
        pass
    return True
