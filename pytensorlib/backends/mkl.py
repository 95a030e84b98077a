"""Intel's MKL: not used here."""

from __future__ import annotations

import contextlib

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.mkl.is_available()
    False
    """
    return False


class verbose(contextlib.ContextDecorator):
    """A block in which MKL would print its calls: nothing is printed here.

    Parameters
    ----------
    enable : int
        `VERBOSE_OFF` or `VERBOSE_ON`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_ON):
    ...     torch.ones(1) + 1
    tensor([2.])
    """

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exc: object) -> None:
        pass
