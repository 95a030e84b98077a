"""What changes between calls of a compiled function is seen by the next call, at any depth."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import nn, wgpu

DEVICES = ["cpu", *(["wgpu"] if wgpu.is_available() else [])]


class Inner(nn.Module):
    """A layer with a parameter, a buffer, a number and a dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.drop = nn.Linear(24, 24), nn.Dropout(0.25)
        self.w = nn.Parameter(torch.ones(24))
        self.register_buffer("shift", torch.zeros(24))
        self.factor = 1.5

    def forward(self, x: Any) -> Any:
        return self.drop(self.lin(x)) * self.w * self.factor + self.shift


class Other(Inner):
    """Another layer of the same parts."""

    def forward(self, x: Any) -> Any:
        return self.lin(x) - self.w


class Doubled(nn.Module):
    """A parametrization."""

    def forward(self, w: Any) -> Any:
        return w * 2


def to_cpu_and_back(root: Any, inner: Any) -> None:
    device = inner.w.device
    root.to("cpu")
    with torch.no_grad():
        inner.w.fill_(4.0)
    root.to(device)


def ones(t: Any) -> Any:
    return torch.full_like(t, 0.5).detach()


def load(root: Any, inner: Any) -> None:
    root.load_state_dict({k: ones(v) for k, v in root.state_dict().items()}, assign=True)


def prune(root: Any, inner: Any) -> None:
    torch.manual_seed(3)
    nn.utils.prune.random_unstructured(inner.lin, "weight", 0.5)


def one_forward(root: Any, inner: Any) -> None:
    inner.forward = types.MethodType(lambda self, x: self.lin(x) * 3, inner)


CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "data": lambda _, m: setattr(m.lin.weight, "data", ones(m.lin.weight)),
    "parameter": lambda _, m: setattr(m.lin, "weight", nn.Parameter(ones(m.lin.weight))),
    "load_state_dict": load,
    "prune": prune,
    "module": lambda _, m: setattr(m, "lin", nn.Sequential(m.lin, nn.Tanh())),
    "another layer": lambda _, m: setattr(m, "drop", nn.Tanh()),
    "a layer's number": lambda _, m: setattr(m.drop, "p", 0.99999),
    "a number": lambda _, m: setattr(m, "factor", -2.5),
    "to cpu and back": to_cpu_and_back,
    "eval": lambda _, m: m.eval(),
    "requires_grad": lambda _, m: m.lin.weight.requires_grad_(False),
    "buffer": lambda _, m: setattr(m, "shift", torch.ones_like(m.shift)),
    "forward": one_forward,
    "class": lambda _, m: setattr(m, "__class__", Other),
    "parametrization": lambda _, m: nn.utils.parametrize.register_parametrization(
        m.lin, "weight", Doubled()
    ),
    "forward hook": lambda _, m: m.lin.register_forward_hook(lambda m, x, y: y * 2),
    "forward pre-hook": lambda _, m: m.lin.register_forward_pre_hook(lambda m, x: (x[0] * 2,)),
    "backward hook": lambda _, m: m.drop.register_full_backward_hook(lambda m, i, o: (i[0] * 3,)),
    "backward pre-hook": lambda _, m: m.register_full_backward_pre_hook(lambda m, o: (o[0] * 3,)),
    "hook of a tensor": lambda _, m: m.w.register_hook(lambda g: g * 2),
    "hook after a gradient": lambda _, m: m.w.register_post_accumulate_grad_hook(
        lambda p: setattr(p, "grad", p.grad * 3)
    ),
    "a gradient that is gone": lambda _, m: setattr(m.w, "grad", None),
    "a new gradient": lambda _, m: setattr(m.w, "grad", torch.full_like(m.w, 7.0).detach()),
    "hook of all modules": lambda _, m: nn.modules.module.register_module_forward_hook(
        lambda m, x, y: y * 2 if isinstance(m, nn.Linear) else None
    ),
}


class Twin:
    """A nest of modules and a step of training, as it is or compiled."""

    def __init__(self, depth: int, device: str, compiled: bool) -> None:
        torch.manual_seed(0)
        self.inner = Inner().to(device)
        self.root: Any = self.inner
        for _ in range(depth - 1):
            self.root = nn.Sequential(self.root)

        def step(x: Any) -> Any:
            loss = (root(x) * weight).sum()
            loss.backward()
            return loss.detach()

        root, weight = self.root, torch.linspace(-1, 1, 48).reshape(2, 24).to(device)
        self.x = torch.linspace(0, 1, 48).reshape(2, 24).to(device)
        self.step = torch.compile(step) if compiled else step

    def calls(self, n: int) -> list[Any]:
        """Return losses and gradients."""
        found = []
        for i in range(n):
            torch.manual_seed(i)
            found.append(self.step(self.x).cpu())
            grads = [p.grad for p in self.root.parameters()]
            found += [None if g is None else g.detach().cpu().clone() for g in grads]
        return found


def equal(a: list[Any], b: list[Any]) -> bool:
    both = zip(a, b, strict=True)
    return all(x is y if x is None or y is None else torch.equal(x, y) for x, y in both)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("depth", "device"), [(1, "cpu"), (4, "cpu"), *[(3, d) for d in DEVICES[1:]]]
)
def test_change_of_a_module_at_any_depth_is_seen(depth: int, change: str, device: str) -> None:
    found = []
    for compiled in (False, True):
        twin = Twin(depth, device, compiled)
        results = twin.calls(5)
        handle = CHANGES[change](twin.root, twin.inner)
        try:
            results += twin.calls(4)
        finally:
            if change == "hook of all modules":
                handle.remove()
        found.append([*results, *twin.calls(1)])
        assert not compiled or twin.step.counts["runs"] > 0
    assert equal(*found)


def test_settings_and_modes_are_those_of_the_call() -> None:
    w = torch.ones(4, 8, requires_grad=True)
    call = torch.compile(lambda x: (x * w + torch.zeros(8)).detach())
    x = torch.ones(4, 8)
    for _ in range(4):
        call(x)
    for default in (torch.float64, torch.float32):
        torch.set_default_dtype(default)
        try:
            assert [call(x).dtype for _ in range(3)] == [default] * 3
        finally:
            torch.set_default_dtype(torch.float32)
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t):
        call(x)
    assert packed
    seen = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(f)
            return f(*args, **kwargs or {})

    with Watch():
        call(x)
    assert seen
    made = torch.compile(lambda: torch.ones(4, 8) * 2)
    for device in ("cpu", "meta", "cpu"):
        torch.set_default_device(device)
        try:
            assert [made().device.type for _ in range(3)] == [device] * 3
        finally:
            torch.set_default_device(None)
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            for _ in range(3):
                y = torch.compile(lambda x: x @ w.T)(x)
        assert (y.requires_grad, y.is_inference()) == (
            mode is torch.enable_grad,
            mode is torch.inference_mode,
        )


def test_numbers_that_change_in_each_call_are_those_of_the_call() -> None:
    number = [0.0]

    def f(x: Any) -> Any:
        number[0] += 1
        return (x * number[0] + torch.tensor(number[0])).sum(1)

    call = torch.compile(f)
    x = torch.arange(64.0).reshape(2, 32)
    for i in range(1, 30):
        assert torch.equal(call(x), (x * i + float(i)).sum(1))
    assert call.counts["runs"] > 20


def test_shapes_in_turn_are_those_of_the_call() -> None:
    call = torch.compile(lambda x: (x * 2 + 1).sum(-1, keepdim=True) * x)
    for _ in range(4):
        for n in range(17, 60):
            x = torch.arange(2.0 * n).reshape(2, n)
            assert torch.equal(call(x), (x * 2 + 1).sum(-1, keepdim=True) * x)
    assert call.counts["runs"] > 100


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["plain", "dropout", "batch norm", "views"])
def test_second_derivatives_are_those_of_the_function(kind: str, device: str) -> None:
    dtype = torch.float64 if device == "cpu" else torch.float32

    def run(compiled: bool) -> list[Any]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(device, dtype)
        if kind == "dropout":
            net.insert(1, nn.Dropout(0.5))
        if kind == "batch norm":
            net.insert(1, nn.BatchNorm1d(4).to(device, dtype))
        f = lambda x: {"out": [net(x), x * x]}  # noqa: E731
        call = torch.compile(f) if compiled else f
        base = torch.arange(12.0, device=device, dtype=dtype).reshape(4, 3) / 10
        found = []
        for i in range(6):
            x = (base + i).requires_grad_()
            y = x * 2 if kind == "views" else x
            out, square = call(y)["out"]
            loss = out.square().sum() + square.sum()
            if i < 4:
                loss.backward()
            else:
                (g,) = torch.autograd.grad(loss, x, create_graph=True)
                (loss + g.square().sum()).backward()
                found.append(g)
            found += [x.grad, *[p.grad for p in net.parameters()], torch.rand(2)]
            net.zero_grad()
        return [t.detach().cpu() for t in [*found, *net.buffers()]]

    assert equal(run(False), run(True))


def test_array_of_numpys_that_changes_is_read_anew() -> None:
    array = np.zeros(32, np.float32)
    t = torch.from_numpy(array)
    call = torch.compile(lambda x: ((x * 2 + t) * 2, float(array[3])))
    for i in range(5):
        array[:] = i
        y, number = call(torch.ones(32))
        assert (y.tolist(), number) == ([4.0 + 2 * i] * 32, i)


def test_errors_in_the_middle_leave_what_the_function_leaves() -> None:
    def run(compiled: bool) -> list[Any]:
        w = torch.ones(32, requires_grad=True)
        state = torch.zeros(32)

        def f(x: Any, fails: bool) -> Any:
            state.add_(1)
            y = (w * x).sin()
            state.mul_(2)
            if fails:
                raise ValueError("in the middle")
            y.sum().backward()
            return y.detach()

        call = torch.compile(f) if compiled else f
        found = []
        for i in range(9):
            x = torch.full((32,), float(i))
            try:
                found.append(call(x, i in (2, 5, 6)))
            except ValueError as error:
                found.append(torch.tensor(len(str(error))))
            found += [state.clone(), None if w.grad is None else w.grad.clone()]
        return found

    assert equal(run(False), run(True))


def test_compile_refuses_what_cannot_be_called_and_takes_what_contains_itself() -> None:
    for x in (3, "f", torch.ones(2)):
        with pytest.raises(TypeError, match=f"expected a function.*got {type(x).__name__}"):
            torch.compile(x)
    knot: list[Any] = [torch.ones(2)]
    knot.append(knot)
    assert torch.compile(lambda x: x[0] + 1)(knot).tolist() == [2.0, 2.0]
