"""Training steps that `make_fx` records: forward, loss and gradients of small networks."""

from __future__ import annotations

from typing import Any


def steps(torch: Any) -> dict[str, Any]:
    """Return functions and their arguments by name."""
    nn, F = torch.nn, torch.nn.functional
    found: dict[str, Any] = {}

    def step(name: str, make: Any, loss: Any, *args: Any) -> None:
        torch.manual_seed(0)
        module = make()
        state = {k: p.detach().clone().requires_grad_() for k, p in module.named_parameters()}

        def gradients(state: Any, *given: Any) -> Any:
            out = torch.func.functional_call(module, state, given)
            return torch.autograd.grad(loss(out, *given), list(state.values()))

        found[f"{name} step"] = gradients, (state, *args)

    torch.manual_seed(1)
    image, labels = torch.randn(2, 3, 8, 8), torch.tensor([1, 0])
    rows, words = torch.randn(2, 5, 8), torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])

    def of_classes(out: Any, *given: Any) -> Any:
        return F.cross_entropy(out, labels)

    def next_word(out: Any, given: Any) -> Any:
        return F.cross_entropy(out.view(-1, 6), given.view(-1))

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.second = nn.Conv2d(4, 4, 3, stride=2, padding=1, bias=False)
            self.last = nn.Linear(16, 5)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
            return self.last(F.relu(self.second(x)).flatten(1))

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 4, 3, padding=1, bias=False)
            self.a, self.b = (nn.Conv2d(4, 4, 3, padding=1, bias=False) for _ in range(2))
            self.m, self.n = nn.BatchNorm2d(4), nn.BatchNorm2d(4)
            self.relu, self.pool = nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1)
            self.last = nn.Linear(4, 5)

        def forward(self, x):
            x = self.stem(x)
            y = self.n(self.b(self.relu(self.m(self.a(x)))))
            y += x
            return self.last(torch.flatten(self.pool(self.relu(y)), 1))

    step("cnn", Plain, of_classes, image)
    step("resnet", Residual, of_classes, image)
    step("resnet eval", lambda: Residual().eval(), of_classes, image)

    class Language(nn.Module):
        def __init__(self, composed):
            super().__init__()
            self.composed = composed
            self.word, self.place = nn.Embedding(6, 8), nn.Embedding(4, 8)
            self.n, self.m = nn.LayerNorm(8), nn.LayerNorm(8)
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
            self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
            self.head = nn.Linear(8, 6, bias=False)

        def attend(self, q, k, v):
            if not self.composed:
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)
            scores = (q @ k.transpose(-2, -1)) * 0.5
            n = scores.shape[-1]
            hidden = torch.tril(torch.ones(n, n)) == 0
            return F.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ v

        def forward(self, t):
            b, n = t.shape
            x = self.word(t) + self.place(torch.arange(n))
            parts = self.qkv(self.n(x)).split(8, dim=2)
            z = self.attend(*(p.view(b, n, 2, 4).transpose(1, 2) for p in parts))
            x = x + self.out(z.transpose(1, 2).contiguous().view(b, n, 8))
            return self.head(x + self.down(F.gelu(self.up(self.m(x)))))

    step("gpt", lambda: Language(False), next_word, words)
    step("gpt composed", lambda: Language(True), next_word, words)

    def encoder(**options: Any) -> Any:
        return lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, **options)

    step("encoder", encoder(), lambda out, x: out.pow(2).mean(), rows)
    step(
        "encoder norm first",
        encoder(activation="gelu", norm_first=True),
        lambda out, x: F.mse_loss(out, x),
        rows,
    )

    class Vision(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, 8, 4, 4)
            self.first = nn.Parameter(torch.zeros(1, 1, 8))
            self.places = nn.Parameter(torch.randn(1, 5, 8))
            self.norm = nn.LayerNorm(8)
            self.heads = nn.MultiheadAttention(8, 2, batch_first=True)
            self.last = nn.Linear(8, 3)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
            z = self.norm(x)
            return self.last((x + self.heads(z, z, z, need_weights=False)[0])[:, 0])

    def smooth(out: Any, *given: Any) -> Any:
        return F.cross_entropy(out, labels, label_smoothing=0.1)

    step("vit", Vision, smooth, image)
    deep = nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 1)
    step(
        "deep",
        lambda: nn.Sequential(*deep, nn.Sigmoid()),
        lambda out, x: F.binary_cross_entropy(out, torch.ones_like(out)),
        rows,
    )
    step(
        "logits",
        lambda: nn.Linear(8, 1),
        lambda out, x: F.binary_cross_entropy_with_logits(out, torch.ones_like(out)),
        rows,
    )

    class Recurrent(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.layer, self.last = kind(8, 4, batch_first=True), nn.Linear(4, 3)

        def forward(self, x):
            out, _ = self.layer(x)
            return self.last(out[:, -1])

    step("lstm", lambda: Recurrent(nn.LSTM), of_classes, rows)
    step("gru", lambda: Recurrent(nn.GRU), of_classes, rows)
    step("rnn", lambda: Recurrent(nn.RNN), of_classes, rows)

    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.GroupNorm(2, 4)
            self.deep = nn.Conv2d(4, 8, 3, stride=2, padding=1)
            self.up, self.last = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(8, 2, 1)

        def forward(self, x):
            a = F.silu(self.norm(self.down(x)))
            b = self.up(F.leaky_relu(self.deep(a), 0.1))
            return self.last(torch.cat([a, b], 1))

    class Resized(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 2, 1)

        def forward(self, x):
            x = F.avg_pool2d(self.first(x), 2)
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            return self.last(x)

    step("unet", Unet, lambda out, x: F.cross_entropy(out, (x[:, 0] > 0).long()), image)
    step("resized", Resized, lambda out, x: F.l1_loss(out, x[:, :2]), image)

    # Without types: those of a result are in PyTorch's code.
    def sgd(state, x):
        def loss(state):
            return F.mse_loss(F.linear(x, state["w"], state["b"]), torch.zeros(2, 3))

        slopes = torch.func.grad(loss)(state)
        return {k: p - 0.1 * slopes[k] for k, p in state.items()}

    def adam(p, g, m, v):
        m, v = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
        return p - 0.01 * m / (v.sqrt() + 1e-8), m, v

    def backward(x, w):
        w = w.detach().requires_grad_()
        (x @ w).relu().sum().backward()
        return w.grad

    def dropped(x):
        return F.dropout(x, 0.5, True) * 2

    x, four = torch.randn(2, 8), torch.randn(4)
    found["sgd"] = sgd, ({"w": torch.randn(3, 8), "b": torch.randn(3)}, x)
    found["adam"] = adam, tuple(torch.randn(4).abs() for _ in range(4))
    found["backward"] = backward, (torch.randn(3, 4), torch.randn(4, 2))
    found["dropout"] = dropped, (four,)
    found["dropout grad"] = (
        lambda x: torch.autograd.grad(dropped(x).sum(), x),
        (four.clone().requires_grad_(),),
    )
    heads = nn.MultiheadAttention(8, 2, batch_first=True)
    found["attention weights"] = lambda x: heads(x, x, x)[0], (rows,)
    return found
