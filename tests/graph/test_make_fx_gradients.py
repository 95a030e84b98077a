"""Recorded programs of `make_fx` that gradients go through, and recorded gradients of slices."""

from __future__ import annotations

from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.func import functional_call, grad, hessian, jacrev, vmap
from pytensorlib.fx.experimental.proxy_tensor import make_fx
from pytensorlib.nn import functional as F  # noqa: N812

MODULES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "lstm": (lambda: nn.LSTM(2, 3), (4, 1, 2)),
    "gru": (lambda: nn.GRU(2, 3), (4, 1, 2)),
    "norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    "pool": (lambda: nn.MaxPool1d(2), (1, 2, 6)),
    "conv": (lambda: nn.ConvTranspose1d(2, 3, 2, stride=2), (1, 2, 4)),
    "written": (lambda: Written(), (3, 2)),
}


class Written(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, x: Any) -> Any:
        y = x * self.weight
        y[1] = self.weight
        y[:, 0].copy_(x[:, 1] * self.weight[0]).exp_()
        return y.clamp(max=50.0)


def result(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


@pytest.mark.parametrize("name", MODULES)
def test_recorded_program_has_the_gradients_of_its_function(name: str) -> None:
    torch.manual_seed(0)
    make, shape = MODULES[name]
    module = make()
    program = make_fx(lambda t: result(module(t)))(torch.randn(shape))
    x = torch.randn(shape, requires_grad=True)
    inputs = [x, *module.parameters()]
    found = torch.autograd.grad(program(x).square().sum(), inputs)
    want = torch.autograd.grad(result(module(x)).square().sum(), inputs)
    for a, b in zip(found, want, strict=True):
        torch.testing.assert_close(a, b)


def cubic(x: Any) -> Any:
    return (x.tanh() * x).sum()


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (vmap(grad(cubic)), (2, 4)),
        (vmap(vmap(grad(cubic))), (2, 3, 4)),
        (vmap(grad(lambda x: x.sum().sin().sum())), (2, 4)),  # a sum of one number of each slice
        (jacrev(lambda x: x.tanh() * x), (3,)),
        (hessian(cubic), (3,)),
        (vmap(hessian(cubic)), (2, 3)),
    ],
)
def test_recorded_gradients_of_slices(function: Any, shape: tuple[int, ...]) -> None:
    program = make_fx(function)(torch.randn(shape))
    x = torch.linspace(-1.0, 2.0, torch.Size(shape).numel()).view(shape)
    torch.testing.assert_close(program(x), function(x))


def test_recorded_gradients_of_samples() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    state = {k: v.detach() for k, v in net.named_parameters()}

    def loss(state: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(functional_call(net, state, (x[None],)), y[None])

    function = vmap(grad(loss), (None, 0, 0))
    program = make_fx(function)(state, torch.randn(3, 1, 4, 4), torch.tensor([0, 1, 2]))
    args = state, torch.randn(3, 1, 4, 4), torch.tensor([2, 0, 1])
    torch.testing.assert_close(program(*args), function(*args))
