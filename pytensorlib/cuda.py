"""What scripts ask of ``torch.cuda``: there is none; GPUs are reached as device "wgpu"."""

from __future__ import annotations

from typing import Any

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]


def is_available() -> bool:
    """Return False."""
    return False


def is_initialized() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def current_device() -> int:
    """Raise: there is no CUDA device.

    Raises
    ------
    RuntimeError
        Always.
    """
    raise RuntimeError("torch.cuda: there is no CUDA here; GPUs of every vendor are device 'wgpu'")


def synchronize(device: Any = None) -> None:
    """Raise, as `current_device`."""
    current_device()


def manual_seed(seed: int) -> None:
    """Do nothing: PyTorch ignores this call where there is no GPU."""


def manual_seed_all(seed: int) -> None:
    """Do nothing: PyTorch ignores this call where there is no GPU."""


def empty_cache() -> None:
    """Do nothing: PyTorch ignores this call where there is no GPU."""
