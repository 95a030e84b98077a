"""The compiled pickle machine, which runs nothing but what its caller allows.

The standard unpickler, even with a filtered ``find_class``, lets a file set attributes on classes
and allocate at will. This one first reads a pickle into plain values, then checks that each call in
it gets what the function takes, and only then makes objects: what a file may cost is bounded by its
size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C

__all__ = ["CorruptCheckpointError", "TruncatedCheckpointError", "globals_of", "loads"]


class CorruptCheckpointError(RuntimeError):
    """The file is damaged or is not a checkpoint; the text says where.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> import io
    >>> try:
    ...     torch.load(io.BytesIO(b"not a checkpoint"))
    ... except RuntimeError as error:
    ...     print(type(error).__name__)
    CorruptCheckpointError
    """


class TruncatedCheckpointError(CorruptCheckpointError, EOFError):
    """The file ends too early.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> import io
    >>> try:
    ...     torch.load(io.BytesIO(b""))
    ... except EOFError as error:
    ...     print(type(error).__name__)
    TruncatedCheckpointError
    """


Find = Callable[[str, str], tuple[Any, str | None]]
Load = Callable[[Any], Any]
Build = Callable[[Any, Any], Any]


def loads(
    data: Any,
    find_global: Find,
    persistent_load: Load,
    build: Build,
    at: int = 0,
    size: int | None = None,
    encoding: str = "utf-8",
) -> tuple[Any, int]:
    """Run one pickle.

    Parameters
    ----------
    data : bytes
        Holds the pickle.
    find_global : callable
        ``find_global(module, name)`` returns what a name stands for and how the file may call it:
        None for not at all, a signature such as ``"int text? -> key"`` (its words are those of
        ``Use`` in ``rust/base/src/pickle/check.rs``), or an empty text for what the user allows; it
        raises `pickle.UnpicklingError` to refuse.
    persistent_load : callable
        Called with the tuple that stands for a storage.
    build : callable
        ``build(object, state)`` applies the state to the object, or refuses.
    at : int
        Where the pickle starts.
    size : int, optional
        The size of the file, which bounds what the pickle may take.
    encoding : str
        Of the strings of Python 2; "bytes" leaves them as bytes.

    Returns
    -------
    (object, int)
        What the pickle holds, and where it ends.

    Raises
    ------
    UnpicklingError
        An opcode, a name or a call that is not allowed.
    CorruptCheckpointError
        A pickle that is damaged; `TruncatedCheckpointError` if it ends too early.
    """
    size = len(data) if size is None else size
    return _C._pickle_load(data, at, size, (find_global, persistent_load, build), encoding)


def globals_of(data: Any, at: int = 0) -> tuple[list[tuple[str, str]], int]:
    """Return module and name of each global of a pickle, and where it ends."""
    return _C._pickle_globals(data, at, len(data))
