"""The state of a function under `vmap`: its arguments, its results and saved functions."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _C
from ..autograd.function import Function, _apply_below, _check_transformed, _watching
from ..utils import _pytree as pytree
from ..utils._pytree_spec import _broadcast_to_and_flatten

__all__ = ["Batch", "VmapInfo"]


class VmapInfo(NamedTuple):
    """What the `vmap` of a `Function` is told of the mapping.

    Parameters
    ----------
    batch_size : int
        How many slices there are.
    randomness : str
        Of `vmap`.

    Examples
    --------
    >>> from pytensorlib.func._batch import VmapInfo
    >>> VmapInfo(3, "same").batch_size
    3
    """

    batch_size: int
    randomness: str


class Batch:
    """While it is in force, tensors that it made stand for slices, and calls compute all of them.

    Parameters
    ----------
    size : int
        How many slices there are.
    randomness : str
        Of `vmap`.
    """

    def __init__(self, size: int, randomness: str) -> None:
        self.size, self.randomness = size, randomness
        self.core = _C._Batch(size, randomness)

    def __enter__(self) -> Batch:
        _watching.stack.append(self)
        self.core.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.core.stop()
        _watching.stack.remove(self)

    def has(self, x: Any) -> bool:
        """Return whether something is a tensor that is another one for each slice."""
        return isinstance(x, _C.Tensor) and self.core.has(x)

    def enter(self, x: Any, dim: int | None) -> Any:
        """Return what an argument is to the function, whose slices lie along `dim`."""
        return x if dim is None else self.core.enter(x, dim % x.dim())

    def leave(self, x: Any, dim: int) -> Any:
        """Return all slices of what the function returned, along `dim`."""
        return self.core.leave(x, dim % (x.dim() + 1))

    def whole(self, x: Any) -> tuple[Any, int | None]:
        """Return all slices of a value and their dimension; None of what is the same for all."""
        return self.core.outside(x) if isinstance(x, _C.Tensor) else (x, None)

    def wholes(self, args: Any) -> tuple[Any, Any]:
        """Return all slices of arguments, and the dimensions of them in the same form."""
        flat, spec = pytree.tree_flatten(args)
        found = [self.whole(a) for a in flat]
        return spec.unflatten([w for w, _ in found]), spec.unflatten([d for _, d in found])

    def slices(self, wholes: Any, dims: Any) -> Any:
        """Return what arguments are to one slice."""
        return pytree.tree_map(
            lambda w, d: self.enter(w, d) if isinstance(w, _C.Tensor) else w, wholes, dims
        )

    def apply(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Apply a function with a derivative of its own: by its `vmap`, or one made of it."""
        _check_transformed(cls)
        own = getattr(cls, "vmap", None) is not Function.vmap
        if any(map(self.has, kwargs.values())):
            raise NotImplementedError(
                "Run vmap on autograd.Function with kwarg-only Tensor args: pass them by position"
            )
        if not any(map(self.has, pytree.tree_leaves(args))):
            return _apply_below(self, cls, args, kwargs)
        if own and cls.generate_vmap_rule:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True "
                "and an overridden vmap staticmethod. Please set generate_vmap_rule=False or "
                "delete the overridden vmap staticmethod to avoid ambiguity."
            )
        if not own and not cls.generate_vmap_rule:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
                "override and implement the vmap staticmethod or set generate_vmap_rule=True."
            )
        recording = _C.is_grad_enabled()
        if recording and any(isinstance(a, _C.Tensor) and a.requires_grad for a in args):
            # Within the function it is a function of one slice.
            one = _of_one(cls, self, own)
            return _C._function_apply(one, *args, **kwargs)
        return self.lower(cls, own, args, kwargs)

    def lower(self, cls: Any, own: bool, args: Any, kwargs: Any) -> Any:
        """Apply a function to all slices."""
        self.core.stop()
        try:
            wholes, dims = self.wholes(args)
            if own:
                info = VmapInfo(self.size, self.randomness)
                flat, places, spec = _checked(_asked(self, cls, info, dims, wholes))
            else:
                mapped = _mapped(cls, self, dims)
                flat, spec = pytree.tree_flatten(_apply_below(self, mapped, wholes, kwargs))
                places = [0] * len(flat)
            pairs = zip(flat, places, strict=True)
            inside = [self.enter(o, d) if isinstance(o, _C.Tensor) else o for o, d in pairs]
            return spec.unflatten(inside)
        finally:
            self.core.start()


def _of_one(cls: Any, batch: Batch, own: bool) -> Any:
    """Return a function whose `forward` applies another one to all slices."""
    recording = _C.is_grad_enabled()

    def forward(*args: Any, **kwargs: Any) -> Any:
        with _C._Mode(recording):
            return batch.lower(cls, own, args, kwargs)

    return type(cls)(cls.__name__, (cls,), {"forward": staticmethod(forward)})


def _asked(batch: Batch, cls: Any, info: VmapInfo, dims: Any, wholes: Any) -> Any:
    """Return what the `vmap` of a function gives; transforms within `batch` are not asked."""
    stack = _watching.stack
    place = stack.index(batch)
    above = stack[place:]
    del stack[place:]
    try:
        return cls.vmap(info, dims, *wholes)
    finally:
        stack.extend(above)


def _mapped(cls: Any, batch: Batch, dims: tuple[int | None, ...]) -> Any:
    """Return the function of all slices that a function of one makes by `vmap` of its parts."""
    size, randomness = batch.size, batch.randomness

    def forward(*wholes: Any) -> Any:
        inner = Batch(size, randomness)
        inputs = inner.slices(wholes, dims)
        with inner:
            y = cls.forward(*inputs)
        return pytree.tree_map_only(_C.Tensor, lambda o: inner.leave(o, 0), y)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        inner = Batch(size, randomness)
        given = inner.slices(inputs, dims)
        made = pytree.tree_map_only(_C.Tensor, lambda o: inner.enter(o, 0), output)
        seen = _Context(ctx, None)
        with inner:
            cls.setup_context(seen, given, made)
        seen._keep(inner)

    def backward(ctx: Any, *grads: Any) -> Any:
        inner = Batch(size, randomness)
        seen = _Context(ctx, inner)
        inside = [g if g is None else inner.enter(g, 0) for g in grads]
        with inner:
            found = cls.backward(seen, *inside)
        found = found if isinstance(found, tuple) else (found,)
        slopes: list[Any] = []
        for g, dim, needed in zip(found, dims, ctx.needs_input_grad, strict=True):
            if g is None or not needed:
                slopes.append(None)
            elif dim is None:
                whole = inner.leave(g, 0)
                slopes.append(whole.sum(0))
            else:
                slopes.append(inner.leave(g, dim))
        return tuple(slopes)

    def jvp(ctx: Any, *tangents: Any) -> Any:
        inner = Batch(size, randomness)
        seen = _Context(ctx, inner)
        pairs = zip(tangents, dims, strict=True)
        inside = [t if d is None or t is None else inner.enter(t, d) for t, d in pairs]
        with inner:
            found = cls.jvp(seen, *inside)
        return pytree.tree_map_only(_C.Tensor, lambda o: inner.leave(o, 0), found)

    parts = {
        "forward": staticmethod(forward),
        "jvp": staticmethod(jvp),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward),
        "generate_vmap_rule": True,
        "__module__": cls.__module__,
    }
    meta: Any = type(Function)
    return meta(f"Vmapped{cls.__name__}", (Function,), parts)


class _Context:
    """The context of a function of all slices, as its methods of one slice see it."""

    def __init__(self, ctx: Any, batch: Batch | None) -> None:
        object.__setattr__(self, "_ctx", ctx)
        object.__setattr__(self, "_batch", batch)
        object.__setattr__(self, "_given", None)
        object.__setattr__(self, "_ahead", None)

    def save_for_backward(self, *tensors: Any) -> None:
        """Note what is saved, which `_keep` saves."""
        object.__setattr__(self, "_given", tensors)

    def save_for_forward(self, *tensors: Any) -> None:
        """Note what is saved for a `jvp`, as for `backward`."""
        object.__setattr__(self, "_ahead", tensors)

    def _keep(self, batch: Batch) -> None:
        """Save all slices of what the function wants to see again."""
        given = self._given or ()
        found = [(t, None) if t is None else batch.whole(t) for t in given]
        self._ctx.save_for_backward(*(w for w, _ in found))
        self._ctx._saved_dims = [d for _, d in found]
        if self._ahead is not None:
            ahead = [(t, None) if t is None else batch.whole(t) for t in self._ahead]
            self._ctx.save_for_forward(*(w for w, _ in ahead))
            self._ctx._ahead_dims = [d for _, d in ahead]
        # Values of slices that it noted beside.
        notes = self._ctx.__dict__
        self._ctx._noted = {
            name: batch.leave(value, 0) for name, value in notes.items() if batch.has(value)
        }

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """A saved tensor, as one slice sees it."""
        forward = self._ctx._for_forward is not None
        dims = self._ctx._ahead_dims if forward else self._ctx._saved_dims
        saved = zip(self._ctx.saved_tensors, dims, strict=True)
        return tuple(t if t is None else self._batch.enter(t, d) for t, d in saved)

    def __getattr__(self, name: str) -> Any:
        noted = self._ctx.__dict__.get("_noted", {})
        if name in noted and self._batch is not None:
            return self._batch.enter(noted[name], 0)
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)


def _checked(result: Any) -> tuple[list[Any], list[Any], Any]:
    """Return the outputs of a `vmap`, the dimensions of their slices, and their form."""
    text = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree "
        "structure compatible with the output. "
    )
    if not isinstance(result, tuple):
        raise RuntimeError(f"{text}Got a {type(result)} instead")
    if len(result) != 2:
        raise RuntimeError(f"{text}Got {len(result)} returns instead")
    output, out_dims = result
    flat, spec = pytree.tree_flatten(output)
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`. "
            f"out_dims has structure {pytree.tree_flatten(out_dims)[1]} but output has structure "
            f"{spec}."
        )
    return flat, dims, spec
