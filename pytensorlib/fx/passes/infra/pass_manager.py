"""Passes one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .pass_base import PassResult

__all__ = ["PassManager"]


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
        self.steps = steps or 1
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

    def add_constraint(self, constraint: Callable[[Any, Any], bool]) -> None:
        """Add a condition on the order.

        Parameters
        ----------
        constraint : callable
            Takes two passes.
        """
        self.constraints.append(constraint)

    def validate_constraints(self) -> None:
        """Raise where passes are in an order that is not allowed.

        Raises
        ------
        RuntimeError
            Two are.
        """
        for constraint in self.constraints:
            for i, a in enumerate(self.passes):
                for j, b in enumerate(self.passes[i + 1 :], i + 1):
                    if not constraint(a, b):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {a} before {b} but found "
                            f"{a} at index {i} and {b} at index{j} in pass list."
                        )

    def check(self, module: Any) -> None:
        """Check a module between passes; a subclass says how."""

    def __call__(self, module: Any) -> PassResult:
        self.validate_constraints()
        self.check(module)
        overall = False
        for _ in range(self.steps):
            changed = False
            for each in self.passes:
                result = each(module)
                if not isinstance(result, PassResult):
                    raise TypeError(f"The result of the pass {each} should be type PassResult.")
                module = result.graph_module
                changed = changed or result.modified
                module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            overall = overall or changed
            if not changed:
                break
        return PassResult(module, overall)
