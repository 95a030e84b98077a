"""oneDNN: not used here."""

from __future__ import annotations

import contextlib
from typing import Any

from ._switches import Switches, switched

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "VERBOSE_ON_CREATION", "flags", "is_available", "verbose"]

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"
matmul = Switches(fp32_precision="none")
conv = Switches(fp32_precision="none")
rnn = Switches(fp32_precision="none")


def is_available() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.mkldnn.is_available()
    False
    """
    return False


class verbose(contextlib.ContextDecorator):
    """A block in which oneDNN would print its calls: nothing is printed here.

    Parameters
    ----------
    level : int
        `VERBOSE_OFF` or `VERBOSE_ON`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
    ...     torch.ones(1) + 1
    tensor([2.])
    """

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Any:
    """Return a context with these switches, which change nothing.

    Parameters
    ----------
    enabled, deterministic, allow_tf32, fp32_precision : bool or str
        As PyTorch's.

    Returns
    -------
    context manager
        Restores what was.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.backends.mkldnn.flags():
    ...     torch.ones(1)
    tensor([1.])
    """
    return switched(
        globals(),
        enabled=enabled,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )
