"""Shapes that do not fit together raise before a kernel reads them."""

import pytest

import pytensorlib as torch

F = torch.nn.functional
attention = F.scaled_dot_product_attention


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("heads", [1, 2, 9, 12, 31, 32, 128])
@pytest.mark.parametrize("lead", [(), (1,), (2,), (2, 3)])
def test_attention_of_heads_that_do_not_match_raises(lead, heads, grad):
    q = torch.randn(*lead, heads, 4, 8, requires_grad=grad)
    kv = torch.randn(*lead, 8, 4, 8, requires_grad=grad)
    if heads == 1:
        # One head broadcasts, and takes its gradient from all.
        y = attention(q, kv, kv)
        assert y.shape == kv.shape
        if grad:
            y.sum().backward()
            assert q.grad.shape == q.shape
        return
    d = len(lead)
    text = rf"tensor a \({heads}\) must match the size of tensor b \(8\) at non-singleton.* {d}"
    with pytest.raises(RuntimeError, match=text):
        attention(q, kv, kv)
    with pytest.raises(RuntimeError, match="must match"):
        attention(q, q, kv)
    if heads % 8:
        with pytest.raises(RuntimeError, match="Number of heads in key and value must divide"):
            attention(q, kv, kv, enable_gqa=True)
    else:
        assert attention(q, kv, kv, enable_gqa=True).shape == q.shape


def test_grouped_attention_of_tensors_without_heads_raises():
    with pytest.raises(IndexError, match="Dimension out of range"):
        attention(torch.ones(4, 8), torch.ones(8, 4, 8), torch.ones(8, 4, 8), enable_gqa=True)
    with pytest.raises(IndexError, match="Dimension out of range"):
        attention(torch.ones(8, 4, 8), torch.ones(4, 8), torch.ones(4, 8), enable_gqa=True)


@pytest.mark.parametrize("lead", [(2, 3), (3, 2), (2, 1)])
def test_attention_of_batches_that_do_not_match_raises(lead):
    q = torch.ones(4, 5, 6, 8)
    kv = torch.ones(*lead, 6, 8)
    with pytest.raises(RuntimeError, match="must match"):
        attention(q, kv, kv)


def test_immense_sizes_neither_wrap_nor_panic() -> None:
    x = torch.zeros(4, 2, 3).log_softmax(2)
    most = torch.tensor([2**63 - 1, 2**63 - 1])
    for targets in (torch.ones(4, dtype=torch.int64), torch.ones(2, 2, dtype=torch.int64)):
        with pytest.raises(RuntimeError, match="Expected tensor to have size"):
            F.ctc_loss(x, targets, torch.tensor([4, 4]), most)
    ones = torch.ones(1, 1, 5, 5)
    y = F.conv2d(ones, torch.ones(1, 1, 3, 3), stride=(2**62, 2), padding=1)
    assert y.tolist() == [[[[4, 6, 4]]]]
