"""Numbers of operators that change from call to call, in compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import wgpu
from pytensorlib.nn import functional as F

DEVICES = ["cpu", *(["wgpu"] if wgpu.is_available() else [])]
# Of a tensor, a number that is another one in each call, and the number of the call.
CALLS: dict[str, Callable[[Any, float, int], Any]] = {
    "add": lambda x, p, i: x.add(x, alpha=p) + p,
    "a number of the host": lambda x, p, i: x * torch.tensor(p) + p,
    "pow": lambda x, p, i: (x.abs() + 1) ** p,
    "clamp": lambda x, p, i: x.clamp(-p, p),
    "threshold": lambda x, p, i: F.threshold(x, p, 2 * p),
    "masked_fill": lambda x, p, i: x.masked_fill(x > 0, p),
    "full": lambda x, p, i: torch.full_like(x, p) + x,
    "fill_": lambda x, p, i: x.clone().fill_(p) * x,
    "arange": lambda x, p, i: torch.arange(i, i + 64, device=x.device).reshape(8, 8) * x,
    "roll": lambda x, p, i: x.roll(i) + p,
    "addmm": lambda x, p, i: torch.addmm(x, x, x, alpha=p, beta=2 * p),
    "layer_norm": lambda x, p, i: F.layer_norm(x, (8,), eps=p),
    "softmax": lambda x, p, i: (x * p).softmax(1) - p,
    "sum": lambda x, p, i: (x * p).sum(0) * p,
    "attention": lambda x, p, i: F.scaled_dot_product_attention(
        *[x[None, None]] * 3, dropout_p=p, scale=p
    ),
    "attention's dropout": lambda x, p, i: F.scaled_dot_product_attention(
        *[x[None, None]] * 3, dropout_p=0.25
    ),
    "dropout": lambda x, p, i: F.dropout(x, p) + 1,
    "alpha_dropout": lambda x, p, i: F.alpha_dropout(x, p, True),
    "uniform_": lambda x, p, i: torch.empty_like(x).uniform_(p, p + 1) * x,
    "normal_": lambda x, p, i: torch.empty_like(x).normal_(p, p + 1) * x,
    "bernoulli_": lambda x, p, i: torch.empty_like(x).bernoulli_(p) * x,
    "exponential_": lambda x, p, i: torch.empty_like(x).exponential_(p) * x,
    "randint": lambda x, p, i: torch.randint(i, i + 5, (8, 8), device=x.device) * x,
    "gamma": lambda x, p, i: torch._standard_gamma(torch.full_like(x, p)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CALLS)
def test_number_of_an_operator_that_changes_is_that_of_the_call(name: str, device: str) -> None:
    x = torch.linspace(-1, 1, 64).reshape(8, 8).to(device)

    def run(call: Any) -> list[Any]:
        torch.manual_seed(0)
        # The same number twice, and others after it.
        return [call(x, 0.1 + 0.05 * (i // 2), i // 2).cpu() for i in range(14)]

    for a, b in zip(run(CALLS[name]), run(torch.compile(CALLS[name])), strict=True):
        assert torch.equal(a, b)


OPTIONS: dict[str, Callable[[int], Any]] = {
    "lr": lambda i: 0.1 / (1 + i),
    "weight_decay": lambda i: 0.1 / (1 + i),
    "eps": lambda i: 0.1 / (1 + i),
    "betas": lambda i: (0.5 + 0.01 * i, 0.9 + 0.01 * i),
    "momentum": lambda i: 0.9 - 0.01 * i,
    "dampening": lambda i: 0.01 * i,
    "alpha": lambda i: 0.9 + 0.005 * i,
    "maximize": lambda i: i % 3 == 0,
}
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd with momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p),
    "adamw": lambda p: torch.optim.AdamW(p, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, momentum=0.5),
    "nadam": lambda p: torch.optim.NAdam(p),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_option_of_an_optimizer_that_changes_is_that_of_the_step(name: str, device: str) -> None:
    def run(option: str, compiled: bool) -> list[Any]:
        w = torch.ones(40, device=device, requires_grad=True)
        optimizer = OPTIMIZERS[name]([w])

        def step(x: Any) -> None:
            optimizer.zero_grad()
            (w * w * x).sum().backward()
            optimizer.step()

        call, found = torch.compile(step) if compiled else step, []
        for i in range(10):
            optimizer.param_groups[0][option] = OPTIONS[option](i)
            call(torch.full((40,), 1.0 + i, device=device))
            found.append(w.detach().cpu().clone())
        return found

    options = OPTIMIZERS[name]([torch.ones(1)]).param_groups[0].keys() & OPTIONS.keys()
    assert len(options) >= 4
    for option in sorted(options):
        for a, b in zip(run(option, False), run(option, True), strict=True):
            assert torch.equal(a, b), option
