"""Recorded steps on a GPU keep their dispatches: what is recorded again is what would have been."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from training_steps import training

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.nn import functional as F

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")


def network(p: float = 0.0) -> Any:
    """Return a small classifier on the GPU."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(12, 16), nn.GELU(), nn.Dropout(p), nn.LayerNorm(16), nn.Linear(16, 5)
    ).to("wgpu")


def batches(n: int) -> list[Any]:
    """Return batches of one shape, each in memory of its own."""
    torch.manual_seed(1)
    return [(torch.randn(8, 12).to("wgpu"), torch.randint(0, 5, (8,)).to("wgpu")) for _ in range(n)]


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("p", [0.0, 0.25])
@pytest.mark.parametrize("scheduled", [False, True])
def test_twenty_steps_have_the_bits_of_steps_that_are_not_recorded(
    kind: str, p: float, scheduled: bool
) -> None:
    def run(recorded: bool) -> list[Any]:
        net = network(p)
        optimizer = OPTIMIZERS[kind](net.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.5)

        train = step = training(net, optimizer)
        if recorded:
            # What Python sets in a step, such as a schedule's rate, is for `torch.compile` to see.
            train = torch.compile(step) if scheduled else torch.graph(step, fullgraph=True)
        data = batches(4)
        losses = []
        for i in range(20):
            losses.append(train(*data[i % 4]))
            if scheduled:
                scheduler.step()
        if recorded and not scheduled:
            (program,) = train.programs
            assert program.kept >= 5
        return [t.cpu() for t in [*losses, *net.state_dict().values()]]

    for a, b in zip(run(False), run(True), strict=True):
        assert torch.equal(a, b)


def test_later_steps_make_no_pipelines_and_no_bind_groups() -> None:
    net = network()
    optimizer = OPTIMIZERS["sgd"](net.parameters())

    train = torch.graph(training(net, optimizer), fullgraph=True)
    (x, y), counts = batches(1)[0], []
    for _ in range(10):
        counts.append(wgpu.memory_stats())
        train(x, y)
    counts.append(wgpu.memory_stats())
    made = [counts[10][k] - counts[5][k] for k in ("pipelines", "bind_groups", "allocations")]
    assert made == [0, 0, 0]
    dispatches = [b["dispatches"] - a["dispatches"] for a, b in itertools.pairwise(counts)]
    assert len(set(dispatches[3:])) == 1
    # All that a step with a constant rate asks for is kept.
    assert train.programs[0].kept == dispatches[-1]


def test_results_of_earlier_calls_keep_their_values() -> None:
    w = torch.arange(6.0).reshape(2, 3).to("wgpu")
    call = torch.graph(lambda x: ((x @ w).softmax(1), x.sum(0)), fullgraph=True)
    xs = [torch.randn(4, 2) for _ in range(8)]
    results = [call(x.to("wgpu")) for x in xs]
    assert call.programs[0].kept > 0
    for x, (y, s) in zip(xs, results):
        x = x.to("wgpu")
        assert torch.equal(y.cpu(), (x @ w).softmax(1).cpu())
        assert torch.equal(s.cpu(), x.sum(0).cpu())


def test_inputs_in_larger_buffers_of_the_pool_leave_the_dispatches_kept() -> None:
    w = torch.randn(1000, 7, device="wgpu")
    call = torch.graph(lambda x: (x @ w).relu(), fullgraph=True)
    data = [torch.randn(64, 1000) for _ in range(8)]
    for i, x in enumerate(data):
        if i % 2:
            wgpu.empty_cache()
            larger = torch.zeros(64 * 1000 + 9000, device="wgpu")
            del larger  # its memory is what the next one gets
        on_gpu = x.to("wgpu")
        assert torch.equal(call(on_gpu).cpu(), (on_gpu @ w).relu().cpu())
        del on_gpu
    assert call.programs[0].kept > 0


def test_way_back_is_kept_too_while_several_calls_wait_for_theirs() -> None:
    net = network()
    call = torch.graph(net, fullgraph=True)
    data = batches(3)
    for _ in range(4):
        losses = [F.cross_entropy(call(x), y) for x, y in data]
        for loss in reversed(losses):
            loss.backward()
    grads = [p.grad.cpu() for p in net.parameters()]
    kept = call.programs[0].kept
    assert kept > 6
    net.zero_grad()
    for _ in range(4):
        for loss in reversed([F.cross_entropy(net(x), y) for x, y in data]):
            loss.backward()
    for a, p in zip(grads, net.parameters(), strict=True):
        assert torch.equal(a, p.grad.cpu())


def test_an_index_out_of_range_is_found_in_a_kept_dispatch() -> None:
    table = torch.randn(5, 3, device="wgpu")
    call = torch.graph(lambda i: F.embedding(i, table), fullgraph=True)
    good = torch.tensor([0, 4], device="wgpu")
    for _ in range(4):
        assert torch.equal(call(good).cpu(), table[[0, 4]].cpu())
    assert call.programs[0].kept == 1
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension with size 5"):
        call(torch.tensor([0, 7], device="wgpu")).cpu()
    assert torch.equal(call(good).cpu(), table[[0, 4]].cpu())


def test_profile_tells_each_kernel_and_the_next_call_is_kept_again() -> None:
    from pytensorlib.profiler import ProfilerActivity, profile

    x = torch.randn(4, 4, device="wgpu")
    call = torch.graph(lambda x: (x @ x).relu().sum(1), fullgraph=True)
    first = [call(x).cpu() for _ in range(4)][-1]
    kept = call.programs[0].kept
    with profile(activities=[ProfilerActivity.CPU]) as told:
        assert torch.equal(call(x).cpu(), first)
    assert told.events() is not None
    assert torch.equal(call(x).cpu(), first) and call.programs[0].kept == kept > 0


def test_steps_that_the_host_computes_run_between_kept_ones() -> None:
    counts = torch.zeros(3)  # on the host

    def step(x: Any) -> Any:
        counts.add_(1)
        y = (x * 2).sum(1)
        return y.cpu() + counts, y

    call = torch.graph(step, fullgraph=True)
    x = torch.arange(12.0).reshape(3, 4).to("wgpu")
    found = [call(x)[0].tolist() for _ in range(6)]
    assert found == [[12 + i, 44 + i, 76 + i] for i in range(1, 7)]
    assert call.programs[0].kept > 0


def test_random_numbers_without_a_key_are_other_ones_each_time() -> None:
    def run(recorded: bool) -> list[Any]:
        torch.manual_seed(3)
        x = torch.zeros(64, device="wgpu")

        def step(x: Any) -> Any:
            return torch.rand_like(x) + F.dropout(x + 1, 0.5)

        call = torch.graph(step, fullgraph=True) if recorded else step
        return [call(x).cpu() for _ in range(6)]

    plain, kept = run(False), run(True)
    assert all(torch.equal(a, b) for a, b in zip(plain, kept, strict=True))
    assert len({tuple(t.tolist()) for t in kept}) == 6


def test_programs_of_several_threads_and_plain_work_beside_them() -> None:
    found: dict[int, bool] = {}

    def work(n: int) -> None:
        w = torch.full((6, 6), 1.0 + n, device="wgpu")
        call = torch.graph(lambda x: (x @ w).tanh().sum(1) * w[0], fullgraph=True)
        good = True
        for i in range(12):
            x = (torch.arange(36.0).reshape(6, 6) / (10 + i + n)).to("wgpu")
            want = ((x @ w).tanh().sum(1) * w[0]).cpu()
            good &= torch.equal(call(x).cpu(), want)
        found[n] = good

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == dict.fromkeys(range(4), True)


def test_memory_of_a_program_goes_with_it() -> None:
    def used() -> int:
        wgpu.synchronize()
        return wgpu.memory_stats()["allocated"]

    x = torch.randn(64, 64, device="wgpu")
    before = used()
    call = torch.graph(lambda x: F.softmax(x @ x.T, 1).sum(0), fullgraph=True)
    for _ in range(5):
        call(x)
    assert used() > before
    call.reset()
    assert used() == before


@pytest.mark.slow
def test_host_time_of_a_dispatch_is_short() -> None:
    """At most 5 us of the processor where it is recorded, 1 us where it is kept, the least of many.

    Without what sends them, which is the driver's: after a wait few are sent at a time, later more.
    """

    def least(call: Callable[[], Any]) -> float:
        times = []
        for _ in range(300):
            before, begin = wgpu.memory_stats(), time.thread_time()
            kept = call()
            after = wgpu.memory_stats()  # records what waits
            taken = time.thread_time() - begin
            if after["submissions"] == before["submissions"]:
                times.append(taken / (after["dispatches"] - before["dispatches"]))
            del kept
        assert len(times) > 100
        return min(times)

    x = torch.full((8, 8), 0.1, device="wgpu")
    for f in (lambda: x @ x, lambda: x.softmax(0), lambda: x.sum(0)):
        assert least(lambda f=f: [f() for _ in range(15)]) < 5e-6
    call = torch.graph(lambda x: [x := x @ x for _ in range(60)][-1], fullgraph=True)
    for _ in range(5):
        call(x)
    assert call.programs[0].kept == 60
    assert least(lambda: call(x)) < 1e-6
