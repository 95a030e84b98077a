"""What passes that look for parts of a graph share: names of targets, orders, groups of nodes."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytensorlib as pt

from .._names import qualified
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node

__all__ = [
    "CALLABLE_NODE_OPS",
    "FxNetAccFusionsFinder",
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: str | type) -> str:
    """Return the name of a class with its module, of an operator of an accelerator without.

    Parameters
    ----------
    k : type or str
        A class; a text is returned as it is.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.tools_common import get_acc_ops_name
    >>> get_acc_ops_name(torch.nn.Linear)
    'torch.nn.modules.linear.Linear'
    """
    if isinstance(k, str):
        return k
    home = k.__module__ or ""
    if "acc_ops" in home:
        return f"acc_ops.{k.__name__}"
    return f"{home.replace('pytensorlib.', 'torch.', 1)}.{k.__name__}"


def get_node_target(submodules: Mapping[str, Any], node: Node) -> str:
    """Return what a node calls: a function, a method, or the class of a module.

    Parameters
    ----------
    submodules : dict
        The modules by name.
    node : Node
        Calls something.

    Raises
    ------
    AssertionError
        It calls nothing.
    """
    if node.op not in CALLABLE_NODE_OPS:
        expected = ", ".join(sorted(CALLABLE_NODE_OPS))
        raise AssertionError(f"Expect op types of {expected}, but found {node.op}")
    target: Any = node.target
    if node.op == "call_method":
        return str(target)
    if node.op == "call_function":
        if "acc_ops" in (getattr(target, "__module__", None) or ""):
            return f"acc_ops.{target.__name__}"
        return qualified(target)
    module = submodules[target]
    return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))


def is_node_output_tensor(node: Node) -> bool:
    """Return whether a node gives a tensor; `ShapeProp` must have run.

    Parameters
    ----------
    node : Node
        With the class of its result in its notes.
    """
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, pt.Tensor)


def _calls(nodes: Iterable[Node]) -> list[Node]:
    return [n for n in nodes if n.op in CALLABLE_NODE_OPS]


def _reached(nodes: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """Return the nodes that others lead to."""
    found: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        more = [m for m in following(waiting.pop()) if m not in found]
        found.update(more)
        waiting += more
    return found


class FxNetAccFusionsFinder:
    """Finds groups of nodes that pass numbers or lists to each other, and so run together.

    Parameters
    ----------
    module : GraphModule
        The program; `ShapeProp` must have run.
    acc_nodes : set of Node
        What an accelerator supports. A group that it does not support whole is taken out.
    """

    def __init__(self, module: GraphModule, acc_nodes: set[Node]) -> None:
        self.module, self.acc_nodes = module, acc_nodes

    def _group(self, start: Node) -> set[Node]:
        group: set[Node] = set()
        more = {start}
        while more - group:
            group |= more
            more = set()
            for n in group:
                if "tensor_meta" not in n.meta:
                    more.update(_calls(n.users))
                more.update(m for m in _calls(n.all_input_nodes) if "tensor_meta" not in m.meta)
            group |= more
            # What lies between two of its nodes cannot run before it, nor after.
            more = _reached(group, lambda n: _calls(n.users))
            more &= _reached(group, lambda n: _calls(n.all_input_nodes))
        return group

    def __call__(self) -> dict[Node, set[Node]]:
        """Return the group of each node that is in one."""
        found: dict[Node, set[Node]] = {}
        for n in [n for n in self.module.graph.nodes if n in self.acc_nodes]:
            if n in found or n not in self.acc_nodes or "tensor_meta" in n.meta:
                continue
            if n.op not in CALLABLE_NODE_OPS:
                continue
            group = self._group(n)
            if group <= self.acc_nodes:
                found.update(dict.fromkeys(group, group))
            else:
                self.acc_nodes -= group
        return found


def _in_order(
    nodes: list[Node], take: Callable[[], Node | None], add: Callable[[Node], None]
) -> Iterator[Node]:
    """Yield nodes after those that they use, in the order in which ready ones are taken."""
    left = {n: len(n.all_input_nodes) for n in nodes}
    for n in nodes:
        if not left[n]:
            add(n)
    while (taken := take()) is not None:
        yield taken
        for user in taken.users:
            left[user] -= 1
            if not left[user]:
                add(user)


def _with_nodes(gm: GraphModule, order: Iterable[Node], error: type[Exception]) -> GraphModule:
    """Give a module a graph of its nodes in another order."""
    nodes = list(gm.graph.nodes)
    graph = Graph()
    env: dict[Node, Node] = {}
    for n in order:
        env[n] = graph.node_copy(n, env.__getitem__)
    if len(env) < len(nodes):
        left = [n for n in nodes if n not in env]
        raise error(f"Input graph has cycles, unable to add {left}")
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the nodes of a program in an order in which they can run, level by level.

    Parameters
    ----------
    gm : GraphModule
        Changed in place.

    Returns
    -------
    GraphModule
        `gm`.

    Raises
    ------
    RuntimeError
        There is a cycle.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.tools_common import legalize_graph
    >>> gm = torch.fx.symbolic_trace(lambda x, y: x.sin().cos() + y.exp())
    >>> [n.name for n in legalize_graph(gm).graph.nodes]
    ['x', 'y', 'sin', 'exp', 'cos', 'add', 'output']
    """
    ready: deque[Node] = deque()
    checks = _checks()

    def add(n: Node) -> None:
        # What is asserted comes before what relies on it. At first, nodes keep their order.
        if n.all_input_nodes and n.op == "call_function" and n.target in checks:
            ready.appendleft(n)
        else:
            ready.append(n)

    order = _in_order(list(gm.graph.nodes), lambda: ready.popleft() if ready else None, add)
    return _with_nodes(gm, order, RuntimeError)


def _checks() -> set[Any]:
    """Return the functions that assertions about sizes are made of."""
    import operator

    names = "add mul sub floordiv truediv mod le lt ge gt eq ne".split()
    return {*(getattr(operator, n) for n in names), pt.ops.aten._assert_scalar.default}  # type: ignore[attr-defined]


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Put the nodes of a program in an order in which they can run, with as few moves as can be.

    Parameters
    ----------
    gm : GraphModule
        Changed in place.

    Returns
    -------
    GraphModule
        `gm`.

    Raises
    ------
    AssertionError
        There is a cycle.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.tools_common import stable_topological_sort
    >>> gm = torch.fx.symbolic_trace(lambda x, y: x.sin().cos() + y.exp())
    >>> [n.name for n in stable_topological_sort(gm).graph.nodes]
    ['x', 'y', 'sin', 'cos', 'exp', 'add', 'output']
    """
    nodes = list(gm.graph.nodes)
    places = {n: i for i, n in enumerate(nodes)}
    ready: list[int] = []
    order = _in_order(
        nodes,
        lambda: nodes[heapq.heappop(ready)] if ready else None,
        lambda n: heapq.heappush(ready, places[n]),
    )
    return _with_nodes(gm, order, AssertionError)
