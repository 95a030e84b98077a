"""A script as users write it. Type checkers read it; the tests also run it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import pytensorlib as torch
import pytensorlib.nn.functional as F
from pytensorlib import Tensor, nn, optim
from pytensorlib.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, StepLR
from pytensorlib.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Spiral(Dataset[tuple[Tensor, int]]):
    """Points of two spirals."""

    def __init__(self, count: int) -> None:
        angle = torch.linspace(0, 6, count)
        self.points = torch.stack([angle.cos() * angle, angle.sin() * angle], dim=1)
        self.points[1::2] *= -1
        self.labels = torch.arange(count) % 2

    def __len__(self) -> int:
        return self.points.shape[0]

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.points[index], int(self.labels[index])


class Block(nn.Module):
    """A residual block."""

    scale: Tensor

    def __init__(self, width: int, act: Callable[[Tensor], Tensor] = F.relu) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, width)
        self.gain = nn.Parameter(torch.ones(width))
        self.act = act
        self.register_buffer("scale", torch.tensor(0.5))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x + self.scale * self.gain * self.act(self.fc(self.norm(x)))


class Net(nn.Module):
    """A small classifier."""

    def __init__(self, width: int = 16, depth: int = 2, dropout: float = 0.1) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(2, width), nn.GELU(), nn.Dropout(dropout))
        self.blocks = nn.ModuleList([Block(width, F.silu) for _ in range(depth)])
        self.head = nn.Linear(width, 2, bias=True)
        nn.init.kaiming_normal_(self.head.weight, nonlinearity="relu")
        if self.head.bias is not None:
            nn.init.zeros_(self.head.bias)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h: Tensor = self.stem(x)
        for block in self.blocks:
            h = block(h)
        h = F.dropout(h, p=0.1, training=self.training)
        if mask is not None:
            h = h.masked_fill(mask, 0.0)
        return self.head(h)


class Attention(nn.Module):
    """Attention written with einsum."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, d // self.heads).unbind(dim=2)
        weight = torch.einsum("bqhd,bkhd->bhqk", q, k) / d**0.5
        future = torch.ones(n, n, dtype=torch.bool).triu(1)
        weight = weight.masked_fill(future, float("-inf")).softmax(dim=-1)
        return torch.einsum("bhqk,bkhd->bqhd", weight, v).flatten(2)


def arithmetic(x: Tensor, y: Tensor) -> Tensor:
    """Use operators, indexing and the ways to make tensors."""
    z = 2 * x + y / 3 - 1
    z = -(z**2) @ y.T + (x > 0).float() @ y.mT
    z[0] = 1.0
    z[:, 1:] += z[..., :-1].detach()
    z = z[z.argsort(dim=0)[:, 0]]
    values, indices = z.max(dim=1)
    best = torch.topk(z, k=1, dim=-1)
    total = torch.cat([values, best.values.squeeze(-1), indices.to(torch.float32)])
    first, *rest = torch.split(total, 2)
    total = torch.where(total.isnan(), torch.zeros_like(total), total).clamp(min=-1e3, max=1e3)
    array: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = total.numpy()
    assert len(rest) + first.numel() > 0
    return torch.from_numpy(array).view(1, -1).permute(1, 0).sum(0)


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader[tuple[Tensor, int]]) -> float:
    """Return the share of right answers."""
    model.eval()
    right = seen = 0
    for x, y in loader:
        right += int((model(x).argmax(dim=1) == y).sum().item())
        seen += y.size(0)
    return right / seen


@torch.enable_grad()
def norms(model: nn.Module) -> dict[str, float]:
    """Return the norm of each parameter."""
    return {name: float(p.norm()) for name, p in model.named_parameters()}


@torch.inference_mode()
def predict(model: nn.Module, x: Tensor) -> Tensor:
    """Return the classes of a batch."""
    answer: Tensor = model(x)
    return answer.argmax(dim=1)


def endless(loader: DataLoader[tuple[Tensor, int]]) -> Iterator[tuple[Tensor, Tensor]]:
    """Repeat a loader."""
    while True:
        yield from loader


def train(
    model: Net, loader: DataLoader[tuple[Tensor, int]], epochs: int, device: torch.device
) -> list[float]:
    """Train and return the loss of every epoch."""
    optimizer = optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-3)
    schedule = CosineAnnealingLR(optimizer, T_max=epochs)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    history: list[float] = []
    for _ in range(epochs):
        model.train()
        total = torch.zeros((), device=device)
        for x, y in loader:
            x, y = x.to(device), y.to(device, non_blocking=True)
            loss: Tensor = criterion(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            total += loss.detach() * len(x)
        schedule.step()
        history.append(total.item())
    return history


def closure_step(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Take one step of L-BFGS."""
    optimizer = optim.LBFGS(model.parameters(), max_iter=2)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return float(optimizer.step(closure))


def groups(model: Net) -> optim.Optimizer:
    """Return an optimizer with two groups and a schedule on it."""
    optimizer = optim.SGD(
        [
            {"params": model.stem.parameters()},
            {"params": [p for n, p in model.named_parameters() if "stem" not in n], "lr": 1e-3},
        ],
        lr=1e-2,
        momentum=0.9,
    )
    StepLR(optimizer, step_size=1, gamma=0.5)
    LambdaLR(optimizer, lr_lambda=lambda epoch: 0.9**epoch)
    for group in optimizer.param_groups:
        group["lr"] *= 2
    return optimizer


class Square(torch.autograd.Function):
    """A function with its own gradient."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * g


def main() -> None:
    """Train, save, load and look at gradients."""
    torch.manual_seed(0)
    device = torch.device("cpu")
    data = Spiral(64)
    train_set, test_set = random_split(data, [48, 16])
    loader = DataLoader(train_set, batch_size=16, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=16)
    model = Net().to(device)
    print(model, sum(p.numel() for p in model.parameters() if p.requires_grad))
    history = train(model, loader, 2, device)
    x, y = next(endless(loader))
    print(history, accuracy(model, test_loader), closure_step(model, x, y), predict(model, x).shape)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.pt"
        torch.save({"model": model.state_dict(), "epoch": 2}, path)
        state = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
    lengths: dict[str, float] = norms(model)
    print(sorted(lengths))
    optimizer = groups(model)
    optimizer.load_state_dict(optimizer.state_dict())

    pairs = TensorDataset(torch.randn(8, 3), torch.randint(0, 2, (8,)))
    for features, target in DataLoader(pairs, batch_size=4):
        loss = F.nll_loss(F.log_softmax(features[:, :2], dim=-1), target)
        assert loss.item() > 0
    out = Attention(8, 2)(torch.rand(2, 3, 8))
    assert out.shape == torch.Size([2, 3, 8])
    assert out.size(-1) == 8 and out.dim() == 3

    w = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        w += 0.5
    (Square.apply(w).sum() + w.prod()).backward()
    assert w.grad is not None
    print(w.grad.tolist(), w.grad.norm().item())
    (g,) = torch.autograd.grad((w**2).sum(), w, create_graph=True)
    with torch.enable_grad(), torch.set_grad_enabled(True):
        print(g.requires_grad, g.dtype == torch.float32, w.is_leaf)
    print(arithmetic(torch.randn(3, 2), torch.randn(3, 2)))
    nhwc = torch.rand(1, 4, 4, 3).permute(0, 3, 1, 2).contiguous()
    pooled = F.max_pool2d(F.conv2d(nhwc, torch.rand(2, 3, 3, 3), padding=1), 2)
    grown = F.interpolate(pooled, scale_factor=2.0, mode="bilinear", align_corners=False)
    print(F.pad(grown, (1, 1)).shape, torch.linalg.norm(grown), F.one_hot(torch.tensor([1]), 3))
    sequence, (hidden, _) = nn.LSTM(3, 4, batch_first=True)(torch.rand(2, 5, 3))
    assert sequence.shape[:2] == (2, 5) and hidden.ndim == 3


if __name__ == "__main__":
    main()
