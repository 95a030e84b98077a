"""``torch.cuda.amp.autocast``: an older way to write `torch.autocast`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ...amp import autocast_mode as _autocast_mode

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


def _tell(old: str, new: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{old}` is deprecated. Please use `{new}` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(_autocast_mode.autocast):
    """As `torch.autocast` of "cuda", which is what to write instead.

    Parameters
    ----------
    enabled : bool, default True
        Whether it does anything; it warns.
    dtype : dtype, default float16
        float16 or bfloat16.
    cache_enabled : bool, default True
        Whether the cast of a parameter is kept until the outermost block ends.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> with torch.cuda.amp.autocast(enabled=False):
    ...     torch.mm(torch.ones(1, 2), torch.ones(2, 1))
    tensor([[2.]])
    """

    def __init__(
        self, enabled: bool = True, dtype: pt.dtype = pt.float16, cache_enabled: bool = True
    ) -> None:
        _tell("autocast(args...)", "torch.amp.autocast('cuda', args...)")
        super().__init__("cuda", dtype, enabled, cache_enabled)


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: Any = None) -> Any:
    """As `torch.amp.custom_fwd` of "cuda", which is what to write instead.

    Parameters
    ----------
    fwd : callable
        ``forward(ctx, *args)``.
    cast_inputs : dtype, optional
        What tensors on "cuda" are cast to.

    Returns
    -------
    callable
        The decorated function, or without `fwd` the decorator.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> @torch.cuda.amp.custom_fwd
    ... def forward(ctx, x):
    ...     return x.clone()
    """
    _tell("custom_fwd(args...)", "torch.amp.custom_fwd(args..., device_type='cuda')")
    return _autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """As `torch.amp.custom_bwd` of "cuda", which is what to write instead.

    Parameters
    ----------
    bwd : callable
        ``backward(ctx, *grads)``.

    Returns
    -------
    callable
        The decorated function.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> @torch.cuda.amp.custom_bwd
    ... def backward(ctx, grad):
    ...     return 2 * grad
    """
    _tell("custom_bwd(args...)", "torch.amp.custom_bwd(args..., device_type='cuda')")
    return _autocast_mode.custom_bwd(bwd, device_type="cuda")
