"""Splits a program into parts, each a module."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node, map_arg

__all__ = ["Partition", "split_module"]


class Partition:
    """A part of a program: its nodes, and what goes in and out.

    Parameters
    ----------
    name : str
        What the caller's function said of its nodes.
    """

    def __init__(self, name: str) -> None:
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def add_node(self, node: Node) -> None:
        """Add a node.

        Parameters
        ----------
        node : Node
            Of the whole program.
        """
        self.node_names.append(node.name)


def _in_order(partitions: dict[str, Partition]) -> list[str]:
    """Return the parts so that each comes after what it needs."""
    waiting = {name: len(p.dependencies) for name, p in partitions.items()}
    ready = [name for name, n in waiting.items() if n == 0]
    order = []
    while ready:
        name = ready.pop(0)
        order.append(name)
        for other in partitions[name].dependents:
            waiting[other] -= 1
            if waiting[other] == 0:
                ready.append(other)
    if len(order) != len(partitions):
        raise RuntimeError("cycle exists between partitions!")
    return order


def split_module(
    m: GraphModule,
    root_m: Any,
    split_callback: Callable[[Node], int | str],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
) -> GraphModule:
    """Return a module that calls one module for each part of a program.

    Parameters
    ----------
    m : GraphModule
        The program.
    root_m : Module
        Has what the program's targets name.
    split_callback : callable
        Says of each node to which part it belongs.
    qualname_map : dict, optional
        Gets for each target in the parts what it was called before.
    keep_original_order : bool, default False
        Whether the parts come in the order in which the program enters them.
    keep_original_node_name : bool, default False
        Whether nodes are called in the parts as they were.
    keep_original_input_name : bool, default True
        Whether arguments of the parts are called as what they get.
    partition_affix : str, optional
        Comes into the names of the parts.

    Returns
    -------
    GraphModule
        With a module ``submod_<part>`` for each.

    Raises
    ------
    RuntimeError
        Parts need each other in a circle.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.split_module import split_module
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.neg(torch.abs(x)))
    >>> parts = split_module(traced, None, lambda node: int(node.name == "neg"))
    >>> print(parts.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    """
    root_m = m if root_m is None else root_m
    partitions: dict[str, Partition] = {}
    part_of: dict[Node, str] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        name = str(split_callback(node))
        if name not in partitions:
            partitions[name] = Partition(name)
            if partition_affix is not None:
                partitions[name].submod_name = f"submod_{partition_affix}_{name}"
        partitions[name].add_node(node)
        part_of[node] = name

    def depend(src: Node, user: Node | None) -> None:
        made, used = part_of.get(src), part_of.get(user) if user is not None else None
        if made == used:
            return
        if made is not None:
            partitions[made].outputs.setdefault(src.name)
        if used is not None:
            partitions[used].inputs.setdefault(src.name)
            if made is not None:
                partitions[used].dependencies.setdefault(made)
                partitions[made].dependents.setdefault(used)

    for node in m.graph.nodes:
        if node.op == "output":
            map_arg(node.args[0], lambda n: depend(n, None))
        elif node in part_of:
            for n in node.all_input_nodes:
                depend(n, node)
    by_name = {node.name: node for node in m.graph.nodes}
    order = list(partitions) if keep_original_order else _in_order(partitions)
    for part in partitions.values():
        for name in part.inputs:
            source = by_name[name]
            label = name if keep_original_input_name else f"arg_{len(part.environment)}"
            made = part.graph.placeholder(label, type_expr=source.type)
            made.meta = source.meta.copy()
            part.environment[source] = made
    for node in m.graph.nodes:
        if node not in part_of:
            continue
        part = partitions[part_of[node]]
        target: Any = node.target
        if node.op == "call_module":
            attribute = _get_attr(root_m, str(node.target))
            target = str(node.target).replace(".", "_")
            part.targets[target] = attribute
            if qualname_map is not None:
                qualname_map[f"{part.submod_name}.{target}"] = str(node.target)
        env = part.environment
        args = map_arg(node.args, env.__getitem__)
        kwargs = map_arg(node.kwargs, env.__getitem__)
        label = node.name if keep_original_node_name else None  # type: ignore[assignment]
        made = part.graph.create_node(node.op, target, args, kwargs, label, node.type)
        made.meta = node.meta.copy()
        env[node] = made
    return _assemble(m, root_m, partitions, order, by_name, qualname_map)


def _assemble(
    m: GraphModule,
    root_m: Any,
    partitions: dict[str, Partition],
    order: list[str],
    by_name: dict[str, Node],
    qualname_map: dict[str, str] | None,
) -> GraphModule:
    base = Graph()
    env: dict[Node, Any] = {}
    attributes: dict[str, Any] = {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            default = node.args[0] if node.args else ...
            env[node] = base.placeholder(str(node.target), node.type, default)
            env[node].meta = node.meta.copy()
        elif node.op == "get_attr":
            env[node] = base.get_attr(str(node.target))
            env[node].meta = node.meta.copy()
            attributes[str(node.target)] = _get_attr(root_m, str(node.target))
    for name in order:
        part = partitions[name]
        outs = [part.environment[by_name[n]] for n in part.outputs]
        if outs:
            part.graph.output(outs[0] if len(outs) == 1 else tuple(outs))
        attributes[part.submod_name] = GraphModule(part.targets, part.graph)
        call = base.call_module(part.submod_name, tuple(env[by_name[n]] for n in part.inputs))
        if len(part.outputs) == 1:
            env[by_name[next(iter(part.outputs))]] = call
        elif part.outputs:
            for i, n in enumerate(part.outputs):
                env[by_name[n]] = base.call_function(operator.getitem, (call, i))
    for node in m.graph.nodes:
        if node.op == "output":
            base.output(map_arg(node.args[0], env.__getitem__))
    made = GraphModule(attributes, base)
    made.meta.update(m.meta)
    return made
