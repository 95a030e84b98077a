"""Backward passes within backward passes, deeper than the stack of one thread is."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from typing import Any

import pytest

import pytensorlib as torch


def nested(depth: float, deepest: Any) -> Any:
    """Run `depth` passes within each other, and `deepest` in the last; return the gradient."""

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.below = x.detach() - 1
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.below < 0:
                deepest()
                return g
            with torch.enable_grad():
                Nested.apply(ctx.below.requires_grad_()).sum().backward()
            return g

    x = torch.tensor([depth], requires_grad=True)
    Nested.apply(x).sum().backward()
    return x.grad


@pytest.mark.parametrize("depth", [500.0, 2000.0])
def test_nested_backward_of_any_depth_runs(depth: float) -> None:
    where: list[int] = []
    assert nested(depth, lambda: where.append(threading.get_ident())).tolist() == [1.0]
    assert where != [threading.get_ident()]


def test_nested_backward_as_deep_as_usual_stays_on_its_thread() -> None:
    where: list[int] = []
    nested(10.0, lambda: where.append(threading.get_ident()))
    assert where == [threading.get_ident()]


def test_nested_backward_started_on_another_thread_runs() -> None:
    grads: list[Any] = []
    thread = threading.Thread(target=lambda: grads.append(nested(200.0, lambda: None)))
    thread.start()
    thread.join()
    assert grads[0].tolist() == [1.0]


def test_nested_backward_that_fails_raises_with_the_whole_traceback() -> None:
    def fail() -> None:
        raise LookupError("at the bottom")

    with pytest.raises(LookupError, match="at the bottom") as caught:
        nested(200.0, fail)
    frames = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-1] == "fail"
    assert sum(name == "backward" for name in frames) >= 200
    assert nested(200.0, lambda: None).tolist() == [1.0]


def test_nested_backward_on_further_threads_keeps_modes_and_hooks() -> None:
    seen: list[Any] = []
    packed: list[int] = []

    def look() -> None:
        seen.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
        with torch.enable_grad():
            torch.ones(2, requires_grad=True).exp()

    def pack(x: Any) -> Any:
        packed.append(threading.get_ident())
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        for depth in (1.0, 200.0):
            nested(depth, look)
    assert seen == [(False, False)] * 2
    assert len(packed) == 2
    assert packed[0] == threading.get_ident() != packed[1]


def test_nested_backward_on_further_threads_keeps_torch_function_off() -> None:
    class Told(torch.Tensor):
        calls = 0

        @classmethod
        def __torch_function__(cls, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.calls += 1
            return super().__torch_function__(f, types, args, kwargs)

    told = torch.ones(1).as_subclass(Told)
    run = lambda: nested(200.0, lambda: torch.exp(told))  # noqa: E731
    torch._C._disabled_torch_function_impl(run, (), (), {})
    assert Told.calls == 0
    run()
    assert Told.calls > 0


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="signals of one's own")
@pytest.mark.parametrize("own", [False, True])
def test_nested_backward_on_further_threads_is_interrupted_by_a_signal(own: bool) -> None:
    class Mine(Exception):
        pass

    def handler(number: int, frame: Any) -> None:
        raise Mine("by the handler") if own else KeyboardInterrupt

    def wait() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        ended = threading.Event()
        for _ in range(2000):
            ended.wait(0.01)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(Mine if own else KeyboardInterrupt):
            nested(130.0, wait)
    finally:
        signal.signal(signal.SIGUSR1, before)
