"""Libraries compiled for PyTorch's C++: nothing of them runs here, but packages that have one do.

`torch.ops.load_library` reads the operators' signatures out of the file. What is called of them
says what is missing; questions without arguments, as whether something is compiled in, are answered
no.
"""

from __future__ import annotations

import ast
import linecache
import os
import re
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

__all__ = ["load", "loaded", "operator"]

MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")
SIGNATURE = re.compile(
    rb"\x00(?:(\w+)::)?([A-Za-z_]\w*)(?:\.\w+)?\(((?:[^()\x00-\x1f]|\([a-z! |>*-]*\))*)\) -> "
    rb"([^\x00-\x1f]+)(?=\x00)"
)
NO = {"bool": False, "int": -1, "SymInt": -1}  # -1 is their answer for "without CUDA"
REFUSED = object()  # of a result that nothing says no by
NEAREST = "torch.library.custom_op makes an operator of a Python function"


class Signature(NamedTuple):
    """The schema of an operator in a library."""

    space: str
    takes: str
    gives: str


class Library(NamedTuple):
    """A library that was loaded: its path, and its operators by name."""

    path: str
    operators: dict[str, Signature]


loaded: dict[str, Library] = {}


def load(path: Any, frame: FrameType | None) -> None:
    """Note the operators of a library, and warn that they are not here.

    Parameters
    ----------
    path : path
        The file.
    frame : frame
        Who asks. Where that handles an OSError it gets one, so that it goes on without the library.

    Raises
    ------
    OSError
        There is no such library, or the caller handles that.
    """
    path = os.path.realpath(os.fspath(path))
    told = f"Could not load this library: {path}"
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise OSError(f"{told}: {error.strerror}; {NEAREST}") from error
    if not data.startswith(MAGIC):
        raise OSError(f"{told}: it is no library; {NEAREST}")
    if frame is not None and handles(frame, OSError):
        raise OSError(f"{told}: it needs PyTorch's C++ libraries, which are not here; {NEAREST}")
    if path in loaded:
        return
    found = {
        name.decode(): Signature(*(part.decode() for part in (space, takes, gives)))
        for space, name, takes, gives in SIGNATURE.findall(data)
    }
    loaded[path] = Library(path, found)
    warnings.warn(
        f"{path} needs PyTorch's C++ libraries, which are not here: its operators raise where they "
        f"are called; {NEAREST}",
        UserWarning,
        stacklevel=3,
    )


def handles(frame: FrameType, error: type[Exception]) -> bool:
    """Return whether the statement that a frame is at stands in a ``try`` for such an error."""
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    return any(
        isinstance(node, ast.Try)
        and node.body[0].lineno <= frame.f_lineno <= (node.body[-1].end_lineno or 0)
        and any(_names(handler.type, frame, error) for handler in node.handlers)
        for node in ast.walk(tree)
    )


def _names(handler: ast.expr | None, frame: FrameType, error: type[Exception]) -> bool:
    """Return whether an ``except`` clause is for such an error."""
    if handler is None:
        return True
    try:
        code = compile(ast.Expression(handler), "<except>", "eval")
        kinds = eval(code, frame.f_globals, frame.f_locals)  # the program's own names of classes
        return issubclass(error, kinds)
    except Exception:
        return False


def operator(space: str, name: str) -> Callable[..., Any] | None:
    """Return what an operator of a loaded library does here, or None where none has it.

    Parameters
    ----------
    space, name : str
        As in ``torch.ops.space.name``.
    """
    for library in loaded.values():
        found = library.operators.get(name)
        # A library whose operators cannot be read may have any.
        if (found is None and library.operators) or (found and found.space not in ("", space)):
            continue
        if found and not found.takes and (no := _no(found.gives)) is not REFUSED:
            return lambda no=no: no
        return _refusal(space, name, library.path)
    return None


def _no(gives: str) -> Any:
    """Return what says no as a result of this type."""
    return None if gives.endswith("?") else NO.get(gives, REFUSED)


def _refusal(space: str, name: str, path: str) -> Callable[..., Any]:
    """Return an operator that says what is missing."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"torch.ops.{space}.{name} is compiled for PyTorch's C++ libraries, which are not here "
            f"({path}); {NEAREST}"
        )

    return refuse
