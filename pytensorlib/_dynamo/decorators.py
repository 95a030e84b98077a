"""Decorators and marks for PyTorch's compiler, which have no effect here."""

from __future__ import annotations

from . import (
    allow_in_graph,
    assume_constant_result,
    disable,
    disallow_in_graph,
    forbid_in_graph,
    graph_break,
    mark_dynamic,
    mark_static,
    mark_static_address,
    mark_unbacked,
    maybe_mark_dynamic,
    nonstrict_trace,
    run,
)

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "disallow_in_graph",
    "forbid_in_graph",
    "graph_break",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "run",
]
