"""Attention whose scores a function changes, and masks that a function makes.

A function gets all scores and the numbers of batch, head, query and key at once, as tensors that
broadcast, which gives what single numbers would for functions of single elements; a few single ones
are compared, and where they differ it is called for each element.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import pytensorlib as pt

from ... import _alias
from .. import functional as F
from ._block_mask import BLOCK, BlockMask, ordered

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "create_nested_block_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_alias.adopt(globals(), ["BlockMask"])
_DEFAULT_SPARSE_BLOCK_SIZE = BLOCK
Mod = Callable[..., Any]
INF = float("inf")


class FlexKernelOptions(TypedDict, total=False):
    """What PyTorch's kernels may be told; results do not depend on it.

    Examples
    --------
    >>> from pytensorlib.nn.attention.flex_attention import FlexKernelOptions
    >>> FlexKernelOptions(BLOCK_M=64)
    {'BLOCK_M': 64}
    """

    BACKEND: str
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_M2: int
    BLOCK_N1: int
    BLOCK_N2: int
    FORCE_USE_FLEX_ATTENTION: bool
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    USE_TMA: bool
    WRITE_DQ: bool
    num_stages: int
    num_warps: int


class AuxRequest(NamedTuple):
    """What `flex_attention` is to return beside its result.

    Parameters
    ----------
    lse : bool, default False
        The logarithm of the sum of the exponentials of each query's scores.
    max_scores : bool, default False
        The largest of them.

    Examples
    --------
    >>> from pytensorlib.nn.attention.flex_attention import AuxRequest
    >>> AuxRequest(lse=True)
    AuxRequest(lse=True, max_scores=False)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What `flex_attention` returns beside its result.

    Parameters
    ----------
    lse, max_scores : Tensor, optional
        As `AuxRequest` asks for it, (B, H, queries).

    Examples
    --------
    >>> from pytensorlib.nn.attention.flex_attention import AuxOutput
    >>> AuxOutput().lse is None
    True
    """

    lse: Any = None
    max_scores: Any = None


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """Return True: every key is seen.

    Parameters
    ----------
    batch, head, token_q, token_kv : Tensor
        The numbers.

    Returns
    -------
    Tensor
        Bool.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.attention.flex_attention import noop_mask
    >>> noop_mask(*torch.zeros(4, dtype=torch.int64))
    tensor(True)
    """
    return batch.new_ones((), dtype=pt.bool)


def _joined(mask_mods: tuple[Mod, ...], start: bool) -> Mod:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = b.new_full((), start, dtype=pt.bool)
        for mod in mask_mods:
            found = mod(b, h, q_idx, kv_idx)
            result = result & found if start else result | found
        return result

    return mask


def and_masks(*mask_mods: Mod) -> Mod:
    """Return a mask function that sees what all of several see.

    Parameters
    ----------
    *mask_mods : callable
        Functions of the numbers of batch, head, query and key.

    Returns
    -------
    callable
        Such a function.

    Raises
    ------
    RuntimeError
        Something cannot be called.

    Examples
    --------
    >>> from pytensorlib.nn.attention.flex_attention import and_masks, create_mask
    >>> near = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
    >>> create_mask(near, 1, 1, 3, 3, device="cpu")[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    return _joined(mask_mods, True)


def or_masks(*mask_mods: Mod) -> Mod:
    """Return a mask function that sees what one of several sees.

    Parameters
    ----------
    *mask_mods : callable
        Functions of the numbers of batch, head, query and key.

    Returns
    -------
    callable
        Such a function.

    Raises
    ------
    RuntimeError
        Something cannot be called.

    Examples
    --------
    >>> from pytensorlib.nn.attention.flex_attention import create_mask, or_masks
    >>> either = or_masks(lambda b, h, q, k: k == 0, lambda b, h, q, k: q == k)
    >>> create_mask(either, 1, 1, 3, 3, device="cpu")[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 0, 1]]
    """
    return _joined(mask_mods, False)


def _over(mod: Mod, shape: tuple[int, ...], device: Any, score: Any = None) -> Any:
    """Return what a function gives for all elements, in a shape that broadcasts to `shape`."""
    numbers = []
    for at, n in enumerate(shape):
        one = [n if i == at else 1 for i in range(4)]
        numbers.append(pt.arange(n, dtype=pt.int32, device=device).view(one))
    given = numbers if score is None else [score, *numbers]
    spots = {tuple(int((n - 1) * part) for n in shape) for part in (0, 0.4, 1)}
    if 0 in shape:
        spots = set()

    def single(spot: tuple[int, ...]) -> Any:
        x = [pt.tensor(i, dtype=pt.int32, device=device) for i in spot]
        return pt.as_tensor(mod(*(x if score is None else [score[spot], *x])), device=device)

    try:
        found = pt.as_tensor(mod(*given), device=device)
        whole = found.expand(shape)
        with pt.no_grad():
            alike = all(
                pt.allclose(single(s).double(), whole[s].double(), equal_nan=True) for s in spots
            )
    except (RuntimeError, IndexError, TypeError, ValueError):
        alike = False
    if alike:
        return found
    from ...func import vmap

    each = mod
    for at in (3, 2, 1, 0):
        dims = [0 if i == at else None for i in range(4)]
        each = vmap(each, in_dims=tuple(dims if score is None else [0, *dims]))
    flat = [n.flatten() for n in numbers]
    return each(*(flat if score is None else [score, *flat]))


def _counts(mod: Mod) -> int:
    """Return how many arguments a function takes: four of a mask, five of a score."""
    try:
        parameters = inspect.signature(mod).parameters.values()
    except (TypeError, ValueError):
        return 4
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(p.kind in kinds and p.default is p.empty for p in parameters)
    return 4 if any(p.kind is p.VAR_POSITIONAL for p in parameters) else count


def create_mask(
    mod_fn: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Any:
    """Return what a function gives for each query and key.

    Parameters
    ----------
    mod_fn : callable
        A mask function of four numbers, or a score function that gets zeros for scores.
    B, H : int or None
        Batches and heads; None for one.
    Q_LEN, KV_LEN : int
        Queries and keys.
    device : device, optional
        Where the result is.

    Returns
    -------
    Tensor
        (B, H, Q_LEN, KV_LEN): bool, or of scores.

    Examples
    --------
    >>> from pytensorlib.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, k: q >= k, 1, 1, 2, 3, device="cpu")
    tensor([[[[ True, False, False],
              [ True,  True, False]]]])
    """
    shape, device = (B or 1, H or 1, Q_LEN, KV_LEN), device or "cpu"
    score = pt.zeros(shape, device=device) if _counts(mod_fn) == 5 else None
    found = _over(mod_fn, shape, device, score).expand(shape)
    return found.contiguous() if score is not None else found.to(pt.bool).contiguous()


def create_block_mask(
    mask_mod: Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = BLOCK,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """Return which blocks of scores a mask function sees.

    Parameters
    ----------
    mask_mod : callable
        Takes the numbers of batch, head, query and key, and returns whether the key is seen.
    B, H : int or None
        Batches and heads; None where the mask is the same for all.
    Q_LEN, KV_LEN : int
        Queries and keys.
    device : device, optional
        Where its tensors are.
    BLOCK_SIZE : int or tuple of int, default 128
        Queries and keys of a block.
    separate_full_blocks : bool, default True
        Whether blocks that are seen whole are told apart.
    compute_dq_write_order, dq_kv_order : bool
        Not used.

    Returns
    -------
    BlockMask
        For `flex_attention`.

    Raises
    ------
    AssertionError
        The function takes another number of arguments.

    Examples
    --------
    >>> from pytensorlib.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cpu")
    >>> mask.full_kv_num_blocks.tolist()
    [[[0, 1]]]
    """
    if _counts(mask_mod) != 4:
        raise AssertionError(
            f"create_block_mask requires a mask_mod function of 4 arguments! Got {mask_mod}"
        )
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    # What lies beyond the ends is not seen.
    mask = F.pad(mask, (0, -KV_LEN % size[1], 0, -Q_LEN % size[0]))
    b, h, rows, columns = mask.shape
    cut = mask.view(b, h, rows // size[0], size[0], columns // size[1], size[1])
    sums = cut.sum((-3, -1))
    full = sums == size[0] * size[1] if separate_full_blocks else pt.zeros_like(sums).bool()
    wholes: Any = ordered(full) if separate_full_blocks else (None, None)
    parts: Any = ordered((sums > 0) & ~full)
    arguments: list[Any] = [*parts, *wholes, size, mask_mod, (Q_LEN, KV_LEN)]
    return BlockMask.from_kv_blocks(*arguments)


def create_nested_block_mask(*args: Any, **kwargs: Any) -> Any:
    """Raise: there are no tensors of rows of different lengths.

    Parameters
    ----------
    *args, **kwargs
        Not used.

    Raises
    ------
    NotImplementedError
        Always, with what is nearest.

    Examples
    --------
    >>> from pytensorlib.nn.attention.flex_attention import create_nested_block_mask
    >>> create_nested_block_mask()
    Traceback (most recent call last):
        ...
    NotImplementedError: create_nested_block_mask: there are no nested tensors here; ...
    """
    raise NotImplementedError(
        "create_nested_block_mask: there are no nested tensors here; a mask function of "
        "create_block_mask can compare the numbers of sequences, and "
        "torch.nn.attention.varlen.varlen_attn takes lengths"
    )


def _check(query: Any, key: Any, value: Any, mask: BlockMask | None, enable_gqa: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )
    heads, others = query.size(1), key.size(1)
    if not enable_gqa and heads != others:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={others}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % others:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={others}."
        )
    if query.size(0) != key.size(0) and (mask is None or key.size(0) != 1):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but "
            f"got Bq={query.size(0)}, and Bkv={key.size(0)}."
        )
    lengths = (query.size(-2), key.size(-2))
    if mask is not None and mask.seq_lengths != lengths:
        raise ValueError(
            f"block_mask was created for block_mask.shape={mask.shape} but got "
            f"q_len={lengths[0]} and kv_len={lengths[1]}: make one for these lengths"
        )


def _seen(mask: BlockMask, shape: tuple[int, ...], device: Any) -> Any:
    """Return which scores are seen: all in whole blocks, and what the function says in others."""
    seen = _over(mask.mask_mod, shape, device)
    partial, full = mask.parts()
    ends = [slice(None)] * (partial.dim() - 2) + [slice(0, shape[2]), slice(0, shape[3])]

    def elements(blocks: Any) -> Any:
        rows = blocks.bool().repeat_interleave(mask.BLOCK_SIZE[0], -2)
        return rows.repeat_interleave(mask.BLOCK_SIZE[1], -1)[tuple(ends)].to(device)

    return (seen & elements(partial)) | elements(full)


def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Mod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Return attention whose scores a function changes and a mask hides.

    All scores are in memory at once. Gradients flow to the tensors and to what `score_mod` reads.

    Parameters
    ----------
    query : Tensor
        (B, H, L, E).
    key, value : Tensor
        (B, H, S, E) and (B, H, S, Ev).
    score_mod : callable, optional
        Takes a score and the numbers of batch, head, query and key, and returns the new score.
    block_mask : BlockMask, optional
        Which scores count; of `create_block_mask`.
    scale : float, optional
        A factor of the scores; ``1 / sqrt(E)`` by default.
    enable_gqa : bool, default False
        Whether there may be fewer heads of keys, each for several of queries.
    return_lse : bool, default False
        Whether to return the logarithms of the sums of exponentials, too.
    kernel_options : dict, optional
        Not used.
    return_aux : AuxRequest, optional
        What to return beside the result.

    Returns
    -------
    Tensor or tuple
        (B, H, L, Ev); queries that see no key give zeros. With `return_lse` a pair with the
        logarithms, (B, H, L) of float32 or float64; with `return_aux` one with an `AuxOutput`.

    Raises
    ------
    ValueError
        Sizes do not fit each other, or the mask.
    NotImplementedError
        The tensors have not four dimensions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.attention.flex_attention import flex_attention
    >>> x = torch.eye(3).view(1, 1, 3, 3)
    >>> near = lambda score, b, h, q, k: torch.where(q == k, score, -torch.inf)
    >>> flex_attention(x, x, x, score_mod=near)[0, 0]
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]])
    """
    _check(query, key, value, block_mask, enable_gqa)
    shape = (*query.shape[:3], key.size(-2))
    if key.size(0) != shape[0]:
        key, value = (x.expand(shape[0], -1, -1, -1) for x in (key, value))
    if enable_gqa:
        key, value = (x.repeat_interleave(shape[1] // x.size(1), 1) for x in (key, value))
    # Halves are summed as float32.
    q, k, v = (x if x.dtype == pt.float64 else x.float() for x in (query, key, value))
    scores = q @ k.mT * (query.size(-1) ** -0.5 if scale is None else scale)
    if score_mod is not None:
        scores = _over(score_mod, shape, query.device, scores).to(q.dtype).expand(shape)
    if block_mask is not None:
        scores = scores.masked_fill(~_seen(block_mask, shape, query.device), -INF)
    blind = (scores == -INF).all(-1, keepdim=True)
    output = (scores.masked_fill(blind, 0).softmax(-1).masked_fill(blind, 0) @ v).to(query.dtype)
    if return_aux is not None:
        lse = scores.logsumexp(-1) if return_aux.lse else None
        return output, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)
    return (output, scores.logsumexp(-1)) if return_lse else output
