"""Sets of numbers that parameters and samples must lie in."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


def _need(constraint: Any, what: str = "base_constraint") -> None:
    if not isinstance(constraint, Constraint):
        raise AssertionError(f"{what} must be a Constraint, got {type(constraint).__name__}")


class Constraint:
    """A set of tensors.

    Attributes
    ----------
    is_discrete : bool
        Whether the set is countable.
    event_dim : int
        How many of the last dimensions belong together.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import constraints
    >>> constraints.positive.check(torch.tensor([1.0, -1.0]))
    tensor([ True, False])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """Return where `value` lies in the set, without the dimensions that belong together."""
        raise NotImplementedError

    def __repr__(self) -> str:
        bounds = [k for k in ("lower_bound", "upper_bound") if k in self.__dict__]
        shown = ", ".join(f"{k}={self.__dict__[k]}" for k in bounds)
        return f"{type(self).__name__[1:]}({shown})"


class _Dependent(Constraint):
    """Depends on other parameters."""

    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


dependent = _Dependent()


def is_dependent(constraint: Any) -> bool:
    """Return whether a constraint depends on other parameters, so that it cannot be checked.

    Parameters
    ----------
    constraint : Constraint
        Any.

    Returns
    -------
    bool
        True for `dependent` and what `dependent_property` makes.

    Examples
    --------
    >>> from pytensorlib.distributions import constraints
    >>> constraints.is_dependent(constraints.dependent), constraints.is_dependent(constraints.real)
    (True, False)
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that the class shows as a dependent constraint, an instance as a known one.

    Parameters
    ----------
    fn : callable, optional
        The getter.
    is_discrete : bool, optional
        What is known of every instance's.
    event_dim : int, optional
        Likewise.

    Examples
    --------
    >>> from pytensorlib.distributions import Uniform, constraints
    >>> constraints.is_dependent(Uniform.support), Uniform(0.0, 2.0).support
    (True, Interval(lower_bound=0.0, upper_bound=2.0))
    """

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


dependent_property = _DependentProperty


class _IndependentConstraint(Constraint):
    """Another constraint for all elements of the last dimensions at once.

    Parameters
    ----------
    base_constraint : Constraint
        What holds for each.
    reinterpreted_batch_ndims : int
        How many more dimensions belong together.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import constraints
    >>> rows = constraints.independent(constraints.positive, 1)
    >>> rows.check(torch.tensor([[1.0, 2.0], [0.0, 3.0]]))
    tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        _need(base_constraint)
        n = reinterpreted_batch_ndims
        if not isinstance(n, int):
            raise AssertionError(
                f"reinterpreted_batch_ndims must be an int, got {type(n).__name__}"
            )
        if n < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {n}")
        super().__init__()
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, n

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return _all_of(result, result.dim() - self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        name = type(self).__name__[1:]
        return f"{name}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


independent = _IndependentConstraint


def _all_of(valid: Tensor, keep: int) -> Tensor:
    """Return whether all is true behind the first `keep` dimensions."""
    return valid.reshape(valid.shape[:keep] + (-1,)).all(-1)


class MixtureSameFamilyConstraint(Constraint):
    """The support of a `MixtureSameFamily`: that of its components, which have one dimension more.

    Parameters
    ----------
    base_constraint : Constraint
        The support of the components.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import constraints
    >>> c = constraints.MixtureSameFamilyConstraint(constraints.positive)
    >>> c.check(torch.tensor([1.0, -1.0]))
    tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint) -> None:
        _need(base_constraint)
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return _all_of(result, value.dim() - self.event_dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


boolean = _Boolean()


class _OneHot(Constraint):
    """Vectors of zeros and a single one."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return _Boolean().check(value).all(-1) & value.sum(-1).eq(1)


one_hot = _OneHot()


class _Bounded(Constraint):
    """Numbers on the right side of one bound or of two, and whole ones where it is discrete."""

    lower_bound: Any
    upper_bound: Any
    # How a number and each bound compare.
    _low: Any = None
    _high: Any = None

    def check(self, value: Any) -> Any:
        valid: Any = True
        if self._low is not None:
            valid = self._low(value, self.lower_bound)
        if self._high is not None:
            below = self._high(value, self.upper_bound)
            valid = below if valid is True else valid & below
        return valid & (value % 1 == 0) if self.is_discrete else valid


class _Above(_Bounded):
    """A half line with its lower end.

    Parameters
    ----------
    lower_bound : float or Tensor
        The end.

    Examples
    --------
    >>> from pytensorlib.distributions import constraints
    >>> constraints.greater_than(2.0)
    GreaterThan(lower_bound=2.0)
    """

    _low = operator.ge

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound
        super().__init__()


class _Below(_Bounded):
    """A half line with its upper end.

    Parameters
    ----------
    upper_bound : float or Tensor
        The end.

    Examples
    --------
    >>> from pytensorlib.distributions import constraints
    >>> constraints.less_than(2.0)
    LessThan(upper_bound=2.0)
    """

    _high = operator.le

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        super().__init__()


class _Between(_Bounded):
    """A range with both its ends.

    Parameters
    ----------
    lower_bound, upper_bound : float or Tensor
        The ends.

    Examples
    --------
    >>> from pytensorlib.distributions import constraints
    >>> constraints.interval(0.0, 2.0)
    Interval(lower_bound=0.0, upper_bound=2.0)
    """

    _low, _high = operator.ge, operator.le

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        super().__init__()


class _IntegerInterval(_Between):
    __doc__ = _Between.__doc__
    is_discrete = True


integer_interval = _IntegerInterval


class _IntegerLessThan(_Below):
    __doc__ = _Below.__doc__
    is_discrete = True


class _IntegerGreaterThan(_Above):
    __doc__ = _Above.__doc__
    is_discrete = True


nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)


class _GreaterThan(_Above):
    __doc__ = _Above.__doc__
    _low = operator.gt


positive = _GreaterThan(0.0)
greater_than = _GreaterThan


class _GreaterThanEq(_Above):
    __doc__ = _Above.__doc__


nonnegative = _GreaterThanEq(0.0)
greater_than_eq = _GreaterThanEq


class _LessThan(_Below):
    __doc__ = _Below.__doc__
    _high = operator.lt


less_than = _LessThan


class _Interval(_Between):
    __doc__ = _Between.__doc__


unit_interval = _Interval(0.0, 1.0)
interval = _Interval


class _HalfOpenInterval(_Between):
    __doc__ = _Between.__doc__
    _high = operator.lt


half_open_interval = _HalfOpenInterval


class _Real(Constraint):
    """All numbers, infinities too, but not NaN."""

    def check(self, value: Any) -> Any:
        return value == value  # noqa: PLR0124


real = _Real()
real_vector = independent(real, 1)


class _Simplex(Constraint):
    """Vectors of numbers from 0 on whose sum is 1."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


simplex = _Simplex()


class _Multinomial(Constraint):
    """Vectors of counts whose sum is at most a bound.

    Parameters
    ----------
    upper_bound : int or Tensor
        The bound.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import constraints
    >>> constraints.multinomial(3).check(torch.tensor([[1, 2], [2, 2]]))
    tensor([ True, False])
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return (value >= 0).all(dim=-1) & (value.sum(dim=-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return "Multinomial()"


multinomial = _Multinomial


class _LowerTriangular(Constraint):
    """Square matrices that are zero above the diagonal."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        return _all_of(value.tril() == value, value.dim() - 2)


lower_triangular = _LowerTriangular()


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Any) -> Any:
        positive = value.diagonal(dim1=-2, dim2=-1) > 0
        return super().check(value) & positive.all(-1)


lower_cholesky = _LowerCholesky()


class _CorrCholesky(_LowerCholesky):
    """Lower triangular matrices with a positive diagonal and rows of length 1."""

    def check(self, value: Any) -> Any:
        # Ten times what rounding may move the length of a row.
        near = pt.finfo(value.dtype).eps * value.size(-1) * 10
        length = pt.linalg.norm(value.detach(), dim=-1)
        return super().check(value) & (length - 1.0).abs().le(near).all(dim=-1)


corr_cholesky = _CorrCholesky()


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        square = value.shape[-2] == value.shape[-1]
        return pt.full(value.shape[:-2], square, dtype=pt.bool, device=value.device)


square = _Square()


class _Symmetric(_Square):
    """Symmetric matrices."""

    def check(self, value: Any) -> Any:
        square = super().check(value)
        if not square.all():
            return square
        return pt.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


symmetric = _Symmetric()


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return pt.linalg.eigvalsh(value).ge(0).all(-1)


positive_semidefinite = _PositiveSemidefinite()


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices with positive eigenvalues."""

    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return pt.linalg.cholesky_ex(value).info.eq(0)


positive_definite = _PositiveDefinite()


class _Sequence(Constraint):
    """Constraints for parts of a tensor along one dimension.

    Parameters
    ----------
    cseq : sequence of Constraint
        One for each part.
    dim : int
        The dimension.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import constraints
    >>> c = constraints.stack([constraints.positive, constraints.real])
    >>> c.check(torch.tensor([-1.0, -1.0]))
    tensor([False,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        super().__init__()
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)

    def _need_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for value with {value.dim()} dimensions"
            )


class _Cat(_Sequence):
    """Constraints for parts of a tensor, as `torch.cat` joins them.

    Parameters
    ----------
    cseq : sequence of Constraint
        One for each part.
    dim : int
        The dimension along which they lie.
    lengths : sequence of int, optional
        How long each is, 1 by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import constraints
    >>> c = constraints.cat([constraints.positive, constraints.real], lengths=[2, 1])
    >>> c.check(torch.tensor([1.0, -1.0, -1.0]))
    tensor([ True, False,  True])
    """

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )

    def check(self, value: Any) -> Any:
        self._need_dim(value)
        parts = value.narrow(self.dim, 0, sum(self.lengths)).split(self.lengths, self.dim)
        return pt.cat([c.check(v) for c, v in zip(self.cseq, parts)], self.dim)


cat = _Cat


class _Stack(_Sequence):
    __doc__ = _Sequence.__doc__

    @property
    def event_dim(self) -> int:
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        self._need_dim(value)
        parts = value.unbind(self.dim)
        return pt.stack([c.check(v) for c, v in zip(self.cseq, parts)], self.dim)


stack = _Stack
