"""Distributions of transformed samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of samples of another one after a sequence of transforms.

    Parameters
    ----------
    base_distribution : Distribution
        What the samples come from.
    transforms : Transform or list of Transform
        What is done to them, in this order.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Normal, TransformedDistribution
    >>> from pytensorlib.distributions.transforms import ExpTransform
    >>> d = TransformedDistribution(Normal(0.0, 1.0), [ExpTransform()])
    >>> d.log_prob(torch.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    base_dist: Any
    transforms: list[Transform]
    _parts: tuple[str, ...] = ("base_dist",)

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        steps = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(steps, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        if any(not isinstance(t, Transform) for t in steps):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = steps
        whole = ComposeTransform(steps)
        into, out = whole.domain.event_dim, whole.codomain.event_dim
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        if len(base_shape) < into:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {into}, "
                f"but got {base_shape}."
            )
        # Parameters of the transforms may broadcast the base.
        shape = whole.forward_shape(base_shape)
        spread = whole.inverse_shape(shape)
        if base_shape != spread:
            base_distribution = base_distribution.expand(spread[: len(spread) - base_event_dim])
        if into > base_event_dim:
            base_distribution = Independent(base_distribution, into - base_event_dim)
        self.base_dist = base_distribution
        event_dim = max(out, base_event_dim + out - into)
        if len(shape) < event_dim:
            raise AssertionError(
                f"forward_shape length {len(shape)} must be >= event_dim {event_dim}"
            )
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _within(self, part: Any, batch: pt.Size) -> pt.Size:
        if part is not self.base_dist:
            return super()._within(part, batch)
        shape: Any = batch + self._event_shape
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        return shape[: len(shape) - len(part.event_shape)]

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self) -> bool:
        """Whether samples carry gradients."""
        return self.base_dist.has_rsample

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        with pt.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        event_dim = len(self.event_shape)
        log_prob: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            into = transform.domain.event_dim
            event_dim += into - transform.codomain.event_dim
            before = transform.inv(y)
            volume = transform.log_abs_det_jacobian(before, y)
            log_prob = log_prob - _sum_rightmost(volume, event_dim - into)
            y = before
        base = self.base_dist.log_prob(y)
        return log_prob + _sum_rightmost(base, event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """Return 1 - value where the transforms turn the order around."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))
