"""`torch.device` as a context and a decorator, by private names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ..overrides import TorchFunctionMode
from ._contextlib import context_decorator

__all__ = ["DeviceContext", "device_decorator", "set_device"]


class DeviceContext(TorchFunctionMode):
    """Lets factories make tensors on a device for a block.

    Parameters
    ----------
    device : device or str
        Where.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils._device import DeviceContext
    >>> with DeviceContext("meta"):
    ...     x = torch.ones(2)
    >>> x.device.type
    'meta'
    """

    def __init__(self, device: Any) -> None:
        super().__init__()
        self.device = pt.device(device)

    def __enter__(self) -> Any:
        self.device.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.device.__exit__(*error)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def device_decorator(device: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose factories make tensors on a device.

    Parameters
    ----------
    device : device
        Where.
    func : callable
        Any.

    Returns
    -------
    callable
        Takes and gives what `func` takes and gives.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils._device import device_decorator
    >>> device_decorator(torch.device("meta"), torch.ones)(2).device.type
    'meta'
    """
    return context_decorator(lambda: device, func)


def set_device(device: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator of functions whose factories make tensors on a device.

    Parameters
    ----------
    device : device or str
        Where.

    Returns
    -------
    callable
        Takes and gives a function.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils._device import set_device
    >>> @set_device("meta")
    ... def made():
    ...     return torch.ones(2)
    >>> made().device.type
    'meta'
    """
    return lambda func: device_decorator(pt.device(device), func)
