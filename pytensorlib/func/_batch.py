"""What `vmap` knows of the tensors of a function while it runs once for each slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .. import _C
from ..autograd._levels import _writes
from ..autograd.function import Function, _apply_below, _check_transformed, _watching
from ..utils import _pytree as pytree
from ..utils._pytree_spec import _broadcast_to_and_flatten

__all__ = ["AGAIN", "AGAIN_SAME", "Batch", "whole"]

# Functions that fill their first argument with random numbers.
_FILLING = {"bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_"}
_FILLING |= {"random_", "uniform_"}
# Functions that make tensors of random numbers out of a size, and out of other tensors.
_MAKING = {"rand", "randint", "randn"}
_LIKE = {"rand_like", "randint_like", "randn_like"}
_DRAWING = {"bernoulli", "binomial", "multinomial", "normal", "poisson", "_standard_gamma"}
# Products of matrices and vectors, with the dimensions of their factors.
_PRODUCTS = {"bmm": (3, 3), "dot": (1, 1), "mm": (2, 2), "mv": (2, 1)}
# Functions whose results' shapes depend on data.
_DYNAMIC = {"argwhere", "masked_select", "nonzero", "unique", "unique_consecutive", "where"}
_RANDOM = _FILLING | _MAKING | _LIKE | _DRAWING
# Functions that write the same for each slice, as nothing of theirs depends on it.
AGAIN = frozenset({"copy_", "fill_", "zero_"})
AGAIN_SAME = AGAIN | _FILLING
_OUT = (
    "vmap: We do not support calling out variants of random operations inside of vmap. Please use "
    "non-out variants as a workaround"
)
_SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. Draw the numbers "
    "outside, or ask for randomness='different'"
)
_SHARED = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear "
    "like same randomness. Fill a tensor that is mapped, or draw out of place"
)


def _tensors(args: Any, kwargs: Any) -> Iterator[Any]:
    """Yield the tensors among arguments, those in lists too."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, _C.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from (v for v in value if isinstance(v, _C.Tensor))


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
    """Sees what the function does with its first slice, and where it must with others.

    Parameters
    ----------
    randomness : str
        Of `vmap`.
    size : int
        How many slices there are.
    mapped : sequence of (Tensor, int, sequence of Tensor)
        What is mapped, the dimension, and its slices.
    """

    def __init__(self, randomness: str, size: int, mapped: Sequence[tuple[Any, int, Any]]) -> None:
        self.randomness, self.size, self.mapped = randomness, size, mapped
        self.index, self.call = 0, 0
        # Whether other slices must be seen, too.
        self.needed = False
        # What depends on a slice, kept so that no other tensor takes its place in memory.
        self.batched = {id(parts[0]): parts[0] for _, _, parts in mapped}
        # What the function made itself: it may write to that.
        self.made: dict[int, Any] = {}
        self.drawn: list[Any] = []
        # What the `vmap` of functions with one gave: for each call of theirs, the slices or None.
        self.applied: list[Any] = []
        self.application, self.rests = 0, False
        # The offsets of views by strides that the first slice asked for.
        self.offsets: list[int] = []
        self.offset = 0
        # The last function that was called whose results' shapes depend on data.
        self.dynamic = "a function of data"

    def begin(self, index: int) -> None:
        """Go to a slice; it makes the same calls as the first one."""
        self.index, self.call, self.application, self.offset = index, 0, 0, 0

    def __enter__(self) -> Batch:
        self.on = not self.index or self.needed
        _watching.stack.append(self)
        if self.on:
            _C._push_torch_function_mode(self, True)
        return self

    def __exit__(self, *error: Any) -> None:
        _watching.stack.remove(self)
        if self.on:
            _C._pop_torch_function_mode()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function as `vmap` asks."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if self.rests:
            return func(*args, **kwargs)
        if name == "as_strided":
            return self.strided(func, *args, **kwargs)
        if name == "randperm" and kwargs.get("out") is not None and self.randomness != "error":
            raise RuntimeError(_OUT)
        if name in _RANDOM:
            y = self.random(func, name, args, kwargs)
        else:
            if not self.index and _writes(name) and args:
                self.check_target(name, args, kwargs)
            if not self.index and name in _PRODUCTS:
                self.check_factors(name, *args[:2])
            y = func(*args, **kwargs)
        if not self.index:
            given = list(_tensors(args, kwargs))
            if name in _DYNAMIC and (name != "where" or len(given) == 1):
                self.dynamic = f"aten::{name}"
            known = self.batched if any(map(self.depends, given)) else self.made
            for t in y if isinstance(y, (tuple, list)) else (y,):
                if isinstance(t, _C.Tensor) and not any(t is g for g in given):
                    known[id(t)] = t
        return y

    def apply(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Apply a function with a derivative of its own, or its `vmap` to all slices at once."""
        if self.rests:
            return _apply_below(self, cls, args, kwargs)
        if not self.index:
            _check_transformed(cls)
            self.applied.append(self.mapped_by(cls, args, kwargs))
        slices = self.applied[self.application]
        self.application += 1
        if slices is None:
            return _apply_below(self, cls, args, kwargs)
        self.needed = True
        for t in pytree.tree_leaves(slices[self.index]):
            if not self.index and isinstance(t, _C.Tensor):
                self.batched[id(t)] = t
        return slices[self.index]

    def mapped_by(self, cls: Any, args: Any, kwargs: Any) -> Any:
        """Return what the `vmap` of a function gives for each slice; None where it runs so."""
        own = getattr(cls, "vmap", None) is not Function.vmap
        if any(isinstance(v, _C.Tensor) and self.depends(v) for v in kwargs.values()):
            raise NotImplementedError(
                "Run vmap on autograd.Function with kwarg-only Tensor args: pass them by position"
            )
        if not any(isinstance(a, _C.Tensor) and self.depends(a) for a in args):
            return None
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
        found = [self.whole_of(a) for a in args]
        if not own or any(w is None for w in found):
            return None
        self.rests = True
        try:
            info = VmapInfo(self.size, self.randomness)
            result = cls.vmap(info, tuple(d for _, d in found), *(w for w, _ in found))
        finally:
            self.rests = False
        return _slices(result, self.size)

    def whole_of(self, value: Any) -> Any:
        """Return what a value is a slice of and its dimension, or itself; None where unknown."""
        if not isinstance(value, _C.Tensor) or not self.depends(value):
            return value, None
        for t, dim, parts in self.mapped:
            if value is parts[0]:
                return t, dim
        return None

    def settle(self, outputs: Any) -> None:
        """Let go of what the first slice computed, but for what it returned."""
        leaves = [t for t in pytree.tree_leaves(outputs) if isinstance(t, _C.Tensor)]
        self.batched = {id(t): t for t in leaves if self.depends(t)}
        self.made.clear()

    def depends(self, t: Any) -> bool:
        """Return whether a tensor of the first slice depends on it."""
        return _known(t, self.batched)

    def own(self, t: Any) -> bool:
        """Return whether a tensor is none that the function got from outside."""
        return self.depends(t) or _known(t, self.made)

    def check_target(self, name: str, args: Any, kwargs: Any) -> None:
        """Refuse to write what is different for each slice to what they share."""
        target, *others = _tensors(args, kwargs)
        if target is not args[0] or self.own(target):
            return
        if any(map(self.depends, others)):
            _refuse(name, target, self.size)

    def check_factors(self, name: str, *factors: Any) -> None:
        """Refuse factors of other dimensions, as PyTorch's rules for a batch do."""
        dims = tuple(f.dim() for f in factors if isinstance(f, _C.Tensor))
        if len(dims) == 2 and dims != _PRODUCTS[name] and any(map(self.depends, factors)):
            a, b = _PRODUCTS[name]
            raise RuntimeError(
                f"Got wrong shapes for {name}: Shape mismatch: Got incorrect dims for {name}(a, b)."
                f" a has dim {dims[0]} and b has dim {dims[1]} but expected them to have dim {a} "
                f"and dim {b}"
            )

    def strided(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Return a view by strides, whose offset counts from where the first slice begins."""
        x = args[0]
        places = list(args)
        offset = kwargs.get("storage_offset", args[3] if len(args) > 3 else None)
        first = not any(w.index for w in _watching.stack if isinstance(w, Batch))
        if first and self.depends(x):
            _check_strided(x, offset, *args[1:3], **kwargs)
        if offset is not None:
            self.needed = True
            offset = self.moved(offset, self.shift(x))
            if len(places) > 3:
                places[3] = offset
            else:
                kwargs["storage_offset"] = offset
        y = func(*places, **kwargs)
        if not self.index and self.depends(x):
            self.batched[id(y)] = y
        return y

    def moved(self, offset: int, shift: int) -> int:
        """Return where the view is that the first slice has at its offset for this call."""
        if not self.index:
            self.offsets.append(offset)
        first = self.offsets[self.offset]
        self.offset += 1
        # One that was reckoned from the slice's own place is right already.
        return offset if offset == first + shift else offset + shift

    def shift(self, x: Any) -> int:
        """Return how far behind the first slice's memory a tensor's lies."""
        memory = x.untyped_storage().data_ptr() if self.index else None
        for t, _, parts in self.mapped:
            if self.index and t.untyped_storage().data_ptr() == memory:
                shift: int = parts[self.index].storage_offset() - parts[0].storage_offset()
                return shift
        return 0

    def random(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Draw the numbers of all slices at once, or the same ones for each."""
        if self.randomness == "error":
            return func(*args, **kwargs)
        if kwargs.get("out") is not None:
            raise RuntimeError(_OUT)
        depending = [] if self.index else list(map(self.depends, _tensors(args, kwargs)))
        if name in _DRAWING:
            if self.randomness == "same" and any(depending):
                raise RuntimeError(_SAME)
            return self.draw(func, name, args, kwargs)
        if name in _MAKING:
            return self.make(func, name, args, kwargs)
        if name in _LIKE:
            return self.make_like(func, *args, **kwargs)
        target, *others = args
        if not self.index:
            if self.randomness == "same" and any(depending[1:]):
                raise RuntimeError(_SAME)
            if self.randomness == "different" and not self.own(target):
                if any(depending[1:]):
                    _refuse(name, target, self.size)
                raise RuntimeError(_SHARED)
        self.needed = True
        if self.randomness == "same":
            # In the order of a tensor of its own, whatever the slice's strides are.
            numbers = _C.empty(target.shape, dtype=target.dtype, device=target.device)
            return target.copy_(func(numbers, *others, **kwargs))
        numbers = self.next()
        if numbers is None:
            numbers = self.alike(target)
            numbers.copy_(target.detach().expand(numbers.shape))
            numbers = self.keep(func(numbers, *map(self.all_of, others), **kwargs))
        return target.copy_(numbers[self.index])

    def make(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Make a tensor of random numbers."""
        if self.randomness == "same":
            return func(*args, **kwargs)
        self.needed = True
        numbers = self.next()
        if numbers is None:
            places = list(args)
            if "size" in kwargs:
                kwargs = kwargs | {"size": (self.size, *kwargs["size"])}
            elif name != "randint" and args and isinstance(args[0], int):
                places = [(self.size, *args)]
            else:
                at = next((i for i, a in enumerate(args) if not isinstance(a, int)), None)
                if at is None:
                    return func(*args, **kwargs)
                places[at] = (self.size, *args[at])
            numbers = self.keep(func(*places, **kwargs))
        y = numbers.detach()[self.index].clone()
        return y.requires_grad_(numbers.requires_grad)

    def make_like(self, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Make a tensor of random numbers like another one."""
        if self.randomness == "same":
            return func(x, *args, **kwargs)
        self.needed = True
        numbers = self.next()
        if numbers is None:
            numbers = self.keep(func(self.alike(x), *args, **kwargs))
        y = numbers.detach()[self.index].clone()
        return y.requires_grad_(numbers.requires_grad)

    def draw(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Draw numbers that depend on other tensors."""
        mean, std = (*args, 1.0)[:2]
        given = [v for v in (mean, std) if isinstance(v, _C.Tensor)]
        if self.randomness == "same" or name != "normal" or len(args) > 2 or not given:
            return func(*args, **kwargs)
        # A mean and a deviation are applied to numbers of all slices.
        self.needed = True
        numbers = self.next()
        if numbers is None:
            shape = _C.broadcast_tensors(*given)[0].shape
            like = given[0]
            numbers = _C.empty((self.size, *shape), dtype=like.dtype, device=like.device)
            scale = 1.0 if isinstance(std, _C.Tensor) else std
            numbers = self.keep(numbers.normal_(0.0, scale, **kwargs))
        y = numbers[self.index]
        if isinstance(std, _C.Tensor):
            y = y.mul(std.detach())
        return y.add(mean.detach() if isinstance(mean, _C.Tensor) else mean)

    def next(self) -> Any:
        """Return the numbers of all slices for this call; None where none are drawn yet."""
        self.call += 1
        return self.drawn[self.call - 1] if self.call <= len(self.drawn) else None

    def keep(self, numbers: Any) -> Any:
        """Keep the numbers of all slices for them."""
        self.drawn.append(numbers)
        return numbers

    def alike(self, target: Any) -> Any:
        """Return memory for all slices in the order of what they are slices of."""
        shape = (self.size, *target.shape)
        for t, dim, parts in self.mapped:
            if target is parts[0]:
                return _C.empty_like(t, requires_grad=False).movedim(dim, 0)
        return _C.empty(shape, dtype=target.dtype, device=target.device)

    def all_of(self, value: Any) -> Any:
        """Return what the values of an argument are for all slices."""
        for t, dim, parts in self.mapped:
            if value is parts[0]:
                return t.detach().movedim(dim, 0)
        return value


def _slices(result: Any, size: int) -> list[Any]:
    """Return the slices of what the `vmap` of a function returned."""
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
    columns = [
        (o,) * size if d is None or not isinstance(o, _C.Tensor) else o.unbind(d)
        for o, d in zip(flat, dims, strict=True)
    ]
    return [spec.unflatten(list(row)) for row in zip(*columns, strict=True)]


def _check_strided(
    x: Any, offset: int | None, size: Any, stride: Any, storage_offset: Any = None
) -> None:
    """Refuse a view by strides that leaves its slice."""
    at = x.storage_offset() if offset is None else offset

    def end(at: int, sizes: Any, steps: Any) -> int:
        return at + sum((n - 1) * s for n, s in zip(sizes, steps, strict=True)) + 1

    if 0 in tuple(size):
        return
    first, last = at, end(at, size, stride)
    start, stop = x.storage_offset(), end(x.storage_offset(), x.shape, x.stride())
    if first < start or last > stop:
        raise RuntimeError(
            f"result = tensor.as_strided({list(size)}, {list(stride)}, {at}) can access memory "
            f"outside of `tensor`. `result` can access some memory in range [{first}, {last}], "
            f"but `tensor` can only access some memory in range [{start}, {stop}]. This is not "
            "supported inside of vmap, please try to rewrite the `as_strided` call as a sequence "
            "of PyTorch view operations"
        )


def _known(t: Any, tensors: dict[int, Any]) -> bool:
    """Return whether a tensor, or what it is a view of, is among others."""
    return id(t) in tensors or (t._base is not None and id(t._base) in tensors)


def _refuse(name: str, target: Any, size: int) -> None:
    """Refuse to write what is different for each slice to what they share."""
    own = {"fill_": "fill_", "bernoulli_": "inplace bernoulli"}.get(name, "inplace arithmetic")
    shape = list(target.shape)
    raise RuntimeError(
        f"vmap: {own}(self, *extra_args) is not possible because there exists a Tensor `other` in "
        "extra_args that has more elements than `self`. This happened due to `other` being vmapped "
        "over but `self` not being vmapped over in a vmap. Map `self` too, or use an out-of-place "
        f"operator instead of {name}: output with shape {shape} doesn't match the broadcast shape "
        f"{[size, *shape]}"
    )


def whole(values: Sequence[Any], dim: int, mapped: Sequence[tuple[Any, int, Any]]) -> Any:
    """Return what slices are slices of, itself or as a view; None where that is nothing.

    A view is returned only of what has no history.
    """
    first = values[0]
    if first._base is None:
        return None
    memory, at = first.untyped_storage().data_ptr(), first.storage_offset()
    shape, strides, dtype = first.shape, first.stride(), first.dtype
    for x, axis, _ in mapped:
        step = x.stride(axis)
        if x.untyped_storage().data_ptr() != memory or x.dtype != dtype:
            continue
        for i, v in enumerate(values):
            if (
                v._base is None
                or v.untyped_storage().data_ptr() != memory
                or v.storage_offset() != at + i * step
                or v.stride() != strides
                or v.shape != shape
                or v.dtype != dtype
            ):
                return None
        place = dim % (len(shape) + 1)
        sizes = (*shape[:place], len(values), *shape[place:])
        steps = (*strides[:place], step, *strides[place:])
        if x.shape == sizes and x.stride() == steps and x.storage_offset() == at:
            return x
        if not (x.requires_grad or any(v.requires_grad for v in values)):
            # A view of memory as it is, whatever is mapped around this.
            before = _C._rest_torch_function(2)
            try:
                return x.as_strided(sizes, steps, at)
            finally:
                _C._rest_torch_function(before)
    return None
