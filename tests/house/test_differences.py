"""Lines of docs/reference/differences.md that no other file holds."""

from __future__ import annotations

import gc
import math
import weakref

import pytest

import pytensorlib as pt
import pytensorlib.nn.functional as F


def test_contiguous_format_always_gives_contiguous_memory() -> None:
    x = pt.arange(24.0).reshape(1, 2, 3, 4).contiguous(memory_format=pt.channels_last)
    for tensor in (x, x.transpose(1, 3), pt.ones(3, 1).expand(3, 4)):
        assert tensor.to(memory_format=pt.contiguous_format).is_contiguous()


def test_weak_reference_ends_with_pythons_object() -> None:
    """The graph keeps the tensor: its gradient arrives, where PyTorch's reference would live."""
    x = pt.ones(2, requires_grad=True)
    y = (x * x).sum()
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None
    y.backward()


def test_products_of_two_types_promote() -> None:
    """PyTorch's `cdist` and `vecdot` refuse them."""
    single, double = pt.ones(2, 2), pt.ones(2, 2, dtype=pt.float64)
    assert pt.einsum("ij,jk->ik", single, double).dtype == pt.float64
    assert pt.cdist(single, double).dtype == pt.float64
    assert pt.linalg.vecdot(single, double).dtype == pt.float64


def test_mode_counts_nan_only_where_there_is_nothing_else() -> None:
    """PyTorch's is NaN in both."""
    nan = math.nan
    assert pt.mode(pt.tensor([nan, nan, 1.0, 2.0])).values.item() == 1.0
    assert math.isnan(pt.mode(pt.tensor([nan, nan])).values.item())


@pytest.mark.parametrize("label", [-1, 3])
def test_ctc_loss_checks_its_labels(label: int) -> None:
    """PyTorch's reads beside the table."""
    scores = pt.zeros(5, 1, 3).log_softmax(-1)
    lengths = pt.tensor([5]), pt.tensor([1])
    with pytest.raises(RuntimeError, match=f"labels from 0 to 2, got {label}"):
        F.ctc_loss(scores, pt.tensor([[label]]), *lengths)


def test_steps_of_asgd_and_anomaly_mode_work_on_meta() -> None:
    w = pt.ones(2, device="meta", requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly"), pt.autograd.detect_anomaly():
        (w * 2).sum().backward()
    assert w.grad is not None
    pt.optim.ASGD([w]).step()
    assert w.grad.device == w.device == pt.device("meta")


def test_lstsq_works_on_meta() -> None:
    found = pt.linalg.lstsq(pt.ones(3, 2, device="meta"), pt.ones(3, 1, device="meta"))
    assert found.solution.shape == (2, 1)
