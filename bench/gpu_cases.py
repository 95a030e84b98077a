"""What `gpu.py` times on a GPU: calls for either library, with what they move and compute at least.

Sizes of a family grow: where one takes too long for the card, the larger ones are left out.
"""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import models

Make = Callable[[ModuleType, Any], Callable[[], object]]


class Case(NamedTuple):
    """One row: its family, its name there, what makes the call, and the least work of one call."""

    family: str
    name: str
    make: Make
    bytes: float = 0.0
    flops: float = 0.0


def size_of(n: int) -> str:
    """Return a number of bytes in words."""
    return f"{n >> 30} GB" if n >> 30 else f"{n >> 20} MB"


def on(f: Callable[..., object], *shapes: tuple[int, ...], dtype: str = "float32") -> Make:
    """Return what makes a call of `f` with the library's functions and random operands."""

    def make(t: ModuleType, device: Any) -> Callable[[], object]:
        given = [t.randn(*s).to(device=device, dtype=getattr(t, dtype)) for s in shapes]
        return lambda: f(t, *given)

    return make


def both_ways(f: Callable[..., Any], *shapes: tuple[int, ...]) -> Make:
    """Return what makes a call of `f` and of its backward pass."""

    def make(t: ModuleType, device: Any) -> Callable[[], object]:
        given = [t.randn(*s).to(device).requires_grad_() for s in shapes]
        ones = t.ones_like(f(t, *given))
        return lambda: t.autograd.grad(f(t, *given), given, ones)

    return make


def memory() -> Iterator[Case]:
    """Yield what moves memory."""
    for k in (20, 23, 26, 28, 30):
        n = 1 << k
        shape, where = (n >> 12, 1024), size_of(n)
        yield Case("copy", where, on(lambda t, x: x.clone(), shape), 2.0 * n)
        yield Case("add", where, on(lambda t, x, y: x + y, shape, shape), 3.0 * n)
        yield Case("gelu", where, on(lambda t, x: t.nn.functional.gelu(x), shape), 2.0 * n)
        yield Case("transpose", where, on(lambda t, x: x.t().contiguous(), shape), 2.0 * n)
        yield Case("sum", where, on(lambda t, x: x.sum(), shape), 1.0 * n)
        yield Case("softmax", where, on(lambda t, x: x.softmax(-1), shape), 2.0 * n)
        norm = on(lambda t, x: t.nn.functional.layer_norm(x, (1024,)), shape)
        yield Case("layer_norm", where, norm, 2.0 * n)


def products() -> Iterator[Case]:
    """Yield matrix products."""
    for dtype in ("float32", "float16", "bfloat16"):
        for n in (256, 512, 1024, 2048, 4096, 8192):
            call = on(lambda t, a, b: a @ b, (n, n), (n, n), dtype=dtype)
            yield Case(f"matmul {dtype}", f"{n}", call, flops=2.0 * n**3)
    for n in (256, 1024, 4096):
        call = on(lambda t, a, b: a @ b.t(), (n, n), (n, n))
        yield Case("matmul transposed", f"{n}", call, flops=2.0 * n**3)
        call = on(lambda t, a, b: a @ b, (16, n), (n, n))
        yield Case("matmul of 16 rows", f"{n}", call, bytes=4.0 * n * n, flops=32.0 * n * n)
    call = on(lambda t, a, b: a @ b, (64, 256, 256), (64, 256, 256))
    yield Case("matmul batched", "64 x 256", call, flops=64 * 2.0 * 256**3)


def networks() -> Iterator[Case]:
    """Yield convolutions of a ResNet-50 and attention."""
    for c, side, k, out, stride in (
        (512, 7, 3, 512, 1),
        (256, 14, 3, 256, 1),
        (256, 56, 1, 64, 1),
        (64, 56, 3, 64, 1),
        (3, 224, 7, 64, 2),
    ):
        for batch in (1, 32):
            name = f"{batch} x {c} x {side}², {k}x{k} to {out}" + f", stride {stride}" * (
                stride > 1
            )
            size = -(-side // stride)
            flops = 2.0 * batch * out * size * size * c * k * k

            def conv(t: ModuleType, x: Any, w: Any, s: int = stride, p: int = k // 2) -> Any:
                return t.nn.functional.conv2d(x, w, stride=s, padding=p)

            shapes = ((batch, c, side, side), (out, c, k, k))
            yield Case(f"conv {c}, {k}x{k}", name, on(conv, *shapes), flops=flops)
            yield Case(
                f"conv {c}, {k}x{k}, and backward", name, both_ways(conv, *shapes), 0, 3 * flops
            )
    for length in (256, 1024, 4096):
        shape = (2, 12, length, 64)

        def attention(t: ModuleType, q: Any, k: Any, v: Any) -> Any:
            return t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

        # Half of the scores count; backward computes five products for forward's two.
        flops = 2 * 12 * 2.0 * length * length * 64
        yield Case("attention", f"{length}", on(attention, *[shape] * 3), flops=flops)
        call = both_ways(attention, *[shape] * 3)
        yield Case("attention and backward", f"{length}", call, flops=3.5 * flops)


def places() -> Iterator[Case]:
    """Yield what goes by indices."""
    for n in (10_000, 100_000, 1_000_000):

        def scatter(t: ModuleType, device: Any, n: int = n) -> Callable[[], object]:
            index = t.randint(0, n // 10, (n,)).to(device)
            x, into = t.randn(n).to(device), t.zeros(n // 10).to(device)
            return lambda: into.scatter_add(0, index, x)

        def embedding(t: ModuleType, device: Any, n: int = n) -> Callable[[], object]:
            index = t.randint(0, 5000, (n // 64,)).to(device)
            table = t.randn(5000, 64).to(device).requires_grad_()
            return lambda: t.nn.functional.embedding(index, table).sum().backward()

        yield Case("scatter_add", f"{n:,}", scatter, 16.0 * n)
        yield Case("embedding and backward", f"{n:,}", embedding, 8.0 * n)
        yield Case("sort", f"{n:,}", on(lambda t, x: x.sort(), (n,)), 16.0 * n)
        yield Case("cumsum", f"{n:,}", on(lambda t, x: x.cumsum(0), (n,)), 8.0 * n)


def step(make: Callable[[ModuleType], Callable[[], object]]) -> Make:
    """Return what makes a training step whose tensors are on the device."""

    def made(t: ModuleType, device: Any) -> Callable[[], object]:
        with t.device(device):
            return make(t)

    return made


def steps() -> Iterator[Case]:
    """Yield training steps."""
    sizes = (784, 128, 64, 10)
    yield Case("MLP step", "batch 64", step(lambda t: models.mlp(t, sizes, 64, "SGD", lr=0.1)))
    yield Case("LSTM step", "20 steps of 64", step(models.lstm))
    for batch in (4, 64):
        yield Case("CNN step", f"batch {batch}", step(lambda t, n=batch: models.cnn(t, n)))
    yield Case("GPT step", "2 x 32, width 64", step(lambda t: models.gpt(t, 2, 32, 64)))
    yield Case("GPT step", "8 x 128, width 256", step(models.gpt))


def cases() -> list[Case]:
    """Return all, the short ones of every family first."""
    return [*steps(), *memory(), *products(), *networks(), *places()]
