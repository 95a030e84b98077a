"""The setting of deterministic algorithms: all here are, so it is stored and reported."""

from __future__ import annotations

from ._C import _set_determinism

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode",
    "use_deterministic_algorithms",
]

_MODES = ("default", "warn", "error")
_mode = 0
_fills = True


def ask(mode: int | None = None, fills: bool | None = None) -> None:
    """Tell the core the mode, and whether new memory is filled then."""
    global _mode, _fills
    _mode = _mode if mode is None else mode
    _fills = _fills if fills is None else fills
    _set_determinism(_mode, _fills)


def fills() -> bool:
    """Return whether new memory is filled where determinism is asked for."""
    return _fills


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for algorithms that repeat bit for bit. All of this library do, asked or not.

    Where PyTorch leaves open which of several values for one place stays (here the last), operators
    raise as PyTorch's do on the CPU: `Tensor.put_` without `accumulate`, and `max_unpool1d`,
    `max_unpool2d` and `max_unpool3d`. So what passes here passes there. Memory that nothing was
    written to holds NaN, or the largest integer; see `torch.utils.deterministic`.

    Parameters
    ----------
    mode : bool
        Whether to ask.
    warn_only : bool, default False
        Whether these operators should warn, not raise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.are_deterministic_algorithms_enabled()
    True
    >>> torch.use_deterministic_algorithms(False)
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"use_deterministic_algorithms(): argument '{name}' must be bool, "
                f"not {type(value).__name__}"
            )
    ask((1 if warn_only else 2) if mode else 0)


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether deterministic algorithms were asked for.

    Returns
    -------
    bool
        What `use_deterministic_algorithms` was given.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.are_deterministic_algorithms_enabled()
    False
    """
    return _mode > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether they were asked for with a warning in place of an error.

    Returns
    -------
    bool
        True after ``use_deterministic_algorithms(True, warn_only=True)``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _mode == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Say what operators do whose result PyTorch leaves open: see `use_deterministic_algorithms`.

    Parameters
    ----------
    debug_mode : {0, 1, 2} or {'default', 'warn', 'error'}
        Nothing, warn, or raise.

    Raises
    ------
    RuntimeError
        For anything else.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_deterministic_debug_mode("warn")
    >>> torch.get_deterministic_debug_mode()
    1
    >>> torch.set_deterministic_debug_mode(0)
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    found = _MODES.index(debug_mode) if debug_mode in _MODES else debug_mode
    if isinstance(found, str) or not 0 <= found <= 2:
        raise RuntimeError(
            "invalid value of debug_mode, expected `default`, `warn`, `error`, or 0, 1, 2, "
            f"but got {debug_mode}"
        )
    ask(int(found))


def get_deterministic_debug_mode() -> int:
    """Return what `set_deterministic_debug_mode` was given, as a number.

    Returns
    -------
    int
        0 for nothing, 1 for a warning, 2 for an error.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.get_deterministic_debug_mode()
    0
    """
    return _mode
