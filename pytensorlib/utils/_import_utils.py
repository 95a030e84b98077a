"""Whether packages are installed."""

from __future__ import annotations

import importlib.util

__all__ = ["dill_available"]


def _check_module_exists(name: str) -> bool:
    """Return whether a module can be found, without running it."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def dill_available() -> bool:
    """Return whether dill is installed.

    Returns
    -------
    bool
        True if it can be imported.

    Examples
    --------
    >>> from pytensorlib.utils._import_utils import dill_available
    >>> isinstance(dill_available(), bool)
    True
    """
    return _check_module_exists("dill")
