"""Metadata that nodes get while a program is traced: where in the program they come from."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from .._absent.modules import tell_missing
from .._absent.table import EAGER

__all__ = [
    "NodeSource",
    "NodeSourceAction",
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]


class NodeSourceAction(Enum):
    """What a pass did to get a node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """Where a node comes from: the node before, and the pass.

    Parameters
    ----------
    node : Node, optional
        The node before; its own sources are kept.
    pass_name : str
        What the pass is called.
    action : NodeSourceAction or list of NodeSourceAction, optional
        What it did.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.traceback import NodeSource, NodeSourceAction
    >>> NodeSource(None, "fuse", NodeSourceAction.CREATE).to_dict()["action"]
    'create'
    """

    def __init__(self, node: Any, pass_name: str = "", action: Any = None) -> None:
        self.pass_name = pass_name
        actions = action if isinstance(action, list) else [] if action is None else [action]
        self.action: list[NodeSourceAction] = actions
        self.name = node.name if node is not None else ""
        self.target = str(node.target) if node is not None else ""
        self.graph_id = id(node.graph) if node is not None else -1
        before = node.meta.get("from_node", []) if node is not None else []
        self.from_node: list[NodeSource] = list(before)

    def __str__(self) -> str:
        return self.print_readable()

    __repr__ = __str__

    def print_readable(self, indent: int = 0) -> str:
        """Return it and what it comes from, line by line.

        Parameters
        ----------
        indent : int, default 0
            How far the lines are moved, in fours.
        """
        line = (
            f"{' ' * 4 * indent}(name={self.name}, pass_name={self.pass_name}, "
            f"action={self._said()}, graph_id={self.graph_id})\n"
        )
        return line + "".join(s.print_readable(indent + 1) for s in self.from_node)

    def _said(self) -> str:
        return "+".join(a.name.lower() for a in self.action)

    def to_dict(self) -> dict[str, Any]:
        """Return it as a dictionary."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._said(),
            "from_node": [s.to_dict() for s in self.from_node],
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.target, self.graph_id, self.pass_name, self._said()))


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


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator: new nodes of a function's calls have notes of the program's own."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated

    return decorate


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
