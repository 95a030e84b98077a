"""Passes one after another."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

Constraint = Callable[[Any, Any], bool]


def pass_result_wrapper(fn: Any) -> Any:
    """Return a pass that says it changed the module, for a function that says nothing.

    Parameters
    ----------
    fn : callable or None
        Takes a module; returns nothing, a module or a `PassResult`.

    Returns
    -------
    callable or None
        Returns a `PassResult`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.infra.pass_manager import pass_result_wrapper
    >>> pass_result_wrapper(lambda m: None)(torch.nn.ReLU()).modified
    True
    """
    if fn is None:
        return None

    @functools.wraps(fn)
    def wrapped(module: Any) -> Any:
        made = fn(module)
        if made is None:
            return PassResult(module, True)
        return PassResult(made, True) if isinstance(made, pt.nn.Module) else made

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def this_before_that_pass_constraint(this: Any, that: Any) -> Constraint:
    """Return a condition on the order of passes: one comes before another.

    Parameters
    ----------
    this, that : callable
        The first and the second.

    Returns
    -------
    callable
        Takes two passes and says whether they may come in this order.

    Examples
    --------
    >>> from pytensorlib.fx.passes.infra.pass_manager import this_before_that_pass_constraint
    >>> this_before_that_pass_constraint(min, max)(max, min)
    False
    """
    return lambda a, b: not (a == that and b == this)


def _topological_sort_passes(passes: list[Any], constraints: list[Constraint]) -> list[Any]:
    """Return passes in an order that conditions allow, in which they are next to as they were."""
    if not constraints:
        return passes
    before = {
        a: {b for b in passes if a != b and not all(c(a, b) for c in constraints)} for a in passes
    }
    order: list[Any] = []
    ready = [p for p in passes if not before[p]]
    while ready:
        done = ready.pop(0)
        order.append(done)
        for p in passes:
            if done in before[p]:
                before[p].remove(done)
                if not before[p]:
                    ready.append(p)
    if left := [p for p in passes if p not in order]:
        raise RuntimeError(f"Circular dependency detected within the following passes: {left}")
    return order


class PassManager:
    """Runs passes in order, again as long as they change something.

    Parameters
    ----------
    passes : list of callables, optional
        Each takes a module and returns a `PassResult`.
    constraints : list of callables, optional
        Each takes two passes and says whether they may come in this order.
    steps : int, default 1
        How often all run at most.
    run_checks_after_each_pass, suppress_check_failures : bool, default False
        Whether `check` is called after each pass; failures always raise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.infra.pass_base import PassResult
    >>> from pytensorlib.fx.passes.infra.pass_manager import PassManager
    >>> manager = PassManager([lambda m: PassResult(m, m.graph.eliminate_dead_code())])
    >>> manager(torch.fx.symbolic_trace(lambda x: (x + 1, x)[1])).modified
    True
    """

    def __init__(
        self,
        passes: list[Callable[[Any], PassResult]] | None = None,
        constraints: list[Callable[[Any, Any], bool]] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes, self.constraints = list(passes or ()), list(constraints or ())
        self.steps, self._validated = steps or 1, False
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def add_pass(self, _pass: Callable[[Any], PassResult]) -> None:
        """Add a pass at the end.

        Parameters
        ----------
        _pass : callable
            The pass.
        """
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[[Any, Any], bool]) -> None:
        """Add a condition on the order.

        Parameters
        ----------
        constraint : callable
            Takes two passes.
        """
        self.constraints.append(constraint)
        self._validated = False

    def add_checks(self, check: Callable[[Any], None]) -> None:
        """Let a function check the module, where a subclass has no `check` of its own.

        Parameters
        ----------
        check : callable
            Takes a module, and raises.

        Raises
        ------
        TypeError
            It takes something else.
        """
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check  # type: ignore[method-assign, assignment]

    def solve_constraints(self) -> None:
        """Bring the passes into an order that the conditions allow.

        Raises
        ------
        RuntimeError
            There is none.
        """
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def validate_constraints(self) -> None:
        """Raise where passes are in an order that is not allowed.

        Raises
        ------
        RuntimeError
            Two are.
        """
        if self._validated:
            return
        for constraint in self.constraints:
            for i, a in enumerate(self.passes):
                for j, b in enumerate(self.passes[i + 1 :], i + 1):
                    if not constraint(a, b):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {a} before {b} but found "
                            f"{a} at index {i} and {b} at index {j} in pass list."
                        )
        self._validated = True

    def check(self, module: Any) -> None:
        """Check a module between passes; a subclass says how."""

    def __call__(self, module: Any) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        overall = False
        for _ in range(self.steps):
            changed = False
            for i, each in enumerate(self.passes):
                try:
                    result = each(module)
                    if not isinstance(result, PassResult):
                        raise TypeError(f"The result of the pass {each} should be type PassResult.")
                except Exception as e:
                    earlier = [_name(p) for p in self.passes[:i]]
                    raise Exception(  # noqa: TRY002  (the class that PyTorch raises)
                        f"An error occurred when running the '{_name(each)}' pass after the "
                        f"following passes: {earlier}: {e}"
                    ) from e
                module = result.graph_module
                changed = changed or result.modified
                module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            overall = overall or changed
            if not changed:
                break
        return PassResult(module, overall)


def _name(each: Any) -> str:
    return each.__name__ if inspect.isfunction(each) else type(each).__name__
