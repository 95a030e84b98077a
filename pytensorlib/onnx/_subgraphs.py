"""ONNX for branches and loops."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ..export import _sections
from ..fx.node import Node
from ._graph import TYPES, Value
from ._rows import row


def body(c: Any, node: Node, inputs: list[Any], before: Any = None) -> Any:
    """Write the graph of a branch; return its nodes and what it returns."""
    module = getattr(c.modules, str(node.target))
    saved, c.nodes = c.nodes, []
    modules, c.modules = c.modules, module
    env, c.env = c.env, {}
    try:
        values = iter(inputs)
        for n in module.graph.nodes:
            if n.op == "placeholder":
                c.env[n] = next(values)
            elif n.op == "get_attr":
                c.env[n] = n
            elif n.op == "call_function":
                c.run(n)
        results = [c.env.get(r, r) if isinstance(r, Node) else r for r in
                   module.graph.output_node().args[0]]  # fmt: skip
        # What comes from outside is a node inside too.
        names = [c.op("Identity", r) for r in results]
        return c.nodes, names, results
    finally:
        c.nodes, c.modules, c.env = saved, modules, env


@row(_sections.NAME)
def _part(c: Any, enabled: bool, place: Any, *given: Any) -> Any:
    """Write a part with another grad mode as what is around it."""
    modules, c.modules = c.modules, getattr(c.modules, str(place.target))
    try:
        graph = c.modules.graph
        holders = [n for n in graph.nodes if n.op == "placeholder"]
        c.env.update(zip(holders, given, strict=True))
        for n in graph.nodes:
            if n.op == "get_attr":
                c.env[n] = n
            elif n.op == "call_function":
                c.run(n)
        return [c.env[n] for n in graph.output_node().args[0]]
    finally:
        c.modules = modules


def outputs(c: Any, names: list[str], results: list[Any]) -> list[Any]:
    helper = c.onnx.helper
    return [
        helper.make_tensor_value_info(
            n, TYPES[r.dtype if isinstance(r, Value) else pt.int64],
            [s if isinstance(s, int) else None for s in r.shape] if isinstance(r, Value) else [],
        )
        for n, r in zip(names, results, strict=True)
    ]  # fmt: skip


@row("cond")
def _cond(c: Any, pred: Any, true_graph: Any, false_graph: Any, operands: Any) -> Any:
    graphs = []
    at = c.at
    for name, graph in (("then", true_graph), ("else", false_graph)):
        nodes, names, results = body(c, graph, list(operands))
        graphs.append(c.onnx.helper.make_graph(nodes, name, [], outputs(c, names, results)))
    c.at = at
    made = c.op(
        "If", c.op("Reshape", pred, c.constant([], pt.int64)), n=len(names),
        then_branch=graphs[0], else_branch=graphs[1],
    )  # fmt: skip
    return [made] if len(names) == 1 else list(made)


@row("scan")
def _scan(c: Any, graph: Any, init: Any, xs: Any, more: Any = ()) -> Any:
    at, helper = c.at, c.onnx.helper
    values = [Value(c.fresh("carried"), v.dtype, v.shape) for v in init]
    values += [Value(c.fresh("slice"), v.dtype, v.shape[1:]) for v in xs]
    inputs = [helper.make_tensor_value_info(v.name, TYPES[v.dtype], None) for v in values]
    nodes, names, results = body(c, graph, [*values, *more])
    ends = outputs(c, names, results)
    loop = helper.make_graph(nodes, "combine", inputs, ends)
    c.at = at
    made = c.op("Scan", *init, *xs, n=len(names), body=loop, num_scan_inputs=len(xs))
    return [made] if len(names) == 1 else list(made)


@row("map_impl")
def _map(c: Any, graph: Any, xs: Any, args: Any = ()) -> Any:
    return _scan(c, graph, [], xs, args)


@row("while_loop")
def _while(c: Any, cond_graph: Any, body_graph: Any, carried: Any, more: Any = ()) -> Any:
    at, helper = c.at, c.onnx.helper
    first_nodes, first_names, _ = body(c, cond_graph, [*carried, *more])
    c.nodes += first_nodes
    start = c.op("Reshape", first_names[0], c.constant([], pt.int64))
    values, inputs = [], []
    for v in carried:
        inner = Value(c.fresh("carried"), v.dtype if isinstance(v, Value) else pt.int64,
                      v.shape if isinstance(v, Value) else ())  # fmt: skip
        values.append(inner)
        inputs.append(helper.make_tensor_value_info(inner.name, TYPES[inner.dtype], None))
    nodes, names, _ = body(c, body_graph, [*values, *more])
    saved, c.nodes = c.nodes, nodes
    after = [Value(n, v.dtype, v.shape) for n, v in zip(names, values, strict=True)]
    end_nodes, end_names, _ = body(c, cond_graph, [*after, *more])
    c.nodes += end_nodes
    going = c.op("Reshape", end_names[0], c.constant([], pt.int64))
    inside, c.nodes = c.nodes, saved
    turn, before = c.fresh("turn"), c.fresh("going")
    inputs = [
        helper.make_tensor_value_info(turn, TYPES[pt.int64], []),
        helper.make_tensor_value_info(before, TYPES[pt.bool], []),
        *inputs,
    ]
    ends = [helper.make_tensor_value_info(going, TYPES[pt.bool], [])]
    ends += outputs(c, names, values)
    graph = helper.make_graph(inside, "body", inputs, ends)
    c.at = at
    made = c.op("Loop", None, start, *carried, n=len(values), body=graph)
    return [made] if len(values) == 1 else list(made)
