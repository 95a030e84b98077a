"""Finds a small graph inside another."""

from __future__ import annotations

import copy
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytensorlib as pt

from ...graph import Graph
from ...node import Node
from .fuser_utils import validate_partition

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """Where a pattern was found: nodes of the pattern, and of the graph."""

    anchors: list[Node]
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors,
            self.nodes_map.copy(),
            self.placeholder_nodes.copy(),
            self.returning_nodes.copy(),
            self.name_node_map.copy(),
        )


class SubgraphMatcher:
    """Finds where a graph does what a pattern does.

    Parameters
    ----------
    pattern : Graph
        What is looked for.
    match_output : bool, default False
        Whether its output must be the graph's.
    match_placeholder : bool, default False
        Whether its placeholders must be the graph's.
    remove_overlapping_matches : bool, default True
        Whether each node is in one match at most.
    ignore_literals : bool, default False
        Whether numbers and texts may differ.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern, self.match_output = pattern, match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if not node.users and not node.is_impure():
                raise AssertionError("SubgraphMatcher: nodes of a pattern must be used")
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = next(iter(reversed(pattern.nodes)))
        self.pattern_returning_nodes = output.all_input_nodes
        self.pattern_anchors = (
            [output] if match_output else [n for n in output.all_input_nodes if len(n.users) == 1]
        )

    def _attributes_are_equal(self, pn: Node, gn: Node) -> bool:
        def kind(n: Node) -> Any:
            root = n.graph.owning_module
            at = root
            for atom in str(n.target).split("."):
                at = getattr(at, atom)
            return at

        a, b = kind(pn), kind(gn)
        if pn.op == "get_attr" and isinstance(a, pt.Tensor):
            return isinstance(b, pt.Tensor)
        return type(a) is type(b)

    def _nodes_are_equal(self, pn: Node, gn: Node) -> bool:
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if pn.op == gn.op:
            if pn.op in ("placeholder", "output"):
                return True
            if pn.op in ("get_attr", "call_module"):
                return self._attributes_are_equal(pn, gn)
            return pn.target == gn.target
        return False

    def _is_contained(self, nodes_map: dict[Node, Node]) -> bool:
        """Return whether nothing outside uses what is inside a match, but for what it returns."""
        inside = {gn for gn in nodes_map.values() if isinstance(gn, Node)}
        for pn, gn in nodes_map.items():
            if pn.op in ("placeholder", "output", "get_attr"):
                continue
            if pn in self.pattern_returning_nodes:
                continue
            if any(user not in inside for user in gn.users):
                return False
        return True

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if isinstance(pn, Node) and not isinstance(gn, Node):
            if pn.op != "placeholder":
                return False
            if pn in match.nodes_map:
                return bool(match.nodes_map[pn] == gn)
            match.nodes_map[pn] = gn
            return True
        if not isinstance(pn, Node) and isinstance(gn, Node):
            return False
        return self.ignore_literals or (type(gn) is type(pn) and bool(gn == pn))

    def _match_args(self, a: Any, b: Any, match: InternalMatch) -> bool:
        if isinstance(a, Node) and isinstance(b, Node):
            return self._match_nodes(a, b, match)
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return len(a) == len(b) and all(
                self._match_args(x, y, match) for x, y in zip(a, b, strict=True)
            )
        if isinstance(a, dict) and isinstance(b, dict):
            return list(a) == list(b) and all(self._match_args(a[k], b[k], match) for k in a)
        if isinstance(a, slice) and isinstance(b, slice):
            parts = ("start", "stop", "step")
            return all(self._match_args(getattr(a, p), getattr(b, p), match) for p in parts)
        return self._match_literals(a, b, match)

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch) -> bool:
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if gn in match.nodes_map.values() and pn.op != "placeholder":
            return False
        if not self._nodes_are_equal(pn, gn):
            return False
        saved = copy.copy(match)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        from ...operator_schemas import normalize_function

        def arguments(n: Node) -> Any:
            if n.op == "call_function":
                target: Any = n.target
                found = normalize_function(
                    target,
                    n.args,
                    n.kwargs,
                    normalize_to_only_use_kwargs=True,
                )
                if found is not None:
                    return (), found.kwargs
            return n.args, n.kwargs

        left, right = (pn.args, pn.kwargs), (gn.args, gn.kwargs)
        operators = type(pn.target).__name__ == type(gn.target).__name__ == "OpOverload"
        if pn.kwargs or gn.kwargs or (operators and len(pn.args) != len(gn.args)):
            left, right = arguments(pn), arguments(gn)
            if bool(left[0]) != bool(right[0]):
                left, right = (pn.args, pn.kwargs), (gn.args, gn.kwargs)
        if self._match_args(left[0], right[0], match) and self._match_args(
            dict(left[1]), dict(right[1]), match
        ):
            return True
        match.nodes_map = saved.nodes_map
        return False

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return where the pattern is in a graph.

        Parameters
        ----------
        graph : Graph
            Where it is looked for.
        node_name_match : str, default ""
            A part of the names of nodes that a match may end with.

        Returns
        -------
        list of InternalMatch
            From the last to the first.
        """
        candidates: dict[Node, list[Node]] = defaultdict(list)
        for anchor in self.pattern_anchors:
            for node in graph.nodes:
                named = not node_name_match or node_name_match in node.name
                if named and self._nodes_are_equal(anchor, node):
                    candidates[anchor].append(node)
        found: list[InternalMatch] = []
        pairs = list(candidates.items())

        def search(i: int, match: InternalMatch) -> None:
            if i == len(pairs):
                match.placeholder_nodes = [
                    match.nodes_map[pn]
                    for pn in self.pattern_placeholder_nodes
                    if pn in match.nodes_map
                ]
                match.returning_nodes = [
                    match.nodes_map[pn]
                    for pn in self.pattern_returning_nodes
                    if pn in match.nodes_map
                ]
                found.append(match)
                return
            anchor, nodes = pairs[i]
            for node in nodes:
                trial = copy.copy(match)
                if self._match_nodes(anchor, node, trial):
                    search(i + 1, trial)

        if len(pairs) == len(self.pattern_anchors) and pairs:
            search(0, InternalMatch(anchors=self.pattern_anchors))
        found = [m for m in found if self._is_contained(m.nodes_map)]
        kept: list[InternalMatch] = []
        used: set[Node] = set()
        for match in found:
            inside = {
                gn
                for pn, gn in match.nodes_map.items()
                if pn.op not in ("placeholder", "output", "get_attr") and isinstance(gn, Node)
            }
            if self.remove_overlapping_matches and inside & used:
                continue
            if not validate_partition(list(inside)):
                continue  # what it takes is made of what it gives
            kept.append(match)
            used |= inside
        return kept
