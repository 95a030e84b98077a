"""Anomaly mode: backward errors name the forward call, NaN gradients raise."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Turn anomaly mode on or off at once; as a context manager, until the block ends.

    Parameters
    ----------
    mode : bool
        Whether each node keeps the traceback of the call that made it.
    check_nan : bool, default True
        Whether a backward that gives NaN raises.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.autograd.set_detect_anomaly(True):
    ...     torch.is_anomaly_enabled()
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (_C._is_anomaly_enabled(), _C._is_anomaly_check_nan_enabled())
        _C._set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        _C._set_anomaly_enabled(*self.before)


class detect_anomaly:
    """Turn anomaly mode on inside a ``with`` block. It slows every operation down.

    Parameters
    ----------
    check_nan : bool, default True
        Whether a backward that gives NaN raises RuntimeError.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> import warnings
    >>> x = torch.zeros(1, requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with torch.autograd.detect_anomaly():
    ...         (x.sqrt() * 0).backward()
    Traceback (most recent call last):
        ...
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. It records a traceback per operation: "
            "use it for debugging only.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = (_C._is_anomaly_enabled(), _C._is_anomaly_check_nan_enabled())
        _C._set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exc: Any) -> None:
        _C._set_anomaly_enabled(*self.before)
