"""Dimensions moved, split and joined by a pattern of names."""

from __future__ import annotations

import re
from typing import Any

from .. import _C

__all__ = ["rearrange"]

Groups = list[list[str]]


def groups(side: str, pattern: str) -> Groups:
    """Return the names in each dimension of one side of a pattern; ``1`` is one without names."""
    if re.sub(r"\(([^()]*)\)", r" \1 ", side).strip("() ") != re.sub(
        r"\(([^()]*)\)", r" \1 ", side
    ).strip(" "):
        raise ValueError(f"rearrange: parentheses do not match in {pattern!r}")
    found = []
    for inner, name in re.findall(r"\(([^()]*)\)|([^\s()]+)", side):
        found.append([n for n in (inner.split() if not name else [name]) if n != "1"])
    names = [n for group in found for n in group]
    for name in names:
        if name != "..." and not name.isidentifier():
            raise ValueError(f"rearrange: {name!r} in {pattern!r} is no name of a dimension")
    if len(set(names)) != len(names):
        raise ValueError(f"rearrange: a name stands twice on one side of {pattern!r}")
    return found


def spelled(sides: list[Groups], rank: int, pattern: str) -> list[Groups]:
    """Return both sides with names for the dimensions that an ellipsis stands for."""
    if not any(["..."] in [*side] or any("..." in g for g in side) for side in sides):
        return sides
    if not any(g == ["..."] for g in sides[0]):
        raise ValueError(f"rearrange: an ellipsis must stand alone on the left of {pattern!r}")
    count = rank - (len(sides[0]) - 1)
    if count < 0:
        raise ValueError(f"rearrange: {pattern!r} needs more dimensions than {rank}")
    names = [f"...{i}" for i in range(count)]
    result = []
    for side in sides:
        out: Groups = []
        for group in side:
            if group == ["..."]:
                out += [[name] for name in names]
            else:
                out.append([m for n in group for m in (names if n == "..." else [n])])
        result.append(out)
    return result


def sizes_of(left: Groups, shape: Any, given: dict[str, int], pattern: str) -> dict[str, int]:
    """Return how long the dimension of each name is."""
    sizes = dict(given)
    for group, length in zip(left, shape, strict=True):
        unknown = [n for n in group if n not in sizes]
        known = 1
        for n in group:
            known *= sizes.get(n, 1)
        if len(unknown) > 1:
            raise ValueError(
                f"rearrange: the lengths of {unknown} in {pattern!r} are unknown; give all but one"
            )
        if unknown and known and length % known == 0:
            sizes[unknown[0]] = length // known
        elif unknown or known != length:
            raise ValueError(
                f"rearrange: a dimension of {length} elements is no {group or [1]} with lengths "
                f"{ {n: sizes[n] for n in group if n in sizes} } in {pattern!r}"
            )
    return sizes


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Any:
    """Return the elements of `tensor` in dimensions that are moved, split and joined.

    Parameters
    ----------
    tensor : Tensor or sequence of Tensor
        Tensors in a sequence are stacked first.
    pattern : str
        Names of its dimensions, an arrow, and names of the result's; names in parentheses are one
        dimension, ``1`` is one of one element, and ``...`` stands for all others.
    **axes_lengths : int
        Lengths of names in parentheses on the left: all but one of each must be known.

    Returns
    -------
    Tensor
        A view where that is possible.

    Raises
    ------
    ValueError
        The pattern cannot be read, or does not fit the shape.

    References
    ----------
    Rogozhnikov 2022, "Einops: Clear and Reliable Tensor Manipulations with Einstein-like Notation".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> images = torch.zeros(32, 30, 40, 3)
    >>> torch.func.rearrange(images, "b h w c -> b (c h w)").shape
    torch.Size([32, 3600])
    >>> torch.func.rearrange(images, "b (h h2) w c -> b h w (h2 c)", h2=2).shape
    torch.Size([32, 15, 40, 6])
    """
    x = tensor if isinstance(tensor, _C.Tensor) else _C.stack(tuple(tensor))
    halves = pattern.split("->")
    if len(halves) != 2:
        raise ValueError(f"rearrange: {pattern!r} must have one arrow, as in 'a b -> b a'")
    left, right = spelled([groups(half, pattern) for half in halves], x.dim(), pattern)
    if len(left) != x.dim():
        raise ValueError(
            f"rearrange: {pattern!r} names {len(left)} dimensions, the tensor has {x.dim()}"
        )
    before, after = [n for g in left for n in g], [n for g in right for n in g]
    if set(before) != set(after):
        raise ValueError(
            f"rearrange: {sorted(set(before) ^ set(after))} in {pattern!r} must stand on both sides"
        )
    strange = sorted(set(axes_lengths) - set(before))
    if strange:
        raise ValueError(f"rearrange: {pattern!r} has no {strange}")
    sizes = sizes_of(left, x.shape, axes_lengths, pattern)
    x = x.reshape([sizes[n] for n in before]).permute([before.index(n) for n in after])
    shape = []
    for group in right:
        length = 1
        for n in group:
            length *= sizes[n]
        shape.append(length)
    return x.reshape(shape)
