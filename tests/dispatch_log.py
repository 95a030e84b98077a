"""A mode that notes the operators that it is asked for."""

from __future__ import annotations

from typing import Any

import pytensorlib as torch
from pytensorlib.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


class Log(TorchDispatchMode):
    """Notes what it sees and computes it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, ...]] = []

    @property
    def names(self) -> list[str]:
        return [str(func) for func, *_ in self.calls]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append((func, types, args, kwargs))
        return func(*args, **(kwargs or {}))
