"""Graphs of `make_fx` have PyTorch's code, and compute with other arguments what programs do."""

from __future__ import annotations

import json
from typing import Any

import make_fx_programs
import pytest

import pytensorlib as torch
from pytensorlib.fx.experimental.proxy_tensor import make_fx
from pytensorlib.utils import _pytree as pytree

TEXTS = json.loads(make_fx_programs.DATA.read_text())
PROGRAMS = make_fx_programs.programs(torch)
CODES = make_fx_programs.codes(torch)


@pytest.mark.parametrize("name", TEXTS)
def test_graph_has_pytorchs_code(name: str) -> None:
    assert CODES[name] == TEXTS[name]


def other(t: Any) -> Any:
    if not isinstance(t, torch.Tensor) or not t.is_floating_point():
        return t
    torch.manual_seed(t.numel())
    return (t.detach() + 0.3 * torch.rand_like(t)).requires_grad_(t.requires_grad)


@pytest.mark.parametrize("name", CODES)
def test_graph_computes_what_the_program_does(name: str) -> None:
    function, args = PROGRAMS[name]
    graph = make_fx(function)(*args)
    for given in (args, pytree.tree_map(other, args)):
        have, want = graph(*given), function(*given)
        torch.testing.assert_close(have, want, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("start", [torch.zeros, torch.ones])
@pytest.mark.parametrize(
    "function",
    [
        lambda t: torch.nn.functional.gelu(t, approximate="tanh").sum(),
        lambda t: torch.softmax(t, 0).pow(2).sum() + torch.softmax(t, 1).pow(3).sum(),
        lambda t: (t.pow(2) + t.pow(3)).sum(),
        lambda t: torch.sub(t, t.sin(), alpha=3).sum(),
        lambda t: t[:, torch.tensor([2, 0, 1])].mul(t).sum(),
    ],
)
def test_example_that_tells_little_gives_a_graph_that_holds(function: Any, start: Any) -> None:
    slope = torch.func.grad(function)
    graph = make_fx(slope)(start(3, 3))
    given = torch.randn(3, 3)
    torch.testing.assert_close(graph(given), slope(given))
