"""Lets operators write to tensors that nothing else reads afterwards."""

from __future__ import annotations

import functools
import operator
from typing import Any

import pytensorlib as pt

from ..._ops import OpOverload, ops
from ...export._aten import schemas
from ...utils import _pytree as pytree
from ..graph_module import GraphModule
from ..node import Node, map_arg
from .fake_tensor_prop import _without_memory

__all__ = ["reinplace"]

# What puts a tensor where a view of another was, and that view.
_VIEW_OF = {
    ops.aten.diagonal_scatter.default: ops.aten.diagonal.default,
    ops.aten.select_scatter.default: ops.aten.select.int,
    ops.aten.slice_scatter.default: ops.aten.slice.Tensor,
    ops.aten.as_strided_scatter.default: ops.aten.as_strided.default,
}


def _memory(t: Any) -> Any:
    return t.untyped_storage()._cdata


def _region(t: Any) -> tuple[Any, ...]:
    return _memory(t), t.storage_offset(), tuple(t.shape), t.stride()


class _Memory:
    """Which memory each node of a program uses, found by running it without any."""

    def __init__(self, gm: GraphModule, args: Any) -> None:
        self.values: dict[Node, Any] = {}
        self.places: dict[Node, int] = {}
        given = iter(args)
        for i, n in enumerate(gm.graph.nodes):
            self.places[n] = i
            self.values[n] = self._value(gm, n, given)
        outside = [n for n in self.values if n.op in ("placeholder", "get_attr")]
        self.outside = {m for n in outside for m in self.of(n)}

    def _value(self, gm: GraphModule, n: Node, given: Any) -> Any:
        if n.op == "placeholder":
            return pytree.tree_map(_without_memory, next(given))
        if n.op == "get_attr":
            value = functools.reduce(getattr, str(n.target).split("."), gm)
            return pytree.tree_map(_without_memory, value)
        args, kwargs = map_arg((n.args, n.kwargs), self.values.__getitem__)
        if n.op == "output":
            return args[0]
        target: Any = n.target
        if "device" in kwargs:
            kwargs = {**kwargs, "device": "meta"}
        with pt.no_grad(), pt.device("meta"):
            return target(*args, **kwargs)

    def of(self, n: Node) -> set[Any]:
        leaves = pytree.tree_leaves(self.values[n])
        return {_memory(t) for t in leaves if isinstance(t, pt.Tensor)}

    def later(self, memory: Any, after: Node) -> list[Node]:
        """Return the nodes after another that read memory, but for views."""
        aliases = {n for n in self.values if n.op != "output" and memory in self.of(n)}
        users = {u for n in aliases for u in n.users if self.places[u] > self.places[after]}
        return [u for u in users if not (u in aliases and _is_view(u))]


def _is_view(n: Node) -> bool:
    target = n.target
    return target is operator.getitem or (isinstance(target, OpOverload) and target.is_view)


def _in_place(op: OpOverload) -> OpOverload | None:
    """Return the form of an operator that writes to its first argument."""
    if op.namespace != "aten" or op.is_view:
        return None
    form = "" if op._overloadname == "default" else op._overloadname
    mine = [s for s in schemas(op._opname) if (s.overload or "") in (form, op._overloadname)]
    kinds = [[a.kind for a in s.arguments] for s in mine]
    for schema in schemas(f"{op._opname}_"):
        if [a.kind for a in schema.arguments] in kinds:
            found: OpOverload = getattr(getattr(ops.aten, schema.name), schema.overload)
            return found
    return None


def reinplace(gm: GraphModule, *sample_args: Any) -> GraphModule:
    """Let operators write their results into an argument that nothing reads afterwards.

    Parameters
    ----------
    gm : GraphModule
        A graph of ATen's operators without writes, as `make_fx` makes it. Changed in place.
    *sample_args
        Its arguments, which say what shares memory; they keep their elements to themselves.

    Returns
    -------
    GraphModule
        `gm`. It writes to no argument and to no attribute of its own.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.experimental.proxy_tensor import make_fx
    >>> from pytensorlib.fx.passes.reinplace import reinplace
    >>> x = torch.ones(2)
    >>> gm = reinplace(make_fx(lambda x: (x + 1).sin())(x), x)
    >>> [str(node.target) for node in gm.graph.nodes if node.op == "call_function"]
    ['aten.add.Tensor', 'aten.sin_.default']
    """
    memory = _Memory(gm, sample_args)
    for n in list(gm.graph.nodes):
        if _replaced(gm, n, memory):
            memory = _Memory(gm, sample_args)
    gm.recompile()
    return gm


def _replaced(gm: GraphModule, n: Node, memory: _Memory) -> bool:
    """Let one node write to its first argument, where that can be; return whether it does."""
    op: Any = n.target
    if n.op != "call_function" or not isinstance(op, OpOverload):
        return False
    view, form = _VIEW_OF.get(op), _in_place(op)
    if (view is None and form is None) or not n.args or not isinstance(n.args[0], Node):
        return False
    base = n.args[0]
    have, want = memory.values[base], memory.values[n]
    if not isinstance(have, pt.Tensor) or not isinstance(want, pt.Tensor):
        return False
    overlaps = any(d > 1 and s == 0 for d, s in zip(have.shape, have.stride(), strict=True))
    if have.shape != want.shape or have.dtype is not want.dtype or overlaps:
        return False
    mine = _memory(have)
    if mine in memory.outside or mine == _memory(want):
        return False
    others: list[Node] = []
    map_arg((n.args[1:], n.kwargs), others.append)
    if view is None and any(mine in memory.of(m) for m in others):
        return False
    # What overwrites the same elements does not read them.
    if not all(_overwrites(u, _region(have), memory) for u in memory.later(mine, n)):
        return False
    if view is None:
        n.target = form  # type: ignore[assignment]
        n.replace_all_uses_with(base)
        return True
    source: Any = n.args[1]
    written = view(have, *n.args[2:], **n.kwargs)
    if _region(memory.values[source]) != _region(written):
        with gm.graph.inserting_before(n):
            part = gm.graph.call_function(view, (base, *n.args[2:]), n.kwargs)
            gm.graph.call_function(ops.aten.copy_.default, (part, source))
    n.replace_all_uses_with(base)
    gm.graph.erase_node(n)
    return True


def _overwrites(n: Any, region: tuple[Any, ...], memory: _Memory) -> bool:
    view = _VIEW_OF.get(n.target)
    if view is None:
        return False
    base = memory.values[n.args[0]]
    return bool(_region(view(base, *n.args[2:], **n.kwargs)) == region)
