"""Metadata that nodes get while a program is traced: where in the program they come from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._absent.modules import tell_missing
from .._absent.table import EAGER

__all__ = [
    "annotate",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]

_current: dict[str, Any] = {}
_preserve = False


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Let notes on nodes pass to nodes that are made of them, for a ``with`` block."""
    global _preserve, _current
    before, kept = _preserve, _current
    _preserve, _current = enable, dict(_current)
    try:
        yield
    finally:
        _preserve, _current = before, kept


def has_preserved_node_meta() -> bool:
    """Return whether notes pass on."""
    return _preserve


def set_stack_trace(stack: list[str]) -> None:
    """Let new nodes come from a place in the program."""
    if _preserve and stack:
        _current["stack_trace"] = "".join(stack)


@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Let new nodes have notes of the program's own, for a ``with`` block."""
    before = _current.get("custom", {})
    _current["custom"] = {**before, **annotation_dict}
    try:
        yield
    finally:
        if before:
            _current["custom"] = before
        else:
            del _current["custom"]


@contextlib.contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """Let new nodes have the notes of a node, for a ``with`` block."""
    global _current
    before = _current
    if _preserve and node.meta:
        _current = dict(node.meta)
    try:
        yield
    finally:
        _current = before


def get_current_meta() -> dict[str, Any]:
    """Return the notes that new nodes get."""
    return _current


def format_stack() -> list[str]:
    """Return the stack that new nodes come from."""
    if _preserve:
        return [_current.get("stack_trace", "")]
    import traceback

    return traceback.format_list(traceback.extract_stack()[:-1])


tell_missing(globals(), EAGER)
