"""Operators that `make_fx` writes to a graph and computes, beside those that a program calls."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from ... import _C
from ..._ops import ops
from ...export import _aten
from ...utils import _pytree as pytree
from ...utils._python_dispatch import _disable_current_modes
from .._names import snake_case

__all__ = ["Call", "Writer", "quiet", "viewable"]


class Call:
    """One call of an operator, with the tensors that it took and gave.

    Parameters
    ----------
    target : OpOverload
        The operator.
    args, kwargs : sequence, dict
        Its arguments.
    results : sequence of Tensor
        What it gave.
    """

    def __init__(self, target: Any, args: Any, kwargs: Any, results: Any) -> None:
        self.target, self.results = target, list(results)
        self.name = target._opname.removesuffix("_")
        self.form = "Scalar" if target._overloadname == "Scalar" else "Tensor"
        self.values: dict[str, Any] = {}
        self.saved: list[Any] = []  # results that the gradient keeps
        self.grads: list[Any] = []
        self.node: Any = None  # in the graph
        self.copied = False  # whether what an operator in place found is kept
        self.needs: set[str] = set()
        self.given: dict[str, Any] = {}  # the tensors that have gradients
        self.known = self._name(args, kwargs)

    def _name(self, args: Any, kwargs: Any) -> bool:
        schema = _schema(self.target)
        if schema is None:
            return False
        for i, a in enumerate(schema.arguments):
            if i < len(args) and not a.named:
                value = args[i]
            else:
                value = kwargs.get(a.name, _aten._cast(a.kind, a.default))
            self.values[a.name] = value
        self.kinds = {a.name: a.kind for a in schema.arguments}
        return len(args) <= len(schema.arguments)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def result(self) -> Any:
        """The result, as the gradient keeps it."""
        return self.saved[0]

    def slots(self, count: int, grads: Sequence[Any]) -> list[str] | None:
        """Return the names of the arguments that a node has edges for, or None."""
        tensors, floats, all_ = [], [], []
        for name, kind in self.kinds.items():
            value = self.values[name]
            if isinstance(value, (list, tuple)) and kind.startswith("Tensor"):
                parts = [(f"{name}.{i}", v) for i, v in enumerate(value) if v is not None]
            else:
                parts = [(name, value)]
            for part, v in parts:
                if isinstance(v, pt.Tensor):
                    tensors.append((part, v))
                    if v.is_floating_point():
                        floats.append((part, v))
                if isinstance(v, pt.Tensor) or (kind == "Tensor" and v is not None):
                    all_.append((part, v))
        bare = [(n, v) for n, v in floats if not n.startswith("running_")]
        for found in (tensors, floats, bare, all_):
            pairs = list(zip(found, grads, strict=False))
            if len(found) == count and all(g is None or _of(g, v) for (_, v), g in pairs):
                self.given = dict(found)
                return [name for name, _ in found]
        # What is not there may have an edge all the same.
        rest = count - len(floats)
        if rest > 0 and all(g is None for g in grads[len(floats) :]):
            if all(g is None or _of(g, v) for (_, v), g in zip(floats, grads, strict=False)):
                self.given = dict(floats)
                return [name for name, _ in floats] + [""] * rest
        return None


def _of(g: Any, v: Any) -> bool:
    """Return whether a gradient may be that of a tensor, which may have been broadcast."""
    if not isinstance(v, pt.Tensor) or v.dim() > g.dim():
        return False
    tail = g.shape[g.dim() - v.dim() :]
    return all(n in (1, m) for n, m in zip(v.shape, tail, strict=True))


class Writer:
    """Writes operators to the graph of a recorder, and computes them."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder

    def __call__(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Write an operator, by its name with its form, and return what it gives."""
        packet, _, form = name.partition(".")
        target = getattr(getattr(ops.aten, packet), form or "default")
        if target in self.recorder.table:
            with self.recorder:
                out = self.recorder.table[target](*args, **kwargs)
            if out is not NotImplemented:
                return out
        args = _trimmed(target, args)
        nodes = self.recorder.argument(args), self.recorder.argument(kwargs)
        out = target(*args, **kwargs)
        made = self.recorder.graph.create_node("call_function", target, *nodes, snake_case(packet))
        given = [a for a in pytree.tree_leaves(args) if isinstance(a, pt.Tensor)]
        if packet.endswith("_"):
            self.recorder.note(out, made)
        elif isinstance(out, pt.Tensor):
            out = _apart(out, given)
            self.recorder.note(out, made)
        else:
            if packet == "unsafe_split":
                out = tuple(_apart(t, given) for t in out)
            out = self.recorder.parts(out, made, every=True)
        return out

    def fit(self, g: Any, shape: Sequence[int]) -> Any:
        """Sum a gradient over what was broadcast."""
        if tuple(g.shape) == tuple(shape):
            return g
        if len(shape) == 0:
            return self("sum", g)
        lead = g.dim() - len(shape)
        dims = list(range(lead))
        dims += [lead + i for i, n in enumerate(shape) if n == 1 and g.shape[lead + i] != 1]
        if dims:
            g = self("sum.dim_IntList", g, dims, True)
        return self("view", g, list(shape)) if lead else g


def _schema(target: Any) -> Any:
    schemas = _aten.schemas(target._opname)
    return next((s for s in schemas if s.overload == target._overloadname), None)


def _trimmed(target: Any, args: Any) -> Any:
    """Leave out the last arguments that are the defaults, as PyTorch's graphs do."""
    schema = _schema(target)
    places = [] if schema is None else [a for a in schema.arguments if not a.named]
    while args and len(args) <= len(places) and places[len(args) - 1].has_default:
        value, default = args[-1], places[len(args) - 1].default
        if isinstance(value, pt.Tensor) or type(value) is not type(default) or value != default:
            break
        if places[len(args) - 1].kind.startswith("Tensor"):
            break  # one that is not there is written
        args = args[:-1]
    return args


def viewable(t: Any, sizes: Any) -> bool:
    """Return whether a tensor can be seen in other sizes without a copy."""
    try:
        t.detach().view(sizes)
    except RuntimeError:
        return False
    return True


def _apart(out: Any, given: Sequence[Any]) -> Any:
    """Return a tensor in memory of its own: the recorder tells tensors by their memory."""
    if out.numel() == 0 or out.device.type != "cpu" or out.layout is not pt.strided:
        return out
    own = out.untyped_storage()._cdata
    if all(
        a.device.type != "cpu" or a.layout is not pt.strided or a.untyped_storage()._cdata != own
        for a in given
    ):
        return out
    extent = 1 + sum((n - 1) * s for n, s in zip(out.shape, out.stride(), strict=True))
    flat = out.as_strided((extent,), (1,), out.storage_offset()).clone()
    new = pt.empty(0, dtype=out.dtype)
    return new.set_(flat.untyped_storage(), 0, tuple(out.shape), out.stride())


class quiet:  # noqa: N801  (used as a function)
    """A block whose calls are not recorded, nor offered to modes of functions."""

    def __enter__(self) -> None:
        self.before = _C._rest_torch_function(2)
        self.inside = contextlib.ExitStack()
        self.inside.enter_context(_disable_current_modes())
        self.inside.enter_context(pt.no_grad())

    def __exit__(self, *exc: Any) -> None:
        self.inside.close()
        _C._rest_torch_function(self.before)
