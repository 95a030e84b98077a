"""Recorded steps on a GPU give the bits of the steps, random numbers included."""

from __future__ import annotations

from typing import Any

import pytest
from training_steps import model

import pytensorlib as torch
from pytensorlib import wgpu
from pytensorlib.nn import functional as F

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("kind", ["mlp", "cnn", "lstm", "gpt"])
def test_training_recorded_on_a_gpu_has_the_bits_of_training(kind: str, whole: bool) -> None:
    def run(recorded: bool) -> list[Any]:
        torch.manual_seed(0)
        net, optimizer, batch = model(kind)
        net.to("wgpu")
        optimizer = type(optimizer)(net.parameters(), lr=0.01)
        call = torch.compile(net) if recorded and not whole else net

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(call(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        train = torch.graph(step, fullgraph=True) if recorded and whole else step
        losses = [train(*(t.to("wgpu") for t in batch())) for _ in range(5)]
        if recorded and whole:
            assert len(train.programs) == 1
        left = [*losses, *net.state_dict().values(), *(p.grad for p in net.parameters())]
        return [t.cpu() for t in left]

    for a, b in zip(run(False), run(True), strict=True):
        assert torch.equal(a, b)
