"""Steps of a recorded function that run as one, tile by tile: every bit is that of the function."""

import random
from typing import Any

import numpy as np
import pytest

import pytensorlib as pt
from pytensorlib._compile.graph import graph

ONE = ["neg", "exp", "sigmoid", "abs", "floor", "relu", "rsqrt", "sin", "clone", "tanh", "erf"]
TWO = ["add", "mul", "sub", "div", "maximum", "atan2"]
IN_PLACE = ["add_", "mul_", "copy_", "sub_"]
TYPES = [pt.bfloat16, pt.float16, pt.float32, pt.float64]
SHAPES = [(60, 50), (13, 5, 40), (2, 5000), (9, 1, 333), (150, 40), (1, 70000), (700, 5)]


def bits(x: pt.Tensor) -> bytes:
    # Which of two NaN an operation keeps, sign and all, is the choice of processor and compiler.
    x = x.detach().masked_fill(x.detach().isnan(), float("nan"))
    data = x.reshape(-1).contiguous().view(pt.uint8).numpy().tobytes()
    assert isinstance(data, bytes)
    return data


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return all(n in (1, m) for n, m in zip(shape[::-1], to[::-1], strict=False))


def program(seed: int, x: tuple[pt.Tensor, ...]) -> list[pt.Tensor]:
    """Compute what a seed chooses: operands that broadcast, views, writes, casts and reductions."""
    choose, tensors, out = random.Random(seed), list(x), []
    full = x[0].shape
    for _ in range(3 + choose.randrange(14)):
        wide = [t for t in tensors if t.shape == full]
        last = wide[-1] if choose.randrange(3) else choose.choice(wide)
        other = choose.choice([t for t in tensors if broadcasts(t.shape, full)])
        kind = choose.randrange(11)
        if kind == 0:
            y = choose.choice([lambda t: t.sum(), lambda t: t.sum(-1), lambda t: t.mean()])(last)
        elif kind == 1:
            y = last.to(choose.choice(TYPES))
        elif kind == 2:
            other = other.to(last.dtype)
            y = pt.where(last > other, last, other)
        elif kind in (3, 4):
            y = getattr(pt, choose.choice(ONE))(last)
        elif kind == 5:
            y = last.transpose(-1, -2).contiguous().transpose(-1, -2)
        elif kind == 6:
            y = last.reshape(-1).mul(2).reshape(full)
        elif kind == 7:
            y = last.masked_fill(other > 0.5, 1.5)
        elif kind == 8:
            getattr(last, choose.choice(IN_PLACE))(other.detach().clone().to(last.dtype))
            y = last
        else:
            y = getattr(pt, choose.choice(TWO))(last, other)
        if choose.randrange(3) == 0:
            out.append(y)
        tensors.append(y)
    return [*out, tensors[-1]]


def inputs(seed: int, shape: tuple[int, ...]) -> tuple[pt.Tensor, ...]:
    numbers = np.random.default_rng(seed)

    def some(shape: tuple[int, ...], dtype: Any = np.float32) -> pt.Tensor:
        special = numbers.choice([0.0, -0.0, np.nan, np.inf, -np.inf], shape)
        x = np.where(numbers.random(shape) < 0.02, special, 2 * numbers.standard_normal(shape))
        return pt.tensor(x.astype(dtype))

    *lead, n = shape
    turned = some((*lead[:-1], n, lead[-1])).transpose(-1, -2)
    column, number = some((*lead, 1), np.float64), some((), np.float64)
    return some(shape), some((n,)), column, number, turned


@pytest.mark.parametrize("seeds", [range(i, i + 6) for i in range(0, 24, 6)])
def test_chosen_program_recorded_gives_the_same_bits_for_any_number_of_threads(
    seeds: range,
) -> None:
    threads = pt.get_num_threads()
    try:
        for seed in seeds:
            shape = SHAPES[seed % len(SHAPES)]
            recorded = graph(lambda *x, seed=seed: program(seed, x))
            for i in range(4):
                pt.set_num_threads(1 + (seed + i) % 3)
                mine, theirs = inputs(10 * seed + i, shape), inputs(10 * seed + i, shape)
                got, want = recorded(*mine), program(seed, theirs)
                for a, b in zip([*got, *mine], [*want, *theirs], strict=True):
                    assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
                    assert bits(a) == bits(b), (seed, i)
            assert len(recorded.programs) == 1
    finally:
        pt.set_num_threads(threads)


def steps(function: Any, *args: Any) -> int:
    recorded = graph(function)
    for _ in range(3):
        recorded(*args)
    (only,) = recorded.programs
    return int(only.steps)


def test_pointwise_steps_and_their_sum_become_one() -> None:
    x, a, b, c = pt.randn(64, 80), pt.tensor(1.5), pt.randn(80), pt.randn(64, 1)
    assert steps(lambda x: (pt.nn.functional.gelu(x * a + b) * c).sum(), x) == 1
    assert steps(lambda x: ((x * 2 + b).sum(-1), (x * 2 + b).exp().mean(-1)), x) == 1


def test_gradients_become_one_step_with_what_they_come_from() -> None:
    x, a = pt.randn(64, 80, requires_grad=True), pt.tensor(1.5)

    def step() -> pt.Tensor:
        x.grad = None
        loss = pt.nn.functional.gelu(x * a + 1).tanh().sum()
        loss.backward()
        return loss.detach()

    assert steps(step) == 1

    # The first gradient is made of constants alone, and joins what it belongs to all the same.
    def scaled() -> pt.Tensor:
        x.grad = None
        loss = (pt.nn.functional.gelu(x * a + 1) * 2).sum()
        loss.backward()
        return loss.detach()

    assert steps(scaled) == 1
    want = scaled(), x.grad
    recorded = graph(scaled)
    for _ in range(4):
        got = recorded(), x.grad
        assert all(bits(u) == bits(v) for u, v in zip(got, want, strict=True))


def test_chains_join_across_what_neither_needs() -> None:
    x, y = pt.randn(64, 64), pt.randn(64, 64)

    def apart(x: pt.Tensor, y: pt.Tensor) -> tuple[pt.Tensor, ...]:
        a = x * 2 + 1
        product = y @ y
        b = pt.full((64, 64), 3.0) * 2
        return (b.sqrt() + a).exp(), product

    # One chain before or after the product, or in its tiles.
    assert steps(apart, x, y) <= 3

    def between(x: pt.Tensor) -> pt.Tensor:
        a = x * 2 + 1
        b = (a @ x) * 3 + 1
        return b.sqrt() + a

    # What follows the product runs in its tiles.
    assert steps(between, x) == 2
    recorded = graph(between)
    for _ in range(4):
        assert bits(recorded(x)) == bits(between(x))


def test_steps_that_need_a_chain_to_end_are_not_part_of_it() -> None:
    x = pt.randn(64, 64)
    # The product needs all of the chain before it, and what follows runs in its tiles.
    assert steps(lambda x: ((x * 2 + 1) @ x) * 3 + 1, x) == 2
    # All of the product is needed for any element of its transpose.
    assert steps(lambda x: (x @ x).t() * 3 + (x @ x) * 2, x) >= 3
    # What is read after a write is what was written.
    y = pt.randn(64, 64)

    def write(x: pt.Tensor) -> pt.Tensor:
        y.copy_(x)
        z = y.t() * 2
        y.add_(1)
        return z + y

    recorded = graph(write)
    for _ in range(4):
        x = pt.randn(64, 64)
        assert pt.equal(recorded(x), x.t() * 2 + (x + 1))
