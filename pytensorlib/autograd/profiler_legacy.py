"""The profile by its old name."""

from __future__ import annotations

from . import profiler

__all__ = ["profile"]


class profile(profiler.profile):
    """As `torch.autograd.profiler.profile`, which takes its place.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd.profiler_legacy import profile
    >>> with profile() as prof:
    ...     x = torch.ones(2) + 1
    >>> prof.key_averages()[0].key
    'aten::add'
    """
