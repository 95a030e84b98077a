"""Attention beyond what an adapter's kernels take: what a mask hides from a query is not read."""

from __future__ import annotations

from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import wgpu
from pytensorlib.nn import functional as F

pytestmark = pytest.mark.usefixtures("no_fallback")
needs_gpu = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")
NAN = float("nan")
# More leading dimensions than a GPU's kernels take.
LEAD = (2, 1, 2)
LEARNS = "float that learns"
CASES = [("cpu", LEARNS)]
CASES += [
    pytest.param("wgpu", kind, marks=needs_gpu) for kind in ("bool", "float", "causal", LEARNS)
]


def parts(rows: int, dtype: Any = torch.float32) -> list[Any]:
    g = torch.Generator().manual_seed(3)
    return [torch.randn(*LEAD, rows, 4, generator=g).to(dtype) for _ in range(3)]


def attend(x: list[Any], device: str, kind: str, seen: Any) -> list[Any]:
    """Return the result and the gradients of what is seen of its rows."""
    leaves = [t.to(device).requires_grad_() for t in x]
    if kind == "causal":
        y = F.scaled_dot_product_attention(*leaves, is_causal=True)
    else:
        mask = seen if kind == "bool" else torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)
        mask = mask.to(device=device, dtype=torch.bool if kind == "bool" else x[0].dtype)
        if kind == LEARNS:
            mask.requires_grad_()
        y = F.scaled_dot_product_attention(*leaves, attn_mask=mask)
    weights = torch.linspace(-1, 1, y.numel() // 8).repeat_interleave(8).reshape(y.shape)
    weights = weights.to(device=device, dtype=y.dtype)
    return [y.detach().cpu(), *(g.cpu() for g in torch.autograd.grad((y * weights).sum(), leaves))]


@pytest.mark.parametrize(("device", "kind"), CASES)
@pytest.mark.parametrize("value", [NAN, float("inf")])
def test_key_hidden_from_some_queries_is_read_by_the_others_alone(
    device: str, kind: str, value: float
) -> None:
    seen = torch.ones(5, 5, dtype=torch.bool).tril()
    clean = parts(5)
    spoiled = [t.clone() for t in clean]
    for t in spoiled[1:]:
        t[..., 3, :] = value
    expected = attend(clean, device, kind, seen)
    found = attend(spoiled, device, kind, seen)
    for want, have in zip(expected[:2], found[:2], strict=True):
        torch.testing.assert_close(have[..., :3, :], want[..., :3, :])
    assert not found[0][..., 3:, :].isfinite().any()


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_query_that_sees_one_key_reaches_no_other_gradient(dtype: Any) -> None:
    seen = torch.ones(5, 5, dtype=torch.bool)
    seen[2, 1:] = False
    clean = parts(5, dtype)
    spoiled = [t.clone() for t in clean]
    spoiled[0][..., 2, :] = NAN
    _, *expected = attend(clean, "wgpu", "bool", seen)
    y, *found = attend(spoiled, "wgpu", "bool", seen)
    assert y[..., 2, :].isnan().all()
    assert y[..., [0, 1, 3, 4], :].isfinite().all()
    for want, have in zip(expected[1:], found[1:], strict=True):
        torch.testing.assert_close(have[..., 1:, :], want[..., 1:, :])
        assert have[..., 0, :].isnan().all()


@needs_gpu
def test_infinite_value_that_is_seen_stays_infinite() -> None:
    x = parts(4)
    x[2][..., 1, :], x[2][..., 2, :] = torch.inf, NAN
    seen = torch.ones(4, 4, dtype=torch.bool)
    seen[:, 2] = False
    seen[3, 1] = False
    y = F.scaled_dot_product_attention(*(t.to("wgpu") for t in x), attn_mask=seen.to("wgpu")).cpu()
    assert (y[..., :3, :] == torch.inf).all()
    assert y[..., 3, :].isfinite().all()


def test_second_derivatives_under_a_mask() -> None:
    g = torch.Generator().manual_seed(1)
    x = [torch.randn(1, 1, 1, 3, 2, dtype=torch.float64, generator=g) for _ in range(3)]
    leaves = [t.requires_grad_() for t in x]
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, False]])
    for options in ({"attn_mask": mask}, {"is_causal": True}):

        def attention(q: Any, k: Any, v: Any, options: Any = options) -> Any:
            return F.scaled_dot_product_attention(q, k, v, **options)

        assert torch.autograd.gradcheck(attention, leaves)
        assert torch.autograd.gradgradcheck(attention, leaves)


def test_mask_of_other_columns_than_keys_raises() -> None:
    q, k, v = torch.ones(1, 1, 1, 3, 2), torch.ones(1, 1, 1, 1, 2), torch.ones(1, 1, 1, 1, 2)
    with pytest.raises(RuntimeError, match=r"as many columns as there are keys, 1, but has 4"):
        F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(3, 4, dtype=torch.bool))
