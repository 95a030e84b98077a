"""What transforms of functions stand on: inputs with places of their own in the graph.

A transform runs its function on tensors that stand for the inputs, and differentiates by their
places in the graph, so that transforms nest to any depth on the one graph that there is. Its
results keep their history only where something from outside the transform is behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from sys import getrefcount
from typing import Any

from .. import _C
from .function import _apply_below, _check_transformed, _generated, _watching
from .functional import _grad as gradients
from .graph import get_gradient_edge

__all__ = ["Level", "Watch", "filled", "gradients"]


def filled(values: Iterable[Any], like: Iterable[Any]) -> tuple[Any, ...]:
    """Return values, with zeros for None."""
    pairs = zip(values, like, strict=True)
    return tuple(_C.zeros_like(x.detach()) if v is None else v for v, x in pairs)


class Level:
    """One transform at work: the tensors that stand for its inputs."""

    def __init__(self) -> None:
        self.recording = _C.is_grad_enabled() and not _C.is_inference_mode_enabled()
        self.open = True
        # Whether an input came without a history, so that it is a leaf of this level alone.
        self.leaves = False
        self.edges: list[Any] = []
        self.like: list[Any] = []
        self.given: list[Any] = []

    def enter(self, x: Any) -> Any:
        """Return a tensor that stands for `x`, by which is differentiated."""
        inside = x if self.recording and x.requires_grad else self.leaf(x)
        if inside is x:
            inside = x.view_as(x)
        self.edges.append(get_gradient_edge(inside))
        self.like.append(inside)
        self.given.append(x)
        return inside

    def leaf(self, x: Any) -> Any:
        """Return a leaf of this level with the content of `x`."""
        leaf = _C._leaf_of(x.clone() if x.is_inference() else x).requires_grad_()
        leaf._level = self
        self.leaves = True
        return leaf

    def aside(self, x: Any) -> Any:
        """Return an argument that is not differentiated: what is written to it is no history."""
        return x if x.requires_grad or x.is_inference() else _C._detach(x)

    def reaches_out(self, tensors: Iterable[Any]) -> bool:
        """Return whether anything but this level's leaves is behind tensors."""
        seen: set[Any] = set()
        todo = []
        for t in tensors:
            if t.requires_grad:
                if t.grad_fn is None:
                    if self.foreign(t):
                        return True
                else:
                    todo.append(t.grad_fn)
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            edges = [n for n, _ in node.next_functions if n is not None]
            if edges:
                todo += edges
            elif self.foreign(getattr(node, "variable", None)):
                return True
        return False

    def holds(self, x: Any) -> bool:
        """Return whether a tensor depends on what stands for an input."""
        entered = {edge.node for edge in self.edges}
        seen: set[Any] = set()
        todo = [x.grad_fn]
        while todo:
            node = todo.pop()
            if node in entered:
                return True
            if node is not None and node not in seen:
                seen.add(node)
                todo += [n for n, _ in node.next_functions]
        return False

    def foreign(self, leaf: Any) -> bool:
        """Return whether a leaf is neither of this level nor of one that has ended."""
        level = getattr(leaf, "_level", None)
        return leaf is not None and (level is None or (level is not self and level.open))

    def leave(self, tensors: Iterable[Any], recording: bool | None = None) -> list[Any]:
        """Return what tensors are outside: with a history only if they have one there.

        `recording` False says that they have none.
        """
        recording = self.recording if recording is None else recording
        if recording and not self.leaves:
            return list(tensors)
        left = []
        for t in tensors:
            keep = not t.requires_grad or (recording and self.reaches_out([t]))
            left.append(t if keep else _C._detach(t))
        return left


# Functions that write to their first argument; those whose names end in an underscore do, too.
_WRITING = {
    "__setitem__",
    *(f"__i{n}__" for n in "add sub mul truediv floordiv mod pow matmul and or xor".split()),
    *(f"__i{n}__" for n in ("lshift", "rshift")),
}
# Functions that write to the statistics they keep, where one argument says so.
_NORMS = {"batch_norm": "training", "native_batch_norm": "training"}
_NORMS |= {"instance_norm": "use_input_stats"}


@cache
def _writes(name: str) -> bool:
    plain = name.endswith("_") and not name.endswith("__")
    return name in _WRITING or (plain and name != "requires_grad_")


class Watch:
    """Notes to which tensors a function writes that it did not make."""

    def __init__(self) -> None:
        # What the function is differentiated at, where it is.
        self.level: Level | None = None
        self.made: set[int] = set()
        # What was written to, kept so that no other tensor takes its place in memory.
        self.written: list[Any] = []
        self.generators: dict[Any, Any] = {}

    def apply(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Apply a function with a derivative of its own."""
        _check_transformed(cls)
        if not cls.__name__.endswith("Generated"):
            cls = _generated(cls)
        return _apply_below(self, cls, args, kwargs)

    def __enter__(self) -> Any:
        _watching.stack.append(self)
        _C._push_torch_function_mode(self, True)
        return self

    def __exit__(self, *error: Any) -> None:
        _watching.stack.remove(self)
        _C._pop_torch_function_mode()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        generator = kwargs.get("generator")
        if generator is not None and generator not in self.generators:
            self.generators[generator] = generator.get_state()
        y = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        out = kwargs.get("out")
        if _writes(name) and args:
            self.note(args[0])
        elif out is not None:
            for t in out if isinstance(out, (tuple, list)) else (out,):
                self.note(t)
        elif isinstance(y, _C.Tensor):
            if y._base is None or id(y._base) in self.made:
                self.made.add(id(y))
        elif isinstance(y, (tuple, list)):
            self.made.update(
                id(t) for t in y if t is not None and getattr(t, "_base", None) is None
            )
        if name in _NORMS:
            self.note_statistics(name, args, kwargs)
        return y

    def note_statistics(self, name: str, args: Any, kwargs: Any) -> None:
        """Note the statistics that a normalization keeps."""
        order = ("running_mean", "running_var", _NORMS[name])
        mean, var, on = (args[i] if i < len(args) else kwargs[k] for i, k in enumerate(order, 3))
        for t in (mean, var) if on else ():
            if isinstance(t, _C.Tensor):
                self.written.append(t)

    def note(self, t: Any) -> None:
        """Note that a tensor was written to, unless it was made here."""
        if isinstance(t, _C.Tensor) and id(t) not in self.made and t.numel():
            self.written.append(t)

    def check(self, level: Level, inside: Iterable[Any], caller: str) -> None:
        """Refuse a function that wrote what is recorded to a tensor from outside.

        What only the function held is no such tensor: it is gone by now, but for what is kept here.
        """
        if not self.written:
            return
        known, entered = {id(t) for t in inside}, {id(x) for x in level.like}
        bases = [t if t._base is None else t._base for t in self.written]
        targets = {id(t): t for t in bases}
        self.written.clear()
        bases.clear()
        while targets:
            _, t = targets.popitem()
            if id(t) in known or id(t) in self.made or not t.requires_grad:
                continue
            if id(t) in entered:
                raise RuntimeError(
                    f"{caller}: a leaf Variable that requires grad is being used in an in-place "
                    "operation: the function writes to the argument by which it is "
                    "differentiated. Write to a clone of it."
                )
            # This name, and the argument of `getrefcount`.
            if t.grad_fn is not None and getrefcount(t) > 2:
                if not level.reaches_out([t]):
                    t.detach_()
                raise RuntimeError(
                    f"{caller}: During a grad (vjp, jvp, grad, etc) transform, the function "
                    "provided attempted to call in-place operation that would mutate a captured "
                    "Tensor. Pass the tensor to the function as an argument, or return its new "
                    "value."
                )
