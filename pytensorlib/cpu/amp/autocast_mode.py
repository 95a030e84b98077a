"""``torch.cpu.amp.autocast``: an older way to write `torch.autocast`."""

from __future__ import annotations

import warnings

import pytensorlib as pt

from ...amp import autocast_mode as _autocast_mode

__all__ = ["autocast"]


def _tell(old: str, new: str) -> None:
    warnings.warn(
        f"`torch.cpu.amp.{old}` is deprecated. Please use `{new}` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(_autocast_mode.autocast):
    """As `torch.autocast` of "cpu", which is what to write instead.

    Parameters
    ----------
    enabled : bool, default True
        Whether it does anything.
    dtype : dtype, default bfloat16
        float16 or bfloat16.
    cache_enabled : bool, default True
        Whether the cast of a parameter is kept until the outermost block ends.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> with torch.cpu.amp.autocast():
    ...     torch.mm(torch.ones(1, 2), torch.ones(2, 1))
    tensor([[2.]], dtype=torch.bfloat16)
    """

    def __init__(
        self, enabled: bool = True, dtype: pt.dtype = pt.bfloat16, cache_enabled: bool = True
    ) -> None:
        _tell("autocast(args...)", "torch.amp.autocast('cpu', args...)")
        super().__init__("cpu", dtype, enabled, cache_enabled)
