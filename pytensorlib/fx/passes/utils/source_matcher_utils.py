"""The nodes that a layer or a function became."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...graph import Graph
from ...node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """Nodes of one source, what goes in and out of them, and the attributes that they use."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def get_source_partitions(
    graph: Graph,
    wanted_sources: list[Any],
    filter_fn: Callable[[Node], bool] | None = None,
) -> dict[Any, list[SourcePartition]]:
    """Return the nodes of layers and functions, those of each call together.

    Parameters
    ----------
    graph : Graph
        Of an exported program, whose nodes know from which layer they are; or nodes say it in
        ``meta["source_fn_stack"]``.
    wanted_sources : list
        Classes of layers, and functions.
    filter_fn : callable, optional
        Says of a node whether it counts; a call counts whose nodes all do.

    Returns
    -------
    dict
        Lists of `SourcePartition` by sources.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.utils.source_matcher_utils import get_source_partitions
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    >>> graph = torch.export.export(net, (torch.ones(1, 2),)).graph
    >>> found = get_source_partitions(graph, [torch.nn.Linear])
    >>> [[node.name for node in part.nodes] for part in found[torch.nn.Linear]]
    [['linear'], ['linear_1']]
    """
    found: dict[Any, dict[str, list[Node]]] = {}
    for n in graph.nodes:
        source = _source(n, wanted_sources)
        if source is not None:
            found.setdefault(source[0], {}).setdefault(source[1], []).append(n)
    return {
        source: [
            _partition(nodes, source)
            for nodes in calls.values()
            if filter_fn is None or all(map(filter_fn, nodes))
        ]
        for source, calls in found.items()
    }


def _source(n: Node, wanted: list[Any]) -> tuple[Any, str] | None:
    """Return which source a node is of, and which call of it."""
    stack = n.meta.get("source_fn_stack")
    if stack is not None:
        name, source = stack[-1]
        return (source, name) if source in wanted else None
    modules = n.meta.get("nn_module_stack")
    if n.op != "call_function" or not modules:
        return None
    path, kind = list(modules.values())[-1]
    for source in wanted:
        if isinstance(source, type) and isinstance(kind, str):
            home = source.__module__.replace("pytensorlib", "torch", 1)
            if kind == f"{home}.{source.__qualname__}":
                return source, path
        elif source == kind or (
            isinstance(source, type) and isinstance(kind, type) and issubclass(kind, source)
        ):
            return source, path
    return None


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    given = [a for n in nodes for a in n.args if isinstance(a, Node) and a not in inside]
    return SourcePartition(
        nodes,
        source,
        list(dict.fromkeys(a for a in given if a.op != "get_attr")),
        [n for n in nodes if n.op != "get_attr" and any(u not in inside for u in n.users)],
        [n for n in nodes if n.op == "get_attr"],
    )


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Return whether a node of one group uses a node of another.

    Parameters
    ----------
    subgraph1 : SourcePartition
        What is used.
    subgraph2 : SourcePartition
        What uses it.
    """
    return any(u in subgraph2.nodes for n in subgraph1.nodes for u in n.users)
