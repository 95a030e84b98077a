"""Settings of PyTorch's that are kept, or that there is nothing to set for here."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._tensor.constructors import _placed_type

__all__ = [
    "get_device_module",
    "get_num_interop_threads",
    "init_num_threads",
    "is_anomaly_check_nan_enabled",
    "is_warn_always_enabled",
    "set_anomaly_enabled",
    "set_default_tensor_type",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_vital",
    "set_warn_always",
]

_warn_always = False
_interop_threads = 1
# Whether the default device is what `set_default_tensor_type` set.
_default_is_old = False


def set_warn_always(b: bool, /) -> None:
    """Say whether warnings that come once in a program are given each time.

    Parameters
    ----------
    b : bool
        Whether they are.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_warn_always(False)
    """
    global _warn_always
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always: expected a bool, got {type(b).__name__}")
    _warn_always = b
    _C._set_warn_always(b)


def is_warn_always_enabled() -> bool:
    """Return what `set_warn_always` set.

    Returns
    -------
    bool
        False at first.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_warn_always_enabled()
    False
    """
    return _warn_always


def get_num_interop_threads() -> int:
    """Return how many operators may run beside each other: what was set, and 1 at first.

    Returns
    -------
    int
        Operators run one after another here; `get_num_threads` is what one of them uses.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.get_num_interop_threads()
    1
    """
    return _interop_threads


def set_num_interop_threads(n: int, /) -> None:
    """Keep a number of threads for operators beside each other; they run one after another.

    Parameters
    ----------
    n : int
        At least 1.

    Raises
    ------
    RuntimeError
        It is not.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_num_interop_threads(1)
    """
    global _interop_threads
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"set_num_interop_threads expects an int, but got {type(n).__name__}")
    if n < 1:
        raise RuntimeError(f"set_num_interop_threads: expects a positive integer, got {n}")
    _interop_threads = n


def init_num_threads() -> None:
    """Prepare a new thread: nothing has to be.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.init_num_threads()
    """


def set_flush_denormal(mode: bool, /) -> bool:
    """Return False: whether denormal numbers count as zero cannot be chosen here.

    Parameters
    ----------
    mode : bool
        What is wished for.

    Returns
    -------
    bool
        Whether it is supported.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_flush_denormal(True)
    False
    """
    return False


def set_default_tensor_type(t: Any, /) -> None:
    """Set the default element type, and device, by the name of an old class of tensors.

    Parameters
    ----------
    t : type or str
        A floating-point class such as ``torch.DoubleTensor``, or its name; also one such as
        ``torch.cuda.FloatTensor``, where GPUs answer as that.

    Raises
    ------
    TypeError
        It stands for no floating-point type.
    RuntimeError
        There is no such device.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> with warnings.catch_warnings():  # PyTorch calls it deprecated
    ...     warnings.simplefilter("ignore")
    ...     torch.set_default_tensor_type(torch.DoubleTensor)
    >>> torch.ones(1).dtype
    torch.float64
    >>> torch.set_default_tensor_type("torch.FloatTensor")
    """
    global _default_is_old
    _C._warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives."
    )
    try:
        kind, dtype = _placed_type(t)
    except ValueError as e:
        raise TypeError(f"set_default_tensor_type: {e}") from None
    if not dtype.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {t}")
    if kind not in (None, "cpu"):
        _C.set_default_device(kind)
        _default_is_old = True
    elif _default_is_old:
        _C.set_default_device("cpu")
        _default_is_old = False
    _C.set_default_dtype(dtype)


def get_device_module(device: Any = None) -> Any:
    """Return the module of a kind of device.

    Parameters
    ----------
    device : device or str, optional
        The default device where it is not given.

    Returns
    -------
    module
        Such as ``torch.cpu`` or ``torch.wgpu``.

    Raises
    ------
    RuntimeError
        There is no module of that name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.get_device_module("cpu") is torch.cpu
    True
    """
    import pytensorlib as pt

    kind = pt.device(pt.get_default_device() if device is None else device).type
    module = getattr(pt, kind, None)
    if module is None:
        raise RuntimeError(f"get_device_module: there is no module for device {kind!r}")
    return module


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turn anomaly mode on or off; see `autograd.set_detect_anomaly`.

    Parameters
    ----------
    mode : bool
        Whether errors in backward tell where the forward call was.
    check_nan : bool, default True
        Whether NaN in a gradient is an error.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_anomaly_enabled(False)
    """
    _C._set_anomaly_enabled(mode, check_nan)


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode looks for NaN.

    Returns
    -------
    bool
        What was set.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_anomaly_check_nan_enabled()
    True
    """
    return _C._is_anomaly_check_nan_enabled()


def set_vital(vital: str, key: str, value: str) -> bool:
    """Return False: nothing is noted of what a program uses.

    Parameters
    ----------
    vital, key, value : str
        Not used.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_vital("Dataloader", "enabled", "True")
    False
    """
    return False
