"""Decorators of functions that an exporter to ONNX would call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._absent.modules import fill
from .._absent.table import NO_ONNX

__all__ = ["parse_args", "quantized_args"]

T = TypeVar("T")

fill(
    globals(),
    NO_ONNX,
    "_get_tensor_sizes _maybe_get_const _is_none _unimplemented _onnx_unsupported",
)


def parse_args(*arg_descriptors: str) -> Callable[[T], T]:
    """Return a decorator that leaves its function as it is: nothing calls it here."""
    return lambda fn: fn


def quantized_args(*arg_q_descriptors: bool, **kwargs: Any) -> Callable[[T], T]:
    """Return a decorator that leaves its function as it is: nothing calls it here."""
    return lambda fn: fn
