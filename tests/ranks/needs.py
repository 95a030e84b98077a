"""What checks on ranks need: how many ranks, and which error."""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any


def at_least(ranks: int) -> Callable[[Any], Any]:
    """Leave a check out where there are fewer ranks."""

    def mark(check: Any) -> Any:
        check.least = ranks
        return check

    return mark


@contextlib.contextmanager
def raises(kind: type[BaseException], text: str) -> Iterator[None]:
    """Expect an error."""
    try:
        yield
    except kind as error:
        if not re.search(text, str(error)):
            raise AssertionError(f"{text!r} is not in {error}") from error
    else:
        raise AssertionError(f"no {kind.__name__} with {text!r}")
