"""The categorical distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from ._odds import need_one
from .distribution import Distribution
from .utils import formula, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    """The categorical distribution over 0, 1, ..., K - 1.

    Parameters
    ----------
    probs : Tensor, optional
        Probabilities of shape (..., K), up to a factor.
    logits : Tensor, optional
        Their logarithms, up to a constant; exactly one of the two is given.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Categorical
    >>> Categorical(torch.tensor([1.0, 1.0, 2.0])).probs
    tensor([0.2500, 0.2500, 0.5000])
    """

    has_enumerate_support = True
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _parts = ("_param",)

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        need_one(probs, logits)
        for name, given in (("probs", probs), ("logits", logits)):
            if given is not None and given.dim() < 1:
                raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        elif logits is not None:
            self.logits = self._param = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @property
    def param_shape(self) -> pt.Size:
        """The shape of the parameters."""
        return self._param.size()

    mean = formula(lambda d: d._filled(math.nan, d.probs))
    mode = formula(lambda d: d.probs.argmax(dim=-1))
    variance = formula(lambda d: d._filled(math.nan, d.probs))

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        sample_shape = pt.Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = pt.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        index, logs = pt.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logs.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        # What is impossible adds 0, not 0 times -inf.
        logs = pt.clamp(self.logits, min=pt.finfo(self.logits.dtype).min)
        return -(logs * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = pt.arange(self._num_events, device=self._param.device)
        return self._numbered(self._num_events, values, expand)
