"""The functions of `torch` as PyTorch's own code calls them: `torch._VF.lstm` is `torch.lstm`."""

from __future__ import annotations

from typing import Any

from . import _C

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return getattr(_C._VariableFunctions, name)
