"""How graphs and what they hold are freed, and what callbacks and threads may do meanwhile."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib.autograd import Function


def leaf(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


class Keeps(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


@pytest.mark.timed
def test_long_chain_runs_and_drops_without_recursion() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 0.0
    y.backward()
    assert x.grad.item() == 1
    start = time.perf_counter()
    del y
    assert time.perf_counter() - start < 5


def test_wide_sharing_is_counted_once_per_use() -> None:
    x = leaf(1)
    y = x
    for _ in range(60):
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**60


def test_graph_is_freed_with_its_last_tensor() -> None:
    class Keep:
        pass

    class Holds(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, kept: Any) -> Any:
            ctx.kept = kept
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    kept = Keep()
    alive = weakref.ref(kept)
    y = Holds.apply(leaf(1), kept)
    del kept
    assert alive() is not None
    del y
    gc.collect()
    assert alive() is None


def test_cycle_through_a_hook_is_collected() -> None:
    class Keep:
        pass

    kept = Keep()
    alive = weakref.ref(kept)
    x = leaf(1)
    x.register_hook(lambda g, held=(x, kept): None)
    del x, kept
    gc.collect()
    assert alive() is None


def test_cycle_through_an_attribute_is_collected() -> None:
    class Keep:
        pass

    x = leaf(1)
    x.me, x.kept = x, Keep()
    alive = weakref.ref(x.kept)
    del x
    gc.collect()
    assert alive() is None


CHAINS: dict[str, Callable[[Any], Any]] = {
    "number": lambda y: y * 1.0,
    "saves its input": torch.sin,
    "saves it twice": lambda y: y * y,
    "saves its output": torch.exp,
    "in place": lambda y: y.mul_(y.detach()),
    "through a view": lambda y: y[:].mul_(2) * 1,
    "custom": Keeps.apply,
}


@pytest.mark.parametrize("step", CHAINS.values(), ids=CHAINS)
def test_unused_long_chain_drops_without_recursion(step: Callable[[Any], Any]) -> None:
    y = torch.ones(1, requires_grad=True) * 1
    for _ in range(100_000):
        y = step(y)
    del y


class Runs:
    """A hook that runs something when it is freed."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run

    def __call__(self, *_: Any) -> None:
        pass

    def __del__(self) -> None:
        self.run()


def test_hook_that_uses_its_tensor_when_it_is_freed() -> None:
    x, count = leaf(1, 2), []

    def use() -> None:
        count.append(x.grad)
        x.register_hook(lambda g: None)
        y.grad_fn.register_hook(lambda a, b: None)
        y.grad_fn.register_prehook(lambda a: None)

    y = x * 2
    for register in [
        x.register_hook,
        x.register_post_accumulate_grad_hook,
        y.register_hook,
        y.grad_fn.register_hook,
        y.grad_fn.register_prehook,
    ]:
        register(Runs(use)).remove()
    assert len(count) == 5


def test_operand_that_loses_its_tensor_while_its_history_is_renewed() -> None:
    swapped = []

    @torch.enable_grad()
    def inside(g: Any) -> Any:
        base = torch.ones(4, requires_grad=True) * 1
        view = base[:2]

        def swap() -> None:
            view.data = torch.zeros(2)
            swapped.append([torch.randn(2) for _ in range(20)])

        view.register_hook(Runs(swap))
        base.mul_(3)
        # The view's old node goes here, with its hook.
        assert (view + 1).tolist() in ([4, 4], [1, 1])
        assert (view * view).shape == (2,)
        return g

    x = leaf(1, 2)
    y = x * 2
    y.register_hook(inside)
    for _ in range(20):
        y.sum().backward(retain_graph=True)
    assert len(swapped) == 20


def test_gradient_whose_memory_uses_the_leaf_when_it_is_freed() -> None:
    class Lender(np.ndarray[Any, Any]):
        def __del__(self) -> None:
            seen.append(x.grad is None)

    seen: list[bool] = []
    x = torch.ones(4, requires_grad=True)
    for record in (False, True):
        x.grad = torch.from_numpy(np.ones(4, np.float32).view(Lender))
        (x * x).sum().backward(create_graph=record)
        close = x.grad.detach()
        assert close.tolist() == [3] * 4
    x.grad = None
    gc.collect()
    assert len(seen) >= 2


def test_callbacks_may_replace_tensors() -> None:
    x = torch.ones(4, requires_grad=True)

    def swap(*_: Any) -> None:
        x.data = torch.ones(4)
        y.data = torch.ones(4)
        gc.collect()

    def through(t: Any) -> Any:
        x.data = torch.ones(4)
        return t

    with torch.autograd.graph.saved_tensors_hooks(through, through):
        y = x * x
        z = (y * y).exp().sum()
    for register in [
        x.register_hook,
        x.register_post_accumulate_grad_hook,
        y.register_hook,
        y.grad_fn.register_hook,
        y.grad_fn.register_prehook,
    ]:
        register(swap)
    z.backward()
    assert x.grad.shape == (4,)


def test_lent_memory_is_given_back_with_its_last_tensor() -> None:
    for lend in (torch.from_numpy, torch.from_dlpack):
        array = np.ones(6, np.float32)
        count = sys.getrefcount(array)
        t = lend(array)
        assert sys.getrefcount(array) > count
        w = torch.ones(6, requires_grad=True)
        y = (w * t).sum()
        del t
        assert sys.getrefcount(array) > count
        y.backward()
        assert sys.getrefcount(array) == count
        box = [lend(array)]
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()
        assert sys.getrefcount(array) == count


@pytest.mark.parametrize("size", [8, 50_000])
def test_threads_add_to_one_gradient(size: int) -> None:
    x = torch.zeros(size, requires_grad=True)
    each, interval = 40, sys.getswitchinterval()

    def work(record: bool) -> None:
        for _ in range(each):
            (x * 2).sum().backward(create_graph=record)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(i % 2 == 0,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert bool((x.grad == 2.0 * each * len(threads)).all())


def test_threads_compute_while_others_replace_the_operands() -> None:
    interval = sys.getswitchinterval()
    x = [torch.ones(8) for _ in range(3)]
    failed: list[BaseException] = []

    def compute() -> None:
        try:
            for i in range(1500):
                a, b = x[i % 3], x[(i + 1) % 3]
                assert (a + b).tolist() == [2] * 8
                assert (a * b - 1.0).tolist() == [0] * 8
        except BaseException as e:
            failed.append(e)

    def replace() -> None:
        for i in range(1500):
            x[i % 3].data = torch.ones(8)
            x[(i + 1) % 3] = torch.ones(8)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=f) for f in (compute, compute, replace)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failed


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_training_keeps_its_memory_flat() -> None:
    pages = Path("/proc/self/statm")

    def resident() -> int:
        return int(pages.read_text().split()[1])

    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
    before = 0
    for step in range(4000):
        if step == 500:
            before = resident()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    # A tensor of the smallest kind that each step forgot would be 3500 * 64 bytes: 55 pages.
    assert resident() - before < 50
