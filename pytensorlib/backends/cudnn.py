"""cuDNN: not here; its switches are kept.

``deterministic`` lets no kernel be chosen by time alone where another one gives other bits: without
it products of less than the highest precision, and of half types, run on cooperative matrices where
these were quicker. Convolutions have the precision of products (`torch.backends.cuda.matmul`).
"""

from __future__ import annotations

import sys
from typing import Any

from .. import _C
from ._switches import Switches, heard, switched

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"
conv = Switches(fp32_precision="none")
rnn = Switches(fp32_precision="none")
CUDNN_TENSOR_DTYPES: set[Any] = set()


heard(__name__, deterministic=lambda value: _C._set_kernel_choice(not value))


def is_available() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.cudnn.is_available()
    False
    """
    return False


def version() -> None:
    """Return None: there is no version of what is not there.

    Returns
    -------
    None
        Always.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.cudnn.version() is None
    True
    """


def is_acceptable(tensor: Any) -> bool:
    """Return False: no tensor is computed with cuDNN.

    Parameters
    ----------
    tensor : Tensor
        Any.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.cudnn.is_acceptable(torch.ones(1))
    False
    """
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:
    """Set the switches and return what they were.

    Returns
    -------
    tuple
        enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> old = torch.backends.cudnn.set_flags(_deterministic=True)
    >>> torch.backends.cudnn.deterministic
    True
    >>> _ = torch.backends.cudnn.set_flags(*old)
    """
    names = "enabled benchmark benchmark_limit deterministic allow_tf32 fp32_precision".split()
    this = sys.modules[__name__]
    old = tuple(getattr(this, name) for name in names)
    values = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, _fp32_precision)
    for name, value in zip(names, values, strict=True):
        if value is not None:
            setattr(this, name, value)
    return old


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Any:
    """Return a context with these switches.

    Parameters
    ----------
    enabled, benchmark, deterministic, allow_tf32 : bool
        As PyTorch's; they change nothing.
    benchmark_limit : int
        Likewise.
    fp32_precision : str
        Likewise.

    Returns
    -------
    context manager
        Restores what was.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.backends.cudnn.flags(enabled=True, deterministic=True):
    ...     torch.backends.cudnn.deterministic
    True
    """
    return switched(
        globals(),
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )
