"""Pointwise steps of a recorded function that run in the tiles of a product or a norm.

Every bit is that of the function, and the kernels say that they took them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pytensorlib as pt
from pytensorlib._compile.graph import graph

F = pt.nn.functional
TYPES = [pt.float32, pt.float64, pt.bfloat16]


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    threads = pt.get_num_threads()
    yield
    pt.set_num_threads(threads)


def bits(x: pt.Tensor) -> bytes:
    # Which of two NaN an operation keeps, sign and all, is the choice of processor and compiler.
    x = x.detach().masked_fill(x.detach().isnan(), float("nan"))
    data = x.reshape(-1).contiguous().view(pt.uint8).numpy().tobytes()
    assert isinstance(data, bytes)
    return data


def check(function: Callable[..., Any], *args: Any) -> list[int]:
    """Hold a recorded function to the function, for any number of threads.

    Returns how many chains lie beside kernels, and how many of them ran in the kernels' tiles.
    """
    want = function(*args)
    recorded = graph(function, fullgraph=True)
    for i in range(6):
        pt.set_num_threads(1 + i % 3)
        got = recorded(*args)
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
            assert bits(a) == bits(b), i
    (only,) = recorded.programs
    return list(only.beside)


def matched(function: Callable[..., Any], *args: Any) -> None:
    want, compiled = function(*args), pt.compiler.compile(function)
    for _ in range(4):
        for a, b in zip(compiled(*args), want, strict=True):
            assert bits(a) == bits(b)


# Small ones that are read where they lie, large ones in panels, and what is no multiple of a tile.
SIZES = [(40, 60, 70), (64, 64, 64), (129, 250, 300), (130, 514, 37), (300, 77, 1030)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", SIZES)
def test_what_follows_a_product_runs_in_its_tiles(size: tuple[int, int, int], dtype: Any) -> None:
    m, n, k = size
    pt.manual_seed(0)
    x, w, b = pt.randn(m, k, dtype=dtype), pt.randn(n, k, dtype=dtype), pt.randn(n, dtype=dtype)
    other, scale = pt.randn(m, n, dtype=dtype), pt.tensor(0.5)

    def activated(x: pt.Tensor) -> tuple[pt.Tensor, ...]:
        h = F.linear(x, w, b)
        return F.gelu(h) * scale + other, h

    def added(x: pt.Tensor) -> tuple[pt.Tensor, ...]:
        return (F.relu(x @ w.t() + b) + other,)

    for function in (activated, added):
        found = check(function, x)
        # bfloat16's smallest products are plain loops, which take nothing.
        assert found[0] == 1
        assert found[1] == 1 or (dtype == pt.bfloat16 and m * n * k < 1 << 20)
        matched(function, x)


@pytest.mark.parametrize("dtype", TYPES)
def test_operands_of_other_layouts(dtype: Any) -> None:
    pt.manual_seed(1)
    x, w = pt.randn(150, 140, dtype=dtype).t(), pt.randn(150, 2 * 131, dtype=dtype)[:, ::2]
    other = pt.randn(131, 140, dtype=dtype).t()
    row, column = pt.randn(131, dtype=dtype), pt.randn(140, 1, dtype=dtype)
    found = check(lambda x: (pt.tanh(x @ w) * row + column, (x @ w).exp() * other), x)
    assert found[0] == 2


def test_results_that_others_look_at_are_written() -> None:
    x, w = pt.randn(100, 90), pt.randn(90, 110)

    def several(x: pt.Tensor) -> tuple[pt.Tensor, ...]:
        h = x @ w
        a = h.relu()
        c = a * 2 + h
        return a, c, h.sum(0), (a - c).sum()

    check(several, x)

    def in_place(x: pt.Tensor) -> tuple[pt.Tensor, ...]:
        h = x @ w
        h.relu_()
        h += 1
        return (h,)

    assert check(in_place, x) == [1, 1]


def test_what_looks_at_other_elements_waits() -> None:
    x, w = pt.randn(80, 80), pt.randn(80, 80)
    # All of the product is needed for any element of these.
    check(lambda x: ((x @ w).t() + (x @ w), (x @ w) * (x @ w)[0]), x)

    # The operand is written to while the product may still read it.
    def onto(x: pt.Tensor) -> tuple[pt.Tensor, ...]:
        y = x.clone()
        y += y @ w
        y.mul_(2)
        return (y,)

    check(onto, x)


def leaves(model: pt.nn.Module) -> list[Any]:
    return [p for p in model.parameters() if p.requires_grad]


def trained(model: pt.nn.Module, *shape: int, dtype: Any = pt.float32) -> Callable[..., Any]:
    """Return a function of an input: the loss, what the model gives, and all gradients."""
    model = model.to(dtype)
    x = pt.randn(*shape, dtype=dtype, requires_grad=True)

    def step() -> tuple[pt.Tensor, ...]:
        for p in [x, *leaves(model)]:
            p.grad = None
        y = model(x)
        loss = (y * y).mean()
        loss.backward()
        grads = [p.grad for p in [x, *leaves(model)]]
        return (loss.detach(), y.detach(), *[g for g in grads if g is not None])

    return step


class Added(pt.nn.Module):
    """What a residual network does with a norm: its result, something added, an activation."""

    def __init__(self, norm: Any, activation: Any) -> None:
        super().__init__()
        self.first, self.norm, self.activation = norm(), norm(), activation

    def forward(self, x: pt.Tensor) -> pt.Tensor:
        h = self.activation(self.first(x * 1.5))
        out = self.activation(self.norm(h) + x)
        assert isinstance(out, pt.Tensor)
        return out


PLANES = [(3, 8, 16, 16), (2, 24, 5, 7), (5, 16, 3, 3), (2, 8, 40, 41), (2, 4, 60, 50)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", PLANES)
def test_batch_norm_with_what_is_around_it(shape: tuple[int, ...], dtype: Any) -> None:
    pt.manual_seed(2)

    def norm() -> Any:
        return pt.nn.BatchNorm2d(shape[1], track_running_stats=False)

    found = check(trained(Added(norm, F.relu), *shape, dtype=dtype))
    # Before and after both norms forward, and the slopes of the activations before backward.
    if pt.Size(shape).numel() >= 2048:
        assert found[0] >= 4
        assert found[1] == found[0]
    matched(trained(Added(norm, F.relu), *shape, dtype=dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_batch_norm_of_rows_and_in_evaluation(dtype: Any) -> None:
    pt.manual_seed(3)
    found = check(trained(Added(lambda: pt.nn.BatchNorm1d(70), F.silu), 64, 70, dtype=dtype))
    assert found[0] == found[1] >= 4
    model = Added(lambda: pt.nn.BatchNorm2d(8), F.relu).eval()
    found = check(trained(model, 3, 8, 16, 16, dtype=dtype))
    assert found[0] == found[1] >= 2


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(3, 16, 12, 12), (2, 8, 9, 31)])
def test_group_norm_with_what_is_around_it(shape: tuple[int, ...], dtype: Any) -> None:
    pt.manual_seed(4)
    model = Added(lambda: pt.nn.GroupNorm(4, shape[1]), F.silu)
    found = check(trained(model, *shape, dtype=dtype))
    assert found[0] == found[1] >= 4


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(2, 33, 50), (7, 9, 300), (3, 5000)])
def test_layer_norm_with_what_is_around_it(shape: tuple[int, ...], dtype: Any) -> None:
    pt.manual_seed(5)
    model = Added(lambda: pt.nn.LayerNorm(shape[-1]), F.gelu)
    found = check(trained(model, *shape, dtype=dtype))
    assert found[0] == found[1] >= 4
    check(trained(Added(lambda: pt.nn.RMSNorm(shape[-1]), F.gelu), *shape, dtype=dtype))


def test_running_statistics_are_those_of_the_function() -> None:
    pt.manual_seed(6)
    x = pt.randn(4, 8, 16, 16)
    models = [pt.nn.Sequential(pt.nn.BatchNorm2d(8), pt.nn.ReLU()) for _ in range(2)]
    recorded = graph(lambda x: models[0](x * 2), fullgraph=True)
    for _ in range(5):
        with pt.no_grad():
            assert bits(recorded(x)) == bits(models[1](x * 2))
    for a, b in zip(models[0].buffers(), models[1].buffers(), strict=True):
        assert pt.equal(a, b)
    (only,) = recorded.programs
    assert only.beside[1] == only.beside[0] >= 1


def network(seed: int) -> Callable[..., Any]:
    """Return a step of layers that a seed chooses, with what they have around them."""
    choose = random.Random(seed)
    pt.manual_seed(seed)
    rows, width = choose.choice([(33, 64), (130, 70), (257, 96)])
    kinds: list[Callable[[], Any]] = [
        lambda: pt.nn.Linear(width, width),
        lambda: pt.nn.Linear(width, width, bias=False),
        lambda: pt.nn.LayerNorm(width),
        lambda: pt.nn.BatchNorm1d(width, track_running_stats=False),
        lambda: pt.nn.RMSNorm(width),
    ]
    layers = [choose.choice(kinds)() for _ in range(6)]
    ways = [choose.randrange(7) for _ in layers]
    kept = pt.randn(rows, width)

    class Model(pt.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = pt.nn.ModuleList(layers)

        def forward(self, x: pt.Tensor) -> pt.Tensor:
            first = x
            for layer, way in zip(self.layers, ways, strict=True):
                h = layer(x)
                if way == 0:
                    x = F.relu(h)
                elif way == 1:
                    x = x + F.gelu(h)
                elif way == 2:
                    x = pt.tanh(h) * kept
                elif way == 3:
                    x = h * pt.sigmoid(h) + first
                elif way == 4:
                    x = h.t().contiguous().t() * 0.5
                elif way == 5:
                    x = (h - h.mean(-1, keepdim=True)) * 2
                else:
                    x = F.relu(h, inplace=True) + x
            return x

    dtype = choose.choice(TYPES)
    kept = kept.to(dtype)
    return trained(Model(), rows, width, dtype=dtype)


@pytest.mark.parametrize("seeds", [range(i, i + 8) for i in range(0, 40, 8)])
def test_chosen_networks_give_the_same_bits(seeds: range) -> None:
    taken = 0
    for seed in seeds:
        taken += check(network(seed))[1]
    assert taken >= 8
