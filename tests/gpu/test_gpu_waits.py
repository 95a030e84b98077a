"""How often a program waits for a GPU: where it reads elements, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.nn import functional as F

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")


def waits(call: Callable[[], Any]) -> int:
    """Return how often a call waited for the GPU."""
    wgpu.synchronize()
    before = wgpu.memory_stats()["waits"]
    call()
    return wgpu.memory_stats()["waits"] - before


@pytest.fixture(autouse=True)
def warm() -> None:
    """Kernels are compiled, and tiles timed, before anything is counted."""
    x = torch.randn(64, 32, device="wgpu")
    (x @ x.t()).sum().item()


@pytest.mark.parametrize("n", [1, 4096, 1 << 20])
def test_copies_to_the_gpu_do_not_wait(n: int) -> None:
    x = torch.randn(n)
    assert waits(lambda: x.to("wgpu")) == 0
    assert waits(lambda: x.pin_memory().to("wgpu", non_blocking=True)) == 0
    y = torch.empty(n, device="wgpu")
    assert waits(lambda: y.copy_(x, non_blocking=True)) == 0 and torch.equal(y.cpu(), x)


READS: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x.sum().item(),
    "float": lambda x: float(x.mean()),
    "bool": lambda x: bool((x > 9).any()),
    "cpu": lambda x: (x * 2).cpu(),
    "transposed": lambda x: x.t().cpu(),
    "tolist": lambda x: x[:2].tolist(),
    "print_few": lambda x: repr(x[:3, :3]),
    "print_many": str,
    "numpy": lambda x: x.half().cpu().numpy(),
    "equal": lambda x: torch.equal(x, x),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_waits_once(name: str) -> None:
    x = torch.randn(64, 32, device="wgpu")
    READS[name](x)
    assert waits(lambda: READS[name](x)) == 1


def test_a_read_brings_what_kernels_noted_without_another_wait() -> None:
    table = torch.randn(10, 4, device="wgpu")

    def looked_up(i: int) -> Any:
        return F.embedding(torch.tensor([i], device="wgpu"), table).sum()

    looked_up(1).item()
    assert waits(lambda: looked_up(2).item()) == 1
    bad = looked_up(10)
    before = wgpu.memory_stats()["waits"]
    with pytest.raises(IndexError, match="index 10 is out of"):
        bad.item()
    assert wgpu.memory_stats()["waits"] == before + 1
    # It is told once, also where more is read than one piece.
    looked_up(11)
    with pytest.raises(IndexError, match="index 11 is out of"):
        torch.zeros(9 << 20, device="wgpu").cpu()
    assert looked_up(3).item() == pytest.approx(table[3].sum().item())


STEPS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "sgd": (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), {}),
    "adamw": (lambda p: torch.optim.AdamW(p, 1e-3), {}),
    "fused": (lambda p: torch.optim.AdamW(p, 1e-3, fused=True), {}),
    "rmsprop": (lambda p: torch.optim.RMSprop(p, 1e-3), {}),
    "bfloat16": (lambda p: torch.optim.AdamW(p, 1e-3), {"dtype": torch.bfloat16}),
    "compiled": (lambda p: torch.optim.AdamW(p, 1e-3), {"compiled": True}),
    "scaled": (
        lambda p: torch.optim.AdamW(p, 1e-3),
        {"dtype": torch.float16, "scaled": True, "each": 1},
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_fifty_steps_wait_where_the_loss_is_read(name: str) -> None:
    """A scaler asks at each step whether gradients are finite, as PyTorch's does."""
    make, how = STEPS[name]
    torch.manual_seed(0)
    layers = [nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Dropout(0.1), nn.Linear(64, 10)]
    net = nn.Sequential(*layers).to("wgpu")
    optimizer = make(net.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    scaler = torch.amp.GradScaler("wgpu", enabled=how.get("scaled", False))
    xs, ys = torch.randn(4, 16, 32), torch.randint(0, 10, (4, 16))
    total = torch.zeros((), device="wgpu")

    def loss_of(x: Any, y: Any) -> Any:
        return F.cross_entropy(net(x), y)

    loss_of = torch.compile(loss_of) if how.get("compiled") else loss_of
    last: list[Any] = []

    def steps(n: int) -> None:
        for i in range(n):
            x = xs[i % 4].pin_memory().to("wgpu", non_blocking=True)
            y = ys[i % 4].to("wgpu", non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("wgpu", how.get("dtype"), enabled="dtype" in how):
                loss = loss_of(x, y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            total.add_(loss.detach())
            last[:] = [loss]

    steps(6)
    assert waits(lambda: steps(50)) == 50 * how.get("each", 0)
    assert waits(lambda: last[0].item()) == 1


def test_loaded_counts_of_steps_are_where_they_are_read() -> None:
    """A checkpoint that was mapped to the GPU has them there; a step would wait for each."""
    w = nn.Linear(3, 2).to("wgpu")
    for fused in (True, False):
        optimizer = torch.optim.Adam(w.parameters(), 1e-2, fused=fused)
        w(torch.ones(1, 3, device="wgpu")).sum().backward()
        optimizer.step()
        state = optimizer.state_dict()
        for entry in state["state"].values():
            entry["step"] = entry["step"].to("wgpu")
        again = torch.optim.Adam(w.parameters(), 1e-2, fused=fused)
        again.load_state_dict(state)
        assert {entry["step"].item() for entry in again.state.values()} == {1.0}
        again.step()
        assert waits(again.step) == 0


def test_a_wait_can_be_an_error() -> None:
    x = torch.ones(3, device="wgpu")
    torch._C._set_waiting(2)
    try:
        y = (x * 2).sum()
        wgpu.synchronize()
        for read in (y.item, y.cpu, lambda: repr(y), lambda: torch.equal(x, x)):
            with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
                read()
        torch._C._set_waiting(1)
        with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
            assert y.item() == 6
    finally:
        torch._C._set_waiting(0)
