"""The base class of distributions."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .utils import _broadcastable, broadcast_all, lazy_property

__all__ = ["Distribution"]
_SCALAR = pt.Size()
_HERE = __name__.rpartition(".")[0] + "."


@functools.lru_cache(maxsize=256)
def _owner(kind: type) -> tuple[Any, frozenset[str]]:
    """Return the class of this package that `kind` is of, and what `expand` broadcasts of it."""
    ours = (c for c in kind.__mro__ if c.__module__.startswith(_HERE))
    owner: Any = next(c for c in ours if "__init__" in vars(c))
    stated = [vars(c).get("arg_constraints") for c in owner.__mro__]
    names = {name for of_class in stated if isinstance(of_class, dict) for name in of_class}
    return owner, frozenset(names.union(owner._parts))


class Distribution:
    """The base of all distributions.

    Parameters
    ----------
    batch_shape : Size
        The shape of the parameters, one distribution for each element.
    event_shape : Size
        The shape of a single sample of one of them.
    validate_args : bool, optional
        Whether to check parameters and values; without it what `set_default_validate_args` said.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import MultivariateNormal
    >>> d = MultivariateNormal(torch.zeros(4, 2), torch.eye(2))
    >>> d.batch_shape, d.event_shape, d.sample((3,)).shape
    (torch.Size([4]), torch.Size([2]), torch.Size([3, 4, 2]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__
    # What `expand` broadcasts besides the parameters.
    _parts: tuple[str, ...] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check parameters and values where they are not told."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = _SCALAR,
        event_shape: Any = _SCALAR,
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = batch_shape, event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _validate_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            wanted = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with `validate_args=False` "
                "to turn off validation.",
                stacklevel=3,
            )
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # follows from the others
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def _set(self, validate_args: bool | None, **parameters: Any) -> None:
        """Set parameters as tensors of one shape, which is that of the batch."""
        tensors = broadcast_all(*parameters.values())
        self.__dict__.update(zip(parameters, tensors))
        Distribution.__init__(self, tensors[0].size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """Return the same distribution with parameters broadcast to `batch_shape`."""
        kind: Any = type(self)
        owner, wide = _owner(kind)
        if owner.log_prob is Distribution.log_prob:
            raise NotImplementedError  # nothing is known of its parameters
        new = self._get_checked_instance(owner, _instance)
        batch = pt.Size(batch_shape)
        for name, value in vars(self).items():
            if name in wide:
                setattr(new, name, value.expand(self._within(value, batch)))
            elif not isinstance(getattr(owner, name, None), lazy_property):
                vars(new).setdefault(name, value)
        new._batch_shape, new._validate_args = batch, self._validate_args
        return new

    def _within(self, part: Any, batch: pt.Size) -> Any:
        """Return the shape of a parameter or a part where that of the batch is `batch`."""
        shape = part.batch_shape if isinstance(part, Distribution) else part.shape
        return batch + shape[len(self._batch_shape) :]

    @property
    def event_shape(self) -> pt.Size:
        """The shape of a single sample."""
        return self._event_shape

    @property
    def batch_shape(self) -> pt.Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def support(self) -> Any:
        """The set that samples lie in."""
        raise NotImplementedError

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraint of each parameter, by name."""
        raise NotImplementedError

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    @property
    def mode(self) -> Tensor:
        """The value of the highest density or probability."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        """Return samples of shape `sample_shape + batch_shape + event_shape`, without gradients."""
        with pt.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        """Return samples through which gradients reach the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Return `n` samples. Deprecated: `sample((n,))` does the same."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(pt.Size((n,)))

    def entropy(self) -> Tensor:
        """Return the entropy in nats, of shape `batch_shape`."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """Return e to the power of the entropy."""
        return pt.exp(self.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all possible samples along dimension 0, with `expand` for each of the batch."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Return the number whose `cdf` is `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of samples up to `value`."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density or probability at `value`."""
        raise NotImplementedError

    def _extended_shape(self, sample_shape: Sequence[int] = pt.Size()) -> pt.Size:
        return pt.Size(pt.Size(sample_shape) + self._batch_shape + self._event_shape)

    def _filled(self, value: float, like: Tensor) -> Tensor:
        """Return a number for each of the batch."""
        return pt.full(self._extended_shape(), value, dtype=like.dtype, device=like.device)

    def _numbered(self, count: int, like: Tensor, expand: bool) -> Tensor:
        """Return the integers below `count` along dimension 0, before the batch."""
        values = pt.arange(count, dtype=like.dtype, device=like.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values

    def _check(self, value: Tensor) -> None:
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, wanted = value.size(), self._batch_shape + self._event_shape
        if shape[len(shape) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{shape} vs {self._event_shape}."
            )
        if not _broadcastable(shape, wanted):
            raise ValueError(
                f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {wanted}."
            )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=2,
            )
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, "
                f"but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        held = {k: self.__dict__[k] for k in self.arg_constraints if k in self.__dict__}
        shown = [f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in held.items()]
        return f"{type(self).__name__}({', '.join(shown)})"
