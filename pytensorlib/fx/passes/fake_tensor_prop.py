"""Runs a graph without memory and notes what each node would give."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ...export._fake import FakeTensor
from ...utils import _pytree as pytree
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph on tensors on ``meta`` and notes in ``node.meta["val"]`` what nodes give.

    Parameters
    ----------
    module : GraphModule
        Whose nodes are noted on.
    mode : optional
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.fake_tensor_prop import FakeTensorProp
    >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3)))
    >>> _ = FakeTensorProp(traced).propagate(torch.ones(4, 2))
    >>> [node.meta["val"] for node in traced.graph.nodes if node.op == "call_module"]
    [FakeTensor(..., size=(4, 3))]
    """

    def __init__(self, module: Any, mode: Any = None) -> None:
        super().__init__(module)
        self._mode = mode
        self._device = pt.device("cpu")

    def fetch_attr(self, target: str) -> Any:
        """Return an attribute of the module, a tensor without its memory.

        Parameters
        ----------
        target : str
            Its path.
        """
        return pytree.tree_map(_without_memory, super().fetch_attr(target))

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return what a submodule would give.

        Parameters
        ----------
        target : str
            Its path.
        args, kwargs
            Its arguments.
        """
        module = self.module.get_submodule(target)
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        fake = {name: _without_memory(t) for name, t in state.items()}
        return pt.func.functional_call(module, fake, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return what a function would give.

        Parameters
        ----------
        target : callable
            The function.
        args, kwargs
            Its arguments.
        """
        if "device" in kwargs:
            kwargs = {**kwargs, "device": "meta"}
        with pt.device("meta"):
            return super().call_function(target, args, kwargs)

    def run_node(self, n: Node) -> Any:
        """Return what a node would give, and note it.

        Parameters
        ----------
        n : Node
            The node.
        """
        result = super().run_node(n)

        def value(obj: Any) -> Any:
            if isinstance(obj, pt.Tensor):
                return FakeTensor.of(obj, device=self._device)
            return obj if isinstance(obj, (int, float, bool)) else None

        meta = map_aggregate(result, value)
        if meta is not None:
            n.meta["val"] = meta
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph.

        Parameters
        ----------
        *args
            Arguments of the module, which keep their elements to themselves.

        Returns
        -------
        object
            What the module would return, on ``meta``.
        """
        for leaf in pytree.tree_leaves((args, list(self.module.parameters()))):
            if isinstance(leaf, pt.Tensor) and leaf.device.type != "meta":
                self._device = leaf.device
                break
        return super().run(*pytree.tree_map(_without_memory, args))

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the graph on tensors that are on ``meta``.

        Parameters
        ----------
        *args
            Arguments of the module.
        """
        return super().run(*args)


def _without_memory(t: Any) -> Any:
    if not isinstance(t, pt.Tensor):
        return t
    with pt.no_grad():
        made = pt.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta")
    return made.requires_grad_() if t.requires_grad else made
