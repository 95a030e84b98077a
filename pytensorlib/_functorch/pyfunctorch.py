"""The stack of transforms at work, which is empty: transforms here nest on the one graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._absent.modules import fill

__all__ = [
    "retrieve_all_functorch_interpreters",
    "temporarily_clear_interpreter_stack",
]

NO_STACK = "transforms nest on the one graph here; there is no stack of interpreters to look at."
fill(
    globals(),
    NO_STACK,
    "FuncTorchInterpreter VmapInterpreter GradInterpreter JvpInterpreter FunctionalizeInterpreter "
    "coerce_cinterpreter retrieve_current_functorch_interpreter temporarily_pop_interpreter_stack "
    "dispatch_functorch",
)


def retrieve_all_functorch_interpreters() -> list[Any]:
    """Return the interpreters at work: none.

    Returns
    -------
    list
        Empty.

    Examples
    --------
    >>> from pytensorlib._functorch.pyfunctorch import retrieve_all_functorch_interpreters
    >>> retrieve_all_functorch_interpreters()
    []
    """
    return []


@contextlib.contextmanager
def temporarily_clear_interpreter_stack() -> Iterator[list[Any]]:
    """Do without the interpreters for a block; give them.

    Examples
    --------
    >>> from pytensorlib._functorch.pyfunctorch import temporarily_clear_interpreter_stack
    >>> with temporarily_clear_interpreter_stack() as stack:
    ...     print(stack)
    []
    """
    yield []


@contextlib.contextmanager
def temporarily_restore_interpreter_stack(stack: list[Any]) -> Iterator[None]:
    """Put interpreters back for a block."""
    yield


def compare_functorch_state(states: list[Any]) -> bool:
    """Return whether the stack is as it was noted."""
    return not states
