"""More training steps, and decoding: those that have much around their products."""

from types import ModuleType
from typing import Any

from models import Step, train


def resnet(
    t: ModuleType,
    batch: int = 16,
    side: int = 32,
    widths: tuple[int, ...] = (32, 64, 128, 256),
    depth: int = 2,
) -> Step:
    """Return a step of a ResNet-18 for small images, half as wide, with SGD."""
    nn, relu = t.nn, t.nn.functional.relu

    class Block(nn.Module):
        def __init__(self, inside: int, out: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(out)
            self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(out)
            self.short: Any = nn.Identity()
            if stride > 1 or inside != out:
                short = nn.Conv2d(inside, out, 1, stride, bias=False)
                self.short = nn.Sequential(short, nn.BatchNorm2d(out))

        def forward(self, x: Any) -> Any:
            h = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
            return relu(h + self.short(x))

    layers: list[Any] = [
        nn.Conv2d(3, widths[0], 3, padding=1, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
    ]
    inside = widths[0]
    for i, width in enumerate(widths):
        for j in range(depth):
            layers.append(Block(inside, width, 2 if i and not j else 1))
            inside = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 10)]
    model = nn.Sequential(*layers)
    x, y = t.randn(batch, 3, side, side), t.randint(0, 10, (batch,))
    return train(t, model, x, y, t.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))


def resnet50(t: ModuleType, batch: int = 2, side: int = 64) -> Step:
    """Return a step of a ResNet-50 with SGD."""
    nn, relu = t.nn, t.nn.functional.relu

    class Block(nn.Module):
        def __init__(self, inside: int, width: int, stride: int) -> None:
            super().__init__()
            out = 4 * width
            self.conv1 = nn.Conv2d(inside, width, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.conv3 = nn.Conv2d(width, out, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(out)
            self.short: Any = nn.Identity()
            if stride > 1 or inside != out:
                short = nn.Conv2d(inside, out, 1, stride, bias=False)
                self.short = nn.Sequential(short, nn.BatchNorm2d(out))

        def forward(self, x: Any) -> Any:
            h = relu(self.bn1(self.conv1(x)))
            h = relu(self.bn2(self.conv2(h)))
            return relu(self.bn3(self.conv3(h)) + self.short(x))

    layers: list[Any] = [
        *(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()),
        nn.MaxPool2d(3, 2, 1),
    ]
    inside = 64
    for i, (width, depth) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for j in range(depth):
            layers.append(Block(inside, width, 2 if i and not j else 1))
            inside = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000)]
    model = nn.Sequential(*layers)
    x, y = t.randn(batch, 3, side, side), t.randint(0, 1000, (batch,))
    return train(t, model, x, y, t.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))


def unet(t: ModuleType, batch: int = 4, side: int = 32, width: int = 32) -> Step:
    """Return a step of a small diffusion network: group norm, SiLU, convolution, up and down."""
    nn, silu = t.nn, t.nn.functional.silu

    class Block(nn.Module):
        def __init__(self, inside: int, out: int) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.GroupNorm(8, inside), nn.GroupNorm(8, out)
            self.conv1 = nn.Conv2d(inside, out, 3, padding=1)
            self.conv2 = nn.Conv2d(out, out, 3, padding=1)
            self.time = nn.Linear(4 * width, out)
            self.short: Any = nn.Conv2d(inside, out, 1) if inside != out else nn.Identity()

        def forward(self, x: Any, e: Any) -> Any:
            h = self.conv1(silu(self.norm1(x))) + self.time(silu(e))[:, :, None, None]
            return self.conv2(silu(self.norm2(h))) + self.short(x)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            w = width
            self.embed = nn.Sequential(nn.Linear(w, 4 * w), nn.SiLU(), nn.Linear(4 * w, 4 * w))
            self.first = nn.Conv2d(3, w, 3, padding=1)
            self.a, self.b, self.c = Block(w, w), Block(w, 2 * w), Block(2 * w, 2 * w)
            self.d, self.e, self.f = Block(4 * w, 2 * w), Block(3 * w, w), Block(w, w)
            self.down = nn.Conv2d(w, w, 3, 2, 1)
            self.up = nn.Upsample(scale_factor=2)
            self.norm, self.last = nn.GroupNorm(8, w), nn.Conv2d(w, 3, 3, padding=1)

        def forward(self, x: Any, e: Any) -> Any:
            e = self.embed(e)
            high = self.a(self.first(x), e)
            low = self.b(self.down(high), e)
            low = self.d(t.cat([self.c(low, e), low], 1), e)
            high = self.f(self.e(t.cat([self.up(low), high], 1), e), e)
            return self.last(silu(self.norm(high)))

    model = Model()
    x, e = t.randn(batch, 3, side, side), t.randn(batch, width)
    y = t.randn(batch, 3, side, side)
    optimizer = t.optim.AdamW(model.parameters(), lr=1e-4)
    return train(t, lambda x: model(x, e), x, y, optimizer, t.nn.MSELoss())


def mlp(t: ModuleType, batch: int = 64, width: int = 256, depth: int = 4) -> Step:
    """Return a step of residual layers with layer norm, GELU and dropout, with Adam."""
    nn = t.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(0.1)
            self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

        def forward(self, x: Any) -> Any:
            h = self.drop(nn.functional.gelu(self.up(self.norm(x))))
            return x + self.drop(self.down(h))

    blocks = [Block() for _ in range(depth)]
    model = nn.Sequential(nn.Linear(64, width), *blocks, nn.LayerNorm(width), nn.Linear(width, 10))
    x, y = t.randn(batch, 64), t.randint(0, 10, (batch,))
    return train(t, model, x, y, t.optim.Adam(model.parameters()))


class Decoding:
    """A loop that makes tokens one by one with a cache of fixed length: one step is one loop."""

    def __init__(
        self, t: ModuleType, width: int = 128, depth: int = 4, heads: int = 4, length: int = 64
    ) -> None:
        nn, functional = t.nn, t.nn.functional
        vocabulary = 512
        size = width // heads

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
                self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
                self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
                self.register_buffer("keys", t.zeros(1, heads, length, size))
                self.register_buffer("values", t.zeros(1, heads, length, size))

            def forward(self, x: Any, at: Any, mask: Any) -> Any:
                qkv = self.qkv(self.ln1(x)).view(1, 1, 3, heads, size).permute(2, 0, 3, 1, 4)
                q, k, v = qkv.unbind(0)
                self.keys.index_copy_(2, at, k)
                self.values.index_copy_(2, at, v)
                a = functional.scaled_dot_product_attention(q, self.keys, self.values, mask)
                x = x + self.out(a.transpose(1, 2).reshape(1, 1, width))
                return x + self.down(functional.gelu(self.up(self.ln2(x))))

        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.tokens, self.places = (
                    nn.Embedding(vocabulary, width),
                    nn.Embedding(length, width),
                )
                self.blocks = nn.ModuleList(Block() for _ in range(depth))
                self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

            def forward(self, token: Any, at: Any) -> Any:
                x = self.tokens(token) + self.places(at)
                mask = t.arange(length)[None, :] <= at
                for block in self.blocks:
                    x = block(x, at, mask)
                return self.head(self.ln(x)).argmax(-1)

        self.t, self.length = t, length
        self.model = Model().eval()

    def with_step(self, wrap: Any) -> Step:
        """Return the loop whose steps are wrapped."""
        t = self.t
        step = wrap(self.model)
        ends = [t.tensor([i]) for i in range(self.length)]

        def loop() -> object:
            token = t.zeros(1, 1, dtype=t.int64)
            with t.no_grad():
                for at in ends:
                    token = step(token, at)
            return token

        return loop

    def __call__(self) -> object:
        """Run the loop as it is."""
        return self.with_step(lambda f: f)()


def decoding(t: ModuleType) -> Any:
    """Return a decoding loop of a small transformer at batch 1."""
    return Decoding(t)
