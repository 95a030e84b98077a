"""``with torch.device(...)``: where factories make tensors in a block."""

from __future__ import annotations

import threading
from typing import Any

from .. import _C

__all__ = ["attach"]


class _Here(threading.local):
    """The devices that blocks of a thread replaced, the latest last."""

    def __init__(self) -> None:
        self.before: list[Any] = []


_here = _Here()


def _enter(self: Any) -> Any:
    before = _C.get_default_device()
    _C.set_default_device(self)
    _here.before.append(before)
    return self


def _exit(self: Any, *error: object) -> None:
    _C.set_default_device(_here.before.pop())


def attach(device: Any) -> None:
    """Let devices be used in ``with``."""
    device.__enter__, device.__exit__ = _enter, _exit
