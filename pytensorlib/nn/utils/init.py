"""Making modules without initialising them."""

from __future__ import annotations

from typing import Any


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module for values that are loaded next: its own are uninitialised, and take no random
    numbers.

    Parameters
    ----------
    module_cls : type
        A module class whose constructor takes `device`.
    *args, **kwargs
        Its arguments.

    Returns
    -------
    Module
        On `device`, the CPU by default.

    Raises
    ------
    RuntimeError
        It is no module class, or takes no `device`.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> nn.utils.skip_init(nn.Linear, 3, 2).weight.shape
    torch.Size([2, 3])
    """
    from ..module import Module

    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    import inspect  # slow to load

    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
