"""Losses: values and gradients of hard cases, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F


def test_soft_margin_loss_of_a_larger_target_raises() -> None:
    for reduction in ("none", "sum", "mean"):
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            F.soft_margin_loss(torch.zeros(3), torch.ones(2, 3), reduction=reduction)
    got = F.soft_margin_loss(torch.zeros(2, 3), torch.ones(3), reduction="none")
    torch.testing.assert_close(got, torch.full((2, 3), math.log(2)))


def test_label_smoothing_below_zero_raises() -> None:
    with pytest.raises(RuntimeError, match="label_smoothing must be between 0"):
        F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]), label_smoothing=-1.0)


def test_raw_losses_reduce_nothing_unless_told() -> None:
    # So PyTorch's parser reads their defaults; `nn.functional` says what it wants.
    x, y = torch.tensor([[0.2, 0.3], [0.5, 0.9]]), torch.tensor([[0.6, 0.4], [0.5, 0.1]])
    sign = torch.tensor([1, -1])
    calls = (
        (torch.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits, (x, y)),
        (torch.kl_div, F.kl_div, (x, y)),
        (torch.hinge_embedding_loss, F.hinge_embedding_loss, (x, sign)),
        (torch.margin_ranking_loss, F.margin_ranking_loss, (x, y, sign[None])),
        (torch.cosine_embedding_loss, F.cosine_embedding_loss, (x, y, sign)),
        (torch.triplet_margin_loss, F.triplet_margin_loss, (x, y, x + 1)),
    )
    for raw, named, args in calls:
        torch.testing.assert_close(raw(*args), named(*args, reduction="none"))
        torch.testing.assert_close(raw(*args, reduction=1).mean(), raw(*args).mean())
    lengths = torch.tensor([3]), torch.tensor([2])
    args = (torch.zeros(3, 1, 4).log_softmax(2), torch.tensor([[1, 2]]), *lengths)
    torch.testing.assert_close(torch.ctc_loss(*args), F.ctc_loss(*args, reduction="none"))


INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc_loss_of_nan_is_nan(zero_infinity: bool) -> None:
    # Class 1 is the first label: no path avoids it.
    p = torch.full((4, 1, 3), math.log(1 / 3))
    p[:, 0, 1] = NAN
    args = (torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2]))
    assert math.isnan(F.ctc_loss(p, *args, zero_infinity=zero_infinity).item())


@pytest.mark.parametrize(
    ("shape", "fits"),
    [((10, 2, 1), True), ((10, 2), True), ((10, 1, 3), True), ((1,), False), ((2, 3), False)]
    + [((1, 1), False), ((), False), ((1, 2, 1), False), ((10, 2, 3), True)],
)
def test_gaussian_nll_loss_takes_variances_that_lack_one_dimension(
    shape: tuple[int, ...], fits: bool
) -> None:
    args = (torch.ones(10, 2, 3), torch.zeros(10, 2, 3), torch.ones(shape))
    if fits:
        assert F.gaussian_nll_loss(*args).item() == 0.5
    else:
        with pytest.raises(ValueError, match="var is of incorrect size"):
            F.gaussian_nll_loss(*args)


@pytest.mark.parametrize("loss", [F.smooth_l1_loss, F.huber_loss])
def test_slope_of_a_loss_at_nan_is_nan(loss: object) -> None:
    x = torch.tensor([0.5, NAN, 3.0], requires_grad=True)
    y = loss(x, torch.zeros(3), reduction="sum")  # type: ignore[operator]
    slopes = torch.autograd.grad(y, x)[0].tolist()
    assert slopes[0] == 0.5 and math.isnan(slopes[1]) and slopes[2] == 1


def test_multilabel_soft_margin_loss_divides_by_the_classes_of_the_input() -> None:
    x, y = torch.ones(5, 1), torch.tensor([1.0, 0, 1, 0, 1])
    assert F.multilabel_soft_margin_loss(x, y).item() == pytest.approx(3.5663, abs=1e-4)


def test_class_weights_of_probabilities_have_a_gradient() -> None:
    w = torch.ones(3, requires_grad=True)
    scores, target = torch.zeros(1, 3), torch.tensor([[0.0, 1.0, 0.0]])
    F.cross_entropy(scores, target, w).backward()
    # The loss is w[1] * log 3.
    assert w.grad.tolist() == pytest.approx([0, np.log(3), 0])


@pytest.mark.parametrize("device", ["cpu", "wgpu"])
@pytest.mark.parametrize("large", [1e2, 1e4, 1e8, 3e38])
def test_cross_entropy_of_large_scores_keeps_the_logarithm(large: float, device: str) -> None:
    if device == "wgpu" and not torch.wgpu.is_available():
        pytest.skip("no GPU")
    scores = torch.tensor([[large, large, 0.0], [large, large, large]], device=device)
    target, want = torch.tensor([0, 2], device=device), torch.tensor([np.log(2), np.log(3)]).float()
    slopes = torch.tensor([[-1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, -2 / 3]])
    for shape in ((2, 3), (2, 3, 1, 4)):  # positions of their own, and beside each other
        x = scores.reshape(2, 3, *[1] * (len(shape) - 2)).repeat(1, 1, *shape[2:]).requires_grad_()
        y = target.reshape(2, *[1] * (len(shape) - 2)).repeat(1, *shape[2:])
        for graph in (False, True):
            loss = F.cross_entropy(x, y, reduction="none")
            (g,) = torch.autograd.grad(loss.sum(), x, create_graph=graph)
            flat = loss.detach().cpu().reshape(2, -1)
            torch.testing.assert_close(flat, want[:, None].expand_as(flat), rtol=1e-6, atol=0)
            g = g.detach().cpu().reshape(2, 3, -1)
            torch.testing.assert_close(g, slopes[..., None].expand_as(g), rtol=1e-6, atol=1e-7)
        smooth = F.cross_entropy(x, y, label_smoothing=0.25, reduction="none")
        assert smooth[1].flatten()[0].item() == pytest.approx(np.log(3), rel=1e-6)
