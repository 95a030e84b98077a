"""Attention on the CPU: what a mask hides from a query reaches neither result nor gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pytensorlib as pt
from pytensorlib.nn import functional as F

Array = np.ndarray[Any, Any]
TOLERANCE = {"float32": 1e-4, "float64": 1e-11, "bfloat16": 4e-2, "float16": 6e-3}
KINDS = ("bool", "float", "wide float", "causal", "bool dropped")
# Queries and keys on both sides of a tile's size, and more heads of queries than of keys.
SIZES = [(5, 5, 2), (130, 100, 1)]


def formula(q: Array, k: Array, v: Array, g: Array, seen: Array, factor: Array) -> list[Array]:
    """Return the result and the gradients of one head, by sums over what is seen alone."""
    width, y = q.shape[1], np.zeros((len(q), v.shape[1]))
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for i in range(len(q)):
        own = np.flatnonzero(seen[i])
        if not own.size:
            continue
        scores = k[own] @ q[i] / width**0.5
        p = np.exp(scores - scores.max())
        p /= p.sum()
        f = factor[i, own]
        y[i] = (p * f) @ v[own]
        d = (v[own] @ g[i]) * f
        d = p * (d - p @ d) / width**0.5
        dq[i] = d @ k[own]
        dk[own] += np.outer(d, q[i])
        dv[own] += np.outer(p * f, g[i])
    return [y, dq, dk, dv]


def visible(kind: str, rows: int, keys: int) -> Array:
    if kind == "causal":
        return np.tri(rows, keys, dtype=bool)
    seen = np.random.default_rng(rows).random((rows, keys)) < 0.7
    # A query that sees nothing, and a key that no query sees.
    seen[rows // 2] = False
    seen[:, keys // 2] = False
    return seen


@pytest.mark.parametrize("spoiled", ["q", "k", "v", "g"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(("rows", "keys", "group"), SIZES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_hidden_numbers_reach_nothing(
    dtype: str, kind: str, rows: int, keys: int, group: int, value: float, spoiled: str
) -> None:
    rng = np.random.default_rng(keys)
    shapes = {"q": (2, 2 * group, rows, 6), "k": (2, 2, keys, 6)}
    shapes |= {"v": (2, 2, keys, 5), "g": (2, 2 * group, rows, 5)}
    tensors = {
        n: pt.tensor(rng.standard_normal(s)).to(getattr(pt, dtype)) for n, s in shapes.items()
    }
    at = {"k": keys // 2, "v": keys // 2}.get(spoiled, rows // 2)
    # What no query sees, and what some see.
    tensors[spoiled][0, :, at] = value
    tensors[spoiled][1, 0, 3, 1] = value
    seen = visible(kind, rows, keys)
    options: dict[str, Any] = {"is_causal": True}
    if kind.startswith("bool"):
        options = {"attn_mask": pt.tensor(seen)}
    elif kind != "causal":
        mask = pt.zeros(rows, keys).masked_fill(~pt.tensor(seen), -pt.inf)
        options = {"attn_mask": mask if kind == "wide float" else mask.to(getattr(pt, dtype))}
    factor = np.ones((2, 2 * group, rows, keys))
    if kind == "bool dropped":
        options["dropout_p"] = 0.5
        pt.manual_seed(0)
        factor = F.dropout(pt.ones(factor.shape, dtype=getattr(pt, dtype)), 0.5).double().numpy()
        pt.manual_seed(0)
    q, k, v = (tensors[n].requires_grad_() for n in "qkv")
    y = F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)
    found = [y, *pt.autograd.grad(y, (q, k, v), tensors["g"])]
    found = [t.detach().double().numpy() for t in found]
    q, k, v, g = (tensors[n].detach().double().numpy() for n in "qkvg")
    for b in range(2):
        for h in range(2):
            own = range(h * group, (h + 1) * group)
            with np.errstate(invalid="ignore"):
                each = [
                    formula(q[b, i], k[b, h], v[b, h], g[b, i], seen, factor[b, i]) for i in own
                ]
                sums = [sum(parts) for parts in zip(*each, strict=True)]
            for i, parts in zip(own, each, strict=True):
                close(found[0][b, i], parts[0], dtype)
                close(found[1][b, i], parts[1], dtype)
            close(found[2][b, h], sums[2], dtype)
            close(found[3][b, h], sums[3], dtype)


def close(found: Array, expected: Array, dtype: str) -> None:
    """Rows agree; those that are not finite, in that."""
    finite = np.isfinite(expected).all(-1)
    assert (np.isfinite(found).all(-1) == finite).all()
    bound = TOLERANCE[dtype]
    np.testing.assert_allclose(found[finite], expected[finite], rtol=bound, atol=bound)


def test_infinite_value_that_is_seen_stays_infinite() -> None:
    q, k, v = pt.zeros(1, 4, 2), pt.zeros(1, 3, 2), pt.ones(1, 3, 2)
    v[0, 1], v[0, 2] = pt.inf, pt.nan
    seen = pt.ones(4, 3, dtype=pt.bool)
    seen[:, 2] = False
    seen[3, 1] = False
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    assert y[0].tolist() == [[np.inf] * 2] * 3 + [[1, 1]]
