"""Replaces what a program does in one way by another."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytensorlib as pt

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """Where a pattern was found."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """Where a pattern was found, and what came in its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _take_over(gm: GraphModule, replacement: Any) -> None:
    """Give a module what a replacement refers to."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        target = str(node.target)
        found: Any = gm
        for atom in target.split("."):
            found = getattr(found, atom, None)
        if found is not None:
            continue
        attribute: Any = replacement
        for atom in target.split("."):
            attribute = getattr(attribute, atom, None)
        if attribute is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target '
                f"{node.target}, but the referenced attribute does not exist in the replacement "
                "GraphModule"
            )
        attribute = copy.deepcopy(attribute)
        if isinstance(attribute, pt.nn.Module):
            gm.add_submodule(target, attribute)
        else:
            from .graph_module import _assign_attr

            _assign_attr(attribute, gm, target)


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Any
) -> list[Match]:
    """Replace, wherever a program does what `pattern` does, that by `replacement`.

    Parameters
    ----------
    gm : GraphModule
        Is changed.
    pattern : callable or GraphModule
        What is looked for; its arguments stand for anything.
    replacement : callable or GraphModule
        What comes in its place, with the same arguments.

    Returns
    -------
    list of Match
        Where it was found.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.neg(torch.abs(x)))
    >>> found = torch.fx.replace_pattern(
    ...     traced, lambda x: torch.neg(torch.abs(x)), lambda x: torch.relu(x)
    ... )
    >>> print(traced.code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        return relu
    """
    found = _replace(gm, pattern, replacement)
    return [Match(anchor=m.anchor, nodes_map=m.nodes_map) for m in found]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """Replace what a pattern does where filters agree.

    Parameters
    ----------
    gm : GraphModule
        Is changed.
    pattern : callable, Graph or GraphModule
        What is looked for.
    replacement : callable, Graph or GraphModule, optional
        What comes in its place.
    match_filters : list of callables, optional
        Each gets a match, the graph and the pattern's graph, and says whether it counts.
    ignore_literals : bool, default False
        Whether numbers may differ.
    replacement_callback : callable, optional
        Makes the graph that comes in the place of a match.
    node_name_match : str, default ""
        A part of the name of the nodes that are looked at.

    Returns
    -------
    list of ReplacedPatterns
        Where it was found, and what came there.
    """
    return _replace(
        gm,
        pattern,
        replacement,
        match_filters,
        ignore_literals,
        replacement_callback,
        node_name_match,
    )


def _graph_of(program: Any) -> Graph:
    if isinstance(program, GraphModule):
        return program.graph
    return program if isinstance(program, Graph) else symbolic_trace(program).graph


def _replace(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: Any = None,
    ignore_literals: bool = False,
    replacement_callback: Any = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    original = gm.graph
    pattern_graph = _graph_of(pattern)
    matcher = SubgraphMatcher(
        pattern_graph, remove_overlapping_matches=True, ignore_literals=ignore_literals
    )
    matches = [
        m
        for m in matcher.match(original, node_name_match)
        if all(f(m, original, pattern_graph) for f in match_filters or ())
    ]
    common = None
    if isinstance(replacement, GraphModule):
        common = replacement.graph
    elif isinstance(replacement, Graph):
        common = replacement
    elif callable(replacement):
        common = symbolic_trace(replacement).graph
    elif replacement_callback is None:
        raise AssertionError("Must provide either a replacement or a replacement_callback")
    done: list[ReplacedPatterns] = []
    changed: dict[Node, Node] = {}
    for match in matches:
        graph = (
            common if common is not None else replacement_callback(match, original, pattern_graph)
        )
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        if len(match.placeholder_nodes) != len(placeholders):
            raise AssertionError(
                f"the pattern has {len(match.placeholder_nodes)} arguments that are used, the "
                f"replacement {len(placeholders)}"
            )
        values: dict[Node, Node] = {}
        for rn, gn in zip(placeholders, match.placeholder_nodes, strict=True):
            if isinstance(gn, Node):
                values[rn] = changed.get(gn, gn)
            else:
                values[rn] = gn
        users = {user for n in match.returning_nodes for user in n.users}
        place = next((n for n in original.nodes if n in users), None)
        if place is None:  # what is replaced is not used
            place = max(match.returning_nodes).next
        before = set(original.nodes)
        with original.inserting_before(place):
            copied = original.graph_copy(graph, values)
        copies = (copied,) if isinstance(copied, Node) else tuple(copied)
        made = [n for n in original.nodes if n not in before]
        if len(match.returning_nodes) != len(copies):
            raise AssertionError(
                "the pattern and its replacement return different numbers of values"
            )
        for gn, new in zip(match.returning_nodes, copies, strict=True):
            gn.replace_all_uses_with(new)
            changed[gn] = new
        for node in reversed(pattern_graph.nodes):
            if node.op not in ("placeholder", "output"):
                gone = match.nodes_map[node]
                if not gone.users:
                    original.erase_node(gone)
        done.append(
            ReplacedPatterns(anchor=match.anchors[0], nodes_map=match.nodes_map, replacements=made)
        )
    gm.recompile()
    if isinstance(replacement, pt.nn.Module):
        _take_over(gm, replacement)
    return done
