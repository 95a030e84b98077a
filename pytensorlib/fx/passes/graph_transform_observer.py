"""Notes which nodes a pass makes, replaces and erases."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..traceback import NodeSource, NodeSourceAction
from .graph_drawer import FxGraphDrawer

__all__ = ["GraphTransformObserver"]

T = TypeVar("T")


class GraphTransformObserver:
    """Watches a program in a ``with`` block: new nodes know the pass that made them.

    Parameters
    ----------
    gm : GraphModule
        The program.
    passname : str
        What the pass is called in ``node.meta["from_node"]``.
    subsystem : str, optional
        Not used.
    log_url : str, optional
        A folder that gets drawings of the graph before and after, with what changed in yellow;
        they need the package pydot.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.graph_transform_observer import GraphTransformObserver
    >>> gm = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    >>> with GraphTransformObserver(gm, "smooth") as observer:
    ...     _ = torch.fx.replace_pattern(gm, lambda x: torch.relu(x), lambda x: torch.tanh(x))
    >>> observer.created_nodes, observer.erased_nodes
    ({'tanh'}, {'relu'})
    """

    __pass_count = 0

    def __init__(
        self,
        gm: GraphModule,
        passname: str,
        subsystem: str | None = None,
        log_url: str | None = None,
    ) -> None:
        self.gm, self.passname, self.subsystem, self.log_url = gm, passname, subsystem, log_url
        self.created_nodes: set[str] = set()
        self.erased_nodes: set[str] = set()
        self.name_to_node: dict[str, Node] = {}
        self._hooks = {
            "create": self.get_node_creation_hook(),
            "erase": self.get_node_erase_hook(),
            "replace": self.get_node_replace_hook(),
        }
        if log_url is not None:
            GraphTransformObserver.__pass_count += 1
            self.input_dot_graph = self._drawn()

    @classmethod
    def get_current_pass_count(cls) -> int:
        """Return how many passes were drawn."""
        return cls.__pass_count

    def apply_gm_pass(self, pass_fn: Callable[[GraphModule], T]) -> T:
        """Return what a pass gives for the program.

        Parameters
        ----------
        pass_fn : callable
            Takes the program.
        """
        with self:
            return pass_fn(self.gm)

    def apply_graph_pass(self, pass_fn: Callable[[Graph], T]) -> T:
        """Return what a pass gives for the program's graph.

        Parameters
        ----------
        pass_fn : callable
            Takes the graph.
        """
        with self:
            return pass_fn(self.gm.graph)

    def __enter__(self) -> GraphTransformObserver:
        for kind, hook in self._hooks.items():
            getattr(self.gm, f"_register_{kind}_node_hook")(hook)
        self.created_nodes.clear()
        self.erased_nodes.clear()
        self.name_to_node = {n.name: n for n in self.gm.graph.nodes}
        return self

    def __exit__(self, *error: Any) -> None:
        for kind, hook in self._hooks.items():  # which copies of the program do not have
            getattr(self.gm, f"_unregister_{kind}_node_hook")(hook)
        if self.log_url is not None and (self.created_nodes or self.erased_nodes):
            self._write(self.input_dot_graph, self.erased_nodes, "input")
            self._write(self._drawn(), self.created_nodes, "output")

    def _drawn(self) -> Any:
        drawer = FxGraphDrawer(
            self.gm, self.passname, ignore_getattr=True, ignore_parameters_and_buffers=True
        )
        return drawer.get_dot_graph()

    def _write(self, drawing: Any, changed: set[str], which: str) -> None:
        for node in drawing.get_node_list():
            color = "yellow" if node.get_name() in changed else "grey"
            node.obj_dict["attributes"]["fillcolor"] = color
        name = f"pass_{GraphTransformObserver.__pass_count}_{self.passname}_{which}_graph.dot"
        drawing.write(os.path.join(str(self.log_url), name))

    def get_node_creation_hook(self) -> Callable[[Node], None]:
        """Return what is called with each new node."""

        def created(node: Node) -> None:
            self.created_nodes.add(node.name)
            self.name_to_node[node.name] = node
            source = NodeSource(None, self.passname, NodeSourceAction.CREATE)
            node.meta.setdefault("from_node", []).append(source)

        return created

    def get_node_erase_hook(self) -> Callable[[Node], None]:
        """Return what is called with each node that is erased."""

        def erased(node: Node) -> None:
            self.erased_nodes.add(node.name)
            self.name_to_node.pop(node.name, None)

        return erased

    def get_node_replace_hook(self) -> Callable[[Node, str, Node], None]:
        """Return what is called with a node, the name of what replaces it, and a user."""

        def replaced(old: Node, new: str, user: Node) -> None:
            node = self.name_to_node.get(new)
            if node is None:
                return
            known: list[NodeSource] = node.meta.get("from_node", [])
            if any(source.name == old.name for source in known):
                return  # each user calls
            actions = [NodeSourceAction.REPLACE]
            if new in self.created_nodes:
                actions.append(NodeSourceAction.CREATE)
            made = [NodeSourceAction.CREATE]
            kept = [s for s in known if not (s.pass_name == self.passname and s.action == made)]
            node.meta["from_node"] = [*kept, NodeSource(old, self.passname, actions)]

        return replaced
