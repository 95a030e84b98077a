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
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.is_initialized()
    False
    """
    return False


def device_count() -> int:
    """Return 0.

    Returns
    -------
    int
        0.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.device_count()
    0
    """
    return 0


def current_device() -> int:
    """Raise: there is no CUDA device.

    Raises
    ------
    RuntimeError
        Always.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> try:
    ...     torch.cuda.current_device()
    ... except RuntimeError:
    ...     print("none")
    none
    """
    raise RuntimeError("torch.cuda: there is no CUDA here; GPUs of every vendor are device 'wgpu'")


def synchronize(device: Any = None) -> None:
    """Raise, as `current_device`.

    Parameters
    ----------
    device : device, optional
        Accepted for scripts.

    Raises
    ------
    RuntimeError
        Always.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.synchronize()
    """
    current_device()


def manual_seed(seed: int) -> None:
    """Do nothing: PyTorch ignores this call where there is no GPU.

    Parameters
    ----------
    seed : int
        Not used; `torch.manual_seed` seeds every device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.manual_seed(0)
    """


def manual_seed_all(seed: int) -> None:
    """Do nothing: PyTorch ignores this call where there is no GPU.

    Parameters
    ----------
    seed : int
        Not used; `torch.manual_seed` seeds every device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.manual_seed_all(0)
    """


def empty_cache() -> None:
    """Do nothing: PyTorch ignores this call where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.empty_cache()
    """
