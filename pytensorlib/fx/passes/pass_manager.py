"""Passes as functions from a program to a program, in an order that is checked."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

__all__ = [
    "PassManager",
    "inplace_wrapper",
    "log_hook",
    "loop_pass",
    "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]

logger = logging.getLogger(__name__)


def inplace_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pass that returns its program, of a function that changes it.

    Parameters
    ----------
    fn : callable
        Takes a program.
    """

    @functools.wraps(fn)
    def wrapped(gm: Any, *args: Any, **kwargs: Any) -> Any:
        fn(gm, *args, **kwargs)
        return gm

    return wrapped


def log_hook(fn: Callable[..., Any], level: int = logging.INFO) -> Callable[..., Any]:
    """Return a pass that logs what it returned.

    Parameters
    ----------
    fn : callable
        The pass.
    level : int
        Of the message.
    """

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result

    return wrapped


def loop_pass(
    base_pass: Callable[[Any], Any],
    n_iter: int | None = None,
    predicate: Callable[[Any], bool] | None = None,
) -> Callable[[Any], Any]:
    """Return a pass that runs another several times.

    Parameters
    ----------
    base_pass : callable
        The other.
    n_iter : int, optional
        How often.
    predicate : callable, optional
        Says of a program whether it is to run again; instead of `n_iter`.

    Examples
    --------
    >>> from pytensorlib.fx.passes.pass_manager import loop_pass
    >>> loop_pass(lambda n: n + 1, predicate=lambda n: n < 5)(0)
    5
    """
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")
    if n_iter is not None and n_iter < 1:
        raise RuntimeError(f"loop_pass: n_iter must be positive, got {n_iter}")

    @functools.wraps(base_pass)
    def repeated(source: Any) -> Any:
        for _ in range(n_iter or 0):
            source = base_pass(source)
        while predicate is not None and predicate(source):
            source = base_pass(source)
        return source

    return repeated


def this_before_that_pass_constraint(this: Any, that: Any) -> Callable[[Any, Any], bool]:
    """Return what says of two passes whether they may be in this order: not `that` before `this`.

    Parameters
    ----------
    this, that : callable
        Passes.
    """
    return lambda a, b: a != that or b != this


def these_before_those_pass_constraint(these: Any, those: Any) -> Callable[[Any, Any], bool]:
    """Return the same of passes that other functions wrap.

    Parameters
    ----------
    these, those : callable
        Passes without what wraps them.
    """
    return lambda a, b: inspect.unwrap(a) != those or inspect.unwrap(b) != these


class PassManager:
    """Runs passes one after the other, if their order fulfils conditions.

    Parameters
    ----------
    passes : list of callable
        Each takes a program and returns one.
    constraints : list of callable
        Each says of two passes whether the first may come before the second.

    Examples
    --------
    >>> from pytensorlib.fx.passes.pass_manager import PassManager
    >>> PassManager([lambda n: n + 1, lambda n: n * 10])(1)
    20
    """

    def __init__(
        self, passes: list[Any] | None = None, constraints: list[Any] | None = None
    ) -> None:
        self.passes, self.constraints = passes or [], constraints or []

    @classmethod
    def build_from_passlist(cls, passes: list[Any]) -> PassManager:
        """Return a manager of passes.

        Parameters
        ----------
        passes : list of callable
            In order.
        """
        return cls(passes)

    def add_pass(self, _pass: Any) -> None:
        """Add a pass at the end.

        Parameters
        ----------
        _pass : callable
            The pass.
        """
        self.passes.append(_pass)

    def add_constraint(self, constraint: Any) -> None:
        """Add a condition.

        Parameters
        ----------
        constraint : callable
            Says of two passes whether the first may come before the second.
        """
        self.constraints.append(constraint)

    def remove_pass(self, _passes: list[str]) -> None:
        """Take passes out.

        Parameters
        ----------
        _passes : list of str
            The names of their functions.
        """
        self.passes = [p for p in self.passes if p.__name__ not in (_passes or ())]

    def replace_pass(self, _target: Any, _replacement: Any) -> None:
        """Put a pass where another is.

        Parameters
        ----------
        _target, _replacement : callable
            The other, and the pass.
        """
        name = _target.__name__
        self.passes = [_replacement if p.__name__ == name else p for p in self.passes]

    def validate(self) -> None:
        """Raise unless the order fulfils the conditions.

        Raises
        ------
        RuntimeError
            Which two passes it does not allow.
        """
        for constraint in self.constraints:
            for i, a in enumerate(self.passes):
                for j, b in enumerate(self.passes[i + 1 :], i + 1):
                    if not constraint(a, b):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {b} before {a} but found "
                            f"{a} at index {i} and {b} at index {j} in pass list."
                        )

    def __call__(self, source: Any) -> Any:
        self.validate()
        for run in self.passes:
            source = run(source)
        return source
