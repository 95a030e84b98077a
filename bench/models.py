"""Training steps, the same program for either library: each returns a callable that makes one."""

import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

Step = Callable[[], object]


def train(t: ModuleType, model: Any, x: Any, y: Any, optimizer: Any, loss_of: Any = None) -> Step:
    """Return: zero the gradients, forward, loss, backward, one step of the optimizer."""
    loss_of = loss_of or t.nn.CrossEntropyLoss()

    def step() -> object:
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def recorded(t: ModuleType, function: Any) -> Any:
    """Return the function, as `torch.compile` makes it where that needs no compiler."""
    return t.compile(function) if hasattr(t, "graph") else function


def chain(t: ModuleType) -> Callable[..., Any]:
    """Return a function of pointwise operations and their sum."""
    return lambda x, a, b, c: (t.nn.functional.gelu(x * a + b) * c).sum()


def chain_gradient(t: ModuleType, x: Any, a: Any, b: Any, c: Any) -> Step:
    """Return a step that computes the chain and its gradient."""
    f = chain(t)

    def step() -> object:
        x.grad = None
        loss = f(x, a, b, c)
        loss.backward()
        return loss.detach()

    return step


def mlp(
    t: ModuleType,
    sizes: tuple[int, ...],
    batch: int,
    optimizer: str,
    wrap: Callable[[Any], Any] = lambda model: model,
    **options: Any,
) -> Step:
    """Return a step of a chain of linear layers with ReLU between them."""
    layers: list[Any] = []
    for a, b in pairwise(sizes):
        layers += [t.nn.Linear(a, b), t.nn.ReLU()]
    model = wrap(t.nn.Sequential(*layers[:-1]))
    made = getattr(t.optim, optimizer)(model.parameters(), **options)
    x, y = t.randn(batch, sizes[0]), t.randint(0, sizes[-1], (batch,))
    return train(t, model, x, y, made)


def cnn(t: ModuleType, batch: int = 64) -> Step:
    """Return a step of the usual digits network: two convolutions, two linear layers, Adam."""
    nn = t.nn
    model = nn.Sequential(
        *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)),
    )
    x, y = t.randn(batch, 1, 28, 28), t.randint(0, 10, (batch,))
    return train(t, model, x, y, t.optim.Adam(model.parameters()))


def residual(t: ModuleType, batch: int = 32, channels: int = 64, side: int = 28) -> Step:
    """Return a step of one residual block with batch normalisation, pooled into a classifier."""
    nn = t.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.head = nn.Linear(channels, 10)

        def forward(self, x: Any) -> Any:
            h = nn.functional.relu(self.bn1(self.conv1(x)))
            h = nn.functional.relu(self.bn2(self.conv2(h)) + x)
            return self.head(self.pool(h).flatten(1))

    model = Block()
    x, y = t.randn(batch, channels, side, side), t.randint(0, 10, (batch,))
    return train(t, model, x, y, t.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))


def gpt(
    t: ModuleType,
    batch: int = 8,
    length: int = 128,
    width: int = 256,
    depth: int = 4,
    wrap: Callable[[Any], Any] = lambda model: model,
) -> Step:
    """Return a step of a decoder of 5.3 million parameters with AdamW."""
    nn = t.nn
    vocabulary, heads = 4096, 4

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, s, c = x.shape
            qkv = self.qkv(self.ln1(x)).view(b, s, 3, heads, c // heads).permute(2, 0, 3, 1, 4)
            q, k, v = qkv.unbind(0)
            a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, s, c))
            return x + self.down(nn.functional.gelu(self.up(self.ln2(x))))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.places = nn.Parameter(t.zeros(length, width))
            self.blocks = nn.Sequential(*(Block() for _ in range(depth)))
            self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, x: Any) -> Any:
            return self.head(self.ln(self.blocks(self.tokens(x) + self.places)))

    model = wrap(Model())
    x = t.randint(0, vocabulary, (batch, length))
    y = t.randint(0, vocabulary, (batch * length,))
    loss = nn.CrossEntropyLoss()
    made = t.optim.AdamW(model.parameters(), lr=3e-4)
    return train(t, model, x, y, made, lambda out, y: loss(out.view(-1, vocabulary), y))


def lstm(t: ModuleType, batch: int = 32, length: int = 20, width: int = 64) -> Step:
    """Return a step of a recurrent layer with a classifier of its last output, AdamW."""
    nn = t.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.LSTM(width, width, batch_first=True), nn.Linear(width, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.layer(x)[0][:, -1])

    model = Model()
    x, y = t.randn(batch, length, width), t.randint(0, 10, (batch,))
    return train(t, model, x, y, t.optim.AdamW(model.parameters()))


def stepper(t: ModuleType, optimizer: str, shapes: list[tuple[int, ...]], **options: Any) -> Step:
    """Return `optimizer.step` over parameters of these shapes that have gradients."""
    params = [t.nn.Parameter(t.randn(*s)) for s in shapes]
    for p in params:
        p.grad = t.randn_like(p) * 1e-3
    return getattr(t.optim, optimizer)(params, **options).step


def epoch(t: ModuleType, size: int = 8192, batch: int = 64) -> Step:
    """Return: read every batch of a shuffled TensorDataset of rows of 100 numbers."""
    data = __import__(f"{t.__name__}.utils.data", fromlist=["x"])
    rows = data.TensorDataset(t.randn(size, 100), t.randint(0, 10, (size,)))
    loader = data.DataLoader(rows, batch_size=batch, shuffle=True)

    def step() -> object:
        return [None for _ in loader]

    return step


def saver(t: ModuleType, numel: int, parts: int) -> tuple[Step, Step, Step]:
    """Return save, load and mapped load of a dictionary of `parts` tensors, `numel` in all."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "x.pt"
    state = {f"layer{i}.weight": t.randn(numel // parts) for i in range(parts)}
    t.save(state, path)

    def save() -> object:
        return t.save(state, path), folder

    return save, lambda: t.load(path), lambda: t.load(path, mmap=True)
