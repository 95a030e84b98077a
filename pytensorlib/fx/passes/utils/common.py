"""Modules made of a part of a graph."""

from __future__ import annotations

from typing import Any

from .... import nn
from ...graph import Graph
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(nn.Module):
    """Holds modules by name and computes nothing.

    Parameters
    ----------
    d : dict
        The modules.
    """

    def __init__(self, d: dict[str, Any]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Return a module of a graph that has only what the graph uses of another module.

    Parameters
    ----------
    gm : GraphModule
        Has what the graph's targets name.
    subgraph : Graph
        Copies of nodes of `gm`.
    comp_name : str
        What the new module is called in a larger one.
    class_name : str
        Of its class.

    Returns
    -------
    module : GraphModule
        Computes the graph.
    names : dict
        The new names of modules and attributes by those in `gm`.
    """
    holder, names = HolderModule({}), {}
    for n in subgraph.nodes:
        if n.op not in ("call_module", "get_attr"):
            continue
        *path, leaf = str(n.target).split(".")
        here: Any = holder
        there: Any = gm
        for name in path:
            if not hasattr(here, name):
                here.add_module(name, HolderModule({}))
            here, there = getattr(here, name), getattr(there, name)
        setattr(here, leaf, getattr(there, leaf))
        names[str(n.target)] = f"{comp_name}.{n.target}"
    return GraphModule(holder, subgraph, class_name), names


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Return whether two graphs do the same with the same arguments.

    Parameters
    ----------
    left, right : Graph
        The graphs; names of nodes may differ.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.utils.common import compare_graphs
    >>> one = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
    >>> other = torch.fx.symbolic_trace(lambda y: torch.relu(y) + 1).graph
    >>> compare_graphs(one, other)
    True
    """
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return bool(matcher.match(right))
