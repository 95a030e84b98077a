"""Parts of a program by the tags of its nodes, each a module."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from ... import nn
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..proxy import Proxy
from .tools_common import CALLABLE_NODE_OPS, is_node_output_tensor
from .utils.common import HolderModule, lift_subgraph_as_module

__all__ = [
    "Component",
    "getattr_recursive",
    "move_non_tensor_nodes_on_boundary",
    "setattr_recursive",
    "split_by_tags",
]


def getattr_recursive(obj: Any, name: str) -> Any:
    """Return an attribute by its path, or None where there is none.

    Parameters
    ----------
    obj : object
        Where the path begins.
    name : str
        Names between dots.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.split_utils import getattr_recursive
    >>> getattr_recursive(torch.nn.Sequential(torch.nn.ReLU()), "0.inplace")
    False
    """
    for part in name.split("."):
        if isinstance(obj, nn.ModuleList):
            obj = obj._modules.get(part)
        else:
            obj = getattr(obj, part, None)
        if obj is None:
            return None
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set an attribute by its path.

    Parameters
    ----------
    obj : object
        Where the path begins.
    attr : str
        Names between dots.
    value : object
        What it becomes.
    """
    *path, last = attr.split(".")
    for part in path:
        obj = getattr(obj, part)
    setattr(obj, last, value)


@dataclass
class Component:
    """A part of a program: its graph, and the nodes of the program that go in and out."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None


class _Splitter:
    def __init__(self, gm: GraphModule, tags: list[str]) -> None:
        self.gm = gm
        self.parts = {tag: Component(Graph(), i, tag) for i, tag in enumerate(tags)}
        self.part_of: dict[Node, Component] = {}
        self.made: dict[Node, Node] = {}  # copies in the parts
        self.main = Graph()
        self.in_main: dict[Node, Node] = {}
        self.used: dict[Node, None] = {}  # what passes between parts, in order
        self.result: Node | None = None

    def distribute(self) -> None:
        """Copy each node to its part."""
        for n in self.gm.graph.nodes:
            if n.op == "output":
                if self.result is not None:
                    raise RuntimeError("Multiple output nodes in graph!")
                self.result = n
            elif n.op == "placeholder":
                self.in_main[n] = self.main.placeholder(n.name, type_expr=n.type)
                self.in_main[n].meta = copy.copy(n.meta)
            elif n.op != "get_attr":
                self.copy(n)
        if self.result is None:
            raise RuntimeError("Graph had no output node!")

    def copy(self, n: Any) -> None:
        if not hasattr(n, "tag"):
            raise AssertionError(f"Node does not have tag: {n.format_node()}")
        part = self.part_of[n] = self.parts[n.tag]
        latest = max(
            (self.part_of[m].order for m in n.all_input_nodes if m in self.part_of), default=0
        )
        if part.order < latest:
            raise AssertionError(
                f"Component {part.name} order must be >= max of its upstream components, "
                f"order={part.order} and max={latest}"
            )
        made: Any = part.graph.node_copy(n, lambda m: self.local(m, part))
        made.tag = n.tag
        self.made[n] = made

    def local(self, n: Node, part: Component) -> Node:
        """Return what a part has for a node: its copy, an attribute of its own, or an argument."""
        if n.op == "get_attr":
            if n not in part.getattr_maps:
                part.getattr_maps[n] = part.graph.get_attr(str(n.target), type_expr=n.type)
                part.getattr_maps[n].meta = copy.copy(n.meta)
            return part.getattr_maps[n]
        if self.part_of.get(n) is part:
            return self.made[n]
        if n not in part.orig_inputs:
            given = part.graph.placeholder(n.name, type_expr=n.type)
            given.meta = copy.copy(n.meta)
            part.orig_inputs.append(n)
            part.input_placeholders.append(given)
            self.used[n] = None
        return part.input_placeholders[part.orig_inputs.index(n)]

    def call(self, part: Component, return_tuple: bool) -> dict[str, str]:
        """Make a part's module, and call it in the program; return new names of what it uses."""
        results = tuple(self.made[n] for n in part.orig_outputs)
        single = len(results) == 1 and not return_tuple
        part.graph.output(results[0] if single else results)
        part.gm, names = lift_subgraph_as_module(self.gm, part.graph, part.name)
        call = self.main.call_module(part.name, tuple(self.in_main[n] for n in part.orig_inputs))
        items: Any = Proxy(call)
        for i, n in enumerate(part.orig_outputs):
            self.in_main[n] = call if single else items[i].node
        return names


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,  # noqa: N803  (PyTorch's name)
) -> Any:
    """Return a program whose parts are modules: each has the nodes with one tag.

    Parameters
    ----------
    gm : GraphModule
        Each node that calls something has an attribute ``tag``. It stays as it is.
    tags : list of str
        In the order in which parts run; a node uses none of a later part.
    return_fqn_mapping : bool, default False
        Whether a dictionary from old to new names of modules and attributes is returned, too.
    return_tuple : bool, default False
        Whether a part with one result gives a tuple.
    GraphModuleCls : type
        The class of the program.

    Returns
    -------
    GraphModule
        Calls the parts, which have the tags as their names.

    Raises
    ------
    AssertionError
        A node has no tag, or uses a later part.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.split_utils import split_by_tags
    >>> gm = torch.fx.symbolic_trace(lambda x: (x.sin() + 1).sum())
    >>> for node in gm.graph.nodes:
    ...     node.tag = "last" if node.name == "sum_1" else "first"
    >>> parts = split_by_tags(gm, ["first", "last"])
    >>> print(parts.code.strip())
    def forward(self, x):
        first = self.first(x);  x = None
        last = self.last(first);  first = None
        return last
    """
    work = _Splitter(gm, tags)
    work.distribute()
    result: Any = work.result
    returned: list[Node] = []
    map_arg(result.args[0], returned.append)
    for n in returned:
        if n.op == "get_attr":
            work.in_main[n] = work.main.get_attr(n.name, type_expr=n.type)
        else:
            work.used[n] = None
    for n in work.used:
        if n.op != "placeholder":
            work.part_of[n].orig_outputs.append(n)
    names: dict[str, str] = {}
    for part in work.parts.values():
        names.update(work.call(part, return_tuple))
    work.main.output(map_arg(result.args[0], work.in_main.__getitem__))
    work.main._codegen = gm.graph._codegen
    root = HolderModule({part.name: part.gm for part in work.parts.values()})
    for n in returned:
        if n.op == "get_attr":
            setattr(root, n.name, getattr_recursive(gm, str(n.target)))
    made = GraphModuleCls(root, work.main)
    return (made, names) if return_fqn_mapping else made


def move_non_tensor_nodes_on_boundary(subgraphs: list[Any]) -> None:
    """Move nodes that give numbers or lists to the part that uses them, where that can be.

    Parameters
    ----------
    subgraphs : list of Subgraph
        Parts as `splitter_base` makes them; those of the accelerator give nodes away, in place.
    """
    part_of = {n: i for i, part in enumerate(subgraphs) for n in part.nodes}

    def users(n: Node) -> list[Node]:
        return [u for u in n.users if u.op in CALLABLE_NODE_OPS and u in part_of]

    for i, part in enumerate(subgraphs):
        if not part.is_acc:
            continue
        waiting = [n for n in part.nodes if _crosses(n, users(n), part_of)]
        done: set[Node] = set()
        while waiting:
            n = waiting.pop(0)
            if n in done or part_of[n] != i:
                continue
            done.add(n)
            others = {part_of[u] for u in users(n)} - {i}
            if len(others) != 1:
                print(f"Non-tensor node {n.name} stays where it is: several parts use it")
                continue
            to = others.pop()
            moved = _followers(n, i, to, users, part_of)
            for m in moved:
                part.nodes.remove(m)
                subgraphs[to].nodes.append(m)
                part_of[m] = to
            if moved:
                waiting += [m for m in n.all_input_nodes if part_of.get(m) == i and m not in done]
                waiting = [m for m in waiting if _crosses(m, users(m), part_of)]


def _crosses(n: Node, users: list[Node], part_of: dict[Node, int]) -> bool:
    """Return whether a node gives another part what is no tensor."""
    return not is_node_output_tensor(n) and any(part_of[u] != part_of[n] for u in users)


def _followers(n: Node, here: int, to: int, users: Any, part_of: dict[Node, int]) -> list[Node]:
    """Return the nodes that move with a node to another part; none where it cannot be."""
    found, waiting = [n], [n]
    while waiting:
        for u in users(waiting.pop()):
            if part_of[u] not in (here, to):
                return []
            if part_of[u] == here and u not in found:
                found.append(u)
                waiting.append(u)
    return found
