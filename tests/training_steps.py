"""Models and steps of training that are recorded, compiled and replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn import functional as F


def training(net: Any, optimizer: Any, scaler: Any = None) -> Any:
    """Return a step of training."""

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return loss.detach()

    return step


class Text(nn.Module):
    """Predicts the next of 30 characters, by an LSTM or a small GPT."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.letters, self.out = kind, nn.Embedding(30, 16), nn.Linear(16, 30)
        if kind == "lstm":
            self.body: Any = nn.LSTM(16, 16, 2, batch_first=True, dropout=0.1)
        else:
            layer = nn.TransformerEncoderLayer(
                16, 4, 32, dropout=0.1, batch_first=True, norm_first=True, activation="gelu"
            )
            self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.places = nn.Parameter(torch.randn(10, 16) * 0.1)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(10))

    def forward(self, x: Any) -> Any:
        h = self.letters(x) + self.places
        h = self.body(h)[0] if self.kind == "lstm" else self.body(h, self.mask, is_causal=True)
        return self.out(h).flatten(0, 1)


def model(kind: str) -> tuple[Any, Any, Callable[[], tuple[Any, Any]]]:
    """Return a network, an optimizer, and a function that draws a batch."""
    optim = torch.optim
    if kind == "mlp":
        net: Any = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 5))
        batch = lambda: (torch.randn(16, 20), torch.randint(0, 5, (16,)))  # noqa: E731
        return net, optim.SGD(net.parameters(), lr=0.1, momentum=0.9), batch
    if kind == "cnn":
        net = nn.Sequential(
            *(nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Dropout2d(0.2), nn.Flatten(), nn.Linear(96, 10)),
        )
        batch = lambda: (torch.randn(8, 1, 8, 8), torch.randint(0, 10, (8,)))  # noqa: E731
        return net, optim.Adam(net.parameters(), lr=0.01), batch
    net = Text(kind)
    batch = lambda: (torch.randint(0, 30, (4, 10)), torch.randint(0, 30, (40,)))  # noqa: E731
    kinds = {"lstm": optim.RMSprop, "gpt": optim.AdamW}
    return net, kinds[kind](net.parameters(), lr=0.01), batch


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.1, weight_decay=0.01),
    "asgd averaged": lambda p: torch.optim.ASGD(p, lr=0.1, t0=6),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.05),
    "nadam decayed": lambda p: torch.optim.NAdam(
        p, lr=0.05, weight_decay=0.1, decoupled_weight_decay=True
    ),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.05),
    "radam decayed": lambda p: torch.optim.RAdam(
        p, lr=0.05, weight_decay=0.1, decoupled_weight_decay=True
    ),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=0.05, weight_decay=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05, lr_decay=0.1, weight_decay=0.01),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.05),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.5, weight_decay=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.05, weight_decay=0.01),
    "rmsprop centered": lambda p: torch.optim.RMSprop(p, lr=0.05, momentum=0.5, centered=True),
    "muon": lambda p: torch.optim.Muon([t for t in p if t.ndim == 2], lr=0.05),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
}


def network(device: str, dtype: Any = torch.float32) -> Any:
    """Return a small classifier, which has a parameter without dimensions."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 4), nn.PReLU(), nn.Linear(4, 3))
    net.register_parameter("unused", nn.Parameter(torch.ones(())))
    return net.to(device, dtype)


def batches(device: str, n: int, dtype: Any = torch.float32) -> list[Any]:
    """Return batches of one shape."""
    torch.manual_seed(1)
    return [
        (torch.randn(6, 5).to(device, dtype), torch.randint(0, 3, (6,)).to(device))
        for _ in range(n)
    ]
