"""Branches and loops of exported programs: one operator each, with a graph for each branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from .._higher_order_ops import control as _control
from .._symbolic.ints import _Sym
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..utils import _pytree as pytree
from . import _sections

__all__ = ["OPERATORS", "record_cond", "record_map", "record_scan", "record_while"]


class HigherOrderOperator:
    """An operator that takes functions: ``torch.ops.higher_order.cond``."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.__name__ = self._name = name
        self.__module__ = "torch.ops.higher_order"
        self._function = function

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def name(self) -> str:
        """Return the name."""
        return self._name

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<HigherOrderOperator {self._name}>"


def _cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    return _control.cond(pred, true_fn, false_fn, tuple(operands))


def _while(cond_fn: Any, body_fn: Any, carried: Any, additional: Any = ()) -> Any:
    extra = tuple(additional)
    return _control.while_loop(
        lambda *c: _only(cond_fn(*c, *extra)), lambda *c: body_fn(*c, *extra), tuple(carried)
    )


def _scan(combine: Any, init: Any, xs: Any, additional: Any = ()) -> Any:
    carry, found = list(init), []
    for i in range(xs[0].shape[0]):
        out = combine(*carry, *(t[i] for t in xs), *additional)
        carry = list(out[: len(carry)])
        found.append(out[len(carry) :])
    return [*carry, *(pt.stack(rows) for rows in zip(*found, strict=True))]


def _map(body: Any, xs: Any, args: Any = ()) -> tuple[Any, ...]:
    found = [body(*(t[i] for t in xs), *args) for i in range(xs[0].shape[0])]
    return tuple(pt.stack(rows) for rows in zip(*found, strict=True))


def _only(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) else value


OPERATORS: dict[str, HigherOrderOperator] = {
    "cond": HigherOrderOperator("cond", _cond),
    "while_loop": HigherOrderOperator("while_loop", _while),
    "scan": HigherOrderOperator("scan", _scan),
    "map_impl": HigherOrderOperator("map_impl", _map),
    _sections.NAME: HigherOrderOperator(_sections.NAME, _sections.wrap_with_set_grad_enabled),
}


class _Branch:
    """The graph of a function, and the tensors from outside that it uses."""

    def __init__(self, tracer: Any, named: bool) -> None:
        # Whether arguments that are computed have the names that they have outside.
        self.tracer, self.named = tracer, named
        self.graph, self.lifted = Graph(), {}  # type: tuple[Graph, dict[Node, Node]]
        self.root = pt.nn.Module()  # of branches within it
        self.last: Any = None

    def placeholder(self, outer: Node) -> Node:
        named = self.named or outer.op == "placeholder"
        name = outer.name if named else f"arg{len(self.lifted)}_1"
        with self.graph.inserting_after(self.last) if self.last else _nothing():
            node = self.graph.create_node("placeholder", name, name=name)
        self.last = node
        node.meta = {k: v for k, v in outer.meta.items() if k == "val"}
        self.lifted[outer] = node
        return node

    def node_of(self, node: Node) -> Node:
        """Return the node inside for one outside."""
        if node.graph is self.graph:
            return node
        return self.lifted.get(node) or self.placeholder(node)


class _nothing:  # noqa: N801
    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def run_branch(tracer: Any, fn: Any, operands: Any, named: bool = False) -> Any:
    """Record a function in a graph of its own; return it and what it returns."""
    leaves = [t for t in pytree.tree_leaves(operands) if isinstance(t, pt.Tensor)]
    branch = _Branch(tracer, named)
    for t in leaves:
        branch.node_of(tracer.traced(t).node)
    return branch, run_inside(tracer, branch, fn, *operands)


def run_inside(tracer: Any, branch: _Branch, fn: Any, *operands: Any) -> Any:
    """Return what a function returns, which is recorded in the graph of a branch."""
    outer, before = tracer.graph, tracer.inside
    nodes = {id(k): k.node for k in tracer.known.values()}
    tracer.graph, tracer.inside = branch.graph, branch
    try:
        return fn(*operands)
    finally:
        tracer.graph, tracer.inside = outer, before
        for known in tracer.known.values():
            if id(known) in nodes:
                known.node = nodes[id(known)]


def finish(tracer: Any, branch: Any, result: Any, outer: list[Node], name: str) -> Node:
    """Put a branch's module into the program; its arguments are nodes outside, in order."""
    for node in outer:
        if node not in branch.lifted:
            branch.placeholder(node)
    first = next(iter(branch.graph.nodes))
    made = [branch.lifted[n] for n in outer]
    for node in reversed(made):
        if node is not first:
            first.prepend(node)
        first = node
    values = []
    for v in pytree.tree_leaves(result):
        if isinstance(v, pt.Tensor):
            values.append(branch.node_of(tracer.traced(v).node))
        else:
            values.append(v.node.graph_node() if isinstance(v, _Sym) else v)
    branch.graph.output(tuple(values))
    return kept(tracer, branch, name)


def kept(tracer: Any, branch: Any, name: str) -> Node:
    """Keep a branch's module in what is recorded around it; return the node that gets it."""
    root = tracer.root if tracer.inside is None else tracer.inside.root
    _sections.wrap(tracer, branch.graph, branch.root)
    i = 0
    while hasattr(root, f"{name}_{i}"):
        i += 1
    setattr(root, f"{name}_{i}", GraphModule(branch.root, branch.graph, name))
    return tracer.graph.create_node("get_attr", f"{name}_{i}", name=f"{name}_{i}")


def around(tracer: Any, nodes: Any) -> tuple[Node, ...]:
    """Return nodes as what is recorded around a branch has them."""
    return tuple(nodes) if tracer.inside is None else tuple(map(tracer.inside.node_of, nodes))


def results_of(tracer: Any, node: Node, result: Any, columns: list[Any], device: Any) -> Any:
    """Return what a program gets of an operator with branches."""
    spec = pytree.tree_structure(result)
    shaped = [tuple(c[i] for c in columns) for i in range(tracer.examples)]
    made = tracer.results(node, shaped, device)
    return pytree.tree_unflatten(list(made), spec)


def _copies(tracer: Any, result: Any) -> list[Any]:
    columns = []
    for v in pytree.tree_leaves(result):
        if not isinstance(v, pt.Tensor):
            raise RuntimeError(
                f"torch.export: a branch returns a {type(v).__name__}; branches must return tensors"
            )
        with tracer.away():
            columns.append([pt.empty_like(s) for s in tracer.traced(v).shadows])
    return columns


def record_cond(tracer: Any, pred: Any, true_fn: Any, false_fn: Any, operands: Any) -> Any:
    """Record a branch of a program as one operator."""
    first, a = run_branch(tracer, true_fn, operands, named=True)
    second, b = run_branch(tracer, false_fn, operands, named=True)
    with tracer.away():
        columns, others = _copies(tracer, a), _copies(tracer, b)
        if pytree.tree_structure(a) != pytree.tree_structure(b):
            raise RuntimeError(
                "cond: both branches must return the same structure, got "
                f"{pytree.tree_structure(a)} and {pytree.tree_structure(b)}"
            )
        for i, (one, other) in enumerate(zip(columns, others, strict=True)):
            for what in ("dim", "dtype", "shape"):
                have = [(t.dim() if what == "dim" else getattr(t, what)) for t in one]
                want = [(t.dim() if what == "dim" else getattr(t, what)) for t in other]
                if have != want:
                    raise RuntimeError(
                        "When merging two branches' output in torch.cond, both branches must "
                        "return tensors of the same sizes and types, expected same "
                        f"{what} but got {have[0]} and {want[0]} for output {i}"
                    )
        outer = list(dict.fromkeys([*first.lifted, *second.lifted]))
        true_graph = finish(tracer, first, a, outer, "true_graph")
        false_graph = finish(tracer, second, b, outer, "false_graph")
        args = (tracer.argument(pred), true_graph, false_graph, around(tracer, outer))
        node = tracer.call(OPERATORS["cond"], args, {}, "cond")
        return results_of(tracer, node, a, columns, _device(tracer, operands))


def record_while(tracer: Any, cond_fn: Any, body_fn: Any, carried: Any) -> Any:
    """Record a loop of a program as one operator."""
    first, truth = run_branch(tracer, cond_fn, carried)
    second, result = run_branch(tracer, body_fn, carried)
    with tracer.away():
        columns = _copies(tracer, result)
        own = [tracer.traced(t).node for t in pytree.tree_leaves(carried)]
        more = [n for n in dict.fromkeys([*first.lifted, *second.lifted]) if n not in own]
        every = [*dict.fromkeys(own), *more]
        if len(set(own)) != len(own):
            raise RuntimeError("while_loop: the carried inputs must be different tensors")
        cond_graph = finish(tracer, first, truth, every, "while_loop_cond_graph")
        body_graph = finish(tracer, second, result, every, "while_loop_body_graph")
        args = (cond_graph, body_graph, around(tracer, own), around(tracer, more))
        node = tracer.call(OPERATORS["while_loop"], args, {}, "while_loop")
        made = results_of(tracer, node, result, columns, _device(tracer, carried))
        return tuple(made) if isinstance(made, (list, tuple)) else (made,)


def record_scan(tracer: Any, combine: Any, init: Any, leaves: list[Any], spec: Any) -> Any:
    """Record a loop over a dimension as one operator."""
    carried, carried_spec = pytree.tree_flatten(init)
    branch = _Branch(tracer, False)
    with tracer.away():
        own = [tracer.traced(t).node for t in carried]
        sources = [tracer.traced(t) for t in leaves]
        if len(set(own)) != len(own):
            raise RuntimeError("scan: the tensors of init must be different ones")
        for node in own:
            branch.placeholder(node)
        names = [f"x{i}_1" for i in range(len(sources))]
        slices = pytree.tree_unflatten(_slices(tracer, branch, sources, names), spec)
    after, out = run_inside(tracer, branch, combine, init, slices)
    with tracer.away():
        if pytree.tree_structure(after) != carried_spec:
            raise RuntimeError("scan: combine_fn must carry on what init holds, in its structure")
        values = [branch.node_of(tracer.traced(v).node) for v in pytree.tree_leaves((after, out))]
        branch.graph.output(tuple(values))
        lifted = [n for n in branch.lifted if n not in own]
        graph = kept(tracer, branch, "scan_combine_graph")
        given = around(tracer, (s.node for s in sources))
        args = (graph, list(around(tracer, own)), list(given), around(tracer, lifted))
        node = tracer.call(OPERATORS["scan"], args, {}, "scan")
        columns = _copies(tracer, after) + _stacked(tracer, out, sources[0])
        return results_of(tracer, node, (after, out), columns, _device(tracer, leaves))


def record_map(tracer: Any, fn: Any, leaves: list[Any], spec: Any, args: tuple[Any, ...]) -> Any:
    """Record what a function gives of each slice as one operator."""
    branch = _Branch(tracer, True)
    with tracer.away():
        sources = [tracer.traced(t) for t in leaves]
        names = [s.node.name for s in sources]
        slices = pytree.tree_unflatten(_slices(tracer, branch, sources, names), spec)
        for t in pytree.tree_leaves(args):
            if isinstance(t, pt.Tensor):
                branch.node_of(tracer.traced(t).node)
    out = run_inside(tracer, branch, fn, slices, *args)
    with tracer.away():
        columns = _stacked(tracer, out, sources[0])
        values = [branch.node_of(tracer.traced(v).node) for v in pytree.tree_leaves(out)]
        branch.graph.output(tuple(values))
        graph = kept(tracer, branch, "body_graph")
        given = [*around(tracer, (s.node for s in sources))]
        node = tracer.call(
            OPERATORS["map_impl"], (graph, given, [*around(tracer, branch.lifted)]), {}, "map_impl"
        )
        return results_of(tracer, node, out, columns, _device(tracer, leaves))


def _slices(tracer: Any, branch: _Branch, sources: list[Any], names: list[str]) -> list[Any]:
    """Return what stands in a branch for one slice of tensors outside."""
    made = []
    for source, name in zip(sources, names, strict=True):
        branch.last = branch.graph.create_node("placeholder", name, name=name)
        shadows = [s.select(0, 0).clone() for s in source.shadows]
        made.append(tracer.track(shadows[0], branch.last, shadows, source.device))
    return made


def _stacked(tracer: Any, out: Any, source: Any) -> list[Any]:
    """Return what the outputs of a branch are for all slices of a tensor."""
    return [
        [
            pt.empty((s.shape[0], *t.shape), dtype=t.dtype, device="meta")
            for t, s in zip(column, source.shadows, strict=True)
        ]
        for column in _copies(tracer, out)
    ]


def _device(tracer: Any, operands: Any) -> Any:
    for t in pytree.tree_leaves(operands):
        if isinstance(t, pt.Tensor):
            return tracer.traced(t).device
    return pt.device("cpu")
