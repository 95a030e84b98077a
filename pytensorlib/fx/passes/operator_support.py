"""Which nodes of a program a backend computes."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

from .._names import qualified as _get_qualified_name
from ..node import Node
from .shape_prop import TensorMetadata

__all__ = [
    "OpSupports",
    "OperatorSupport",
    "OperatorSupportBase",
    "any_chain",
    "chain",
    "create_op_support",
]

Modules = Mapping[str, Any]


class OperatorSupportBase(abc.ABC):
    """Says of each node whether it is supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        """Return whether a node is supported."""


class OperatorSupport(OperatorSupportBase):
    """Supports what a table names, for the types of tensors that it names.

    Parameters
    ----------
    support_dict : dict, optional
        By the name of a function, a method or a module's class, None or a pair: the types that each
        argument by position may have, and those by name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.operator_support import OperatorSupport
    >>> support = OperatorSupport({"torch.relu": None})
    >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x).sum()).graph
    >>> [n.name for n in graph.nodes if support.is_node_supported({}, n)]
    ['x', 'relu', 'output']
    """

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = dict(support_dict or {})

    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        """Return whether a node is in the table, with arguments of its types."""
        if node.op not in ("call_function", "call_method", "call_module"):
            return True
        target = _said(submodules, node)
        if target not in self._support_dict:
            return False
        types = self._support_dict[target]
        if types is None:
            return True
        by_place, by_name = types
        pairs = [(a, allowed) for a, allowed in zip(node.args, by_place, strict=False)]
        pairs += [(node.kwargs.get(k), allowed) for k, allowed in by_name.items()]
        return all(_type_of(a) in allowed for a, allowed in pairs if isinstance(a, Node))


def _said(submodules: Modules, node: Node) -> str:
    """Return how a table names what a node calls."""
    target: Any = node.target
    if node.op == "call_module":
        kind = type(submodules[target])
        return f"{kind.__module__}.{kind.__name__}".replace("pytensorlib.", "torch.", 1)
    return target if node.op == "call_method" else _get_qualified_name(target)


def _type_of(node: Node) -> Any:
    found = node.meta.get("tensor_meta")
    return found.dtype if isinstance(found, TensorMetadata) else None


class _Function(OperatorSupportBase):
    def __init__(self, function: Callable[[Modules, Node], bool]) -> None:
        self.function = function

    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        return self.function(submodules, node)


def create_op_support(
    is_node_supported: Callable[[Modules, Node], bool],
) -> OperatorSupportBase:
    """Return what a function of submodules and a node says."""
    return _Function(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return what supports a node that all of them support."""
    return _Function(lambda m, n: all(s.is_node_supported(m, n) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return what supports a node that any of them supports."""
    return _Function(lambda m, n: any(s.is_node_supported(m, n) for s in op_support))


class OpSupports:
    """Common kinds of support."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """Return what declines nodes with an input of a type."""

        def fits(submodules: Modules, node: Node) -> bool:
            return all(_type_of(a) is not dtype for a in node.all_input_nodes)

        return _Function(fits)

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Return what declines nodes by their names."""
        return _Function(lambda submodules, node: node.name not in disallow_set)
