"""Puts nodes of a program into modules of their own."""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node

__all__ = ["fuse_as_graphmodule", "fuse_by_partitions", "topo_sort", "validate_partition"]


def topo_sort(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes so that each comes after those that it uses.

    Parameters
    ----------
    nodes : sequence of Node
        Of one graph.

    Returns
    -------
    list of Node
        The same ones; those that may come in any order keep theirs.
    """
    given = list(nodes)
    places = {n: i for i, n in enumerate(given)}
    left = {n: len([m for m in n.all_input_nodes if m in places]) for n in given}
    ready = [places[n] for n in given if not left[n]]
    found: list[Node] = []
    while ready:
        n = given[heapq.heappop(ready)]
        found.append(n)
        for user in n.users:
            if user in places:
                left[user] -= 1
                if not left[user]:
                    heapq.heappush(ready, places[user])
    if len(found) != len(given):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return found


def validate_partition(partition: Sequence[Node]) -> bool:
    """Return whether nodes can be one: nothing outside lies between two of them.

    Parameters
    ----------
    partition : sequence of Node
        Of one graph.

    Returns
    -------
    bool
        False where fusing them would make a cycle.
    """
    inside = set(partition)
    waiting = [u for n in partition for u in n.users if u not in inside]
    seen = set(waiting)
    while waiting:
        n = waiting.pop()
        if any(u in inside for u in n.users):
            return False
        more = [u for u in n.users if u not in seen]
        seen |= set(more)
        waiting += more
    return True


def fuse_as_graphmodule(
    gm: GraphModule, nodes: Sequence[Node], module_name: str, always_return_tuple: bool = False
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Return a module of some nodes, and the nodes that go in and out of it.

    Parameters
    ----------
    gm : GraphModule
        What the nodes are of; it stays as it is.
    nodes : sequence of Node
        In topological order.
    module_name : str
        Of the class of the module.
    always_return_tuple : bool, default False
        Whether one result is a tuple, too.

    Returns
    -------
    module : GraphModule
        Computes the nodes.
    inputs, outputs : tuple of Node
        Nodes of `gm`.
    """
    inside = set(nodes)
    if any(n.graph.owning_module is not gm for n in nodes):
        raise AssertionError("a node is not of the module that is given")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    graph, env = Graph(), {}
    given = dict.fromkeys(m for n in nodes for m in n.all_input_nodes if m not in inside)
    for m in given:
        env[m] = graph.placeholder(m.name, type_expr=m.type)
        env[m].meta = dict(m.meta)
    for n in nodes:
        env[n] = graph.node_copy(n, lambda m: env[m])
    results = tuple(n for n in nodes if any(u not in inside for u in n.users))
    made = tuple(env[n] for n in results)
    graph.output(made[0] if len(made) == 1 and not always_return_tuple else made)
    graph.lint()
    return GraphModule(gm, graph, class_name=module_name), tuple(given), results


def fuse_by_partitions(
    gm: GraphModule,
    partitions: Sequence[Any],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """Put groups of nodes into submodules, in place.

    Parameters
    ----------
    gm : GraphModule
        Changed.
    partitions : list of dict or of list
        Nodes, each group of which becomes one call.
    prefix : str
        Of the names of the submodules, before their numbers.
    always_return_tuple : bool, default False
        Whether a submodule with one result gives a tuple.

    Returns
    -------
    GraphModule
        `gm`.

    Raises
    ------
    AssertionError
        A group would make a cycle, or a node is in two groups.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.utils.fuser_utils import fuse_by_partitions
    >>> gm = torch.fx.symbolic_trace(lambda x: (x.sin() + 1).sum())
    >>> nodes = [n for n in gm.graph.nodes if n.name in ("sin", "add")]
    >>> [n.name for n in fuse_by_partitions(gm, [nodes]).graph.nodes]
    ['x', 'fused_0', 'sum_1', 'output']
    """
    seen: set[Node] = set()
    for partition in partitions:
        if twice := seen & set(partition):
            raise AssertionError(f"fuse_by_partitions: {sorted(map(str, twice))} are in two groups")
        seen |= set(partition)
    for i, partition in enumerate(partitions):
        nodes = topo_sort(n for n in gm.graph.nodes if n in set(partition))
        name = f"{prefix}{i}"
        module, inputs, results = fuse_as_graphmodule(gm, nodes, name, always_return_tuple)
        gm.add_submodule(name, module)
        with gm.graph.inserting_after(nodes[-1]):
            call = gm.graph.call_module(name, inputs)
        single = len(results) == 1 and not always_return_tuple
        at = call
        for j, n in enumerate(results):
            new = call
            if not single:
                with gm.graph.inserting_after(at):
                    new = at = gm.graph.call_function(operator.getitem, (call, j))
            new.meta = dict(n.meta)
            n.replace_all_uses_with(new, propagate_meta=False)
        for n in reversed(nodes):
            gm.graph.erase_node(n)
    _sort(gm)
    return gm


def _sort(gm: GraphModule) -> None:
    """Put the nodes of a program in an order in which they can run."""
    graph = Graph()
    env: dict[Node, Node] = {}
    nodes = list(gm.graph.nodes)
    for n in topo_sort(nodes[:-1]):
        env[n] = graph.node_copy(n, lambda m: env[m])
    graph.node_copy(nodes[-1], lambda m: env[m])
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    gm.recompile()
