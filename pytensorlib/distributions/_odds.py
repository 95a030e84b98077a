"""Parameters given as probabilities or as logits."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, same_as


def need_one(probs: Any, logits: Any) -> None:
    """Raise unless exactly one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class Wrapped:
    """Parameters that are those of a categorical distribution within."""

    _categorical: Any
    _parts: tuple[str, ...] = ("_categorical",)
    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    probs = same_as("_categorical.probs", "The probabilities.")
    logits = same_as("_categorical.logits", "The logarithms of the probabilities.")
    param_shape: Any = same_as("_categorical.param_shape", "The shape of the parameters.")
    _param = same_as("_categorical._param")
    _new: Any = same_as("_categorical._new")

    def _wrap(self: Any, categorical: Any, validate_args: bool | None) -> None:
        self._categorical = categorical
        shape = categorical.param_shape
        Distribution.__init__(self, shape[:-1], shape[-1:], validate_args=validate_args)


class Relaxed:
    """Parameters of a distribution whose samples are transformed."""

    temperature = same_as("base_dist.temperature", "How far the numbers are from 0 and 1.")
    probs = same_as("base_dist.probs", "The probabilities.")
    logits = same_as("base_dist.logits", "Their log-odds, or their logarithms where they sum to 1.")


class Odds:
    """A probability for each of the batch; the form that was not given is computed when needed."""

    _param: Tensor
    _parts: tuple[str, ...] = ("_param",)
    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}

    def _take(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Set what was given and return `others` broadcast with it, of its type."""
        need_one(probs, logits)
        *rest, given = broadcast_all(*others, logits if probs is None else probs)
        setattr(self, "logits" if probs is None else "probs", given)
        self._param = given
        return tuple(x.type_as(given) for x in rest)

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> pt.Size:
        """The shape of the parameters."""
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)
