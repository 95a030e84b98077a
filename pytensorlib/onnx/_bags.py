"""Rows of sums over groups, and of results that are as long as the data says."""

from __future__ import annotations

import math
from typing import Any

import pytensorlib as pt

from ._graph import TYPES, Value
from ._layout import wide
from ._rows import row


@row("det", "linalg_det")
def _det(c: Any, x: Any) -> Any:
    return c.op("Det", x)


@row("unique_dim")
def _unique_dim(
    c: Any, x: Any, dim: int, sorted: bool = True, return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:  # fmt: skip
    made, _, inverse, counts = c.op("Unique", x, n=4, axis=dim, sorted=1)
    return [made, inverse if return_inverse else None, counts if return_counts else None]


@row("_unique2")
def _unique2(
    c: Any, x: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    made, _, inverse, counts = c.op("Unique", x, n=4, sorted=1)
    if return_inverse:
        inverse = c.op("Reshape", inverse, c.op("Shape", x))
    return [made, inverse if return_inverse else None, counts if return_counts else None]


@row("embedding_bag")
def _embedding_bag(
    c: Any, weight: Any, indices: Any, offsets: Any, scale: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
    padding_idx: Any = None,
) -> Any:  # fmt: skip
    if any(user.users for user in c.at.users if user.args[1:] != (0,)):
        raise c.error(c.at, "something uses more than its first result")
    dtype, least = weight.dtype, -math.inf if mode == 2 else 0.0
    rows = c.op("Gather", weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = c.op("Mul", rows, c.op("Unsqueeze", per_sample_weights, c.ints([-1])))
    taken = c.op("Cast", c.op("GreaterOrEqual", indices, c.operand(0, indices.dtype)),
                 to=TYPES[dtype])  # fmt: skip
    if padding_idx is not None and padding_idx >= 0:
        kept = c.op("Not", c.op("Equal", indices, c.operand(padding_idx, indices.dtype)))
        taken = c.op("Cast", kept, to=TYPES[dtype])
        rows = c.op("Where", c.op("Unsqueeze", kept, c.ints([-1])), rows, c.constant(least, dtype))
    # The bag of each index: how many bags begin at it or before, less one.
    starts = wide(c, offsets)
    if include_last_offset:
        starts = c.op("Slice", starts, c.ints([0]), c.ints([-1]), c.ints([0]))
    count = c.op("Squeeze", c.op("Shape", indices), c.ints([0]))
    place = c.op("Range", c.constant(0), count, c.constant(1))
    before = c.op("GreaterOrEqual", c.op("Unsqueeze", place, c.ints([1])), starts)
    bag = c.op("ReduceSum", c.op("Cast", before, to=TYPES[pt.int64]), c.ints([1]), keepdims=0)
    bag = c.op("Sub", bag, c.constant(1))
    bags, width = c.op("Shape", starts), c.ints([c.size(weight, 1)])
    empty = c.op("Expand", c.constant(least, dtype), c.op("Concat", bags, width, axis=0))
    places = c.op("Expand", c.op("Unsqueeze", bag, c.ints([1])), c.op("Shape", rows))
    how = "max" if mode == 2 else "add"
    made = c.op("ScatterElements", empty, places, rows, axis=0, reduction=how)
    if mode:
        none = c.op("Expand", c.constant(0.0, dtype), bags)
        sizes = c.op("ScatterElements", none, bag, taken, axis=0, reduction="add")
        sizes = c.op("Unsqueeze", sizes, c.ints([1]))
        if mode == 1:
            made = c.op("Div", made, c.op("Max", sizes, c.constant(1.0, dtype)))
        else:
            held = c.op("Greater", sizes, c.constant(0.0, dtype))
            made = c.op("Where", held, made, c.constant(0.0, dtype))
    return [Value(made, dtype, (None, weight.shape[1])), None, None, None]
