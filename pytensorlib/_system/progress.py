"""A progress bar, by tqdm or, without it, by a few lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["tqdm"]

try:
    from tqdm import tqdm
except ImportError:

    class tqdm:  # type: ignore[no-redef]
        """A substitute for the bar where tqdm is missing: it shows nothing."""

        def __init__(self, iterable: Iterable[Any] | None = None, **kwargs: Any) -> None:
            self.iterable, self.n = iterable, 0

        def __iter__(self) -> Iterator[Any]:
            return iter(self.iterable or ())

        def update(self, n: int = 1) -> None:
            """Count what was done."""
            self.n += n

        def set_description(self, *args: Any, **kwargs: Any) -> None:
            """Do nothing."""

        def close(self) -> None:
            """Do nothing."""

        def __enter__(self) -> tqdm:
            return self

        def __exit__(self, *exc: Any) -> None:
            pass
