"""Compiled steps of optimizers, of scaled losses and of schedules have the bits of the steps."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from training_steps import OPTIMIZERS, batches, network, training

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.nn import functional as F

DEVICES = ["cpu", *(["wgpu"] if wgpu.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_compiled_steps_under_a_schedule_have_the_bits_of_the_steps(device: str, kind: str) -> None:
    def run(compiled: bool) -> list[Any]:
        net = network(device)
        optimizer = OPTIMIZERS[kind](net.parameters())
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        step = training(net, optimizer)
        train = torch.compile(step) if compiled else step
        losses = []
        for i, (x, y) in enumerate(batches(device, 14)):
            losses.append(train(x, y))
            if i > 4:
                schedule.step()
        if compiled:
            assert train.counts["runs"] > 0
        states = [v for s in optimizer.state.values() for v in s.values()]
        return [t.detach().cpu() for t in [*losses, *net.parameters(), *states]]

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["sgd", "adamw", "nadam"])
def test_compiled_steps_of_scaled_losses_leave_out_what_steps_do(device: str, kind: str) -> None:
    kinds = OPTIMIZERS | {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    }

    def run(compiled: bool) -> tuple[list[Any], list[float]]:
        net = network(device)
        optimizer = kinds[kind](net.parameters())
        scaler = torch.amp.GradScaler(device, init_scale=16.0, growth_interval=3)
        step = training(net, optimizer, scaler)
        train = torch.compile(step) if compiled else step
        losses, scales = [], []
        for i, (x, y) in enumerate(batches(device, 16)):
            # Gradients overflow in these two.
            losses.append(train(x * 1e38 if i in (7, 12) else x, y))
            scales.append(scaler.get_scale())
        return [t.detach().cpu() for t in [*losses, *net.parameters()]], scales

    (plain, scales), (found, others) = run(False), run(True)
    assert scales == others
    # Larger after three good steps, smaller after a bad one.
    assert scales[:4] == [16.0, 16.0, 32.0, 32.0] and scales[7] < scales[6]
    assert all(torch.equal(a, b) for a, b in zip(plain, found, strict=True))
    assert all(t.isfinite().all() for t in found[16:])


def test_scaled_losses_of_several_optimizers_leave_out_each_its_own() -> None:
    def run(compiled: bool) -> list[Any]:
        torch.manual_seed(0)
        a, b = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
        first, second = torch.optim.SGD([a], lr=0.1), torch.optim.Adam([b], lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)

        def step(x: Any, y: Any) -> None:
            first.zero_grad()
            second.zero_grad()
            scaler.scale((a * x).sum() + (b * y).sum()).backward()
            scaler.unscale_(first)
            nn.utils.clip_grad_norm_([a], 1.0)
            scaler.step(first)
            scaler.step(second)
            scaler.update()

        train = torch.compile(step) if compiled else step
        seen = []
        for i in range(12):
            x, y = torch.rand(4), torch.rand(4)
            train(x / 0 if i == 6 else x, y / 0 if i == 9 else y)
            seen += [a.detach().clone(), b.detach().clone(), torch.tensor(scaler.get_scale())]
        return seen

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


def test_scaler_whose_update_is_outside_the_compiled_step_is_the_same() -> None:
    def run(compiled: bool) -> list[Any]:
        net = network("cpu")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=2)

        def step(x: Any, y: Any) -> None:
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(net(x), y)).backward()
            scaler.step(optimizer)

        train = torch.compile(step) if compiled else step
        scales = []
        for x, y in batches("cpu", 6):
            train(x, y)
            scaler.update()
            scales.append(torch.tensor(scaler.get_scale()))
        return [t.detach() for t in [*scales, *net.parameters()]]

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


def test_options_of_a_scaler_that_change_are_seen_by_the_compiled_step() -> None:
    def run(compiled: bool) -> list[float]:
        net = network("cpu")
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0, growth_interval=1)
        step = training(net, torch.optim.SGD(net.parameters(), lr=0.1), scaler)
        train = torch.compile(step) if compiled else step
        scales = []
        for i, (x, y) in enumerate(batches("cpu", 10)):
            if i == 5:
                scaler.set_growth_factor(4.0)
            train(x, y)
            scales.append(scaler.get_scale())
        return scales

    assert (
        run(True) == run(False) == [2.0**i for i in range(2, 7)] + [2.0**i for i in range(8, 18, 2)]
    )


def test_optimizer_that_steps_twice_in_a_call_keeps_its_bits() -> None:
    def run(compiled: bool) -> Any:
        net = network("cpu")
        optimizer = torch.optim.RAdam(net.parameters(), lr=0.05)
        once = training(net, optimizer)

        def step(x: Any, y: Any) -> Any:
            once(x, y)
            return once(x, y)

        train = torch.compile(step) if compiled else step
        for x, y in batches("cpu", 6):
            train(x, y)
        return torch.cat([p.detach().reshape(-1) for p in net.parameters()])

    assert torch.equal(run(False), run(True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_compiled_steps_in_other_types_have_the_bits_of_the_steps(kind: str, dtype: Any) -> None:
    def run(compiled: bool) -> list[Any]:
        net = network("cpu", dtype)
        step = training(net, OPTIMIZERS[kind](net.parameters()))
        train = torch.compile(step) if compiled else step
        losses = [train(x, y) for x, y in batches("cpu", 9, dtype)]
        return [t.detach() for t in [*losses, *net.parameters()]]

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


def test_optimizers_that_come_and_go_are_let_go() -> None:
    w = torch.ones(3, requires_grad=True)
    parts: list[Any] = []

    @torch.compile
    def step() -> None:
        parts[0].zero_grad()
        (w * w).sum().backward()
        parts[0].step()

    gone = []
    for _ in range(60):
        parts[:] = [torch.optim.Adamax([w], lr=0.01)]
        gone.append(weakref.ref(parts[0]))
        for _ in range(4):
            step()
    gc.collect()
    assert all(ref() is None for ref in gone[:-1])


# Steps that are run without Python.


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "kind", ["adadelta", "adam", "adamw", "muon", "rmsprop", "rprop", "sgd", "sgd nesterov"]
)
def test_graphs_of_steps_whose_numbers_stay_have_the_bits_of_the_steps(
    device: str, kind: str
) -> None:
    kinds = OPTIMIZERS | {
        "adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01),
        "sgd nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    }

    def run(recorded: bool) -> list[Any]:
        net = network(device)
        optimizer = kinds[kind](net.parameters())
        step = training(net, optimizer)
        train = torch.graph(step, fullgraph=True) if recorded else step
        losses = [train(x, y) for x, y in batches(device, 9)]
        if recorded:
            assert len(train.programs) == 1
        states = [v for s in optimizer.state.values() for v in s.values()]
        return [t.detach().cpu() for t in [*losses, *net.parameters(), *states]]

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


@pytest.mark.parametrize("kind", ["radam", "asgd", "nadam", "adagrad", "scaled"])
def test_graphs_of_steps_that_read_numbers_run_as_they_are_and_say_so(kind: str) -> None:
    def run(recorded: bool) -> list[Any]:
        net = network("cpu")
        scaled = kind == "scaled"
        scaler = torch.amp.GradScaler("cpu", init_scale=16.0) if scaled else None
        optimizer = OPTIMIZERS["rmsprop" if scaled else kind](net.parameters())
        step = training(net, optimizer, scaler)
        train = torch.graph(step) if recorded else step
        losses = [train(x, y) for x, y in batches("cpu", 6)]
        assert not recorded or not train.programs
        return [t.detach() for t in [*losses, *net.parameters()]]

    plain = run(False)
    with pytest.warns(UserWarning, match="elements of a tensor are read") as told:
        found = run(True)
    assert len(told) == 1
    assert all(torch.equal(a, b) for a, b in zip(plain, found, strict=True))


def test_graph_keeps_the_rate_that_it_was_recorded_with() -> None:
    w = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)

    @torch.graph
    def step() -> None:
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()

    for _ in range(4):
        step()
    optimizer.param_groups[0]["lr"] = 0.5
    step()
    assert w.tolist() == [-5.0, -5.0]
    step.reset()
    for _ in range(4):
        step()
    assert w.tolist() == [-7.0, -7.0]
