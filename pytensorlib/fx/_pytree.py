"""How a tracer would take containers apart; kept for whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["SUPPORTED_NODES", "register_pytree_flatten_spec"]

SUPPORTED_NODES: dict[type, Callable[..., list[Any]]] = {}


def register_pytree_flatten_spec(
    cls: type, flatten_fn_spec: Callable[..., list[Any]], *args: Any
) -> None:
    """Keep how the leaves of `cls` are found for a known structure."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
