"""A function of single items, called once for all slices of its arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _C, random
from ..utils import _pytree as pytree
from ..utils._pytree_spec import _broadcast_to_and_flatten
from ._batch import Batch

__all__ = ["Draws", "check_randomness", "vmap"]

Func = Callable[..., Any]


def check_randomness(randomness: str) -> None:
    """Refuse what is no choice."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )


class Draws:
    """The `randomness` of `vmap`: an error, the same numbers for all slices, or different ones."""

    def __init__(self, randomness: str) -> None:
        self.randomness = randomness
        # Generators, and their states before the first run.
        self.states = dict(random._states())

    def check(self) -> None:
        """Refuse that numbers were drawn, where they may not be; they count as not drawn."""
        if self.randomness != "error":
            return
        drawn = [g for g, state in self.states.items() if not _C.equal(g.get_state(), state)]
        if drawn:
            self.again()
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use "
                "the 'same' or 'different' randomness flags on vmap or perform the randomness "
                "operation out of vmap"
            )

    def again(self) -> None:
        """Put the generators into the states before the first run."""
        random._restore(self.states.items())


def called(func: Func) -> str:
    """Return the name by which errors know a function."""
    if isinstance(func, functools.partial):
        return f"functools.partial({called(func.func)}, ...)"
    return getattr(func, "__name__", None) or repr(func)


def mapped(
    func: Func, in_dims: Any, args: tuple[Any, ...]
) -> tuple[int, list[Any], list[Any], Any]:
    """Return how many slices there are, the dimension of each leaf, the leaves and their form."""
    about = f"vmap({called(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{about}: expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({called(func)})(<inputs>): got no inputs. "
            "Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs. The latter is unsupported."
        )
    flat, spec = pytree.tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{about}: in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {pytree.tree_structure(in_dims)} but inputs has structure {spec}."
        )
    sizes = []
    for x, dim in zip(flat, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{about}: Got in_dim={dim} for an input but in_dim must be either an integer "
                "dimension or None."
            )
        if not isinstance(x, _C.Tensor):
            raise ValueError(
                f"{about}: Got in_dim={dim} for an input but the input is of type {type(x)}. We "
                "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -x.dim() <= dim < x.dim():
            raise ValueError(
                f"{about}: Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {x.dim()} so expected in_dim to satisfy "
                f"-{x.dim()} <= in_dim < {x.dim()}."
            )
        sizes.append(x.shape[dim])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0], dims, flat, spec


def placed(func: Func, out_dims: Any, spec: Any) -> list[Any]:
    """Return the dimension of the slices in each output."""
    # A tuple of one means a tensor, too.
    if spec.is_leaf() and isinstance(out_dims, tuple) and len(out_dims) == 1:
        return list(out_dims)
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({called(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            f"with the structure of `outputs`. out_dims has structure "
            f"{pytree.tree_structure(out_dims)} but outputs has structure {spec}."
        )
    return dims


def returned(func: Func, value: Any, dim: int | None, batch: Batch) -> Any:
    """Return one output of all slices."""
    name = called(func)
    if dim is None:
        if batch.has(value):
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None: "
                "the output depends on the slice"
            )
        return batch.whole(value)[0]
    if not isinstance(value, _C.Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)}. "
            "Did you mean to set out_dims= to None for output?"
        )
    last = value.dim()
    if not -last - 1 <= dim <= last:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-last - 1}, {last}], but got "
            f"{dim})"
        )
    return batch.leave(value, dim)


def check_out_dims(out_dims: Any, func: Func) -> None:
    """Refuse what is no dimension."""
    for dim in pytree.tree_leaves(out_dims):
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"vmap({called(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None "
                "or a python collection of ints representing where in the outputs the vmapped "
                "dimension should appear."
            )


def run(
    func: Func,
    flat: list[Any],
    dims: list[Any],
    spec: Any,
    size: int,
    randomness: str,
    out_dims: Any,
    kwargs: dict[str, Any],
) -> tuple[list[Any], list[Any], Any]:
    """Return the outputs for all slices, the dimensions of these in them, and their form."""
    batch = Batch(size, randomness)
    inside = [batch.enter(x, dim) for x, dim in zip(flat, dims, strict=True)]
    with batch:
        outputs, form = pytree.tree_flatten(func(*spec.unflatten(inside), **kwargs))
    places = placed(func, out_dims, form)
    pairs = zip(outputs, places, strict=True)
    return [returned(func, value, dim, batch) for value, dim in pairs], places, form


def chunks(flat: list[Any], dims: list[Any], size: int, chunk_size: int) -> Any:
    """Yield so many slices of the arguments at a time, and how many they are."""
    for start in range(0, size, chunk_size):
        count = min(chunk_size, size - start)
        pairs = zip(flat, dims, strict=True)
        yield [x if d is None else x.narrow(d, start, count) for x, d in pairs], count


def vmap(
    func: Func,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Func:
    """Return a function that calls `func` for each slice of its arguments and stacks the results.

    It runs `func` once, on tensors that stand for slices and compute all of them; what they are
    cannot be read within `func`, so ``item()`` and branches on data raise. Gradients flow through,
    and transforms nest: ``vmap(grad(loss), in_dims=(None, 0, 0))`` gives gradients for each sample.
    Results that are slices of an argument are that argument, or a view of it. Random numbers are
    those of one call for all slices. An operator without a rule for slices runs once for each.

    Parameters
    ----------
    func : callable
        Returns a tensor, or a container of tensors, of the same shapes for each slice.
    in_dims : int or tuple, default 0
        The dimension of the slices in each argument, None for arguments that all slices share; a
        tuple in the form of the arguments, or one number for all.
    out_dims : int, None or container, default 0
        The dimension of the slices in each output; None for what is the same for all of them.
    randomness : {"error", "same", "different"}, default "error"
        Whether `func` may draw random numbers, and whether each slice gets the same ones.
    chunk_size : int, optional
        Positive; how many slices at most are computed at once, for less memory.

    Returns
    -------
    callable
        Takes what `func` takes, with one dimension more in what is mapped. Arguments by name are
        shared by all slices.

    Raises
    ------
    ValueError
        The dimensions do not fit the arguments or outputs, or an output is no tensor.
    RuntimeError
        `func` drew random numbers and may not, wrote something else for each slice to a tensor that
        they share, read elements, or gave results of different shapes; or a `autograd.Function`
        in it has no rule for slices.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x, y = torch.arange(6.0).view(3, 2), torch.tensor([1.0, 10.0])
    >>> torch.vmap(torch.dot, in_dims=(0, None))(x, y)
    tensor([10., 32., 54.])
    """
    check_randomness(randomness)
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        check_out_dims(out_dims, func)
        size, dims, flat, spec = mapped(func, in_dims, args)
        if chunk_size is None or size <= chunk_size:
            outputs, _, form = run(func, flat, dims, spec, size, randomness, out_dims, kwargs)
            return form.unflatten(outputs)
        found = []
        state = random.get_rng_state() if randomness == "same" else None
        for part, count in chunks(flat, dims, size, chunk_size):
            if state is not None:
                random.set_rng_state(state)
            found.append(run(func, part, dims, spec, count, randomness, out_dims, kwargs))
        (_, places, form), columns = found[0], zip(*(part[0] for part in found), strict=True)
        pairs = zip(columns, places, strict=True)
        return form.unflatten([c[0] if d is None else _C.cat(c, d) for c, d in pairs])

    return wrapped
