"""Choices and maps as `functorch` had them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ..._control import cond
from ...utils import _pytree as pytree

__all__ = ["cond", "map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:  # noqa: A001
    """Return what `f` gives for each slice along dimension 0, stacked.

    Parameters
    ----------
    f : callable
        Takes a slice of `xs`, then `args`.
    xs : Tensor, or container of tensors
        All of one size in dimension 0.
    *args : object
        The same for each slice.

    Returns
    -------
    object
        As `f` returns it, with a dimension more in front of each tensor.

    Raises
    ------
    RuntimeError
        There is no tensor, or the sizes differ.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.functorch.experimental.control_flow import map
    >>> map(lambda x, y: x + y, torch.arange(3.0), 10)
    tensor([10., 11., 12.])
    """
    flat, spec = pytree.tree_flatten(xs)
    sizes = {x.shape[0] if isinstance(x, pt.Tensor) and x.dim() else None for x in flat}
    if len(sizes) != 1 or None in sizes:
        raise RuntimeError(
            "map: Leaf xs must be tensors of one size in dimension 0, got "
            f"{[getattr(x, 'shape', type(x)) for x in flat]}"
        )
    slices = [spec.unflatten(part) for part in zip(*(x.unbind(0) for x in flat), strict=True)]
    outputs = [pytree.tree_flatten(f(part, *args)) for part in slices]
    columns = zip(*(leaves for leaves, _ in outputs), strict=True)
    return outputs[0][1].unflatten([pt.stack(column) for column in columns])
