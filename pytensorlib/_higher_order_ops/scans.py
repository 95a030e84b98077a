"""Loops over a dimension: `scan` and `associative_scan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ..utils import _pytree as pytree
from . import control as _control

__all__ = ["associative_scan", "map", "scan"]


def _length(caller: str, leaves: list[Any], dim: int) -> Any:
    if not leaves or not all(isinstance(t, pt.Tensor) for t in leaves):
        raise RuntimeError(f"{caller}: xs must hold tensors, and at least one")
    sizes = [t.shape[dim] for t in leaves]
    if any(s != sizes[0] for s in sizes[1:]):
        raise RuntimeError(f"{caller}: all tensors of xs must be as long along {dim}, got {sizes}")
    return sizes[0]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Return what is carried last, and what all steps give, stacked.

    Parameters
    ----------
    combine_fn : callable
        Takes what is carried and a slice of `xs`; returns what is carried on, and an output.
    init : container of Tensor
        What is carried first.
    xs : container of Tensor
        All equally long along `dim`.
    dim : int, default 0
        Along which slices are taken.
    reverse : bool, default False
        Whether the last slice comes first.

    Returns
    -------
    tuple
        What is carried last, and the outputs, stacked along `dim` in the order of the slices.

    Raises
    ------
    RuntimeError
        `xs` holds no tensors, tensors of different lengths, or none at all along `dim`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._higher_order_ops import scan
    >>> scan(lambda c, x: (c + x, c * x), torch.tensor(0.0), torch.arange(4.0))
    (tensor(6.), tensor([0., 0., 2., 9.]))
    """
    leaves, spec = pytree.tree_flatten(xs)
    n = _length("scan", leaves, dim)
    if dim != 0:
        leaves = [t.movedim(dim, 0) for t in leaves]
    if reverse:
        leaves = [t.flip(0) for t in leaves]
    if _control.recording.tracer is not None:
        from ..export._control_flow import record_scan

        carry, outs = record_scan(_control.recording.tracer, combine_fn, init, leaves, spec)
    else:
        if n == 0:
            raise RuntimeError("scan: xs is empty along the dimension")
        carry, found = init, []
        for i in range(n):
            carry, out = combine_fn(carry, pytree.tree_unflatten([t[i] for t in leaves], spec))
            found.append(out)
        outs = pytree.tree_map(lambda *parts: pt.stack(parts), found[0], *found[1:])
    if reverse:
        outs = pytree.tree_map(lambda t: t.flip(0), outs)
    if dim != 0:
        outs = pytree.tree_map(lambda t: t.movedim(0, dim), outs)
    return carry, outs


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Return what a function gives of each slice along the first dimension, stacked.

    In an exported program it stays one operator, ``torch.ops.higher_order.map_impl``.

    Parameters
    ----------
    f : callable
        Takes a slice of `xs` and `args`.
    xs : container of Tensor
        All equally long.
    *args : object
        The same in each call.

    Returns
    -------
    container of Tensor
        What `f` returns, stacked along the first dimension.

    Raises
    ------
    RuntimeError
        `xs` holds no tensors, tensors of different lengths, or empty ones.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._higher_order_ops import map
    >>> map(lambda x, y: x.sum() + y, torch.ones(2, 3), torch.tensor(1.0))
    tensor([4., 4.])
    """
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(t, pt.Tensor) for t in leaves):
        raise RuntimeError(f"map: Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [t.shape for t in leaves]
    if any(s[0] != shapes[0][0] for s in shapes):
        raise RuntimeError(
            f"map: Leading dimensions of mapped xs must be consistent. Got shapes {shapes}."
        )
    if shapes[0][0] == 0:
        raise RuntimeError("map: Leading dimensions of mapped xs cannot be 0.")
    if _control.recording.tracer is not None:
        from ..export._control_flow import record_map

        return record_map(_control.recording.tracer, f, leaves, spec, args)
    rows = zip(*leaves, strict=True)
    found = [f(pytree.tree_unflatten(list(row), spec), *args) for row in rows]
    return pytree.tree_map(_stack, found[0], *found[1:])


def _stack(*parts: Any) -> Any:
    """Return outputs stacked, or None where they are."""
    if not all(isinstance(part, pt.Tensor) for part in parts):
        if all(part is None for part in parts):
            return None
        raise RuntimeError(f"map: f must return tensors or None, got {parts[0]!r}")
    return pt.stack(parts)


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """Return what a function makes of each slice and all before it.

    Parameters
    ----------
    combine_fn : callable
        Takes two slices and returns one; associative.
    xs : container of Tensor
        All equally long along `dim`.
    dim : int
        Along which slices are taken.
    reverse : bool, default False
        Whether it goes from the end to the beginning.
    combine_mode : str, default "pointwise"
        "pointwise" or "generic", which are the same here.

    Returns
    -------
    container of Tensor
        Of the shapes of `xs`.

    Raises
    ------
    ValueError
        The mode is another.
    RuntimeError
        `xs` holds no tensors, tensors of different lengths, or empty ones.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._higher_order_ops import associative_scan
    >>> associative_scan(lambda a, b: a * b, torch.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 2., 6.])
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must be either 'pointwise' or 'generic', but got {combine_mode}"
        )
    leaves, spec = pytree.tree_flatten(xs)
    _length("associative_scan", leaves, dim)
    at = -1 if reverse else 0
    first = pytree.tree_unflatten([t.select(dim, at) for t in leaves], spec)
    rest = [t.narrow(dim, 0 if reverse else 1, t.shape[dim] - 1) for t in leaves]
    if rest[0].shape[dim] == 0:
        return xs

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        made = combine_fn(carry, x)
        return made, pytree.tree_map(lambda t: t.clone(), made)

    others = scan(step, first, pytree.tree_unflatten(rest, spec), dim=dim, reverse=reverse)[1]
    pairs = zip(pytree.tree_leaves(first), pytree.tree_leaves(others), strict=True)
    made = []
    for a, b in pairs:
        parts = [b, a.unsqueeze(dim)] if reverse else [a.unsqueeze(dim), b]
        made.append(pt.cat(parts, dim))
    return pytree.tree_unflatten(made, spec)
