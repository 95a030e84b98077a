"""Attention over sequences of different lengths that lie one after the other."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import pytensorlib as pt

from .. import functional as F

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What `varlen_attn` is to return beside its result.

    Parameters
    ----------
    lse : bool, default False
        The logarithm of the sum of the exponentials of each query's scores.

    Examples
    --------
    >>> from pytensorlib.nn.attention.varlen import AuxRequest
    >>> AuxRequest(lse=True).lse
    True
    """

    lse: bool = False


def _seen(queries: int, keys: int, window: tuple[int, int], device: Any) -> Any:
    """Return which keys each query sees, the last of both being level; None for all."""
    left, right = window
    if left < 0 and right < 0:
        return None
    q = pt.arange(queries, device=device).unsqueeze(1) + (keys - queries)
    k = pt.arange(keys, device=device)
    seen = pt.ones(queries, keys, dtype=pt.bool, device=device)
    if left >= 0:
        seen = seen & (k >= q - left)
    return seen & (k <= q + right) if right >= 0 else seen


def _pages(x: Any, table: Any, length: int) -> Any:
    """Return the first entries of a sequence whose pages a table names."""
    size = x.shape[1]
    return x[table[: -(-length // size)].long()].flatten(0, 1)[:length]


def varlen_attn(
    query: Any,
    key: Any,
    value: Any,
    cu_seq_q: Any,
    cu_seq_k: Any,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Any = None,
    block_table: Any = None,
    num_splits: int | None = None,
) -> Any:
    """Return the attention of each of several sequences, which lie one after the other.

    Parameters
    ----------
    query : Tensor
        (Tq, Hq, D): the sequences one after the other.
    key, value : Tensor
        (Tk, H, D), or with `block_table` (pages, page size, H, D).
    cu_seq_q : Tensor
        (N + 1,): where each sequence of queries begins, and where the last ends.
    cu_seq_k : Tensor or None
        The same of the keys; not needed with `block_table`.
    max_q, max_k : int
        The longest sequences of queries and keys; not used.
    return_aux : AuxRequest, optional
        What is returned beside the result.
    scale : float, optional
        A factor of the scores; ``1 / sqrt(D)`` by default.
    window_size : tuple of int, default (-1, -1)
        How many keys before and behind its own place a query sees, -1 for all; the last query and
        the last key are at one place. (-1, 0) is causal.
    enable_gqa : bool, default False
        Whether there may be fewer heads of keys, each for several of queries.
    seqused_k : Tensor, optional
        (N,): how many keys of each sequence count.
    block_table : Tensor, optional
        (N, pages): the pages of each sequence, in order; needs `seqused_k`.
    num_splits : int, optional
        Not used: a result depends on its own sequence alone.

    Returns
    -------
    Tensor or tuple
        (Tq, Hq, D); with ``AuxRequest(lse=True)`` also the logarithms, (Hq, Tq) of float32.

    Raises
    ------
    ValueError
        The numbers of heads do not fit, or pages come without `seqused_k`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.attention.varlen import varlen_attn
    >>> x = torch.ones(5, 2, 4)
    >>> starts = torch.tensor([0, 2, 5])
    >>> varlen_attn(x, x, x, starts, starts, 3, 3).shape
    torch.Size([5, 2, 4])
    """
    heads, others = query.size(1), key.size(2 if block_table is not None else 1)
    if not enable_gqa and heads != others:
        raise ValueError(
            "varlen_attn: Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={others}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % others:
        raise ValueError(
            "varlen_attn: Expect number of query heads to be a multiple of kv heads for GQA but "
            f"got Hq={heads} and Hkv={others}."
        )
    if len(window_size) != 2:
        raise ValueError(f"window_size must have length 2, got {len(window_size)}")
    if block_table is not None and seqused_k is None:
        raise ValueError("varlen_attn: block_table needs seqused_k, the lengths of the sequences")
    wants = return_aux is not None and return_aux.lse
    starts = cu_seq_q.tolist()
    key_starts: Any = None if block_table is not None else cu_seq_k.tolist()
    used: Any = None if seqused_k is None else seqused_k.tolist()
    outputs, sums = [], []
    for n, (first, last) in enumerate(pairwise(starts)):
        q = query[first:last]
        if key_starts is None:
            k, v = (_pages(x, block_table[n], used[n]) for x in (key, value))
        else:
            end = key_starts[n + 1] if used is None else key_starts[n] + used[n]
            k, v = (x[key_starts[n] : end] for x in (key, value))
        q, k, v = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))
        seen = _seen(q.size(2), k.size(2), window_size, q.device)
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=seen, scale=scale, enable_gqa=enable_gqa
        )
        outputs.append(y.squeeze(0).transpose(0, 1))
        if wants:
            factor = q.size(-1) ** -0.5 if scale is None else scale
            scores = q.float() @ k.float().repeat_interleave(heads // others, 1).mT * factor
            scores = scores if seen is None else scores.masked_fill(~seen, float("-inf"))
            sums.append(scores.squeeze(0).logsumexp(-1))
    output = pt.cat(outputs) if outputs else pt.empty_like(query)
    if not wants:
        return output
    return output, pt.cat(sums, -1) if sums else query.new_empty((heads, 0), dtype=pt.float32)


def varlen_attn_out(
    out: Any,
    query: Any,
    key: Any,
    value: Any,
    cu_seq_q: Any,
    cu_seq_k: Any,
    max_q: int,
    max_k: int,
    **options: Any,
) -> Any:
    """As `varlen_attn`, with the result written to a given tensor; it is not differentiated.

    Parameters
    ----------
    out : Tensor
        Of the shape and dtype of the result.
    query, key, value, cu_seq_q, cu_seq_k, max_q, max_k
        As in `varlen_attn`.
    **options
        Those of `varlen_attn`.

    Returns
    -------
    Tensor or tuple
        `out`, with ``AuxRequest(lse=True)`` also the logarithms.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.attention.varlen import varlen_attn_out
    >>> x, starts, out = torch.ones(3, 1, 2), torch.tensor([0, 1, 3]), torch.empty(3, 1, 2)
    >>> varlen_attn_out(out, x, x, x, starts, starts, 2, 2) is out
    True
    """
    with pt.no_grad():
        found = varlen_attn(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **options)
        y, *rest = found if isinstance(found, tuple) else (found,)
        out.copy_(y)
    return (out, *rest) if rest else out
