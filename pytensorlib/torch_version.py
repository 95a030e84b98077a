"""The version as text that compares as versions do."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

__all__ = ["TorchVersion"]

# Where a release, or a part that is not there, stands among the others.
LOWEST: tuple[Any, ...] = (-1,)
HIGHEST: tuple[Any, ...] = (1 << 62,)
LETTERS = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


@cache
def _key(text: str) -> tuple[Any, ...] | None:
    """Return what orders a version (PEP 440); None where the text is none."""
    import re

    found = re.fullmatch(
        r"""\s*v?(?:(\d+)!)?(\d+(?:\.\d+)*)
        (?:[-_.]?(alpha|beta|preview|pre|rc|a|b|c)[-_.]?(\d*))?
        (?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?
        (?:[-_.]?(dev)[-_.]?(\d*))?
        (?:\+([a-z\d]+(?:[-_.][a-z\d]+)*))?\s*""",
        text.lower(),
        re.VERBOSE,
    )
    if found is None:
        return None
    epoch, numbers, letter, pre, short_post, post, post_n, dev, dev_n, local = found.groups()
    release = [int(n) for n in numbers.split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    is_post, is_dev = bool(short_post or post), bool(dev)
    before = (LETTERS.get(letter, letter), int(pre or 0)) if letter else None
    # 1.dev0 < 1a0.dev0 < 1a0 < 1 < 1.post0; with local parts above that without.
    first = ("",) if before is None and is_dev and not is_post else before or ("z",)
    return (
        int(epoch or 0),
        release,
        first,
        (int(short_post or post_n or 0),) if is_post else LOWEST,
        (int(dev_n or 0),) if is_dev else HIGHEST,
        [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in re.split("[-_.]", local or "")]
        if local
        else [],
    )


def _text(other: Any) -> str | None:
    """Return a version that a number of things may stand for as text."""
    if isinstance(other, str):
        return str(other)
    if isinstance(other, Iterable):  # (2, 1), or ("2", "1")
        return ".".join(str(part) for part in other)
    return str(other) if hasattr(other, "release") else None  # packaging's


class TorchVersion(str):
    """A version that is text, and compares with other versions as numbers.

    It compares with text, with tuples such as ``(2, 1)`` and with `packaging.version.Version`; with
    text that is no version as text.

    Parameters
    ----------
    object : str
        The version.

    Examples
    --------
    >>> from pytensorlib.torch_version import TorchVersion
    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") >= (2, 13)
    (True, True)
    """

    __slots__ = ()

    def _ordered(self, other: Any) -> tuple[Any, Any] | None:
        text = _text(other)
        if text is None:
            return None
        mine, yours = _key(str(self)), _key(text)
        return (str(self), text) if mine is None or yours is None else (mine, yours)

    def __lt__(self, other: Any) -> bool:
        pair = self._ordered(other)
        return NotImplemented if pair is None else pair[0] < pair[1]

    def __le__(self, other: Any) -> bool:
        pair = self._ordered(other)
        return NotImplemented if pair is None else pair[0] <= pair[1]

    def __gt__(self, other: Any) -> bool:
        pair = self._ordered(other)
        return NotImplemented if pair is None else pair[0] > pair[1]

    def __ge__(self, other: Any) -> bool:
        pair = self._ordered(other)
        return NotImplemented if pair is None else pair[0] >= pair[1]

    def __eq__(self, other: object) -> bool:
        pair = self._ordered(other)
        return NotImplemented if pair is None else pair[0] == pair[1]

    def __ne__(self, other: object) -> bool:
        pair = self._ordered(other)
        return NotImplemented if pair is None else pair[0] != pair[1]

    __hash__ = str.__hash__
