"""Steps of optimizers on parameters in other orders of elements, beside the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn, wgpu

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")


@pytest.fixture(autouse=True)
def no_fallback() -> Iterator[None]:
    wgpu.set_fallback("error")
    yield
    wgpu.set_fallback(None)


MAKERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-2, fused=True),
    "amsgrad": lambda p: torch.optim.Adam(p, 1e-2, amsgrad=True),
}


@pytest.mark.parametrize("name", MAKERS)
def test_channels_last_parameters_step_on_the_gpu(name: str) -> None:
    """Gradients and states come in either order, and parameters stay in theirs."""
    ends = []
    for device in ("cpu", "wgpu"):
        torch.manual_seed(0)
        layers = [nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, (3, 2)), nn.Flatten()]
        net = nn.Sequential(*layers, nn.Linear(64, 2)).to(device)
        if device == "wgpu":
            net = net.to(memory_format=torch.channels_last)
        optimizer, x = MAKERS[name](net.parameters()), torch.randn(2, 3, 8, 7).to(device)
        for i in range(5):
            optimizer.zero_grad()
            order = torch.channels_last if i % 2 else torch.contiguous_format
            net(x.contiguous(memory_format=order)).square().sum().backward()
            if i == 2:
                for p in net.parameters():
                    p.grad = p.grad.contiguous()
            optimizer.step()
        ends.append([p.detach().cpu() for p in net.parameters()])
    assert net[0].weight.is_contiguous(memory_format=torch.channels_last)
    for got, want in zip(*ends[::-1], strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MAKERS)
def test_parameters_with_gaps_step_on_the_gpu(name: str) -> None:
    ends = []
    for device in ("cpu", "wgpu"):
        whole = torch.arange(24.0, device=device).reshape(4, 6).t() / 10
        w = whole[::2].detach().requires_grad_()
        optimizer = MAKERS[name]([w])
        for _ in range(3):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
        ends.append((w.detach().cpu(), whole.cpu()))
    for got, want in zip(*ends[::-1], strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
