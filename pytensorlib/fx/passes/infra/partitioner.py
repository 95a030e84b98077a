"""Groups the nodes that a backend supports into parts as large as can be."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from ..._names import qualified as _get_qualified_name
from ...graph_module import GraphModule
from ...node import Node
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """Some nodes of a program.

    Parameters
    ----------
    id : int, optional
        Its number.
    nodes : iterable of Node, optional
        What is in it.
    """

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None) -> None:
        self.id = id
        self.nodes: dict[Node, int | None] = dict.fromkeys(nodes or ())

    def __repr__(self) -> str:
        return str(list(self.nodes))

    def add_node(self, node: Node) -> None:
        """Add a node."""
        self.nodes[node] = None

    def remove_node(self, node: Node) -> None:
        """Take a node out."""
        del self.nodes[node]

    def size(self) -> int:
        """Return how many nodes there are."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Finds the parts of a program that a backend supports.

    Parameters
    ----------
    graph_module : GraphModule
        The program.
    operator_support : OperatorSupportBase
        What is supported.
    allows_single_node_partition : bool, default False
        Whether a part may have one node that computes.
    non_compute_ops, allowed_single_node_partition_ops : sequence of str, optional
        Names of operators that do not count, and of those that may be alone.
    skip_horizontal_fusion : bool, default False
        Whether only nodes that use each other come together.

    Examples
    --------
    >>> import operator, pytensorlib as torch
    >>> from pytensorlib.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    >>> from pytensorlib.fx.passes.operator_support import create_op_support
    >>> gm = torch.fx.symbolic_trace(lambda x: ((x + 1) * 2).sum())
    >>> quick = create_op_support(lambda modules, n: n.target in (operator.add, operator.mul))
    >>> CapabilityBasedPartitioner(gm, quick).propose_partitions()
    [[mul, add]]
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = set(non_compute_ops or ())
        self.allowed_single_node_partition_ops = set(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self) -> list[Partition]:
        """Return the parts; each can become one node without a cycle."""
        modules = dict(self.graph_module.named_modules())
        parts: list[Partition] = []
        of: dict[Node, Partition] = {}
        for node in reversed(list(self.graph_module.graph.nodes)):
            if node.op in ("placeholder", "output", "get_attr"):
                continue
            if not self.operator_support.is_node_supported(modules, node):
                continue
            near = [of[u] for u in node.users if u in of]
            others = [] if self.skip_horizontal_fusion else parts
            merged = Partition(len(parts), [node])
            for part in dict.fromkeys([*near, *others]):
                if part.size() and _apart({*merged.nodes, *part.nodes}, of):
                    part.nodes = {**part.nodes, **merged.nodes}
                    if merged is not part:
                        merged.nodes, merged = {}, part
            if merged not in parts:
                parts.append(merged)
            of.update(dict.fromkeys(merged.nodes, merged))
        self._join_items(of)
        return [p for p in parts if p.size() and self._is_worth(p)]

    def _join_items(self, of: dict[Node, Partition]) -> None:
        """Let the elements of a tuple be where the tuple is made."""
        for node in self.graph_module.graph.nodes:
            if not all(u.target is operator.getitem for u in node.users):
                continue
            there = of.get(node)
            for user in node.users:
                here = of.get(user)
                if here is there:
                    continue
                if here is not None:
                    here.remove_node(user)
                    del of[user]
                if there is not None:
                    there.add_node(user)
                    of[user] = there

    def _is_worth(self, part: Partition) -> bool:
        if self.allows_single_node_partition:
            return True
        counted = 0
        for n in part.nodes:
            if n.op != "call_function":
                counted += 1
                continue
            name = _get_qualified_name(n.target)
            if name in self.allowed_single_node_partition_ops:
                return True
            counted += name not in self.non_compute_ops and n.target is not operator.getitem
        return counted > 1

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Take operators that do not count out of the beginnings and ends of parts, in place.

        Parameters
        ----------
        partitions : list of Partition
            What `propose_partitions` gave.
        """
        for part in partitions:
            order = [n for n in self.graph_module.graph.nodes if n in part.nodes]
            for nodes, near in (
                (order, lambda n: n.all_input_nodes),
                (order[::-1], lambda n: list(n.users)),
            ):
                for n in nodes:
                    counts = n.op != "call_function" or (
                        _get_qualified_name(n.target) not in self.non_compute_ops
                    )
                    if n in part.nodes and not counts and not any(m in part.nodes for m in near(n)):
                        part.remove_node(n)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Put each part into a submodule, in place; return the program."""
        return fuse_by_partitions(self.graph_module, [list(p.nodes) for p in partitions], prefix)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Put each part that is found into a submodule, in place; return the program."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _apart(group: set[Node], of: dict[Node, Partition]) -> bool:
    """Return whether nodes can be one: no way leads out of them, through parts, and back."""
    waiting = [u for n in group for u in n.users if u not in group]
    seen = set(waiting)
    while waiting:
        n = waiting.pop()
        part = of.get(n)
        together = [n] if part is None else [m for m in part.nodes if m not in group]
        for u in (u for m in together for u in m.users):
            if u in group:
                return False
            if u not in seen:
                seen.add(u)
                waiting.append(u)
    return True
