"""Runs a graph and notes shapes and types on its nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytensorlib as pt

from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """The metadata of a tensor: shape, type, strides and device."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    memory_format = None
    if include_contiguity:
        for candidate in (pt.contiguous_format, pt.channels_last, pt.channels_last_3d):
            dims = {pt.channels_last: 4, pt.channels_last_3d: 5}.get(candidate, result.dim())
            if result.dim() == dims and result.is_contiguous(memory_format=candidate):
                memory_format = candidate
                break
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), memory_format, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph and notes in ``node.meta["tensor_meta"]`` what each node gave.

    Parameters
    ----------
    gm : GraphModule
        Whose nodes are noted on.
    fake_mode : optional
        Not used: run it with tensors on ``meta`` to compute nothing.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.shape_prop import ShapeProp
    >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3)))
    >>> _ = ShapeProp(traced).propagate(torch.ones(4, 2))
    >>> [tuple(n.meta["tensor_meta"].shape) for n in traced.graph.nodes]
    [(4, 2), (4, 3), (4, 3)]
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """Return the value of a node, and note its shape.

        Parameters
        ----------
        n : Node
            The node.

        Returns
        -------
        object
            Its value.
        """
        try:
            result = super().run_node(n)
        except Exception as e:
            raise RuntimeError(
                f"ShapeProp error for: node={n.format_node()} with meta={n.meta}"
            ) from e
        found = False

        def note(obj: Any) -> Any:
            nonlocal found
            if isinstance(obj, pt.Tensor):
                found = True
                return _extract_tensor_metadata(obj)
            return obj

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph.

        Parameters
        ----------
        *args
            The module's arguments.

        Returns
        -------
        object
            What the module returns.
        """
        return super().run(*args)
