"""Training steps of a GPT, a residual network and a UNet, and the memory that they take.

``python -m pytensorlib --gpu-as cuda tests/gpu_memory.py`` prints as JSON, for each in bytes, what
its parameters, buffers, gradients and optimizer's state take, and the peak of a step. Under
PyTorch ``python tests/gpu_memory.py`` prints what it saves for the backward pass of each, on the
CPU: the storages that `torch.autograd.graph.saved_tensors_hooks` sees, each once, without those of
parameters and buffers, which are there anyway.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, HEADS, WORDS, LENGTH = 128, 4, 256, 64


class Transformer(nn.Module):
    """A block with fused attention and a fourfold width between its linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        parts = self.qkv(self.before(x)).chunk(3, -1)
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.after(x))))


class GPT(nn.Module):
    """Two blocks of a transformer between embeddings and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Transformer(), Transformer())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids: Any) -> Any:
        places = torch.arange(LENGTH, device=ids.device)
        return self.head(self.norm(self.blocks(self.token(ids) + self.place(places))))


class Residual(nn.Module):
    """Two convolutions with batch norms, and what leads past them."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outside) for _ in range(2))
        self.short = nn.Sequential()
        if stride != 1:
            short = nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.short = nn.Sequential(short, nn.BatchNorm2d(outside))

    def forward(self, x: Any) -> Any:
        y = F.relu(self.norms[0](self.first(x)), inplace=True)
        return F.relu(self.norms[1](self.second(y)) + self.short(x), inplace=True)


class Timed(nn.Module):
    """Two convolutions with group norms, which are told the time."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(8, inside), nn.GroupNorm(8, outside)])
        self.first = nn.Conv2d(inside, outside, 3, padding=1)
        self.second = nn.Conv2d(outside, outside, 3, padding=1)
        self.time = nn.Linear(32, outside)
        self.short = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x: Any, t: Any) -> Any:
        y = self.first(F.silu(self.norms[0](x))) + self.time(F.silu(t))[:, :, None, None]
        return self.second(F.silu(self.norms[1](y))) + self.short(x)


class Attention(nn.Module):
    """Attention of the places of an image to each other."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.qkv = nn.GroupNorm(8, width), nn.Conv2d(width, 3 * width, 1)
        self.out = nn.Conv2d(width, width, 1)

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(self.norm(x)).flatten(2).transpose(1, 2)[:, None].chunk(3, -1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y[:, 0].transpose(1, 2).unflatten(2, x.shape[2:]))


class UNet(nn.Module):
    """Two levels of images, with attention at the lower one."""

    def __init__(self) -> None:
        super().__init__()
        self.start, self.end = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 3, 3, padding=1)
        self.high, self.low, self.middle = Timed(32, 32), Timed(32, 64), Timed(64, 64)
        self.down, self.attend = nn.Conv2d(32, 32, 3, 2, 1), Attention(64)
        self.back, self.last = Timed(128, 32), Timed(64, 32)

    def forward(self, x: Any, t: Any) -> Any:
        one = self.high(self.start(x), t)
        two = self.low(self.down(one), t)
        y = self.middle(self.attend(two), t)
        y = F.interpolate(self.back(torch.cat([y, two], 1), t), scale_factor=2)
        return self.end(self.last(torch.cat([y, one], 1), t))


def gpt() -> tuple[nn.Module, Callable[[], Any]]:
    """Return the network and what gives its loss, of 8 texts."""
    net, ids = GPT().to(DEVICE), torch.randint(0, WORDS, (8, LENGTH + 1)).to(DEVICE)
    return net, lambda: F.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def resnet() -> tuple[nn.Module, Callable[[], Any]]:
    """Return the network and what gives its loss, of 8 images."""
    stem = [nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True)]
    blocks = [Residual(32, 32, 1), Residual(32, 64, 2), Residual(64, 64, 1)]
    ends = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    net = nn.Sequential(*stem, nn.MaxPool2d(2), *blocks, *ends).to(DEVICE)
    x, y = torch.randn(8, 3, 32, 32).to(DEVICE), torch.arange(8).to(DEVICE)
    return net, lambda: F.cross_entropy(net(x), y)


def unet() -> tuple[nn.Module, Callable[[], Any]]:
    """Return the network and what gives its loss, of 4 images."""
    sizes = (4, 3, 16, 16), (4, 32), (4, 3, 16, 16)
    x, t, noise = (torch.randn(*size).to(DEVICE) for size in sizes)
    net = UNet().to(DEVICE)
    return net, lambda: F.mse_loss(net(x, t), noise)


MODELS = {"gpt": gpt, "resnet": resnet, "unet": unet}


def saved(name: str) -> int:
    """Return the bytes that are saved for the backward pass of a model."""
    net, loss = MODELS[name]()
    own = {t.untyped_storage().data_ptr() for t in [*net.parameters(), *net.buffers()]}
    found: dict[int, int] = {}
    alive = []  # no memory may be used again while it is counted

    def pack(t: Any) -> Any:
        alive.append(t)
        storage = t.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage.nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss()
    return sum(found.values())


def taken(name: str) -> dict[str, int]:
    """Return what a model and its optimizer take between steps, and the peak of a step."""
    before = torch.cuda.memory_allocated()
    net, loss = MODELS[name]()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(3):  # the first ones make the state and compile kernels
        torch.cuda.reset_peak_memory_stats()
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    peak = torch.cuda.max_memory_allocated() - before
    state = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    held = [*net.parameters(), *net.buffers(), *state]
    held += [p.grad for p in net.parameters() if p.grad is not None]
    return {"held": sum(t.numel() * t.element_size() for t in held), "peak": peak}


if __name__ == "__main__":
    count: Callable[[str], Any] = saved if DEVICE == "cpu" else taken
    print(json.dumps({name: count(name) for name in MODELS}))
