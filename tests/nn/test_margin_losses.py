"""`multi_margin_loss` and `multilabel_margin_loss` against sums written out, on both devices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import wgpu

F = torch.nn.functional
DEVICES = ["cpu", *(["wgpu"] if wgpu.is_available() else [])]
REDUCTIONS = ["none", "mean", "sum"]


@pytest.fixture(autouse=True)
def errors_for_fallbacks(request: pytest.FixtureRequest) -> None:
    if DEVICES[1:]:
        request.getfixturevalue("no_fallback")


def reduced(loss: Any, reduction: str) -> Any:
    return {"none": loss, "mean": loss.mean(), "sum": loss.sum()}[reduction]


def margins(x: Any, labels: list[list[int]], weight: Any, margin: float, p: int) -> tuple[Any, Any]:
    """Return the loss of each row and its gradient, in float64."""
    n, c = x.shape
    loss, slopes = np.zeros(n), np.zeros((n, c))
    for i, named in enumerate(labels):
        rest = np.setdiff1d(np.arange(c), named)
        for t in named:
            z = np.maximum(0, margin - x[i, t] + x[i, rest])
            loss[i] += weight[t] / c * (z**p).sum()
            slope = weight[t] / c * p * z ** (p - 1) * (z > 0)
            slopes[i, rest] += slope
            slopes[i, t] -= slope.sum()
    return loss, slopes


def check(
    f: Any, x: torch.Tensor, labels: list[list[int]], reduction: str,
    weight: Any = None, margin: float = 1.0, p: int = 1,
) -> None:  # fmt: skip
    """Hold a loss of rows, called with scores and a reduction, and its gradient to `margins`."""
    w = np.ones(x.shape[1]) if weight is None else weight
    wide = x.detach().cpu().double().numpy()
    loss, slopes = margins(wide, labels, w, margin, p)
    y = f(x, reduction)
    assert y.dtype == x.dtype
    digits = {torch.float64: 1e-12, torch.float32: 1e-5}.get(x.dtype, 1e-2)
    scale = max(np.abs(loss).max(initial=0), 1) if digits == 1e-2 else 1
    want = torch.from_numpy(np.asarray(reduced(loss, reduction)))
    torch.testing.assert_close(y.detach().cpu().double(), want, rtol=digits, atol=digits * scale)
    g = torch.linspace(0.5, 2, y.numel()).reshape(y.shape).to(x)
    (d,) = torch.autograd.grad(y, x, g)
    factor = g.cpu().double().numpy().reshape(-1, 1) / (len(loss) if reduction == "mean" else 1)
    want = torch.from_numpy(np.broadcast_to(factor * slopes, slopes.shape).copy())
    torch.testing.assert_close(d.cpu().double(), want, rtol=digits, atol=digits)


def scores(n: int, c: int, dtype: Any, device: str) -> torch.Tensor:
    torch.manual_seed(n + c)
    return torch.randn(n, c).to(dtype).to(device).requires_grad_()


def dtypes(device: str) -> list[Any]:
    # On the CPU PyTorch has none for half types.
    return [torch.float32, torch.float64, *[torch.float16, torch.bfloat16] * (device == "wgpu")]


CASES = [(device, dtype) for device in DEVICES for dtype in dtypes(device)]


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 70), (300, 33), (2, 2001)])
@pytest.mark.parametrize(("device", "dtype"), CASES)
def test_multi_margin_loss_is_its_sum(device: str, dtype: Any, shape: tuple[int, int]) -> None:
    n, c = shape
    x = scores(n, c, dtype, device)
    target = torch.arange(n) * 7 % c
    w = torch.linspace(0, 2, c).to(dtype)
    for p, margin, weight in ((1, 1.0, None), (2, 0.5, w), (2, 1.0, None), (1, 0.25, w)):
        given = None if weight is None else weight.to(device)
        for reduction in REDUCTIONS:
            check(
                lambda x, r, p=p, margin=margin, w=given: F.multi_margin_loss(
                    x, target.to(device), p, margin, w, reduction=r
                ),
                x, [[int(t)] for t in target], reduction,
                None if weight is None else weight.double().numpy(), margin, p,
            )  # fmt: skip


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (4, 70), (60, 33), (2, 1500)])
@pytest.mark.parametrize(("device", "dtype"), CASES)
def test_multilabel_margin_loss_is_its_sum(device: str, dtype: Any, shape: tuple[int, int]) -> None:
    n, c = shape
    rng = np.random.default_rng(n)
    # Labels may repeat, and what is behind the first -1 does not count.
    target = rng.integers(0, c, shape)
    if shape[0] > 1:
        target[np.arange(n), rng.integers(0, min(c, 40), n)] = -1
    named = [list(row[: list(row).index(-1)]) if -1 in row else list(row) for row in target]
    labels = torch.from_numpy(target).to(device)
    x = scores(n, c, dtype, device)
    for reduction in REDUCTIONS:
        check(
            lambda x, r: F.multilabel_margin_loss(x, labels, reduction=r), x, named, reduction
        )  # fmt: skip


def test_multilabel_margin_loss_of_rows_in_parts_equals_the_cpus() -> None:
    if not DEVICES[1:]:
        pytest.skip("no GPU adapter")
    x = torch.randn(2, 5000)
    target = torch.full((2, 5000), -1)
    target[0, :20], target[1, :3] = torch.randint(0, 5000, (20,)), torch.tensor([7, 7, 4999])

    def found(device: str) -> list[torch.Tensor]:
        t = x.clone().to(device).requires_grad_()
        y = F.multilabel_margin_loss(t, target.to(device), reduction="none")
        return [y, *torch.autograd.grad(y, t, torch.tensor([1.0, 2.0]).to(device))]

    for got, want in zip(found("wgpu"), found("cpu"), strict=True):
        torch.testing.assert_close(got.cpu(), want, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_margin_losses_have_first_and_second_derivatives(device: str) -> None:
    x = torch.randn(4, 6, dtype=torch.float64).to(device).requires_grad_()
    target = torch.tensor([3, 0, 5, 3]).to(device)
    labels = torch.tensor([[3, 0, -1, 1, 1, 1], [-1] * 6, [0, 1, 2, 3, 4, 5], [2, 2, 5, -1, 0, 0]])
    labels = labels.to(device)
    w = torch.tensor([1.0, 0, 2, 0.5, 3, 1], dtype=torch.float64).to(device)
    for r in REDUCTIONS:
        for f in (
            lambda x, r=r: F.multi_margin_loss(x, target, weight=w, reduction=r),
            lambda x, r=r: F.multi_margin_loss(x, target, 2, 0.7, w, reduction=r),
            lambda x, r=r: F.multi_margin_loss(x[0], target[0], 2, reduction=r),
            lambda x, r=r: F.multilabel_margin_loss(x, labels, reduction=r),
        ):
            assert torch.autograd.gradcheck(f, (x,))
            assert torch.autograd.gradgradcheck(f, (x,))
    f = lambda x: F.multi_margin_loss(x, target, 2, weight=w)  # noqa: E731
    _, tangent = torch.func.jvp(f, (x.detach(),), (torch.ones_like(x) * w,))
    want = torch.func.grad(f)(x.detach()).mul(w).sum()
    torch.testing.assert_close(tangent, want)


@pytest.mark.parametrize("device", DEVICES)
def test_margin_losses_of_what_is_not_finite_count_as_pytorchs(device: str) -> None:
    inf, nan = math.inf, math.nan
    x = torch.tensor([[1.0, inf, 2.0], [inf, 1, 2], [nan, 1, 2], [0, nan, 2]]).to(device)
    target = torch.tensor([0, 0, 0, 0]).to(device)
    loss = F.multi_margin_loss(x, target, reduction="none").tolist()
    assert loss == [inf, 0, 0, 1]
    # Nothing times infinity is nothing.
    w = torch.tensor([0.0, 1, 1]).to(device)
    assert F.multi_margin_loss(x, target, weight=w, reduction="none").tolist() == [0] * 4
    labels = torch.tensor([[0, 1, -1]] * 4).to(device)
    got = F.multilabel_margin_loss(x, labels, reduction="none").tolist()
    assert got == pytest.approx([2 / 3, 2 / 3, 2 / 3, 1])


def test_margin_losses_refuse_classes_that_there_are_not() -> None:
    x = torch.zeros(2, 3)
    for t in (3, -1):
        with pytest.raises(RuntimeError, match="target out of range"):
            F.multi_margin_loss(x, torch.tensor([0, t]))
    with pytest.raises(RuntimeError, match="target out of range"):
        F.multilabel_margin_loss(x, torch.tensor([[0, -1, 9], [3, 0, -1]]))
    for f, shape in ((F.multi_margin_loss, (2,)), (F.multilabel_margin_loss, (2, 3))):
        with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
            f(x.half(), torch.zeros(shape, dtype=torch.int64))


@pytest.mark.skipif(not DEVICES[1:], reason="no GPU adapter")
def test_margin_losses_on_a_gpu_note_a_class_that_there_is_not_without_waiting() -> None:
    x = torch.zeros(2, 3, device="wgpu", requires_grad=True)
    for name, target in (
        ("multi_margin_loss", [1, 3]),
        ("multi_margin_loss", [-1, 1]),
        ("multilabel_margin_loss", [[0, -1, 9], [2, 3, -1]]),
    ):
        t = torch.tensor(target).to("wgpu")
        wgpu.synchronize()
        before = wgpu.memory_stats()["submissions"]
        loss = getattr(F, name)(x, t)
        assert wgpu.memory_stats()["submissions"] == before
        bad = -1 if [-1, 1] == target else 3
        with pytest.raises(
            RuntimeError, match=rf"^{name}: index {bad} is out of bounds .* size 3 .*asked for at"
        ):
            loss.item()
        loss.backward()
        wgpu.synchronize()
        assert x.grad is not None
        assert x.grad.isfinite().all()


@pytest.mark.skipif(not DEVICES[1:], reason="no GPU adapter")
def test_gradient_of_a_margin_loss_goes_on_in_its_kernel() -> None:
    x = torch.randn(50, 33, device="wgpu", requires_grad=True)
    target = torch.randint(0, 33, (50,)).to("wgpu")
    y = F.multi_margin_loss(x.exp(), target, reduction="sum")
    g = torch.ones_like(y)
    wgpu.synchronize()
    before = wgpu.memory_stats()["dispatches"]
    (d,) = torch.autograd.grad(y, x, g)
    wgpu.synchronize()
    assert wgpu.memory_stats()["dispatches"] == before + 1
    host = x.detach().cpu().requires_grad_()
    (want,) = torch.autograd.grad(
        F.multi_margin_loss(host.exp(), target.cpu(), reduction="sum"), host
    )
    torch.testing.assert_close(d.cpu(), want)


def test_margin_losses_of_nothing_are_defined() -> None:
    # PyTorch's are never written.
    x = torch.zeros(0, 5)
    for f, target in (
        (F.multilabel_margin_loss, torch.zeros(0, 5, dtype=torch.int64)),
        (F.multi_margin_loss, torch.zeros(0, dtype=torch.int64)),
    ):
        assert f(x, target).isnan()
        assert f(x, target, reduction="sum").item() == 0
        assert f(x, target, reduction="none").shape == (0,)


inf, nan = float("inf"), float("nan")


def test_margin_losses_take_infinite_scores() -> None:
    target = torch.tensor(0)
    assert F.multi_margin_loss(torch.tensor([1.0, inf, 2.0]), target).item() == inf
    assert F.multi_margin_loss(torch.tensor([inf, 1.0, 2.0]), target).item() == 0
    x, labels = torch.tensor([1.0, inf, 2.0]), torch.tensor([0, 1, -1])
    # Only the last class is no target: (1 - 1 + 2) + 0, over three classes.
    assert F.multilabel_margin_loss(x, labels).item() == pytest.approx(2 / 3)
