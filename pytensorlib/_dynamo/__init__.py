"""Names of PyTorch's compiler that libraries touch; programs run eagerly here."""

from __future__ import annotations

from typing import Any

from .._absent.modules import fill, tell_missing
from .._absent.table import EAGER
from ..compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    list_backends,
    nested_compile_region,
    reset,
)
from . import config, utils
from .eval_frame import OptimizedModule, is_dynamo_supported

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "run",
    "utils",
]

fill(globals(), EAGER, "explain export optimize_assert register_backend lookup_backend")
disallow_in_graph = forbid_in_graph = nonstrict_trace = nested_compile_region


def reset_code_caches() -> None:
    """Forget nothing: functions that were recorded are forgotten by `reset`."""


def is_inductor_supported() -> bool:
    """Return False: nothing is compiled by it."""
    return False


def is_compiling() -> bool:
    """Return False: nothing is compiled."""
    return False


def graph_break(msg: str = "") -> None:
    """Do nothing: there is no graph to break."""


def mark_dynamic(t: Any, index: Any, **kwargs: Any) -> None:
    """Do nothing: shapes are never assumed to stay as they are."""


def mark_static(t: Any, index: Any = None) -> None:
    """Do nothing: shapes are never assumed to stay as they are."""


maybe_mark_dynamic = mark_unbacked = mark_dynamic


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Do nothing: no recorded program holds an address."""


def optimize(*args: Any, **kwargs: Any) -> Any:
    """Return a decorator that leaves its function as it is."""
    return lambda fn: fn


def run(fn: Any = None) -> Any:
    """Return the function as it is: it runs eagerly."""
    return fn


tell_missing(globals(), EAGER)
