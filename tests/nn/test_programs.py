"""Small training programs, whose losses PyTorch 2.13 recorded for the same seed.

``python tests/nn/test_programs.py record`` writes the losses anew; it needs PyTorch.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RECORDED = Path(__file__).parents[1] / "data" / "programs.json"
PROGRAMS: dict[str, Callable[[Any], list[float]]] = {}


def program(f: Callable[[Any], list[float]]) -> Callable[[Any], list[float]]:
    """Add a function that trains something with the library given to it."""
    PROGRAMS[f.__name__] = f
    return f


@program
def gradients_by_hand(torch: Any) -> list[float]:
    """Two layers; every gradient is written out as matrix products."""
    x, y = torch.randn(32, 200), torch.randn(32, 5)
    w1, w2 = torch.randn(200, 40), torch.randn(40, 5)
    losses = []
    for _ in range(10):
        h = x.mm(w1)
        a = h.clamp(min=0)
        p = a.mm(w2)
        losses.append((p - y).pow(2).sum().item())
        gp = 2.0 * (p - y)
        g2 = a.t().mm(gp)
        gh = gp.mm(w2.t())
        gh[h < 0] = 0
        w1 -= 1e-5 * x.t().mm(gh)
        w2 -= 1e-5 * g2
    return losses


@program
def gradients_by_autograd(torch: Any) -> list[float]:
    """The same net; parameters are updated in place outside the graph."""
    x, y = torch.randn(32, 200), torch.randn(32, 5)
    w1 = torch.randn(200, 40, requires_grad=True)
    w2 = torch.randn(40, 5, requires_grad=True)
    losses = []
    for _ in range(10):
        loss = (x.mm(w1).clamp(min=0).mm(w2) - y).pow(2).sum()
        loss.backward()
        losses.append(loss.item())
        with torch.no_grad():
            for w in (w1, w2):
                w -= 1e-5 * w.grad
                w.grad.zero_()
    return losses


@program
def custom_function(torch: Any) -> list[float]:
    """An activation with a gradient of its own that writes into a mask."""

    class Leaky(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, slope: float) -> Any:
            ctx.save_for_backward(x)
            ctx.slope = slope
            return torch.where(x > 0, x, slope * x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            g = g.clone()
            g[x < 0] *= ctx.slope
            return g, None

    x, y = torch.randn(16, 20), torch.randn(16, 3)
    w = torch.randn(20, 3, requires_grad=True)
    losses = []
    for _ in range(10):
        loss = (Leaky.apply(x @ w, 0.1) - y).square().mean()
        w.grad = None
        loss.backward()
        losses.append(loss.item())
        w.data -= 0.05 * w.grad
    return losses


@program
def sequential_adam(torch: Any) -> list[float]:
    """`nn.Sequential`, a summed loss, Adam."""
    nn = torch.nn
    x, y = torch.randn(64, 30), torch.randn(64, 4)
    model = nn.Sequential(nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(10):
        loss = nn.MSELoss(reduction="sum")(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@program
def module_with_shared_layers(torch: Any) -> list[float]:
    """A module whose depth is drawn anew each step, with one layer used several times."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(10, 16)
            self.middle = nn.Linear(16, 16)
            self.last = nn.Linear(16, 2)

        def forward(self, x: Any) -> Any:
            x = self.first(x).relu()
            for _ in range(random.randint(0, 3)):
                x = self.middle(x).clamp(min=0)
            return self.last(x)

    x, y = torch.randn(32, 10), torch.randn(32, 2)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    losses = []
    for _ in range(10):
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@program
def classifier_on_batches(torch: Any) -> list[float]:
    """A small CNN with batch normalisation over shuffled batches, cross entropy, AdamW."""
    nn = torch.nn
    images = torch.rand(48, 1, 8, 8)
    labels = torch.randint(0, 3, (48,))
    data = torch.utils.data.TensorDataset(images, labels)
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 3),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def run(name: str, torch: Any) -> list[float]:
    """Train with the seeds that were recorded."""
    random.seed(0)
    torch.manual_seed(0)
    return PROGRAMS[name](torch)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_losses_equal_recorded_ones(name: str) -> None:
    want = json.loads(RECORDED.read_text())[name]
    # Sums are added in another order than PyTorch's, and training lets differences grow.
    assert run(name, importlib.import_module("pytensorlib")) == pytest.approx(want, rel=1e-3)


if __name__ == "__main__" and sys.argv[1:] == ["record"]:
    reference = importlib.import_module("torch")
    reference.set_num_threads(1)
    recorded = {name: run(name, reference) for name in PROGRAMS}
    RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")
