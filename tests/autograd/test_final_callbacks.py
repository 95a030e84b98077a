"""Functions that run at the end of a backward pass, as `queue_callback` asks for."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

import pytensorlib as torch

QUEUE = torch.autograd.Variable._execution_engine.queue_callback


def asking(seen: list[Any], mark: Any, *then: Any) -> Any:
    """Return a leaf, and a tensor whose backward asks for `mark` to be noted at its end."""
    leaf = torch.ones(1, requires_grad=True)

    class Asks(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            def noted() -> None:
                seen.append((mark, leaf.grad is not None))
                for more in then:
                    QUEUE(partial(seen.append, more))

            QUEUE(noted)
            return g * 2

    return leaf, Asks.apply(leaf)


def run_backward(y: Any, leaf: Any) -> None:
    y.backward()


def run_autograd(y: Any, leaf: Any) -> None:
    torch.autograd.backward([y], [torch.ones(1)])


@pytest.mark.parametrize("run", [run_backward, run_autograd])
def test_function_runs_once_the_gradients_are_there(run: Any) -> None:
    seen: list[Any] = []
    leaf, y = asking(seen, "end")
    run(y, leaf)
    assert seen == [("end", True)] and leaf.grad.item() == 2
    torch.ones(1, requires_grad=True).sum().backward()
    assert len(seen) == 1


def test_function_runs_after_grad_too() -> None:
    seen: list[Any] = []
    leaf, y = asking(seen, "end")
    torch.autograd.grad(y, leaf)
    assert seen == [("end", False)]


def test_function_that_asks_for_another_has_it_run() -> None:
    seen: list[Any] = []
    _, y = asking(seen, "end", "more")
    y.backward()
    assert seen == [("end", True), "more"]


def test_function_of_an_inner_pass_runs_at_its_end() -> None:
    seen: list[Any] = []
    _, inner = asking(seen, "inner")

    def run_inner() -> None:
        with torch.enable_grad():
            inner.backward()
        seen.append("after inner")

    leaf = torch.ones(1, requires_grad=True)
    y = leaf * 3
    y.register_hook(lambda g: (QUEUE(lambda: seen.append("outer")), run_inner())[0])
    (y * 2).backward()
    assert seen == [("inner", True), "after inner", "outer"]


def test_function_of_a_pass_that_fails_is_forgotten() -> None:
    seen: list[Any] = []
    leaf, y = asking(seen, "end")

    def fail(g: Any) -> None:
        raise ValueError("on purpose")

    leaf.register_hook(fail)
    with pytest.raises(ValueError, match="on purpose"):
        y.backward()
    torch.ones(1, requires_grad=True).sum().backward()
    assert seen == []


def test_function_is_refused_outside_of_a_pass() -> None:
    with pytest.raises(RuntimeError, match="only be installed during backward pass"):
        QUEUE(print)


def test_functions_of_threads_run_where_they_were_asked_for() -> None:
    seen: list[Any] = []

    def work(n: int) -> None:
        for _ in range(20):
            place = threading.get_ident()
            leaf = torch.ones(1, requires_grad=True)
            y = leaf * 2
            y.register_hook(
                lambda g, place=place: QUEUE(lambda: seen.append(threading.get_ident() == place))
            )
            y.backward()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == [True] * 80
