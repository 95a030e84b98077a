"""Results repeat bit for bit, whatever the threads do; and memory stays flat over a long loop.

The tolerance between numbers of threads is that of float32 sums in another order: sums of n
terms of size one differ by no more than a few times sqrt(n) * 6e-8, relative to their size.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pytensorlib as pt
import pytensorlib as torch
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
    # As many products as are worth tiles of a processor that has them, which a model takes long.
    wide, rows_of_w = leaf(260, 704), leaf(370, 704)
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
        "linear": with_grads(F.linear, wide, rows_of_w, leaf(370)),
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
            for _ in range(2):
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


@pytest.fixture
def asked() -> Any:
    yield torch.use_deterministic_algorithms
    torch.use_deterministic_algorithms(False)


def test_what_pytorch_leaves_open_raises_where_determinism_is_asked_for(asked: Any) -> None:
    x, at = torch.zeros(3), torch.tensor([0, 0])
    v, plane = torch.tensor([1.0, 2.0]), torch.ones(1, 1, 2, 2)
    first = torch.zeros(1, 1, 2, 2, dtype=torch.int64)
    calls = (
        ("put_", lambda: x.put_(at, v)),
        ("put_", lambda: x.put(at, v)),
        ("max_unpooling2d_forward_out", lambda: F.max_unpool2d(plane, first, 2)),
        ("max_unpooling2d_forward_out", lambda: F.max_unpool1d(plane[0], first[0], 2)),
        ("max_unpooling3d_forward_out", lambda: F.max_unpool3d(plane, first, 2)),
    )
    for _, call in calls:
        call()
    asked(True, warn_only=True)
    for name, call in calls:
        with pytest.warns(UserWarning, match=f"{name} does not have a deterministic impl"):
            call()
    asked(True)
    x.zero_()
    for name, call in calls:
        with pytest.raises(RuntimeError, match=rf"{name} does .* but you set 'torch\.use_determ"):
            call()
    assert not x.any()
    assert x.put_(at, v, accumulate=True).tolist() == [3, 0, 0]
    x.index_put_((at,), v)
    x.index_add_(0, at, v).scatter_(0, at, v)
    asked(False)
    torch.set_deterministic_debug_mode("error")
    with pytest.raises(RuntimeError, match="deterministic"):
        x.put_(at, v)
    torch.set_deterministic_debug_mode(0)
    many = torch.zeros(100_000, dtype=torch.int64)
    assert x.put_(many, torch.arange(100_000.0))[0].item() == 99_999


def test_memory_that_nothing_was_written_to_is_known_where_determinism_is_asked_for(
    asked: Any,
) -> None:
    asked(True)
    x = torch.zeros(2, 3)
    made = (
        torch.empty(2),
        torch.empty_like(x.t()),
        torch.empty_strided((2, 2), (1, 2)),
        torch.empty_permuted((2, 3), (1, 0)),
        x.new_empty(2),
        x.new_empty_strided((2,), (3,)),
        torch.zeros(2).resize_(5)[2:],
        torch.empty(3, dtype=torch.bfloat16),
    )
    assert all(t.isnan().all() for t in made)
    assert torch.view_as_real(torch.empty(2, dtype=torch.complex64)).isnan().all()
    assert torch.zeros(2).resize_(5)[:2].tolist() == [0, 0]
    assert torch.empty(2, dtype=torch.bool).all()
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint64):
        assert torch.empty(1, dtype=dtype).item() == torch.iinfo(dtype).max
    assert torch.utils.deterministic.fill_uninitialized_memory is True
    torch.empty(1000).fill_(7)
    try:
        torch.utils.deterministic.fill_uninitialized_memory = False
        assert not torch.empty(1000).isnan().all()
        with pytest.raises(TypeError, match="expected bool"):
            torch.utils.deterministic.fill_uninitialized_memory = 1
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True
    assert torch.empty(1).isnan()
    asked(False)
    torch.empty(1000).fill_(7)
    assert not torch.empty(1000).isnan().all()


def test_deterministic_algorithms_are_what_was_asked_for() -> None:
    try:
        for mode, warn, number in ((True, False, 2), (True, True, 1), (False, True, 0)):
            torch.use_deterministic_algorithms(mode, warn_only=warn)
            assert torch.are_deterministic_algorithms_enabled() is mode
            assert torch.is_deterministic_algorithms_warn_only_enabled() is (mode and warn)
            assert torch.get_deterministic_debug_mode() == number
        for name, number in (("error", 2), ("warn", 1), ("default", 0), (2, 2)):
            torch.set_deterministic_debug_mode(name)
            assert torch.get_deterministic_debug_mode() == number
        for bad in ("bogus", 3, -1):
            with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
                torch.set_deterministic_debug_mode(bad)
        with pytest.raises(TypeError):
            torch.use_deterministic_algorithms(1)
    finally:
        torch.use_deterministic_algorithms(False)
