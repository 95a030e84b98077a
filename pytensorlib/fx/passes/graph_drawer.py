"""Draws graphs by Graphviz's language."""

from __future__ import annotations

import hashlib
from typing import Any

from .._names import qualified
from ..node import Node

__all__ = ["FxGraphDrawer"]

_COLORS = {
    "placeholder": '"AliceBlue"',
    "call_module": "LemonChiffon1",
    "get_param": "Yellow2",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}
_HASHED = [
    "CadetBlue1", "Coral", "DarkOliveGreen1", "DarkSeaGreen1", "GhostWhite", "Khaki1",
    "LavenderBlush1", "LightSkyBlue", "MistyRose1", "MistyRose2", "PaleTurquoise2", "PeachPuff1",
    "Salmon", "Thistle1", "Thistle3", "Wheat1",
]  # fmt: skip


class FxGraphDrawer:
    """Draws a program; needs the package pydot.

    Parameters
    ----------
    graph_module : GraphModule
        The program.
    name : str
        What the drawing is called.
    ignore_getattr, ignore_parameters_and_buffers : bool, default False
        Whether nodes that get attributes are left out.
    skip_node_names_in_args : bool, default True
        Whether arguments that are nodes are not written out.
    parse_stack_trace : bool, default False
        Whether it is written where nodes come from.
    dot_graph_shape : str, optional
        The shape of nodes, "record".
    normalize_args : bool, default False
        Whether arguments are written by name.

    Raises
    ------
    RuntimeError
        The package is not installed.
    """

    def __init__(
        self,
        graph_module: Any,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        try:
            import pydot
        except ImportError:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed. Please install pydot "
                "through your favorite Python package manager."
            ) from None
        self._name = name
        self.dot_graph_shape = dot_graph_shape or "record"
        self.normalize_args = normalize_args
        skip = ignore_getattr or ignore_parameters_and_buffers
        self._dot_graphs: dict[str, Any] = {}
        self._draw(pydot, graph_module, name, skip, skip_node_names_in_args, parse_stack_trace)

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """Return the drawing, which can write itself as SVG or as text.

        Parameters
        ----------
        submod_name : str, optional
            That of a module in the module.

        Returns
        -------
        pydot.Dot
            The drawing.
        """
        return self._dot_graphs[self._name if submod_name is None else submod_name]

    get_main_dot_graph = get_dot_graph

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """Return the drawing of a module in the module.

        Parameters
        ----------
        submod_name : str
            Its name.

        Returns
        -------
        pydot.Dot
            The drawing.
        """
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """Return all drawings by name.

        Returns
        -------
        dict
            Of the module and of graph modules in it.
        """
        return self._dot_graphs

    def _color(self, node: Node) -> str:
        if node.op in _COLORS:
            return _COLORS[node.op]
        digest = hashlib.md5(str(node.target).encode(), usedforsecurity=False).hexdigest()
        return _HASHED[int(digest[:8], 16) % len(_HASHED)]

    def _label(self, module: Any, node: Node, skip_names: bool, trace: bool) -> str:
        def text(arg: Any) -> str:
            said = str(arg) if not (skip_names and isinstance(arg, Node)) else ""
            for mark in "{}<>|":
                said = said.replace(mark, rf"\{mark}")
            return said

        label = f"{{name=%{node.name}|op_code={node.op}\n"
        if node.op == "call_module":
            leaf = module.get_submodule(node.target)
            label += rf"\n|target={type(leaf).__name__}\n"
        else:
            target = node.target if isinstance(node.target, str) else qualified(node.target)
            label += rf"|target={text(target)}\n"
            args = [a for a in map(text, node.args) if a]
            kwargs = [f"{k}: {text(v)}" for k, v in node.kwargs.items()]
            if args:
                label += r"|args=(\l" + r",\n".join(args) + r",\n)\l"
            if kwargs:
                label += r"|kwargs={\l".replace("{", r"\{") + r",\n".join(kwargs) + r"\n\}\l"
        meta: Any = node.meta.get("tensor_meta")
        if hasattr(meta, "shape"):
            label += rf"|dtype={meta.dtype}\n|shape={tuple(meta.shape)}\n"
        if trace and node.stack_trace:
            label += f"|{text(node.stack_trace.splitlines()[-1].strip())}"
        return rf"{label}|num_users={len(node.users)}\n}}"

    def _draw(
        self, pydot: Any, module: Any, name: str, skip: bool, skip_names: bool, trace: bool
    ) -> None:
        dot = pydot.Dot(name, rankdir="TB")
        self._dot_graphs[name] = dot
        for node in module.graph.nodes:
            if skip and node.op == "get_attr":
                continue
            style = {
                "shape": self.dot_graph_shape,
                "fillcolor": self._color(node),
                "style": '"filled,rounded"',
                "fontcolor": "#000000",
            }
            label = self._label(module, node, skip_names, trace)
            dot.add_node(pydot.Node(node.name, label=label, **style))
            if node.op == "call_module":
                leaf = module.get_submodule(node.target)
                if hasattr(leaf, "graph"):
                    inner = f"{name}_{node.target}"
                    self._draw(pydot, leaf, inner, skip, skip_names, trace)
        for node in module.graph.nodes:
            if skip and node.op == "get_attr":
                continue
            for user in node.users:
                dot.add_edge(pydot.Edge(node.name, user.name))
