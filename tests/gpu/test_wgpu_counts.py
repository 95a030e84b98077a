"""How many kernels losses, norms and reductions take, forward and backward, and what they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import wgpu

F = torch.nn.functional
pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]

torch.manual_seed(0)
X = torch.randn(50, 33)
Y = torch.randn(50, 33)
CHANCES = torch.softmax(torch.randn(50, 33), 1)
UNIT = torch.sigmoid(torch.randn(50, 33))
SIGNS = Y.sign()
GAPS = torch.where(UNIT < 0.1, float("nan"), X)
WEIGHTS = torch.rand(33) + 0.5
CLASSES = torch.randint(0, 33, (50,))
IMAGE = torch.randn(8, 6, 5, 5)
MEAN, SPREAD = torch.randn(6), torch.rand(6) + 0.5
SCALE, SHIFT = torch.randn(6), torch.randn(6)
LABELS = torch.stack([torch.randperm(33) for _ in range(50)])
LABELS[torch.arange(50), torch.randint(0, 33, (50,))] = -1
PARAMETERS = (WEIGHTS, SCALE, SHIFT)
Case = tuple[Callable[..., Any], list[Any], tuple[int, int]]


def loss(name: str, forward: int, backward: int, *rest: Any, **options: Any) -> Case:
    return (
        lambda x, *rest: getattr(F, name)(x, *rest, **options), [X, *rest], (forward, backward)
    )  # fmt: skip


CASES: dict[str, Case] = {
    "batch norm in training": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [IMAGE, SCALE, SHIFT], (1, 1)
    ),
    "batch norm by given statistics": (
        lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b), [IMAGE, SCALE, SHIFT, MEAN, SPREAD],
        (1, 1),
    ),
    "batch norm without parameters": (
        lambda x, m, v: F.batch_norm(x, m, v), [IMAGE, MEAN, SPREAD], (1, 1)
    ),
    "instance norm with statistics": (
        lambda x, w, b, m, v: F.instance_norm(x, m, v, w, b, True),
        [IMAGE, SCALE, SHIFT, MEAN, SPREAD], (2, 1),
    ),
    "instance norm by given statistics": (
        lambda x, w, b, m, v: F.instance_norm(x, m, v, w, b, False),
        [IMAGE, SCALE, SHIFT, MEAN, SPREAD], (1, 1),
    ),
    "instance norm": (
        lambda x, w, b: F.instance_norm(x, None, None, w, b), [IMAGE, SCALE, SHIFT], (1, 1)
    ),
    "group norm": (lambda x, w, b: F.group_norm(x, 3, w, b), [IMAGE, SCALE, SHIFT], (1, 1)),
    "layer norm": (lambda x, w: F.layer_norm(x, (33,), w), [X, WEIGHTS], (1, 1)),
    "rms norm": (lambda x, w: F.rms_norm(x, (33,), w), [X, WEIGHTS], (1, 1)),
    "var": (lambda x: x.var(1), [X], (1, 1)),
    "var of columns": (lambda x: x.var(0), [X], (2, 1)),
    "std": (lambda x: x.std(1, correction=0), [X], (1, 1)),
    "std of all": (lambda x: x.std(), [X], (1, 1)),
    "mean of var_mean": (lambda x: torch.var_mean(x, 1)[0], [X], (1, 2)),
    "var_mean": (lambda x: torch.var_mean(x, 1), [X], (1, 2)),
    "std_mean": (lambda x: torch.std_mean(x, 1), [X], (1, 2)),
    "std_mean of all": (lambda x: torch.std_mean(x), [X], (1, 2)),
    "nansum": (lambda x: x.nansum(1), [GAPS], (1, 1)),
    "nanmean": (lambda x: x.nanmean(1), [GAPS], (1, 1)),
    "nanmean of all": (lambda x: x.nanmean(), [GAPS], (1, 1)),
    "nanmean of a product": (lambda x, y: (x * y).nanmean(1) + 1, [GAPS, Y], (2, 1)),
    "mean": (lambda x: x.mean(1), [X], (1, 1)),
    "logsumexp": (lambda x: x.logsumexp(1), [X], (1, 1)),
    "logsumexp of all": (lambda x: x.logsumexp((0, 1)), [X], (1, 1)),
    "softmax": (lambda x: x.softmax(1), [X], (1, 1)),
    "softmax in another type": (
        lambda x: x.softmax(1, dtype=torch.float32), [X.half()], (1, 2)
    ),
    "norm": (lambda x: x.norm(dim=1), [X], (1, 1)),
    "norm of all": (lambda x: x.norm(), [X], (1, 1)),
    "norm of two dimensions": (lambda x: x.norm(dim=(0, 2)), [X.view(5, 10, 33)], (1, 1)),
    "norm of power 3": (lambda x: x.norm(3, 1), [X], (2, 1)),
    "largest magnitude": (lambda x: x.norm(float("inf"), 1), [X], (1, 2)),
    "dist": (lambda x, y: torch.dist(x, y), [X, Y], (2, 1)),
    "normalize": (lambda x: F.normalize(x), [X], (2, 2)),
    "normalize over channels": (lambda x: F.normalize(x), [IMAGE], (2, 2)),
    "normalize of little": (lambda x: F.normalize(x, eps=6.0), [X], (2, 2)),
    "normalize by sums": (lambda x: F.normalize(x, 1.0), [X], (2, 2)),
    "normalize by sums of little": (lambda x: F.normalize(x, 1.0, eps=27.0), [X], (2, 2)),
    "normalize by cubes": (lambda x: F.normalize(x, 3.0), [X], (3, 2)),
    "cosine": (lambda x, y: F.cosine_similarity(x, y), [X, Y], (1, 1)),
    "cosine of broadcast rows": (
        lambda x, y: F.cosine_similarity(x.unsqueeze(1), y, dim=2), [X, Y[:7]], (1, 1)
    ),
    "cosine along a middle dimension": (
        lambda x, y: F.cosine_similarity(x, y, dim=1), [IMAGE, IMAGE.flip(3)], (1, 1)
    ),
    "pairwise distance": (lambda x, y: F.pairwise_distance(x, y), [X, Y], (2, 1)),
    "amax": (lambda x: x.amax(1), [X], (1, 2)),
    "aminmax": (lambda x: torch.aminmax(x, dim=1), [X], (2, 2)),
    "aminmax of all": (lambda x: torch.aminmax(x), [X], (2, 2)),
    "max": (lambda x: x.max(), [X], (1, 2)),
    "cross entropy": loss("cross_entropy", 2, 1, CLASSES),
    "cross entropy with weights": loss("cross_entropy", 2, 1, CLASSES, WEIGHTS),
    "cross entropy with smoothing": loss("cross_entropy", 2, 1, CLASSES, label_smoothing=0.1),
    "cross entropy without a class": loss("cross_entropy", 2, 1, CLASSES, ignore_index=3),
    "cross entropy by chances": loss("cross_entropy", 2, 4, CHANCES),
    "nll": loss("nll_loss", 2, 1, CLASSES),
    "nll with weights": loss("nll_loss", 2, 1, CLASSES, WEIGHTS),
    "nll of each": loss("nll_loss", 2, 1, CLASSES, reduction="none"),
    "mse": loss("mse_loss", 1, 1, Y),
    "l1": loss("l1_loss", 2, 1, Y),
    "smooth l1": loss("smooth_l1_loss", 1, 1, Y),
    "huber": loss("huber_loss", 1, 1, Y),
    "logits": loss("binary_cross_entropy_with_logits", 1, 1, UNIT),
    "logits with weights": loss("binary_cross_entropy_with_logits", 1, 1, UNIT, WEIGHTS),
    "kl": loss("kl_div", 1, 1, CHANCES, reduction="sum"),
    "hinge": loss("hinge_embedding_loss", 2, 1, SIGNS),
    "poisson": loss("poisson_nll_loss", 2, 1, UNIT),
    "poisson with Stirling's formula": loss("poisson_nll_loss", 2, 1, UNIT * 4, full=True),
    "gaussian": loss("gaussian_nll_loss", 2, 1, Y, UNIT + 0.5),
    "gaussian, all of it": loss("gaussian_nll_loss", 2, 1, Y, UNIT + 0.5, full=True),
    "cosine embedding": loss("cosine_embedding_loss", 2, 2, Y, SIGNS[:, 0]),
    "triplet": loss("triplet_margin_loss", 2, 2, Y, Y.flip(0)),
    "triplet with a swap": loss("triplet_margin_loss", 3, 2, Y, Y.flip(0), swap=True),
    "triplet with a distance": loss("triplet_margin_with_distance_loss", 2, 2, Y, Y.flip(0)),
    "margin": loss("multi_margin_loss", 1, 1, CLASSES),
    "margin of squares with weights": (
        lambda x, t, w: F.multi_margin_loss(x, t, 2, 0.5, w), [X, CLASSES, WEIGHTS], (1, 1)
    ),
    "margin of each": loss("multi_margin_loss", 1, 1, CLASSES, reduction="none"),
    "margin of many": (
        lambda x, t: F.multi_margin_loss(x, t), [X.repeat(20, 1), CLASSES.repeat(20)], (2, 1)
    ),
    "margins of labels": loss("multilabel_margin_loss", 1, 1, LABELS),
    "margins of labels of each": loss("multilabel_margin_loss", 1, 1, LABELS, reduction="none"),
    "labels": loss("multilabel_soft_margin_loss", 1, 1, (UNIT > 0.5).float()),
    "chances": (
        lambda x, t: F.binary_cross_entropy(x, t), [UNIT, CHANCES], (2, 1)
    ),
    "soft margin": loss("soft_margin_loss", 1, 1, SIGNS),
    "ranking": loss("margin_ranking_loss", 2, 1, Y, SIGNS),
}  # fmt: skip


def counted(f: Callable[[], Any]) -> tuple[Any, int]:
    wgpu.synchronize()
    before = wgpu.memory_stats()["dispatches"]
    found = f()
    wgpu.synchronize()
    return found, wgpu.memory_stats()["dispatches"] - before


@pytest.mark.parametrize("case", CASES)
def test_dispatches_of_a_call_and_its_gradient(case: str) -> None:
    f, arguments, want = CASES[case]
    has = [i == 0 or any(t is p for p in PARAMETERS) for i, t in enumerate(arguments)]
    learned = has if "norm" in case else [True] + [False] * (len(has) - 1)

    def run(device: str) -> Any:
        x = [
            t.clone().to(device).requires_grad_(needs)
            for t, needs in zip(arguments, learned, strict=True)
        ]  # fmt: skip
        y, forward = counted(lambda: f(*x))
        ys = y if isinstance(y, tuple) else (y,)
        g = [
            torch.linspace(0.5, 2, y.numel()).reshape(y.shape).to(y.dtype).to(device) for y in ys
        ]  # fmt: skip
        leaves = [t for t in x if t.requires_grad]
        grads, backward = counted(lambda: torch.autograd.grad(ys, leaves, g))
        return [*ys, *grads], (forward, backward)

    found, counts = run("wgpu")
    expected, _ = run("cpu")
    for got, known in zip(found, expected, strict=True):
        # Sums in another order; what is left of a gradient that nearly cancels has the errors of
        # what it is made of.
        torch.testing.assert_close(got.cpu(), known, rtol=2e-5, atol=1e-5)
    assert counts == want


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(7,), (300, 70), (2, 40_000), (40_000, 3), (3, 1, 5)])
def test_variances_and_logsumexps_are_those_of_float64(shape: Any, dtype: Any) -> None:
    x = (torch.randn(*shape) * 3 + 500).to(dtype)
    wide, there = x.double(), x.to("wgpu")
    tolerance = {torch.float64: 1e-10, torch.float32: 2e-5}.get(dtype, 8e-3)
    for dim in {0, len(shape) - 1}:
        for f in (torch.var, torch.std, torch.logsumexp):
            got, want = f(there, dim).cpu().double(), f(wide, dim)
            torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(
        there.var().cpu().double(), wide.var(), rtol=tolerance, atol=tolerance
    )


def test_running_statistics_of_instances_equal_the_cpus() -> None:
    def updated(device: str) -> list[torch.Tensor]:
        mean, var = MEAN.clone().to(device), SPREAD.clone().to(device)
        F.instance_norm(IMAGE.to(device), mean, var, use_input_stats=True, momentum=0.3)
        return [mean.cpu(), var.cpu()]

    for got, known in zip(updated("wgpu"), updated("cpu"), strict=True):
        torch.testing.assert_close(got, known)


def test_gradients_of_reductions_spread_first_equal_those_of_large_tensors() -> None:
    def gradient(x: torch.Tensor, n: int) -> torch.Tensor:
        x = x.to("wgpu").expand(n, -1).clone().requires_grad_()
        y = x.mean(1) + x.std(1) + x.norm(dim=1) + F.mse_loss(x, x.detach() + 1)
        return torch.autograd.grad(y.sum(), x)[0].cpu()

    x = torch.randn(1, 1000)
    torch.testing.assert_close(gradient(x, 1100)[:2], gradient(x, 2), rtol=0, atol=0)


def test_second_derivatives_of_what_is_one_kernel_equal_the_cpus() -> None:
    def second(f: Callable[..., Any], device: str) -> Any:
        x = IMAGE[:2, :, :2, :2].double().to(device).requires_grad_()
        (g,) = torch.autograd.grad(f(x).sin().sum(), x, create_graph=True)
        return torch.autograd.grad(g.square().sum(), x)[0].cpu()

    calls: list[Callable[..., Any]] = [
        lambda x: x.var((0, 2)), lambda x: x.std(1), lambda x: x.logsumexp((0, 3)),
        lambda x: F.batch_norm(x, MEAN.to(x), SPREAD.to(x), SCALE.to(x), SHIFT.to(x)),
        lambda x: x.amax(1), lambda x: x.max(),
        lambda x: F.normalize(x), lambda x: F.normalize(x, dim=(0, 2), eps=1.5),
        lambda x: F.normalize(x, 1.0), lambda x: F.normalize(x, 3.0, dim=(0, 2)),
        lambda x: F.normalize(x, 2.5, eps=1.5),
        lambda x: F.cosine_similarity(x, x.flip(0).sin()),
        lambda x: F.triplet_margin_loss(x, x.sin(), x.cos(), swap=True, margin=3.0),
        lambda x: F.gaussian_nll_loss(x, x.sin(), x.square() + 0.1),
        lambda x: F.multi_margin_loss(
            x.flatten(1), CLASSES[:2].to(x.device) % 24, 2, 0.5, torch.arange(24).to(x)
        ),
        lambda x: torch.stack(torch.aminmax(x.sin(), dim=1)),
    ]  # fmt: skip
    for f in calls:
        torch.testing.assert_close(second(f, "wgpu"), second(f, "cpu"))
