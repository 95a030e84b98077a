"""The older place of a part of `torch._functorch.make_functional`."""

from __future__ import annotations

from ..._functorch import make_functional

__all__: list[str] = []

_swap_state = make_functional._swap_state
