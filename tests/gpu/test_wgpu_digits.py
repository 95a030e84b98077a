"""The network of the demo, compiled on a GPU, learns as it does on the CPU."""

from __future__ import annotations

from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.nn import functional as F

pytest.importorskip("sklearn")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
]

STEPS = 100


def losses(device: str) -> list[float]:
    """Return the losses of the first steps of the demo's training, without dropout."""
    from pytensorlib.examples.digits import DigitNet, load_digits

    torch.manual_seed(0)
    net = DigitNet()
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0  # each device has random numbers of its own
    net.to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=5e-3, total_steps=STEPS, cycle_momentum=False
    )

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    call = torch.compile(step) if device == "wgpu" else step
    x, y = load_digits()[0].tensors
    found = []
    for i in range(STEPS):
        part = torch.arange(64 * i, 64 * (i + 1)) % len(y)
        found.append(call(x[part].to(device), y[part].to(device)))
        schedule.step()
    return [t.item() for t in found]


def test_a_hundred_compiled_steps_end_where_those_of_the_cpu_do() -> None:
    host, gpu = losses("cpu"), losses("wgpu")
    assert gpu[:10] == pytest.approx(host[:10], abs=1e-4)
    assert gpu[-1] == pytest.approx(host[-1], abs=1e-3)
    assert host[-1] < 0.2
