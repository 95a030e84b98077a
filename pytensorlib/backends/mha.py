"""The switch of PyTorch's fast path of transformer layers: it changes nothing here."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled() -> bool:
    """Return what `set_fastpath_enabled` set; at first True.

    Returns
    -------
    bool
        It changes nothing: layers have one path.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.mha.get_fastpath_enabled()
    True
    """
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Keep a value for `get_fastpath_enabled`; nothing changes.

    Parameters
    ----------
    value : bool
        Whether PyTorch would take its fast path.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.mha.set_fastpath_enabled(True)
    """
    global _enabled
    _enabled = value
