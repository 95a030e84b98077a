"""Passes that make a network in evaluation mode do less."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import pytensorlib as pt

from ..._absent.modules import tell_missing
from ..._absent.table import EAGER
from ...nn.utils import fuse_conv_bn_eval
from .._symbolic_trace import Tracer
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

__all__ = ["fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Return whether a node calls a module on what another gives, and both are of given classes.

    Parameters
    ----------
    pattern : iterable of two types
        Of the first module and of the second.
    node : Node
        The second call.
    modules : dict
        Modules by name.

    Returns
    -------
    bool
        Whether the classes are these.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.experimental.optimization import matches_module_pattern
    >>> net = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU()))
    >>> second = list(net.graph.nodes)[2]
    >>> kinds = (torch.nn.Linear, torch.nn.ReLU)
    >>> matches_module_pattern(kinds, second, dict(net.named_modules()))
    True
    """
    if not node.args:
        return False
    for kind, at in zip(pattern, (node.args[0], node), strict=True):
        called = isinstance(at, Node) and at.op == "call_module" and at.target in modules
        if not called or type(modules[str(at.target)]) is not kind:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Any) -> None:
    """Let a node call another module.

    Parameters
    ----------
    node : Node
        The call.
    modules : dict
        Modules by name; the new one is put there.
    new_module : Module
        What is called from here on.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.experimental.optimization import replace_node_module
    >>> net = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    >>> replace_node_module(list(net.graph.nodes)[1], dict(net.named_modules()), torch.nn.Tanh())
    >>> getattr(net, "0")
    Tanh()
    """
    target = str(node.target)
    parent, _, name = target.rpartition(".")
    modules[target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Any, inplace: bool = False, no_trace: bool = False) -> Any:
    """Return a network whose batch norms behind convolutions and linear layers are part of those.

    Parameters
    ----------
    model : Module
        In evaluation mode.
    inplace : bool, default False
        Whether the network itself is changed.
    no_trace : bool, default False
        Whether it is a `GraphModule` already.

    Returns
    -------
    GraphModule
        Gives the same to rounding.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.experimental.optimization import fuse
    >>> net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2)).eval()
    >>> [type(m).__name__ for m in fuse(net).children()]
    ['Conv2d']
    """
    nn = pt.nn
    pairs = (
        (nn.Conv1d, nn.BatchNorm1d),
        (nn.Conv2d, nn.BatchNorm2d),
        (nn.Conv3d, nn.BatchNorm3d),
    )
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else None
    if traced is None:
        traced = GraphModule(model, Tracer().trace(model))
    modules = dict(traced.named_modules())
    for pair in pairs:
        for node in traced.graph.nodes:
            if not matches_module_pattern(pair, node, modules):
                continue
            source: Any = node.args[0]
            norm = modules[str(node.target)]
            if len(source.users) > 1 or not norm.track_running_stats:
                continue
            conv = modules[str(source.target)]
            replace_node_module(source, modules, fuse_conv_bn_eval(conv, norm))
            node.replace_all_uses_with(source)
            traced.graph.erase_node(node)
    return GraphModule(traced, traced.graph)


def remove_dropout(model: Any) -> Any:
    """Return a network without its dropout layers.

    Parameters
    ----------
    model : Module
        Any.

    Returns
    -------
    GraphModule
        What it does in evaluation mode.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.experimental.optimization import remove_dropout
    >>> net = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Dropout(0.5))
    >>> [n.op for n in remove_dropout(net).graph.nodes]
    ['placeholder', 'call_module', 'output']
    """
    traced = GraphModule(model, Tracer().trace(model))

    class Without(Transformer):
        def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if isinstance(self.submodules[target], pt.nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)

    return Without(traced).transform()


tell_missing(globals(), EAGER)
