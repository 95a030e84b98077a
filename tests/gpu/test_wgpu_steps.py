"""How many kernels a training step launches on the GPU, and that it trains as on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from child import run

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.nn import functional as F

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")


class Block(nn.Module):
    """A block of a GPT."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x: Any) -> Any:
        b, t, d = x.shape
        parts = self.qkv(self.ln1(x)).split(d, dim=2)
        q, k, v = (p.view(b, t, self.heads, d // self.heads).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    """A small GPT over characters."""

    def __init__(self, vocab: int = 65, d: int = 64, layers: int = 4, length: int = 32) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(vocab, d), nn.Embedding(length, d)
        self.blocks = nn.Sequential(*[Block(d, 4) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)
        self.register_buffer("places", torch.arange(length), persistent=False)

    def forward(self, x: Any) -> Any:
        h = self.blocks(self.token(x) + self.place(self.places))
        return self.head(self.norm(h)).flatten(0, 1)


class Recurrent(nn.Module):
    """An LSTM that names the class of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def data(kind: str) -> tuple[Any, Any]:
    """Return inputs and classes of one batch."""
    g = torch.Generator().manual_seed(5)
    if kind == "gpt":
        text = torch.randint(0, 65, (4, 33), generator=g)
        return text[:, :-1].contiguous(), text[:, 1:].reshape(-1)
    shape = {"mlp": (32, 784), "cnn": (16, 1, 8, 8), "lstm": (8, 20, 16)}[kind]
    return torch.randn(shape, generator=g), torch.randint(0, 10, shape[:1], generator=g)


# The same of a step that `torch.graph` recorded or `torch.compile` matched, once it is run again.
RECORDED = {"mlp": 13, "cnn": 29, "gpt": 101, "lstm": 57}
STEPS: dict[str, tuple[Callable[[], nn.Module], Callable[..., Any], int]] = {
    "mlp": (mlp, lambda p: torch.optim.SGD(p, lr=0.05), 14),
    "cnn": (cnn, lambda p: torch.optim.SGD(p, lr=0.05), 30),
    "gpt": (GPT, lambda p: torch.optim.AdamW(p, lr=1e-3), 101),
    "lstm": (Recurrent, lambda p: torch.optim.AdamW(p, lr=1e-3), 61),
}


def batches(kind: str, n: int) -> list[tuple[Any, Any]]:
    """Return batches to learn from: digits, their rows in turn, or this file's characters."""
    g = torch.Generator().manual_seed(6)
    if kind == "gpt":
        text = Path(__file__).read_text()
        known = sorted(set(text))[:65]
        numbers = torch.tensor([known.index(c) if c in known else 0 for c in text])
        starts = torch.randint(0, len(text) - 33, (n, 4), generator=g).tolist()
        cut = [torch.stack([numbers[i : i + 33] for i in row]) for row in starts]
        return [(t[:, :-1].contiguous(), t[:, 1:].reshape(-1)) for t in cut]
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32) / 16
    classes = torch.tensor(digits.target)
    if kind == "lstm":
        # Eight rows of eight, as twenty steps of sixteen numbers.
        images = F.pad(images.reshape(-1, 4, 16), (0, 0, 8, 8))
    else:
        images = images[:, None]
    picks = [torch.randint(0, len(classes), (32,), generator=g) for _ in range(n)]
    return [(images[i], classes[i]) for i in picks]


def train(
    kind: str,
    device: str,
    n: int,
    given: list[tuple[Any, Any]] | None = None,
    way: Callable[..., Any] | None = None,
) -> tuple[list[float], list[int]]:
    """Train on one batch, or on those given; return losses and the dispatches of each step."""
    make, make_optimizer, _ = STEPS[kind]
    torch.manual_seed(0)
    model = make().to(device)
    given = [(x.to(device), y.to(device)) for x, y in given or [data(kind)]]
    optimizer = make_optimizer(model.parameters())

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    call = way(step) if way else step
    losses, counts = [], []
    for i in range(n):
        before = wgpu.memory_stats()["dispatches"]
        losses.append(call(*given[i % len(given)]))
        counts.append(wgpu.memory_stats()["dispatches"] - before)
    assert way is not torch.graph or call.programs[0].kept > 0
    return [float(v) for v in losses], counts


@pytest.mark.parametrize("kind", STEPS)
def test_training_step_dispatches_are_few_and_losses_equal_cpu(kind: str) -> None:
    wgpu.set_fallback_error(True)
    try:
        got, counts = train(kind, "wgpu", 5)
    finally:
        wgpu.set_fallback_error(False)
    assert got == pytest.approx(train(kind, "cpu", 5)[0], abs=1e-3)
    # In one of the first three an adapter that is no software times the ways of each product.
    assert max(counts[3:]) <= STEPS[kind][2]


FIRST = f"""
    import sys
    sys.path[:0] = {[str(Path(__file__).parents[k]) for k in (0, 1)]!r}
    from test_wgpu_steps import train, wgpu
    train("gpt", "wgpu", 1)
    stats = wgpu.memory_stats()
    print(stats["pipelines"], stats["shader_bytes"])
"""


def test_first_step_of_a_gpt_compiles_few_and_short_kernels() -> None:
    if not wgpu.get_device_properties()["software"]:
        pytest.skip("cards have loops written out, and try several tiles")
    pipelines, size = map(int, run(FIRST).split())
    # Nearly all of the time of a first step is the driver's, for each kernel.
    assert pipelines <= 24
    assert size <= 340_000


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "sgd": lambda p, **k: torch.optim.SGD(p, lr=0.1, momentum=0.9, **k),
    "adam": lambda p, **k: torch.optim.AdamW(p, lr=0.1, amsgrad=True, **k),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_of_many_parameters_compiles_one_kernel(name: str) -> None:
    """A number that no kernel's room divides: what is left of the last one stays as it was."""

    def stepped(device: str, maximize: bool) -> tuple[list[Any], int]:
        torch.manual_seed(3)
        params = [torch.randn(5 * i + 1).to(device).requires_grad_() for i in range(53)]
        optimizer = OPTIMIZERS[name](params, maximize=maximize)
        before = wgpu.memory_stats()["pipelines"]
        for _ in range(2):
            for p in params:
                p.grad = torch.randn(p.shape).to(device)
            optimizer.step()
        made = wgpu.memory_stats()["pipelines"] - before
        return [p.detach().cpu() for p in params], made

    stepped("wgpu", False)
    got, made = stepped("wgpu", True)
    # SGD's first step has a kernel of its own.
    assert made == (2 if name == "sgd" else 1)
    for found, want in zip(got, stepped("cpu", True)[0], strict=True):
        torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_of_another_type_than_float32_stays_on_the_gpu(name: str, dtype: Any) -> None:
    """Sums of float16 and bfloat16 are rounded at each operation there, and once on the CPU."""

    def stepped(device: str) -> list[Any]:
        torch.manual_seed(3)
        params = [torch.randn(n).to(device, dtype).requires_grad_() for n in (4, 70)]
        # The usual ones are too small for float16.
        more = {"eps": 1e-3, "betas": (0.8, 0.8)} if name == "adam" else {}
        optimizer = OPTIMIZERS[name](params, weight_decay=0.01, **more)
        for _ in range(3):
            for p in params:
                p.grad = torch.randn(p.shape).to(device, dtype)
            optimizer.step()
        return [p.detach().double().cpu() for p in params]

    wgpu.set_fallback_error(True)
    try:
        got = stepped("wgpu")
    finally:
        wgpu.set_fallback_error(False)
    bound = 8 * torch.finfo(dtype).eps
    torch.testing.assert_close(got, stepped("cpu"), rtol=bound, atol=bound)


@pytest.mark.parametrize("way", [torch.graph, torch.compile])
@pytest.mark.parametrize("kind", STEPS)
def test_compiled_training_step_dispatches_are_few_and_losses_equal_eager(
    kind: str, way: Callable[..., Any]
) -> None:
    wgpu.set_fallback_error(True)
    try:
        got, counts = train(kind, "wgpu", 7, way=way)
    finally:
        wgpu.set_fallback_error(False)
    assert got == train(kind, "wgpu", 7)[0]
    # The first calls are recorded, and the one that is kept is recorded with its dispatches.
    assert max(counts[4:]) <= RECORDED[kind]


def write_to(g: Any) -> None:
    g.mul_(3.0)


def write_past_the_version(g: Any) -> None:
    g.data.mul_(3.0)


def write_to_the_storage(g: Any) -> None:
    g.untyped_storage().fill_(0)


KEPT: list[Any] = []


@pytest.mark.parametrize(
    "write", [write_to, write_past_the_version, write_to_the_storage, KEPT.append]
)
def test_first_gradient_is_one_whatever_was_done_with_the_one_before(
    write: Callable[[Any], Any],
) -> None:
    """It is handed out again where nobody has it and nobody wrote to it."""
    for _ in range(3):
        x = torch.ones((), device="wgpu", requires_grad=True)
        y = x * 2
        y.register_hook(write)
        y.backward()
        z = torch.ones((), device="wgpu", requires_grad=True)
        (z * 2).backward()
        assert z.grad is not None
        assert z.grad.item() == 2.0
        own = torch.ones((), device="wgpu", requires_grad=True)
        own.backward()
        assert own.grad is not None
        own.grad.data.mul_(5.0)
    KEPT.clear()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cnn", "gpt", "lstm"])
def test_training_of_a_hundred_steps_follows_the_cpu(kind: str) -> None:
    given = batches(kind, 25)
    cpu = train(kind, "cpu", 100, given)[0]
    assert cpu[-1] < cpu[0]
    for way in (None, torch.graph, torch.compile):
        assert train(kind, "wgpu", 100, given, way)[0] == pytest.approx(cpu, abs=1e-3)


def dispatches(run: Callable[[], Any]) -> int:
    """Return how many kernels a call launches when it is made again."""
    run()
    before = wgpu.memory_stats()["dispatches"]
    run()
    return wgpu.memory_stats()["dispatches"] - before


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_clip_grad_norm_takes_several_gradients_at_a_time(norm_type: float) -> None:
    g = torch.Generator().manual_seed(7)
    shapes = [(5,), (1,), (33, 70), (9000,), *[(4, k) for k in range(1, 41)], (2, 3, 4)]
    grads = [torch.randn(shape, generator=g) for shape in shapes]
    want = torch.cat([v.flatten() for v in grads]).double().norm(norm_type).item()
    there = [v.to("wgpu").requires_grad_() for v in grads]
    for p, v in zip(there, grads, strict=True):
        p.grad = v.to("wgpu")
    found = nn.utils.clip_grad_norm_(there, want / 2, norm_type)
    assert found.item() == pytest.approx(want, rel=1e-5)
    for p, v in zip(there, grads, strict=True):
        torch.testing.assert_close(p.grad.cpu(), v / 2, rtol=1e-4, atol=1e-6)
    clip = lambda: nn.utils.clip_grad_norm_(there, 1.0, norm_type)  # noqa: E731
    # Six of 45 at a time are read, seven are written, and the rest is arithmetic with one number.
    assert dispatches(clip) <= 8 + 7 + 10
    one = [torch.linalg.vector_norm(v, norm_type).item() for v in grads]
    norms = torch._foreach_norm([v.to("wgpu") for v in grads], norm_type)
    assert [float(v) for v in norms] == pytest.approx(one, rel=1e-5)


def test_clip_grad_norm_takes_any_type_and_layout() -> None:
    grads = [torch.arange(6.0), torch.arange(6.0).reshape(2, 3).t(), torch.ones(4).bfloat16()]
    there = [v.to("wgpu").requires_grad_() for v in grads]
    for p, v in zip(there, grads, strict=True):
        p.grad = v.to("wgpu")
    total = nn.utils.clip_grad_norm_(there, 1.0)
    assert total.item() == pytest.approx(114**0.5, rel=1e-6)
    for p, v in zip(there, grads, strict=True):
        close = {"rtol": 1e-2, "atol": 1e-2} if v.dtype == torch.bfloat16 else {}
        want = (v.double() / 114**0.5).to(v.dtype)
        torch.testing.assert_close(p.grad.cpu(), want, **(close or {"rtol": 1e-5, "atol": 1e-6}))
