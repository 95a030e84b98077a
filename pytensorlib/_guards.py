"""Names of the tracing state of PyTorch's compiler, which never traces here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__: list[str] = []


class TracingContext:
    """What PyTorch's compiler knows while it traces: it never does here."""

    @staticmethod
    def try_get() -> None:
        """Return None."""

    @staticmethod
    def get() -> None:
        """Raise: nothing is traced."""
        raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")


def active_fake_mode() -> None:
    """Return None: there are no fake tensors."""


def detect_fake_mode(inputs: Any = None) -> None:
    """Return None: there are no fake tensors."""


@contextlib.contextmanager
def tracing(context: Any) -> Iterator[Any]:
    """Do nothing for a block: nothing is traced."""
    yield context
