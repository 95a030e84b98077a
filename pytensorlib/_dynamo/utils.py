"""What libraries ask of PyTorch's compiler."""

from __future__ import annotations

from typing import Any

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Return False: programs run eagerly on every device."""
    return False


def is_parameter_freezing() -> bool:
    """Return False: nothing is compiled."""
    return False


def clear_compilation_metrics() -> None:
    """Do nothing: there are none."""


counters: dict[str, dict[str, Any]] = {}
