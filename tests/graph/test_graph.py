"""Recorded calls give the bits of the functions, as long as these would ask for the same."""

from __future__ import annotations

import gc
import pickle
import threading
import warnings
import weakref
from collections import deque
from typing import Any

import numpy as np
import pytest
from training_steps import model

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn import functional as F


@pytest.fixture(autouse=True)
def _no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def trained(kind: str, recorded: bool, steps: int = 20) -> tuple[list[Any], list[Any]]:
    """Return the losses, and what is there afterwards, of so many steps."""
    torch.manual_seed(0)
    net, optimizer, batch = model(kind)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss

    run = torch.graph(step, fullgraph=True) if recorded else step
    losses = [run(*batch()).item() for _ in range(steps)]
    if recorded:
        assert len(run.programs) == 1
    states = [
        v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)
    ]
    grads = [p.grad for p in net.parameters()]
    return losses, [*net.state_dict().values(), *states, *grads]


@pytest.mark.parametrize("kind", ["mlp", "cnn", "lstm", "gpt"])
def test_training_recorded_has_the_bits_of_training(kind: str) -> None:
    losses, left = trained(kind, recorded=False)
    again, after = trained(kind, recorded=True)
    assert losses == again
    for a, b in zip(left, after, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert torch.equal(a, b)
            assert a.stride() == b.stride()


def counted(function: Any, **options: Any) -> tuple[Any, deque[int]]:
    """Return a recorded function, and a queue with an item for each call that ran in Python."""
    calls: deque[int] = deque()

    def seen(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return function(*args, **kwargs)

    return torch.graph(seen, **options), calls


def test_shapes_types_and_numbers_among_the_arguments_are_told_apart() -> None:
    f, calls = counted(lambda x, n=1: (x * n).sum())
    for shape, dtype in (((3,), torch.float32), ((4,), torch.float32), ((3,), torch.float64)):
        for n in (1, 2):
            x = torch.arange(shape[0], dtype=dtype)
            for _ in range(4):
                assert f(x, n=n).item() == n * x.sum().item()
                assert f(x, n=n).dtype == dtype
    assert len(calls) == 2 * 6 and len(f.programs) == 6


def test_modes_are_told_apart() -> None:
    w = torch.ones(3, 3, requires_grad=True)
    f, calls = counted(lambda x: w @ x)
    x = torch.ones(3)
    for _ in range(4):
        assert f(x).requires_grad
        with torch.no_grad():
            assert not f(x).requires_grad
        with torch.inference_mode():
            assert f(x).is_inference()
    assert len(f.programs) == 3 and len(calls) == 6
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert f(x).dtype == torch.bfloat16
    seen: list[Any] = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(f)
            return f(*args, **kwargs or {})

    with Watch():
        f(x)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        f(x)
    assert len(calls) == 9 and len(seen) > 1


def test_autocast_inside_a_function_is_recorded() -> None:
    net = nn.Linear(8, 4)

    def step(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return net(x)

    f = torch.graph(step, fullgraph=True)
    for i in range(5):
        x = torch.linspace(-i, 1, 16).reshape(2, 8)
        assert f(x).dtype == torch.bfloat16 and torch.equal(f(x), step(x))
    assert len(f.programs) == 1


def test_effects_of_python_do_not_repeat_and_what_it_read_stays_until_reset() -> None:
    scale, printed, net = [2.0], [], nn.Dropout(0.5)

    def step(x: Any) -> Any:
        printed.append(scale[0])
        return net(x) * scale[0]

    f = torch.graph(step)
    net.eval()
    x = torch.ones(2)
    for factor in (2.0, 3.0):
        scale[0] = factor
        assert [f(x).tolist() for _ in range(4)] == [[2.0, 2.0]] * 4
    assert printed == [2.0, 2.0] and len(f.programs) == 1
    f.reset()
    assert not f.programs
    assert [f(x).tolist() for _ in range(4)] == [[3.0, 3.0]] * 4
    assert printed == [2.0, 2.0, 3.0, 3.0]


def test_memory_that_was_there_is_the_same_memory_with_what_it_holds_by_then() -> None:
    net, shift = nn.Linear(2, 1, bias=False), torch.zeros(1)
    f, calls = counted(lambda x: (net(x) + shift).detach())
    x = torch.ones(1, 2)
    for i in range(5):
        with torch.no_grad():
            net.weight.fill_(float(i))
            shift.fill_(10.0 * i)
        assert f(x).tolist() == [[12.0 * i]]
    net.weight.data = torch.zeros(1, 2)
    assert f(x).tolist() == [[48.0]]
    assert len(calls) == 2 and len(f.programs) == 1


def test_parameters_and_other_objects_among_the_arguments_are_told_apart_by_which_they_are() -> (
    None
):
    class Scale:
        by = 2.0

    one, other, scale = nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(2)), Scale()
    f, calls = counted(lambda p, s: (p * s.by).sum().detach())
    for _ in range(4):
        assert (f(one, scale).item(), f(other, scale).item()) == (4.0, 0.0)
        assert f(one, Scale()).item() == 4.0
    assert len(f.programs) == 2 and len(calls) == 2 * 2 + 4


def test_results_outlive_the_next_call() -> None:
    f, calls = counted(lambda x: (x + 1, [x * 2], {"a": x}, None, 3))
    kept = [f(torch.full((2,), float(i))) for i in range(6)]
    for i, (one, (two,), named, nothing, three) in enumerate(kept):
        assert one.tolist() == [i + 1.0] * 2 and two.tolist() == [i * 2.0] * 2
        assert named["a"].tolist() == [float(i)] * 2 and nothing is None and three == 3
    assert len(calls) == 2


def test_results_that_nobody_keeps_go_at_once_and_leave_their_memory_to_the_next_call() -> None:
    x = torch.randn(64, 64)
    f = torch.graph(lambda x: {"list": [x * 2], "pair": (x + 1, torch.exp(x))})
    for _ in range(3):
        f(x)
    gc.collect()
    gc.disable()
    try:
        result = f(x)
        gone = weakref.ref(result["list"][0])
        places = [t.data_ptr() for t in (*result["list"], *result["pair"])]
        del result
        assert gone() is None
        result = f(x)
        assert [t.data_ptr() for t in (*result["list"], *result["pair"])] == places
    finally:
        gc.enable()


def test_arguments_are_written_in_place_and_given_back() -> None:
    f, calls = counted(lambda x, y: x.add_(y))
    x = torch.zeros(3)
    for _ in range(5):
        version = x._version
        assert f(x, torch.ones(3)) is x
        assert x._version > version
    assert x.tolist() == [5.0] * 3 and len(calls) == 2
    # Arguments in one memory are another call.
    z = torch.ones(3)
    assert f(z, z).tolist() == [2.0] * 3


def test_constants_that_are_written_to_begin_anew() -> None:
    def f(x: Any) -> Any:
        total = torch.zeros(3)
        for row in x:
            total += row
        return total

    g, calls = counted(f)
    for i in range(5):
        assert g(torch.full((2, 3), float(i))).tolist() == [2.0 * i] * 3
    assert len(calls) == 3  # what was written to is known from the second call on


def test_random_numbers_go_on_as_in_calls() -> None:
    def f() -> Any:
        return torch.randn(20), torch.randperm(5), F.dropout(torch.ones(20), 0.5)

    g, calls = counted(f)
    torch.manual_seed(3)
    expected = [f() for _ in range(6)]
    torch.manual_seed(3)
    found = [g() for _ in range(6)]
    for a, b in zip(expected, found, strict=True):
        assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    assert len(calls) == 2


def test_gradients_that_add_up_are_added_to() -> None:
    w = torch.ones(3, requires_grad=True)
    f, calls = counted(lambda x: (w * x).sum().backward())
    for i in range(1, 6):
        f(torch.ones(3))
        assert w.grad.tolist() == [float(i)] * 3
    assert len(calls) == 3  # the first call made the gradient, the others add to it
    w.grad = None
    f(torch.ones(3))
    assert w.grad.tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: x * x.sum().item(), "elements of a tensor are read"),
        (lambda x: x if x.sum() > 0 else -x, "elements of a tensor are read"),
        (lambda x: x[x > 0], "elements of a tensor are read"),
        (lambda x: torch.from_numpy(x.numpy() * 2), "elements of a tensor are read"),
        (lambda x: x.sum().item(), "elements of a tensor are read"),
        (lambda x: object(), "returns a object"),
    ],
)
def test_what_cannot_be_recorded_runs_as_it_is_and_says_why(function: Any, why: str) -> None:
    f, calls = counted(function)
    xs = [torch.ones(3) * i for i in range(4)]
    expected = [function(x) for x in xs]
    with pytest.warns(UserWarning, match=why) as told:
        found = [f(x) for x in xs]
    assert len(calls) == 4 and len(told) == 1
    for a, b in zip(expected, found, strict=True):
        assert not isinstance(a, torch.Tensor) or torch.equal(a, b)
    with pytest.raises(RuntimeError, match=why):
        torch.graph(function, fullgraph=True)(torch.ones(3))


def test_calls_that_never_repeat_run_as_they_are() -> None:
    number = [0]

    def f(x: Any) -> Any:
        number[0] += 1
        return x + torch.tensor(float(number[0]))

    g = torch.graph(f)
    with pytest.warns(UserWarning, match="no two calls in a row are alike"):
        found = [g(torch.zeros(1)).item() for _ in range(8)]
    assert found == [float(i) for i in range(1, 9)]


def test_errors_leave_nothing_behind() -> None:
    f, calls = counted(lambda x, i: x[i] if i.numel() else torch.zeros(2) @ torch.zeros(3))
    x = torch.arange(3.0)
    with pytest.raises(RuntimeError):
        f(x, torch.empty(0, dtype=torch.int64))
    for i in (0, 1, 2):
        assert f(x, torch.tensor([i])).item() == i
    with pytest.raises(IndexError):
        f(x, torch.tensor([5]))
    assert f(x, torch.tensor([1])).item() == 1.0
    assert len(calls) == 3


def test_threads_may_call_one_recorded_function() -> None:
    f = torch.graph(lambda x: (x @ x).tanh().sum(0))
    xs = [torch.randn(64, 64) for _ in range(4)]
    expected = [(x @ x).tanh().sum(0) for x in xs]
    wrong = []

    def work(i: int) -> None:
        wrong.extend(i for _ in range(30) if not torch.equal(f(xs[i]), expected[i]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_result_walked_through_backward_says_so() -> None:
    w = torch.ones(3, requires_grad=True)

    def step() -> Any:
        w.grad = None
        loss = (w * w).sum()
        loss.backward()
        return loss

    f = torch.graph(step)
    for _ in range(4):
        loss = f()
        assert loss.requires_grad and w.grad.tolist() == [2.0] * 3
        with pytest.raises(RuntimeError, match="a second time"):
            loss.backward()


def test_memory_of_a_program_is_shared_by_what_is_not_needed_at_once() -> None:
    def f(x: Any) -> Any:
        for _ in range(20):
            x = (x * 1.5).sin()
        return x

    g = torch.graph(f)
    for _ in range(3):
        g(torch.zeros(1000))
    made, held = g.programs[0].bytes
    assert made == 40 * 4000
    assert held <= 3 * 4000


@pytest.mark.parametrize("kind", ["mlp", "cnn", "lstm", "gpt"])
def test_a_compiled_module_has_the_bits_of_the_module_and_of_its_gradients(kind: str) -> None:
    def run(compiled: bool) -> list[Any]:
        torch.manual_seed(0)
        net, optimizer, batch = model(kind)
        call = torch.compile(net) if compiled else net
        losses = []
        for _ in range(8):
            x, y = batch()
            optimizer.zero_grad()
            loss = F.cross_entropy(call(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return [*losses, *net.state_dict().values(), *(p.grad for p in net.parameters())]

    for a, b in zip(run(False), run(True), strict=True):
        assert torch.equal(a, b)


def test_gradients_of_a_recorded_call_reach_its_arguments_and_add_up() -> None:
    w = torch.full((3,), 2.0, requires_grad=True)
    f, calls = counted(lambda x: ((w * x).sin(), x * x))
    for i in range(5):
        x = torch.arange(3.0) + i
        a, b = x.clone().requires_grad_(), (2 * x).requires_grad_()
        w.grad = None
        # Two calls before any way back, and one way back that goes twice.
        one, two = f(a), f(b * 1.0)
        total = one[0].sum() + two[1].sum()
        total.backward(retain_graph=True)
        total.backward()
        assert torch.allclose(a.grad, 2 * 2 * (2 * x).cos())
        assert torch.equal(b.grad, 2 * 4 * x)
        assert torch.allclose(w.grad, 2 * x * (2 * x).cos())
        with pytest.raises(RuntimeError, match="a second time"):
            total.backward()
    assert len(calls) == 4  # arguments that are leaves are of another kind than those that are not


def test_a_recorded_call_notices_what_its_gradient_cannot_go_through() -> None:
    w = torch.full((3,), 2.0, requires_grad=True)
    f = torch.graph(lambda x: w * w * x)
    for _ in range(3):
        y = f(torch.ones(3))
    with torch.no_grad():
        w.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = f(torch.ones(3))
    y.sum().backward()
    assert w.grad.tolist() == [6.0] * 3


def test_compiled_modules_are_modules() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    call = torch.compile(net)
    assert isinstance(call, nn.Module) and call._orig_mod is net
    assert list(call.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    call.eval()
    assert not net.training
    x = torch.ones(1, 2)
    assert all(torch.equal(call(x), net(x)) for _ in range(4))
    copied = pickle.loads(pickle.dumps(call))
    assert torch.equal(copied(x), net(x))
    with torch.compiler.set_stance("force_eager"):
        assert torch.equal(call(x), net(x))
    torch.compiler.reset()
    assert torch.equal(call(x), net(x))


def test_a_schedule_inside_a_compiled_step_goes_on() -> None:
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    @torch.compile
    def step() -> None:
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()
        schedule.step()

    for _ in range(4):
        step()
    assert w.item() == 1.0 - 1.875


def test_a_second_derivative_of_a_recorded_call_says_that_there_is_none() -> None:
    f = torch.graph(lambda x: (x**3).sum())
    x = torch.ones(2, requires_grad=True)
    for _ in range(2):
        (g,) = torch.autograd.grad(f(x), x, create_graph=True)
        assert g.tolist() == [3.0, 3.0] and g.requires_grad
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(f(x), x, create_graph=True)
    assert torch.autograd.grad(f(x), x)[0].tolist() == [3.0, 3.0]


def test_a_way_back_that_cannot_be_walked_through_is_no_error_of_the_call() -> None:
    class Refuses(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise ValueError("not yet")

    f = torch.graph(lambda x: Refuses.apply(x))
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="its way back raises ValueError: not yet"):
        assert [f(x).tolist() for _ in range(4)] == [[2.0, 2.0]] * 4
    with pytest.raises(ValueError, match="not yet"):
        f(x).sum().backward()


def test_shapes_in_turn_each_have_their_program() -> None:
    call = torch.graph(lambda x: x * 2)
    for _ in range(4):
        for n in range(1, 21):
            assert call(torch.ones(n)).shape == (n,)
    assert len(call.programs) == 20
    with pytest.warns(UserWarning, match="more than 32 kinds") as told:
        shapes = [call(torch.ones(n)).shape for n in [*range(1, 40)] * 3]
    assert shapes == [(n,) for n in range(1, 40)] * 3
    assert len(told) == 1 and len(call.programs) == 32


def test_graphs_within_graphs_and_compiled_functions_give_the_same() -> None:
    inner = torch.graph(lambda x: (x * 2).sin())
    compiled = torch.compile(lambda x: (x * 2).sin())
    for outer in (
        torch.graph(lambda x: inner(x * 3) + 1),
        torch.compile(lambda x: inner(x * 3) + 1),
        torch.graph(lambda x: compiled(x * 3) + 1),
    ):
        for i in range(6):
            x = torch.full((40, 40), float(i))
            assert torch.equal(outer(x), (x * 3 * 2).sin() + 1)


def test_arguments_that_no_kind_can_be_told_of_run_as_they_are() -> None:
    knot: list[Any] = [torch.ones(2)]
    knot.append(knot)
    for given, why in ((knot, "contains itself"), ([np.ones(2)], "is a NumPy array")):
        f = torch.graph(lambda x: torch.as_tensor(x[0]) + 1)
        with pytest.warns(UserWarning, match=why):
            assert f(given).tolist() == [2.0, 2.0]
        with pytest.raises(RuntimeError, match=why):
            torch.graph(lambda x: torch.as_tensor(x[0]) + 1, fullgraph=True)(given)
    for x in (3, "f", torch.ones(2)):
        with pytest.raises(TypeError, match=f"expected a function.*got {type(x).__name__}"):
            torch.graph(x)


def test_nothing_is_kept_of_a_function_that_is_gone() -> None:
    w = torch.ones(1000, requires_grad=True)
    f = torch.graph(lambda x: (w * x).sum().detach())
    for _ in range(4):
        f(torch.ones(1000))
    gone = weakref.ref(f)
    memory = weakref.ref(f.programs[0]) if hasattr(f.programs[0], "__weakref__") else gone
    del f
    gc.collect()
    assert gone() is None and memory() is None
