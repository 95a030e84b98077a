"""Gradients that `make_fx` records as PyTorch's operators.

What `backward` computes here is often one operator where PyTorch writes several, or names fewer
arguments. While a function is traced, the gradient of a call is written again, by a rule that
knows the arguments of the call; what the rule computes is the gradient from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from ..._ops import ops
from ...autograd import forward_ad
from ...autograd._levels import Watch
from ...autograd.function import _watching
from ...func._batch import Batch
from ...utils import _pytree as pytree
from . import _rules
from ._rules import RULES, ruled
from ._writer import Call, Writer, quiet

__all__ = ["follow", "mapped", "new_nodes", "sealed"]


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


_OTHERS = {
    "nllloss": ("nllloss", "nlllossforward", "nllloss2dforward"),
    "clamp": ("clamp", "clampmin", "clampmax"),
    "view": ("view", "unsafeview"),
}


def new_nodes(recorder: Any, out: Any) -> list[Any]:
    """Return the nodes behind results that were not there before, the oldest first."""
    todo = [t.grad_fn for t in pytree.tree_leaves(out) if isinstance(t, pt.Tensor)]
    found, latest = [], recorder.latest
    while todo:
        node = todo.pop()
        if node is None or node in found or not hasattr(node, "_sequence_nr"):
            continue
        if node.name().endswith("AccumulateGrad") or node._sequence_nr <= latest:
            continue
        found.append(node)
        todo += [n for n, _ in node.next_functions]
    found.sort(key=lambda n: n._sequence_nr)
    if found:
        recorder.latest = found[-1]._sequence_nr
    return found


def mapped() -> bool:
    """Return whether `vmap` is at work, below which whole tensors are recorded."""
    return any(isinstance(level, Batch) for level in _watching.stack)


def _plain_levels() -> bool:
    """Return whether no transform is at work but reverse ones: not `vmap`, no tangents."""
    return all(isinstance(level, Watch) for level in _watching.stack)


def follow(recorder: Any, nodes: Sequence[Any], calls: Sequence[Call]) -> None:
    """Have gradients of calls written by their rules.

    Parameters
    ----------
    recorder : object
        Of the graph.
    nodes : sequence
        Of gradients, which a function made, the oldest first.
    calls : sequence of Call
        The operators that it called.
    """
    if not _plain_levels():
        return
    rest = list(calls)
    for node in nodes:
        name = _plain(node.name().partition("Backward")[0])
        names = _OTHERS.get(name, (name,))
        at = next((i for i, c in enumerate(rest) if _plain(c.name) in names), None)
        if at is None:
            continue
        call, before, rest = rest[at], rest[:at], rest[at + 1 :]
        if call.name == "mul" and before and before[-1].name == "clone":
            # What is overwritten is kept for the gradient of the other factor.
            call.values["self"], call.copied = before[-1].results[0], True
        if call.known and call.name in RULES:
            _watch(recorder, node, call)


def _watch(recorder: Any, node: Any, call: Call) -> None:
    r = Writer(recorder)
    kept = _rules.kept(call)
    # Transforms keep results themselves; else what the gradient keeps is a tensor of its own.
    own = not _watching.stack
    if own and kept:
        with quiet():
            kept = [r("detach", t) for t in kept]
    marks: list[Any] = []

    def before(grads: Any) -> None:
        recorder.fitted.clear()
        marks.append(recorder.mark())

    def after(inputs: Any, grads: Any) -> Any:
        mark = marks.pop() if marks else None
        if mark is None or not recorder.active() or pt.is_grad_enabled():
            return None
        if not _plain_levels():
            return None
        slots = call.slots(len(inputs), inputs)
        if slots is None:
            return None
        call.needs = {
            n
            for n, g, (edge, _) in zip(slots, inputs, node.next_functions, strict=True)
            if g is not None and edge is not None
        }
        call.grads = list(grads)
        with quiet():
            ended = recorder.mark()
            recorder.restore(mark)
            call.saved = [r("detach", t) for t in kept] if own else kept
            made = ruled(r, call)
            if made is None:
                recorder.erase(recorder.since(ended))
                recorder.restore(ended)
                return None
            found: list[Any] = []
            for name, old in zip(slots, inputs, strict=True):
                g = made.get(name) if old is not None else None
                if g is None:
                    g = old  # which nothing takes
                else:
                    g = r.fit(g, call.given[name].shape)
                    if g.dtype is not call.given[name].dtype:
                        g = r("_to_copy", g, dtype=call.given[name].dtype)
                    if g.shape != old.shape or g.dtype is not old.dtype:
                        g = recorder.later(g, old)
                found.append(g)
            recorder.erase(recorder.since(mark, ended))
        return tuple(found)

    node.register_prehook(before)
    node.register_hook(after)


class _Sealed(pt.autograd.Function):
    """A call that is one operator in a graph, and one node of gradients."""

    @staticmethod
    def forward(recorder: Any, call: Any, box: dict[str, Any], *tensors: Any) -> Any:
        with quiet():
            out = Writer(recorder)(call.label, *call.filled(tensors))
        box["results"] = list(out) if isinstance(out, (list, tuple)) else [out]
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.recorder, ctx.call, box, *tensors = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        call = ctx.call
        call.results = box["results"]
        ctx.own = not _watching.stack
        call.saved = _rules.kept(call)
        if ctx.own and any(t.requires_grad for t in tensors):
            with quiet():
                call.saved = [Writer(ctx.recorder)("detach", t) for t in call.saved]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        call, asked = ctx.call, ctx.needs_input_grad[3:]
        names = [list(call.values)[i] for i in call.places]
        if pt.is_grad_enabled() or not _plain_levels():
            made = call.again(ctx.saved_tensors, grads)
            return (None, None, None, *made)
        call.needs = {n for n, need in zip(names, asked, strict=True) if need}
        call.grads = list(grads)
        with quiet():
            r = Writer(ctx.recorder)
            kept = call.saved
            call.saved = [r("detach", t) for t in kept] if ctx.own else kept
            found = ruled(r, call)
            call.saved = kept
        return (None, None, None, *(found.get(n) for n in names))


class _OneCall(Call):
    """A call that is recorded as one operator."""

    def __init__(self, name: str, args: Sequence[Any]) -> None:
        packet, _, form = name.partition(".")
        target = getattr(getattr(ops.aten, packet), form or "default")
        super().__init__(target, args, {}, [])
        self.label, self.args = name, list(args)
        self.places = [i for i, a in enumerate(args) if isinstance(a, pt.Tensor)]

    def filled(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the arguments with these tensors."""
        full = list(self.args)
        for i, t in zip(self.places, tensors, strict=True):
            full[i] = t
        return full

    def again(self, tensors: Sequence[Any], grads: Sequence[Any]) -> Any:
        """Return gradients that can be differentiated, by what the core computes."""
        record = pt.is_grad_enabled()
        with pt.enable_grad():
            leaves = [t.view_as(t) if t.requires_grad else t for t in tensors]
            out = self.target(*self.filled(leaves))
            outs = out if isinstance(out, (list, tuple)) else [out]
            pairs = [(y, g) for y, g in zip(outs, grads, strict=False) if g is not None]
            asked = [t for t in leaves if t.requires_grad]
            found = iter(
                pt.autograd.grad(
                    [y for y, _ in pairs], asked, [g for _, g in pairs], create_graph=record,
                    allow_unused=True,
                )
            )  # fmt: skip
        return [next(found) if t.requires_grad else None for t in leaves]


def sealed(recorder: Any, name: str, *args: Any) -> Any:
    """Record a call as one operator, and its gradient by the rule of that.

    Parameters
    ----------
    recorder : object
        Of the graph.
    name : str
        Of the operator, with its form.
    *args : object
        Its arguments.
    """
    call = _OneCall(name, args)
    tensors = [args[i] for i in call.places]
    if not _plain_levels() or any(
        t.is_complex() or forward_ad.unpack_dual(t).tangent is not None for t in tensors
    ):
        return call.target(*args)  # as the core does it
    return _Sealed.apply(recorder, call, {}, *tensors)
