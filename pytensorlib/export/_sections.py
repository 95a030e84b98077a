"""Parts of exported programs that ran with another grad mode: one operator each, with a graph."""

from __future__ import annotations

import operator
from typing import Any

import pytensorlib as pt

from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node

__all__ = ["NAME", "is_part", "wrap", "wrap_with_set_grad_enabled", "wrapped"]

NAME = "wrap_with_set_grad_enabled"


def wrap_with_set_grad_enabled(enabled: bool, function: Any, *args: Any) -> Any:
    """Call a function with grad mode on or off."""
    with pt.set_grad_enabled(enabled):
        return function(*args)


def wrapped(node: Node, modules: Any) -> tuple[Any, dict[Node, Any]] | None:
    """Return the module of a part and what its placeholders are; None for other nodes."""
    if getattr(node.target, "_name", "") != NAME:
        return None
    _, place, *given = node.args
    assert isinstance(place, Node)  # noqa: S101
    module = getattr(modules, str(place.target))
    holders = [n for n in module.graph.nodes if n.op == "placeholder"]
    return module, dict(zip(holders, given, strict=True))


def is_part(place: Node) -> bool:
    """Return whether a node gets the module of a part."""
    return any(getattr(user.target, "_name", "") == NAME for user in place.users)


def _computes(node: Node) -> bool:
    packet = getattr(node.target, "overloadpacket", None)
    if packet is None:
        return node.op == "call_function" and hasattr(node.target, "_name")  # with branches
    return packet.__name__ not in ("sym_size", "item", "_assert_scalar")


def wrap(tracer: Any, graph: Graph, root: Any) -> dict[str, str]:
    """Put each run of nodes with another grad mode into a graph of its own.

    Parameters
    ----------
    tracer : OperatorTracer
        Knows the modes.
    graph : Graph
        The program, or a branch of one, with its output.
    root : Module
        Gets the modules of the parts.

    Returns
    -------
    dict
        The new names of nodes that are used outside, by those before.
    """
    renamed: dict[str, str] = {}
    if not tracer.modes:
        return renamed
    for mode, nodes in _runs(tracer, graph):
        if any(map(_computes, nodes)):
            renamed.update(_replace(graph, root, mode, nodes))
    return renamed


def _runs(tracer: Any, graph: Graph) -> list[tuple[bool, list[Node]]]:
    found: list[tuple[bool, list[Node]]] = []
    modes: dict[Node, bool] = {}
    last: Any = None
    for node in graph.nodes:
        mode = tracer.modes.get(node)
        if node.target is operator.getitem:
            source = node.args[0]
            mode = modes.get(source, mode) if isinstance(source, Node) else mode
        elif node.op == "get_attr":
            mode = next((tracer.modes[u] for u in node.users if u in tracer.modes), None)
        if node.op in ("placeholder", "output"):
            mode = None
        if mode is not None:
            modes[node] = mode
            if mode == last:
                found[-1][1].append(node)
            else:
                found.append((mode, [node]))
        last = mode
    return found


def _replace(graph: Graph, root: Any, mode: bool, nodes: list[Node]) -> dict[str, str]:
    from ._control_flow import OPERATORS

    inside = set(nodes)
    given = list(dict.fromkeys(m for n in nodes for m in n.all_input_nodes if m not in inside))
    results = [n for n in nodes if any(u not in inside for u in n.users)]
    part, inner, own = Graph(), {}, pt.nn.Module()  # type: tuple[Graph, dict[Node, Node], Any]
    for n in given:
        inner[n] = part.placeholder(n.name)
        inner[n].meta = {k: v for k, v in n.meta.items() if k == "val"}
    for n in nodes:
        inner[n] = part.node_copy(n, lambda m: inner[m])
        if n.op == "get_attr":
            setattr(own, str(n.target), getattr(root, str(n.target)))
            delattr(root, str(n.target))
    part.output(tuple(inner[n] for n in results))
    i = 1
    while hasattr(root, f"submod_{i}"):
        i += 1
    setattr(root, f"submod_{i}", GraphModule(own, part, f"submod_{i}"))
    with graph.inserting_before(nodes[0]):
        place = graph.create_node("get_attr", f"submod_{i}", name=f"submod_{i}")
        call = graph.create_node(
            "call_function", OPERATORS[NAME], (mode, place, *given), {}, NAME
        )  # fmt: skip
        stacks = [n.meta.get("nn_module_stack") or {} for n in nodes if n.op != "get_attr"]
        shared = {k: v for k, v in stacks[0].items() if all(k in s for s in stacks)}
        if shared:
            call.meta["nn_module_stack"] = shared
        call.meta["val"] = tuple(n.meta.get("val") for n in results)
        renamed: dict[str, str] = {}
        for k, n in enumerate(results):
            item = graph.create_node("call_function", operator.getitem, (call, k))
            item.meta = {k: v for k, v in n.meta.items() if k != "nn_module_stack"}
            n.replace_all_uses_with(item, delete_user_cb=lambda u: u not in inside)
            renamed[n.name] = item.name
    for n in reversed(nodes):
        graph.erase_node(n)
    return renamed
