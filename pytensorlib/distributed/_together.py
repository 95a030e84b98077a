"""Several collectives started together."""

from __future__ import annotations

import contextlib
from typing import Any

from ._process_group import State, member

__all__ = ["Manager", "_together"]


@contextlib.contextmanager
def _together(group: Any = None, device: Any = None, async_ops: bool = False) -> Any:
    """Start calls together: their waits come at the end, or when what is given is waited for."""
    found = member("_coalescing_manager", group)
    before = list(State.pending)
    manager = Manager()
    yield manager
    manager.works = [w for w in State.pending if w not in before and w._group is found]
    if not async_ops:
        manager.wait()


class Manager:
    """Calls that were started together."""

    def __init__(self) -> None:
        self.works: list[Any] = []

    def append(self, work: Any = None) -> None:
        """Add one more."""
        if work is not None and work not in self.works:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all."""
        for work in self.works:
            work.wait()
