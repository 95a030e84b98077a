"""Attention whose scores a function changes, and masks that a function makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib.nn import functional as F
from pytensorlib.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)

torch.manual_seed(0)
Q, K, V = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 7, 8), torch.randn(2, 2, 7, 6)
GQA = {"enable_gqa": True}


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def reference(change: Any = None, seen: Any = None, scale: float = 8**-0.5) -> Any:
    """Return the attention and the logarithms in float64, element by element."""
    q, k, v = (x.double().numpy() for x in (Q, K, V))
    out, lse = np.zeros((2, 4, 5, 6)), np.full((2, 4, 5), -np.inf)
    for b, h, i in np.ndindex(2, 4, 5):
        row = []
        for j in range(7):
            s = float(q[b, h, i] @ k[b, h // 2, j]) * scale
            s = s if change is None else change(s, b, h, i, j)
            row.append(s if seen is None or seen(b, h, i, j) else -np.inf)
        weights = np.exp(np.array(row))
        if weights.sum() > 0:
            lse[b, h, i] = np.log(weights.sum())
            out[b, h, i] = weights @ v[b, h // 2] / weights.sum()
    return out, lse


def close(found: Any, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_attention_without_functions_is_the_plain_one() -> None:
    out, lse = reference(scale=0.3)
    found = flex_attention(Q, K, V, scale=0.3, return_lse=True, **GQA)
    close(found[0], out)
    close(found[1], lse)
    assert torch.allclose(
        flex_attention(Q, K, V, **GQA),
        F.scaled_dot_product_attention(Q, K, V, enable_gqa=True),
        atol=1e-5,
    )
    aux = flex_attention(Q, K, V, return_aux=AuxRequest(True, True), **GQA)[1]
    assert aux.lse.shape == aux.max_scores.shape == (2, 4, 5)
    assert (aux.lse >= aux.max_scores).all()
    half = flex_attention(Q.half(), K.half(), V.half(), return_lse=True, **GQA)
    assert [x.dtype for x in half] == [torch.float16, torch.float32]


BIAS = torch.randn(4, 5, 7)
CHANGES: list[tuple[Any, Any]] = [
    (lambda s, b, h, i, j: s * (h + 1) + (i - j) * 0.1,) * 2,
    (lambda s, b, h, i, j: s + BIAS[h, i, j], lambda s, b, h, i, j: s + BIAS[h, i, j].item()),
    # Of all elements at once the sum would be another.
    (
        lambda s, b, h, i, j: s + BIAS[h, i].sum() * (j == 0),
        lambda s, b, h, i, j: s + BIAS[h, i].sum().item() * (j == 0),
    ),
    (
        lambda s, b, h, i, j: torch.where(i < 2, -torch.inf, s),
        lambda s, b, h, i, j: -np.inf if i < 2 else s,
    ),
]


@pytest.mark.parametrize(("change", "single"), CHANGES, ids=["terms", "bias", "sum", "blind"])
def test_function_changes_every_score(change: Any, single: Any) -> None:
    out, lse = reference(single)
    found = flex_attention(Q, K, V, score_mod=change, return_lse=True, **GQA)
    close(found[0], out)
    close(found[1], lse)


@pytest.mark.parametrize("size", [128, 2, (1, 4)])
def test_mask_hides_scores_whatever_its_blocks(size: Any) -> None:
    words = torch.tensor([0, 0, 1, 1, 1, 2, 2])
    for mod, batch in ((causal, None), (lambda b, h, i, j: words[i] == words[j], 2)):
        mask = create_block_mask(mod, batch, None, 5, 7, device="cpu", BLOCK_SIZE=size)
        out, _ = reference(seen=lambda b, h, i, j, mod=mod: bool(mod(b, h, i, j)))
        close(flex_attention(Q, K, V, block_mask=mask, **GQA), out)
    # Blocks alone, where nothing says more of their elements.
    blocks = BlockMask.from_kv_blocks(
        torch.tensor([[[1, 2]]]),
        torch.tensor([[[[1, 0], [0, 1]]]]),
        BLOCK_SIZE=(3, 4),
        seq_lengths=(5, 7),
    )
    out, _ = reference(seen=lambda b, h, i, j: i >= 3 or j >= 4)
    close(flex_attention(Q, K, V, block_mask=blocks, **GQA), out)


def test_gradients_reach_what_a_function_reads() -> None:
    q, bias = Q.clone().requires_grad_(), torch.zeros(4, requires_grad=True)
    flex_attention(q, K, V, lambda s, b, h, i, j: s + bias[h] * j, **GQA).sum().backward()
    k, v = (x.repeat_interleave(2, 1) for x in (K, V))
    p, other = Q.clone().requires_grad_(), torch.zeros(4, requires_grad=True)
    scores = p @ k.mT / 8**0.5 + other.view(4, 1, 1) * torch.arange(7)
    (scores.softmax(-1) @ v).sum().backward()
    assert torch.allclose(q.grad, p.grad, atol=1e-5)
    assert torch.allclose(bias.grad, other.grad, atol=1e-4)


def test_block_mask_tells_its_blocks() -> None:
    mask = create_block_mask(causal, 2, None, 256, 384, device="cpu")
    # Recorded from PyTorch 2.13.
    assert mask.kv_num_blocks.tolist() == [[[1, 1]]] * 2
    assert mask.kv_indices.tolist() == [[[[0, 1, 2], [1, 0, 2]]]] * 2
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1]]] * 2
    assert mask.full_kv_indices.tolist() == [[[[0, 1, 2], [0, 1, 2]]]] * 2
    assert mask.q_num_blocks.tolist() == [[[1, 1, 0]]] * 2
    assert mask.full_q_indices.tolist() == [[[[1, 0], [0, 1], [0, 1]]]] * 2
    assert mask.kv_num_blocks.dtype == torch.int32
    assert mask.shape == (2, 1, 256, 384)
    assert mask.numel() == 2 * 256 * 384
    assert mask.sparsity() == 50.0
    assert str(mask).startswith("BlockMask(shape=(2, 1, 256, 384), sparsity=50.00%, \n(0, 0)\n██  ")
    assert mask[0].shape == (1, 1, 256, 384)
    assert mask[:, :, 1].kv_num_blocks.shape == (2, 1, 1)
    assert len(mask.as_tuple()) == 13
    assert "kv_indices=torch.Size([2, 1, 2, 3])" in repr(mask)
    whole = create_block_mask(noop_mask, None, None, 200, 100, device="cpu")
    assert whole.sparsity() == 0.0
    same = create_block_mask(causal, 1, 1, 256, 256, device="cpu", separate_full_blocks=False)
    assert same.full_kv_num_blocks is None
    assert same.kv_num_blocks.tolist() == [[[1, 2]]]


def test_masks_join() -> None:
    near = and_masks(causal, lambda b, h, q, k: q - k < 2)
    expected = torch.ones(4, 4).tril().triu(-1).bool()
    assert torch.equal(create_mask(near, 1, 1, 4, 4, device="cpu")[0, 0], expected)
    either = or_masks(near, lambda b, h, q, k: k == 0)
    expected[:, 0] = True
    assert torch.equal(create_mask(either, None, None, 4, 4, device="cpu")[0, 0], expected)
    scores = create_mask(lambda s, b, h, q, k: s + q * 10 + k, 1, 1, 2, 2, device="cpu")
    assert scores[0, 0].tolist() == [[0.0, 1.0], [10.0, 11.0]]


def test_sizes_that_do_not_fit_raise() -> None:
    with pytest.raises(ValueError, match="same number of heads"):
        flex_attention(Q, K, V)
    with pytest.raises(NotImplementedError, match="must be 4D"):
        flex_attention(Q[0], K, V)
    with pytest.raises(ValueError, match="E=8 and E=3"):
        flex_attention(Q, K[..., :3], V, **GQA)
    with pytest.raises(ValueError, match="Bq=2, and Bkv=1"):
        flex_attention(Q, K[:1], V[:1], **GQA)
    mask = create_block_mask(causal, None, None, 6, 7, device="cpu")
    with pytest.raises(ValueError, match=r"block_mask.shape=\(1, 1, 6, 7\) but got q_len=5"):
        flex_attention(Q, K, V, block_mask=mask, **GQA)
    with pytest.raises(AssertionError, match="4 arguments"):
        create_block_mask(lambda a: a, 1, 1, 5, 5, device="cpu")
    with pytest.raises(RuntimeError, match="callable mask_mods"):
        and_masks(1)  # type: ignore[arg-type]
