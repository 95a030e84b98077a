"""Tracebacks as text, and those of places where nothing was raised."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator
from typing import Any

__all__ = [
    "CapturedTraceback",
    "format_frame",
    "format_traceback_short",
    "report_compile_source_on_error",
    "shorten_filename",
]


@contextlib.contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """Do nothing for a block: no source is made of programs that an error could come from.

    Examples
    --------
    >>> from pytensorlib.utils._traceback import report_compile_source_on_error
    >>> with report_compile_source_on_error():
    ...     pass
    """
    yield


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """Return the path of a file from a folder: that above this package, where none is given.

    Parameters
    ----------
    fn : str
        The path.
    base : str, optional
        The folder.

    Returns
    -------
    str
        The path itself where the folder does not hold the file.

    Examples
    --------
    >>> from pytensorlib.utils._traceback import shorten_filename
    >>> shorten_filename("/a/b.py", base="/a")
    'b.py'
    """
    if base is None:
        base = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        common = os.path.commonpath([base, fn])
    except ValueError:
        return fn
    return fn[len(common) + 1 :] if common == base else fn


def format_frame(frame: Any, *, base: str | None = None, line: bool = False) -> str:
    """Return the place of a frame's summary as text.

    Parameters
    ----------
    frame : FrameSummary
        As of `traceback`.
    base : str, optional
        The folder that paths begin at.
    line : bool, default False
        Whether the source comes along.

    Returns
    -------
    str
        Like ``a.py:3 in f``.

    Examples
    --------
    >>> import traceback
    >>> from pytensorlib.utils._traceback import format_frame
    >>> format_frame(traceback.FrameSummary("/a/b.py", 3, "f"), base="/a")
    'b.py:3 in f'
    """
    extra = f"{frame.line}  # " if line else ""
    place = shorten_filename(frame.filename, base=base)
    return f"{extra}{place}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: Any) -> str:
    """Return the innermost place of a traceback as text.

    Parameters
    ----------
    tb : traceback
        Of an error.

    Returns
    -------
    str
        As of `format_frame`.

    Examples
    --------
    >>> from pytensorlib.utils._traceback import format_traceback_short
    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError as error:
    ...     print("in" in format_traceback_short(error.__traceback__))
    True
    """
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """The calls that led somewhere.

    Parameters
    ----------
    tb : StackSummary
        Of them.
    skip : int, default 0
        How many of the innermost are left out.

    Examples
    --------
    >>> from pytensorlib.utils._traceback import CapturedTraceback
    >>> len(CapturedTraceback.extract().summary()) > 0
    True
    """

    __slots__ = ("skip", "tb")

    def __init__(self, tb: Any, skip: int = 0) -> None:
        self.tb, self.skip = tb, skip

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """Return the calls that led here."""
        return CapturedTraceback(traceback.extract_stack()[:-1], skip)

    def cleanup(self) -> None:
        """Forget the calls."""
        self.tb = None

    def summary(self) -> Any:
        """Return the calls, as `traceback` has them."""
        if self.tb is None:
            return traceback.StackSummary()
        frames = list(self.tb)
        return traceback.StackSummary.from_list(frames[: len(frames) - self.skip])

    def format(self) -> list[str]:
        """Return the calls as text."""
        return traceback.format_list(self.summary())
