"""Kept dispatches of a GPU are told anew what is another thing in each call of a recorded step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import training_steps
from test_wgpu_replay import OPTIMIZERS, batches, network
from training_steps import model, training

import pytensorlib as torch
from pytensorlib import _C, wgpu
from pytensorlib.nn import functional as F

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")


@pytest.fixture(params=[True, False], ids=["fused", "apart"], autouse=True)
def fused(request: Any) -> Iterator[None]:
    """Let pointwise kernels wait for others, and not."""
    before = _C._wgpu_set_fuse(0, request.param)
    yield
    _C._wgpu_set_fuse(0, before)


def asked(call: Callable[[], Any]) -> dict[str, int]:
    """Return what a call asks the GPU for."""
    before = wgpu.memory_stats()
    call()
    after = wgpu.memory_stats()
    names = ("dispatches", "pipelines", "bind_groups", "allocations")
    return {name: after[name] - before[name] for name in names}


@pytest.mark.parametrize("kind", [*OPTIMIZERS, "gpt"])
def test_whole_step_with_dropout_is_kept(kind: str) -> None:
    if kind == "gpt":
        torch.manual_seed(0)
        net, _, batch = model(kind)
        net.to("wgpu")
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        x, y = (t.to("wgpu") for t in batch())
    else:
        net = network(0.25)
        optimizer = OPTIMIZERS[kind](net.parameters())
        x, y = batches(1)[0]
    train = torch.graph(training(net, optimizer), fullgraph=True)
    for _ in range(8):
        train(x, y)
    counts = asked(lambda: train(x, y))
    kept = {"dispatches": train.programs[0].kept, "pipelines": 0, "bind_groups": 0}
    assert counts == kept | {"allocations": 0} and kept["dispatches"] > 10


@pytest.mark.parametrize("kind", ["adadelta", "muon", "rmsprop", "rmsprop centered", "rprop"])
def test_whole_step_of_plain_operators_is_kept(kind: str) -> None:
    net = training_steps.network("wgpu")
    optimizer = training_steps.OPTIMIZERS[kind](net.parameters())
    train = torch.graph(training(net, optimizer), fullgraph=True)
    x, y = training_steps.batches("wgpu", 1)[0]
    for _ in range(12):
        train(x, y)
    counts = asked(lambda: train(x, y))
    kept = {"dispatches": train.programs[0].kept, "pipelines": 0, "bind_groups": 0}
    assert counts == kept | {"allocations": 0} and kept["dispatches"] > 10


def test_numbers_of_the_host_are_told_in_each_place_they_stand() -> None:
    x = torch.linspace(-1, 1, 64).to("wgpu")
    numbers = torch.tensor(0.5), torch.tensor(0.5, dtype=torch.float64)

    def step(x: Any) -> Any:
        a, b = numbers
        # Twice the same number, also as one of the formula's own, and in half types.
        y = torch.where(x > a, x * b, a) + b
        return y, F.threshold(x, 0.5, 0.5) * a, x.half() * b, x.double() + a, a + b

    call = torch.graph(step, fullgraph=True)
    for i in range(9):
        numbers[0].fill_(0.5 if i < 3 else 0.1 * i)
        numbers[1].fill_(0.5 if i < 3 else 1 / 3 + i)
        for found, want in zip(call(x), step(x), strict=True):
            assert torch.equal(found.cpu(), want.cpu())
    assert asked(lambda: call(x))["dispatches"] == call.programs[0].kept > 0


DRAWN: dict[str, Callable[[Any], Any]] = {
    "uniform": lambda x: torch.rand_like(x) + x,
    "normal": lambda x: torch.randn_like(x) * x,
    "wide": lambda x: torch.rand(3, 5, device="wgpu", dtype=torch.float64) * 2,
    "integers": lambda x: torch.randint(0, 9, (64,), device="wgpu") + x,
    "permutation": lambda x: torch.randperm(64, device="wgpu"),
    "exponential": lambda x: x.clone().exponential_(),
    "two": lambda x: torch.rand_like(x) - torch.rand_like(x),
    "in place of a part": lambda x: x.clone()[8:40].normal_(),
    "dropout": lambda x: F.dropout(x * 2, 0.5) + x.sum(),
    "dropout of a view": lambda x: F.dropout(x.reshape(8, 8).t(), 0.5) + 1,
    "alpha dropout": lambda x: F.alpha_dropout(x, 0.3, True),
    "half": lambda x: F.dropout(x.bfloat16(), 0.2) + torch.rand_like(x.half()),
}


@pytest.mark.parametrize("name", DRAWN)
def test_random_numbers_of_kept_dispatches_go_on(name: str) -> None:
    x = torch.linspace(-1, 1, 64).to("wgpu")
    call = torch.graph(DRAWN[name], fullgraph=True)
    torch.manual_seed(3)
    plain = [DRAWN[name](x).cpu() for _ in range(8)]
    torch.manual_seed(3)
    found = [call(x).cpu() for _ in range(8)]
    assert all(torch.equal(a, b) for a, b in zip(plain, found, strict=True))
    assert not torch.equal(found[-1], found[-2])
    assert asked(lambda: call(x))["dispatches"] == call.programs[0].kept > 0


def test_dropout_of_attention_is_one_key_for_both_ways() -> None:
    q = torch.randn(2, 2, 8, 4, device="wgpu", requires_grad=True)

    def step() -> Any:
        y = F.scaled_dot_product_attention(q * 1, q, q, dropout_p=0.2)
        return y.detach(), *torch.autograd.grad(y.sum(), q)

    call = torch.graph(step, fullgraph=True)
    torch.manual_seed(3)
    plain = [step() for _ in range(8)]
    torch.manual_seed(3)
    found = [call() for _ in range(8)]
    for a, b in zip(plain, found, strict=True):
        assert all(torch.equal(s.cpu(), t.cpu()) for s, t in zip(a, b, strict=True))
    assert asked(call)["dispatches"] == call.programs[0].kept > 0


def test_numbers_of_the_host_and_those_of_the_gpu_come_in_their_order() -> None:
    x = torch.zeros(16, device="wgpu")

    def step(x: Any) -> Any:
        # The host draws between those of the GPU, each from a generator of its own.
        a = torch.rand_like(x)
        b = torch.rand(4)
        return a, b, F.dropout(x + 1, 0.5)

    call = torch.graph(step, fullgraph=True)
    torch.manual_seed(3)
    plain = [step(x) for _ in range(8)]
    torch.manual_seed(3)
    found = [call(x) for _ in range(8)]
    for a, b in zip(plain, found, strict=True):
        assert all(torch.equal(s.cpu(), t.cpu()) for s, t in zip(a, b, strict=True))
    assert call.programs[0].kept > 0
