"""Functions that run at the end of a backward pass, which hooks and `backward`s ask for."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

from .. import _C

__all__ = ["drop", "finish", "queue", "queued"]

# Thread -> what was asked for in passes that it runs: the number of the pass, and the function.
# Empty but while a pass has some, so that others look at it and go on.
queued: dict[int, list[tuple[float, Callable[[], Any]]]] = {}


class _Here(threading.local):
    """Whether this thread runs such functions."""

    finishing = False


_here = _Here()


def queue(callback: Callable[[], Any]) -> None:
    """Let a function run once the backward pass of this moment has all gradients."""
    task: float = _C._current_graph_task_id()
    if task == -1 and not _here.finishing:
        raise RuntimeError(
            "Final callbacks can only be installed during backward pass. Queue them in a hook, or "
            "in the backward function of an autograd.Function."
        )
    # What is queued while others run belongs to the pass that they end.
    entry = (math.inf if _here.finishing and task == -1 else task, callback)
    queued.setdefault(threading.get_ident(), []).append(entry)


def finish() -> None:
    """Run what was asked for in a pass of this thread that has ended; numbers of passes grow."""
    entries = queued.get(threading.get_ident(), [])
    outer, before, _here.finishing = _C._current_graph_task_id(), _here.finishing, True
    try:
        while (at := next((i for i, e in enumerate(entries) if e[0] > outer), None)) is not None:
            entries.pop(at)[1]()
    finally:
        _here.finishing = before
        drop()


def drop() -> None:
    """Forget what was asked for in a pass that failed."""
    thread, outer = threading.get_ident(), _C._current_graph_task_id()
    left = [entry for entry in queued.get(thread, []) if entry[0] <= outer]
    if left:
        queued[thread] = left
    else:
        queued.pop(thread, None)
