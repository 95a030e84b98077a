"""Versions that compare."""

from __future__ import annotations

from ...torch_version import TorchVersion, _key

__all__ = ["InvalidVersion", "Version", "parse"]


class InvalidVersion(ValueError):
    """A text is no version.

    Examples
    --------
    >>> from pytensorlib._vendor.packaging.version import InvalidVersion, parse
    >>> try:
    ...     parse("one")
    ... except InvalidVersion:
    ...     print("no version")
    no version
    """


class Version(TorchVersion):
    """A version: text that compares as versions do.

    Parameters
    ----------
    version : str
        As "1.2.3".

    Examples
    --------
    >>> from pytensorlib._vendor.packaging.version import Version
    >>> Version("1.10") > Version("1.9"), Version("1.10").release
    (True, (1, 10))
    """

    def __new__(cls, version: str) -> Version:
        """Return the version."""
        if _key(version) is None:
            raise InvalidVersion(f"Invalid version: {version!r}")
        return super().__new__(cls, version)

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def release(self) -> tuple[int, ...]:
        """The numbers with points between them."""
        import re

        found = re.match(r"\s*v?(?:\d+!)?(\d+(?:\.\d+)*)", self)
        return tuple(int(n) for n in found[1].split(".")) if found else ()

    @property
    def major(self) -> int:
        """The first number."""
        return self.release[0]

    @property
    def minor(self) -> int:
        """The second number, or 0."""
        return (*self.release, 0)[1]

    @property
    def micro(self) -> int:
        """The third number, or 0."""
        return (*self.release, 0, 0)[2]


def parse(version: str) -> Version:
    """Return a version of its text.

    Parameters
    ----------
    version : str
        As "1.2.3".

    Returns
    -------
    Version
        It compares as versions do.

    Raises
    ------
    InvalidVersion
        It is none.

    Examples
    --------
    >>> from pytensorlib._vendor.packaging.version import parse
    >>> parse("2.0.1") < parse("2.0.10")
    True
    """
    return Version(version)
