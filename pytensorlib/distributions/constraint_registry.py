"""Transforms from unconstrained numbers to those that a constraint allows.

`biject_to` gives a bijection with its volume change, as Hamiltonian Monte Carlo needs it;
`transform_to` one that may be simpler, for optimizers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms
from .utils import Number

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """What transform leads to what constraint.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import biject_to, constraints
    >>> biject_to(constraints.simplex)
    StickBreakingTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Remember what makes transforms for a class of constraints; also a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not (isinstance(constraint, type) and issubclass(constraint, constraints.Constraint)):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint}"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Return a transform to what `constraint` allows."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _to_interval(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if isinstance(low, Number) and isinstance(high, Number) and low == 0 and high == 1:
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


def _beyond(bound: Any, sign: int) -> transforms.Transform:
    steps = [transforms.ExpTransform(), transforms.AffineTransform(bound, sign)]
    return transforms.ComposeTransform(steps)


def _register_both(registry: ConstraintRegistry) -> None:
    """Register what is the same for both, or the same but for the transforms inside."""
    for constraint, factory in [
        (constraints.real, lambda c: transforms.identity_transform),
        (constraints.greater_than, lambda c: _beyond(c.lower_bound, 1)),
        (constraints.greater_than_eq, lambda c: _beyond(c.lower_bound, 1)),
        (constraints.less_than, lambda c: _beyond(c.upper_bound, -1)),
        (constraints.interval, _to_interval),
        (constraints.half_open_interval, _to_interval),
        (constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform()),
        (
            constraints.independent,
            lambda c: transforms.IndependentTransform(
                registry(c.base_constraint), c.reinterpreted_batch_ndims
            ),
        ),
        (
            constraints.cat,
            lambda c: transforms.CatTransform([registry(p) for p in c.cseq], c.dim, c.lengths),
        ),
        (
            constraints.stack,
            lambda c: transforms.StackTransform([registry(p) for p in c.cseq], c.dim),
        ),
    ]:
        registry.register(constraint, factory)


_register_both(biject_to)
_register_both(transform_to)
biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
for _matrices in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_matrices, lambda c: transforms.PositiveDefiniteTransform())
