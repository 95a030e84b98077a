"""Sizes of nodes in bytes, and other targets for nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from .shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "get_size_of_all_nodes",
    "get_size_of_node",
    "get_tensor_meta",
    "replace_target_nodes_with",
    "size_bytes",
]


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Any, new_op: str, new_target: Any
) -> None:
    """Let nodes that call one thing call another.

    Parameters
    ----------
    fx_module : GraphModule
        Changed in place.
    old_op, old_target
        What nodes call now.
    new_op, new_target
        What they call then.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.graph_manipulation import replace_target_nodes_with
    >>> gm = torch.fx.symbolic_trace(lambda x: torch.relu(x))
    >>> replace_target_nodes_with(gm, "call_function", torch.relu, "call_function", torch.exp)
    >>> gm(torch.zeros(1))
    tensor([1.])
    """
    graph = Graph()
    env: dict[Node, Node] = {}
    for n in fx_module.graph.nodes:
        if n.op == old_op and n.target == old_target:
            args, kwargs = map_arg((n.args, n.kwargs), env.__getitem__)
            env[n] = graph.create_node(new_op, new_target, args, kwargs, n.name)
        else:
            env[n] = graph.node_copy(n, env.__getitem__)
    fx_module.graph = graph


class size_bytes(NamedTuple):  # noqa: N801  (PyTorch's name)
    """The bytes of a node's result, and those with the parameters of its module."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module: GraphModule, args: Any = None) -> None:
    """Note the bytes of each node as its attribute ``size_bytes``.

    Parameters
    ----------
    fx_module : GraphModule
        The program.
    args : list of Tensor, optional
        With which `ShapeProp` runs first; it must have run when left out.
    """
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    n: Any
    for n in fx_module.graph.nodes:
        if n.op == "output":
            break
        n.size_bytes = get_size_of_node(fx_module, n)


def get_tensor_meta(node: Node) -> TensorMetadata:
    """Return what `ShapeProp` found of a node's tensor.

    Parameters
    ----------
    node : Node
        Of a program on which it ran.

    Raises
    ------
    RuntimeError
        It did not, or the node gives no tensor.
    """
    found: TensorMetadata | None = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! "
            "Check that shape propagation has run."
        )
    return found


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """Return the bytes of a node.

    Parameters
    ----------
    fx_module : GraphModule
        The program, on which `ShapeProp` ran.
    node : Node
        Gives a tensor.

    Returns
    -------
    size_bytes
        Of its result, and of that with the parameters of the module that it calls.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes import graph_manipulation
    >>> gm = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3)))
    >>> graph_manipulation.get_size_of_all_nodes(gm, [torch.ones(4, 2)])
    >>> [node.size_bytes for node in gm.graph.nodes if node.op == "call_module"]
    [size_bytes(output_size=48, total_size=84)]
    """
    meta = get_tensor_meta(node)
    out = meta.shape.numel()
    state = 0
    if node.op == "call_module":
        module = fx_module.get_submodule(str(node.target))
        state = sum(p.numel() for p in module.parameters())
    return size_bytes(meta.dtype.itemsize * out, meta.dtype.itemsize * (out + state))
