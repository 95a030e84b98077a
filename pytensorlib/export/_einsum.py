"""`einsum` of one or two tensors as products of matrices, in the steps that PyTorch takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["einsum"]


def _labels(equation: str, count: int) -> tuple[list[str], str] | None:
    """Return the labels of each operand and of the result, or None for what is not done here."""
    text = equation.replace(" ", "")
    left, arrow, out = text.partition("->")
    operands = left.split(",")
    if len(operands) != count or any(not p.isalpha() or len(set(p)) != len(p) for p in operands):
        return None
    if not arrow:
        every = "".join(operands)
        out = "".join(sorted(c for c in set(every) if every.count(c) == 1))
    if len(set(out)) != len(out) or not set(out) <= set(left):
        return None
    return operands, out


def einsum(
    r: Callable[..., Any], sizes: Callable[[Any], Sequence[Any]], equation: str, operands: Any
) -> Any:
    """Return what an equation says, or None where it is none of these.

    Parameters
    ----------
    r : callable
        Computes an operator by its name: ``r("permute", x, dims)``; "shaped" is a reshape.
    sizes : callable
        Gives the sizes of a tensor.
    equation : str
        Without dots, and without a label twice in one operand.
    operands : sequence of Tensor
        One or two.
    """
    found = _labels(equation, len(operands)) if len(operands) in (1, 2) else None
    if found is None:
        return None
    labels, out = found
    order = out + "".join(sorted({c for p in labels for c in p} - set(out)))
    placed = []
    for x, own in zip(operands, labels, strict=True):
        if len(own) != x.dim():
            return None
        places = {c: d for d, c in enumerate(own)}
        for c in order:
            if c not in places:
                x = r("unsqueeze", x, len(places))
                places[c] = len(places)
        placed.append(r("permute", x, [places[c] for c in order]))
    summed = list(range(len(out), len(order)))
    if len(placed) == 1:
        return r("sum", placed[0], summed) if summed else placed[0]
    a, b = placed
    made = _pair(r, sizes, a, b, summed) if summed else r("mul", a, b)
    return r("view", made, list(sizes(made))[: len(out)]) if summed else made


def _pair(
    r: Callable[..., Any], sizes: Callable[[Any], Sequence[Any]], a: Any, b: Any, summed: list[int]
) -> Any:
    """Multiply, and sum over dimensions, which stay with one element."""
    both: list[int] = []
    left: list[int] = []
    right: list[int] = []
    inner: list[int] = []
    for d in range(a.dim()):
        wide = [not (type(s) is int and s == 1) for s in (sizes(a)[d], sizes(b)[d])]
        if d in summed:
            if not all(wide):
                a = r("sum", a, [d], True) if wide[0] else a
                b = r("sum", b, [d], True) if wide[1] else b
            inner.append(d)
        elif all(wide):
            both.append(d)
        elif wide[0]:
            left.append(d)
        else:
            right.append(d)
    m, n = sizes(a), sizes(b)
    product = [math.prod([m[d] for d in part]) for part in (both, left, inner)]
    columns = math.prod([n[d] for d in right])
    x = r("shaped", r("permute", a, both + left + inner + right), product)
    y = r("permute", b, both + inner + right + left)
    y = r("shaped", y, [product[0], product[2], columns])
    order = both + left + inner + right
    shape = [*(m[d] for d in both + left), *(1 for _ in inner), *(n[d] for d in right)]
    made = r("view", r("bmm", x, y), shape)
    return r("permute", made, [order.index(d) for d in range(len(order))])
