"""opt_einsum, whose paths torch.einsum does without,: not used here."""

from __future__ import annotations

from typing import Any

from ._switches import switched

__all__ = ["flags", "get_opt_einsum", "is_available"]

enabled: bool | None = False
strategy: str | None = None


def is_available() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.opt_einsum.is_available()
    False
    """
    return False


def get_opt_einsum() -> None:
    """Return None: the package is not used.

    Returns
    -------
    None
        Always.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.opt_einsum.get_opt_einsum() is None
    True
    """


def flags(enabled: bool | None = None, strategy: str | None = None) -> Any:
    """Return a context with these switches, which change nothing.

    Parameters
    ----------
    enabled, strategy : bool or str, optional
        As PyTorch's.

    Returns
    -------
    context manager
        Restores what was.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.backends.opt_einsum.flags():
    ...     torch.ones(1)
    tensor([1.])
    """
    return switched(globals(), enabled=enabled, strategy=strategy)
