"""Compiled steps whose learning rate or momentum changes from call to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from training_steps import training

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.nn import functional as F

DEVICES = ["cpu", *(["wgpu"] if wgpu.is_available() else [])]
OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "sgd": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9),
    "adamw": lambda p, lr: torch.optim.AdamW(p, lr=lr),
}


def train(device: str, kind: str, compiled: bool, inside: str) -> tuple[list[Any], Any]:
    """Return the losses and parameters of training whose rate goes down, and the function."""
    torch.manual_seed(0)
    net = nn.Linear(5, 3).to(device)
    optimizer = OPTIMIZERS[kind](net.parameters(), torch.tensor(0.1))
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    def step(x: Any, y: Any) -> Any:
        if inside == "before":
            optimizer.param_groups[0]["lr"].mul_(0.9)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        if inside == "behind":
            optimizer.param_groups[0]["lr"].mul_(0.9)
        return loss.detach()

    call = torch.compile(step) if compiled else step
    x, y = torch.randn(6, 5).to(device), torch.tensor([0, 1, 2, 0, 1, 2]).to(device)
    losses = []
    for _ in range(10):
        losses.append(call(x, y))
        if inside == "no":
            scheduler.step()
    rate = optimizer.param_groups[0]["lr"]
    assert isinstance(rate, torch.Tensor)
    assert rate.item() == pytest.approx(0.1 * 0.9**10)
    return [t.detach().cpu() for t in [*losses, *net.parameters()]], call


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("inside", ["no", "before", "behind"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_rate_that_is_a_tensor_is_read_before_each_call(
    device: str, kind: str, inside: str
) -> None:
    (plain, _), (found, call) = (train(device, kind, c, inside) for c in (False, True))
    assert call.counts["runs"] > 0
    assert all(torch.equal(a, b) for a, b in zip(plain, found, strict=True))


CYCLED: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1, betas=(0.8, 0.99), amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.9),
    "muon": lambda p: torch.optim.Muon([t for t in p if t.ndim == 2], lr=0.1),
    "muon plain": lambda p: torch.optim.Muon(
        [t for t in p if t.ndim == 2], lr=0.1, nesterov=False, adjust_lr_fn="match_rms_adamw"
    ),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.1, decoupled_weight_decay=True),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.1),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.1),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", CYCLED)
def test_momentum_that_a_schedule_cycles_is_taken_anew_in_each_call(device: str, kind: str) -> None:
    def run(compiled: bool) -> list[Any]:
        torch.manual_seed(0)
        net = nn.Linear(5, 3).to(device)
        optimizer = CYCLED[kind](net.parameters())
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=14)

        step = training(net, optimizer)
        call = torch.compile(step) if compiled else step
        x, y = torch.randn(6, 5).to(device), torch.tensor([0, 1, 2, 0, 1, 2]).to(device)
        losses, momenta = [], set()
        for _ in range(12):
            losses.append(call(x, y))
            schedule.step()
            group = optimizer.param_groups[0]
            momenta.add(group["betas"][0] if "betas" in group else group["momentum"])
        assert len(momenta) > 10
        if compiled:
            assert call.counts["runs"] > 0
        return [t.detach().cpu() for t in [*losses, *net.parameters()]]

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [torch.optim.RMSprop, torch.optim.Adadelta, torch.optim.SGD])
def test_rate_of_half_parameters_gives_the_bits_of_training(device: str, kind: Any) -> None:
    def run(compiled: bool) -> list[Any]:
        # Both are of one group; numbers are rounded for the second before they are used.
        make = lambda d: torch.ones(4, dtype=d, device=device, requires_grad=True)  # noqa: E731
        leaves = [make(d) for d in (torch.float32, torch.half)]
        optimizer = kind(leaves, lr=0.1)

        def step() -> None:
            for leaf in leaves:
                leaf.grad = leaf.detach() * 2
            optimizer.step()

        call = torch.compile(step) if compiled else step
        for i in range(12):
            optimizer.param_groups[0]["lr"] = 0.1 if i < 6 else 0.03
            call()
        return [leaf.detach().cpu() for leaf in leaves]

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


@pytest.mark.parametrize("kind", [torch.optim.NAdam, torch.optim.Adamax])
def test_first_decay_of_half_parameters_gives_the_bits_of_training(kind: Any) -> None:
    def run(compiled: bool) -> list[Any]:
        # Both are of one group; numbers are rounded for the second before they are used.
        leaves = [torch.ones(4, dtype=d, requires_grad=True) for d in (torch.float32, torch.half)]
        optimizer = kind(leaves, lr=0.1)

        def step() -> None:
            for leaf in leaves:
                leaf.grad = leaf.detach() * 2
            optimizer.step()

        call = torch.compile(step) if compiled else step
        for i in range(9):
            optimizer.param_groups[0]["betas"] = (0.9 if i < 5 else 0.5, 0.999)
            call()
        return [leaf.detach() for leaf in leaves]

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


def test_other_decay_of_the_squares_is_seen() -> None:
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.1)

    @torch.compile
    def step() -> None:
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

    def run(call: Any) -> Any:
        with torch.no_grad():
            w.fill_(1.0)
        optimizer.state.clear()
        optimizer.param_groups[0]["betas"] = (0.9, 0.999)
        for i in range(12):
            if i == 6:
                optimizer.param_groups[0]["betas"] = (0.85, 0.9)
            call()
        return w.detach().clone()

    assert torch.equal(run(step._function), run(step))
