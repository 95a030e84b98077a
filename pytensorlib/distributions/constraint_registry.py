"""Transforms from unconstrained numbers to those that a constraint allows.

`biject_to` gives a bijection with its volume change, as Hamiltonian Monte Carlo needs it;
`transform_to` one that may be simpler, for optimizers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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


def _real(constraint: Any) -> transforms.Transform:
    return transforms.identity_transform


def _beyond(bound: Any, sign: int) -> transforms.Transform:
    steps = [transforms.ExpTransform(), transforms.AffineTransform(bound, sign)]
    return transforms.ComposeTransform(steps)


def _above(constraint: Any) -> transforms.Transform:
    return _beyond(constraint.lower_bound, 1)


def _below(constraint: Any) -> transforms.Transform:
    return _beyond(constraint.upper_bound, -1)


def _between(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if isinstance(low, Number) and isinstance(high, Number) and low == 0 and high == 1:
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


def _plain(kind: type, constraint: Any) -> transforms.Transform:
    return kind()


def _independent(registry: ConstraintRegistry, constraint: Any) -> transforms.Transform:
    base = registry(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


def _cat(registry: ConstraintRegistry, constraint: Any) -> transforms.Transform:
    parts = [registry(c) for c in constraint.cseq]
    return transforms.CatTransform(parts, constraint.dim, constraint.lengths)


def _stack(registry: ConstraintRegistry, constraint: Any) -> transforms.Transform:
    return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, _real)
    _registry.register(constraints.greater_than, _above)
    _registry.register(constraints.greater_than_eq, _above)
    _registry.register(constraints.less_than, _below)
    _registry.register(constraints.interval, _between)
    _registry.register(constraints.half_open_interval, _between)
    _correlated = partial(_plain, transforms.CorrCholeskyTransform)
    _registry.register(constraints.corr_cholesky, _correlated)
    _registry.register(constraints.independent, partial(_independent, _registry))
    _registry.register(constraints.cat, partial(_cat, _registry))
    _registry.register(constraints.stack, partial(_stack, _registry))
biject_to.register(constraints.simplex, partial(_plain, transforms.StickBreakingTransform))
transform_to.register(constraints.simplex, partial(_plain, transforms.SoftmaxTransform))
_triangular = partial(_plain, transforms.LowerCholeskyTransform)
transform_to.register(constraints.lower_cholesky, _triangular)
_definite = partial(_plain, transforms.PositiveDefiniteTransform)
transform_to.register(constraints.positive_definite, _definite)
transform_to.register(constraints.positive_semidefinite, _definite)
