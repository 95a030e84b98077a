"""Computes once what a program computes of its parameters alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node, map_arg

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]

_NAME = "_FX_CONST_FOLDED_ATTRS"
# What holds the place of constants until they are computed.
_EMPTY = pt.nn.Parameter(pt.empty(0), requires_grad=False)


class FoldedGraphModule(GraphModule):
    """A module that computes its constants in the first call.

    Parameters
    ----------
    root : Module or dict
        Has what the graphs' targets name.
    graph : Graph
        The program without what is constant.
    const_subgraph : Graph, optional
        Computes the constants, without arguments; a tuple where they are several.
    fx_const_folded_attrs_name : str, optional
        The attribute that holds them.
    device_for_folded_attrs : str, default "cuda"
        Where a constant that is a plain integer goes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.experimental.const_fold import split_const_subgraphs
    >>> class Net(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = torch.nn.Parameter(torch.ones(2))
    ...     def forward(self, x):
    ...         return x * (self.w + self.w)
    >>> folded = split_const_subgraphs(Net())
    >>> print(folded.code.strip())
    def forward(self, x):
        _fx_const_folded_attrs = self._FX_CONST_FOLDED_ATTRS
        mul = x * _fx_const_folded_attrs;  x = _fx_const_folded_attrs = None
        return mul
    >>> folded(torch.ones(2))
    tensor([2., 2.], grad_fn=<MulBackward0>)
    """

    def __init__(
        self,
        root: Any,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = (
            None if const_subgraph is None else GraphModule(root, const_subgraph)
        )
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Compute the constants, and keep them as parameters.

        Raises
        ------
        AssertionError
            They are there already.
        """
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("run_folding: the constants were computed already")
        self.has_folding_been_run = True

        def parameter(value: Any) -> Any:
            if not isinstance(value, pt.Tensor):
                value = pt.tensor([value], device=self.device_for_folded_attrs)
            differentiable = value.is_floating_point() and value.requires_grad
            return pt.nn.Parameter(value.detach().clone(), requires_grad=differentiable)

        found = self.const_subgraph_module()
        if isinstance(found, tuple):
            setattr(
                self, self.fx_const_folded_attrs_name, pt.nn.ParameterList(map(parameter, found))
            )
        else:
            setattr(self, self.fx_const_folded_attrs_name, parameter(found))


def get_unique_attr_name_in_module(mod_traced: Any, name: str) -> str:
    """Return a name that can be an attribute's, and is none of the module's.

    Parameters
    ----------
    mod_traced : Module
        The module.
    name : str
        What it should be like.

    Returns
    -------
    str
        The name, with a number behind it where it is taken.
    """
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    if name[0].isdigit():
        name = f"_{name}"
    base, i = name, 0
    if numbered := re.match(r"(.*)_(\d+)$", name):
        base, i = numbered[1], int(numbered[2])
    while hasattr(mod_traced, name):
        i += 1
        name = f"{base}_{i}"
    return name


def _is_impure(node: Node, root: GraphModule) -> bool:
    if node.is_impure():
        return True
    if node.op != "call_module":
        return False
    module = root.get_submodule(str(node.target))
    return isinstance(module, GraphModule) and any(
        n.op not in ("placeholder", "output") and _is_impure(n, module) for n in module.graph.nodes
    )


def split_const_subgraphs(
    module: Any,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """Return a module that computes what depends on parameters alone only once.

    Parameters
    ----------
    module : Module or GraphModule
        What is folded; it stays as it is.
    skip_folding_node_fn : callable, optional
        Says of a node whether it stays in the program.
    device_for_folded_attrs : str, default "cpu"
        Where a constant that is a plain integer goes.

    Returns
    -------
    FoldedGraphModule
        With the two programs.
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant: set[Node] = set()
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        known = node.op == "get_attr" or constant.issuperset(node.all_input_nodes)
        skipped = skip_folding_node_fn is not None and skip_folding_node_fn(node)
        if known and not skipped and not _is_impure(node, traced):
            constant.add(node)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)

    # What the rest of the program takes of the constants.
    taken = [
        n
        for n in traced.graph.nodes
        if n in constant and n.op != "get_attr" and any(u not in constant for u in n.users)
    ]
    once = Graph()
    copies: dict[Node, Node] = {}
    for node in traced.graph.nodes:
        if node in constant:
            copies[node] = once.node_copy(node, lambda n: copies[n])
    results = tuple(copies[n] for n in taken)
    once.output(results[0] if len(results) == 1 else results)
    name = get_unique_attr_name_in_module(traced, _NAME)
    rest = Graph()
    values: dict[Node, Node] = {}
    for node in traced.graph.nodes:
        if node in constant and node.op != "get_attr":
            if node in taken:
                place = name if len(taken) == 1 else f"{name}.{taken.index(node)}"
                values[node] = rest.create_node("get_attr", place)
                values[node].meta = dict(node.meta)
        elif node.op == "output":
            rest.output(map_arg(node.args[0], lambda n: values[n]), node.type)
        else:
            values[node] = rest.node_copy(node, lambda n: values[n])
    rest.set_codegen(traced.graph._codegen)
    root: dict[str, Any] = {}
    for graph in (once, rest):
        for node in reversed(graph.nodes):
            if node.op == "get_attr" and not node.users:
                graph.erase_node(node)
            elif node.op in ("get_attr", "call_module"):
                target = str(node.target)
                folded = graph is rest and target.partition(".")[0] == name
                root[target] = _EMPTY if folded else _get_attr(traced, target)
    made = FoldedGraphModule(root, rest, once, name, device_for_folded_attrs)
    made.training = traced.training
    return made
