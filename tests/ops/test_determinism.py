"""Results repeat bit for bit, whatever the threads do; and memory stays flat over a long loop.

The tolerance between numbers of threads is that of float32 sums in another order: sums of n
terms of size one differ by no more than a few times sqrt(n) * 6e-8, relative to their size.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pytensorlib as pt
import pytensorlib.nn.functional as F

Run = Callable[[], tuple[pt.Tensor, ...]]


def leaf(*shape: int) -> pt.Tensor:
    return pt.randn(*shape, requires_grad=True)


def with_grads(f: Callable[..., pt.Tensor], *inputs: pt.Tensor) -> Run:
    def run() -> tuple[pt.Tensor, ...]:
        out = f(*inputs)
        leaves = [x for x in inputs if x.requires_grad]
        return out, *pt.autograd.grad(out.square().sum(), leaves)

    return run


def cases() -> dict[str, Run]:
    pt.manual_seed(5)
    x, w = leaf(300, 700), leaf(500, 700)
    image, kernel = leaf(4, 8, 40, 40), leaf(16, 8, 3, 3)
    index = pt.randint(0, 50, (20_000,))
    table, rows = leaf(50, 16), leaf(20_000, 16)
    q, k, v = leaf(2, 3, 130, 32), leaf(2, 3, 130, 32), leaf(2, 3, 130, 32)
    lstm, steps = pt.nn.LSTM(40, 60), leaf(30, 16, 40)
    scale, shift = leaf(8), leaf(8)
    return {
        "sum": with_grads(lambda x: x.sum(), leaf(1_000_003)),
        "sum dim 0": with_grads(lambda x: x.sum(0), leaf(3000, 400)),
        "std": with_grads(lambda x: x.std(1), x),
        "cumsum": with_grads(lambda x: x.cumsum(1), x),
        "softmax": with_grads(lambda x: F.softmax(x, 1), x),
        "linear": with_grads(F.linear, x, w, leaf(500)),
        "matmul half": lambda: (x.bfloat16() @ w.bfloat16().T,),
        "conv2d": with_grads(lambda x, w: F.conv2d(x, w, padding=1), image, kernel),
        "batch_norm": with_grads(
            lambda x, w, b: F.batch_norm(x, None, None, w, b, True), image, scale, shift
        ),
        "layer_norm": with_grads(lambda x, w: F.layer_norm(x, (700,), w), x, leaf(700)),
        "max_pool2d": with_grads(lambda x: F.max_pool2d(x, 3, 2), image),
        "embedding": with_grads(lambda w: F.embedding(index, w), table),
        "index_add": with_grads(lambda x, y: x.index_add(0, index, y), table, rows),
        "scatter_add": with_grads(
            lambda x, y: x.scatter_add(0, index[:, None].expand(-1, 16), y), table, rows
        ),
        "attention": with_grads(
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v
        ),
        "lstm": with_grads(lambda x: lstm(x)[0], steps),
        "cross_entropy": with_grads(lambda x: F.cross_entropy(x, index[:300]), x),
        "sort": lambda: tuple(rows.detach().flatten().sort()),
    }


@pytest.mark.parametrize("name", cases())
def test_results_repeat_and_hardly_depend_on_threads(name: str) -> None:
    run, before = cases()[name], pt.get_num_threads()
    results: dict[int, list[np.ndarray]] = {}
    try:
        for threads in (1, 2, 3, 4):
            pt.set_num_threads(threads)
            first = [t.detach().float().numpy().copy() for t in run()]
            for _ in range(3):
                again = [t.detach().float().numpy() for t in run()]
                for a, b in zip(first, again, strict=True):
                    np.testing.assert_array_equal(a, b)
            results[threads] = first
    finally:
        pt.set_num_threads(before)
    for threads, found in results.items():
        for a, b in zip(results[1], found, strict=True):
            near = 1e-4 * max(np.abs(a).max(initial=0), 1e-30)
            np.testing.assert_allclose(b, a, rtol=0, atol=near, err_msg=f"{threads} threads")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_flat_over_20000_steps() -> None:
    def resident() -> float:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * 4096 / 1e6

    model = pt.nn.Sequential(pt.nn.Linear(16, 32), pt.nn.ReLU(), pt.nn.Linear(32, 4))
    optimizer = pt.optim.Adam(model.parameters())
    x, y = pt.randn(8, 16), pt.randint(0, 4, (8,))

    def steps(n: int) -> None:
        for _ in range(n):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    steps(1000)
    calls, before = pt.cpu.memory_stats()["system_calls"], resident()
    steps(20_000)
    assert resident() - before < 1
    assert pt.cpu.memory_stats()["system_calls"] == calls


def test_the_cache_is_reported_and_returned() -> None:
    x = pt.ones(3_000_000)
    del x
    held = pt.cpu.memory_stats()
    assert held["cached_bytes"] >= 12_000_000
    assert held["allocated_bytes"] == held["reserved_bytes"] - held["cached_bytes"]
    pt.cpu.empty_cache()
    after = pt.cpu.memory_stats()
    assert after["cached_bytes"] == 0
    assert after["reserved_bytes"] <= held["reserved_bytes"] - 12_000_000
