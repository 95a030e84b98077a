"""The settings and parameters of a program's layers, noted on its nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import nn
from ..graph_module import GraphModule
from .tools_common import get_acc_ops_name

__all__ = [
    "default_matching",
    "extract_attrs_for_lowering",
    "lift_lowering_attrs_to_nodes",
    "module_fetch_book",
]


def default_matching(name: str, target_version: int) -> str:
    """Return what an attribute is called in a version of its class: the same.

    Parameters
    ----------
    name : str
        The attribute.
    target_version : int
        The version.
    """
    return name


_WINDOW = ["kernel_size", "stride", "padding", "dilation"]

# By class: the version whose attributes are named, their names, and how other versions call them.
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    nn.Linear: (1, ["weight", "bias"], default_matching),
    nn.Conv2d: (1, ["weight", "bias", *_WINDOW, "groups", "padding_mode"], default_matching),
    nn.BatchNorm2d: (
        2,
        ["weight", "bias", "running_mean", "running_var", "eps"],
        default_matching,
    ),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (1, [*_WINDOW, "return_indices", "ceil_mode"], default_matching),
    nn.ReLU: (1, ["inplace"], default_matching),
}


def extract_attrs_for_lowering(mod: nn.Module) -> dict[str, Any]:
    """Return the name of a layer's class and the attributes that `module_fetch_book` names.

    Parameters
    ----------
    mod : Module
        The layer.

    Raises
    ------
    RuntimeError
        Its class is not in the book, or is newer.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.param_fetch import extract_attrs_for_lowering
    >>> extract_attrs_for_lowering(torch.nn.ReLU())
    {'name': 'torch.nn.modules.activation.ReLU', 'inplace': False}
    """
    name = get_acc_ops_name(type(mod))
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"{name} is not in the module_fetch_book yet, please add it")
    version, attributes, called = module_fetch_book[type(mod)]
    if version < mod._version:
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {name} version {mod._version}, "
            "please upgrade the module_fetch_book"
        )
    return {"name": name, **{a: getattr(mod, called(a, mod._version)) for a in attributes}}


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Note the attributes of each layer on the node that calls it, as ``attrs_for_lowering``.

    Parameters
    ----------
    fx_module : GraphModule
        The program; programs in it are gone through, too.
    """
    n: Any
    for n in fx_module.graph.nodes:
        if n.op == "call_module":
            module = fx_module.get_submodule(n.target)
            if isinstance(module, GraphModule):
                lift_lowering_attrs_to_nodes(module)
            else:
                n.attrs_for_lowering = extract_attrs_for_lowering(module)
