"""Finds a small graph inside another, with names for its nodes."""

from __future__ import annotations

import dataclasses
from typing import Any

from ....utils import _pytree as pytree
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Finds where a graph does what a pattern does, and which nodes there have the pattern's names.

    Parameters
    ----------
    pattern_gm : GraphModule
        An exported program's module that returns its results and a dictionary of tensors by name.
        Changed: it returns the results alone.
    match_output, match_placeholder, remove_overlapping_matches, ignore_literals
        As of `SubgraphMatcher`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.utils import matcher_with_name_node_map_utils as named
    >>> class Pattern(torch.nn.Module):
    ...     def forward(self, x):
    ...         y = x.sin()
    ...         return y.cos(), {"inner": y}
    >>> class Net(torch.nn.Module):
    ...     def forward(self, x):
    ...         return (x + 1).sin().cos()
    >>> x = (torch.ones(2),)
    >>> pattern = torch.export.export(Pattern(), x).module()
    >>> matcher = named.SubgraphMatcherWithNameNodeMap(pattern)
    >>> (match,) = matcher.match(torch.export.export(Net(), x).module().graph)
    >>> match.name_node_map["inner"].name
    'sin'
    """

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(
            pattern_gm.graph,
            match_output,
            match_placeholder,
            remove_overlapping_matches,
            ignore_literals,
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return where the pattern is, with the nodes by name as ``name_node_map``.

        Parameters
        ----------
        graph : Graph
            What is searched.
        node_name_match : str
            As of `SubgraphMatcher.match`.
        """
        found = super().match(graph, node_name_match)
        for match in found:
            for name, n in self.name_node_map.items():
                match.name_node_map[name] = match.nodes_map[n]
        return found


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """Let a pattern return its results alone; return it and the nodes that it names."""
    output = gm.graph.output_node()
    codegen: Any = gm.graph._codegen
    info = codegen.pytree_info
    returned = pytree.tree_unflatten(list(output.args[0]), info.out_spec)
    if not isinstance(returned, tuple) or len(returned) < 2 or not isinstance(returned[-1], dict):
        raise AssertionError(
            "SubgraphMatcherWithNameNodeMap: the pattern must return a tuple of its results and, "
            f"last, a dictionary of tensors by name; it returns {returned}"
        )
    *results, names = returned
    flat, spec = pytree.tree_flatten(results)
    output.args = (flat,)
    codegen.pytree_info = dataclasses.replace(info, out_spec=spec)
    gm.recompile()
    return gm, names
