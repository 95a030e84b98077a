"""Graphs of `make_fx` have PyTorch's code, and compute with other arguments what programs do."""

from __future__ import annotations

import json
import re
from typing import Any

import make_fx_programs
import pytest

import pytensorlib as torch
from pytensorlib.fx import Interpreter
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
        results = []
        for run in (function, graph, Interpreter(graph).run):
            torch.manual_seed(0)
            results.append(run(*given))
        for have in results[1:]:
            torch.testing.assert_close(have, results[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith(" step")])
def test_steps_have_no_operator_that_keeps_its_arguments(name: str) -> None:
    function, args = PROGRAMS[name]
    graph = make_fx(function)(*args).graph
    assert not [n for n in graph.nodes if n.op == "call_function" and hasattr(n.target, "_op")]


F = torch.nn.functional
LAYERS = {
    "conv": lambda t, w: F.conv2d(t.view(1, 1, 4, 4), w[:2, :2].reshape(1, 1, 2, 2)),
    "linear": lambda t, w: F.linear(t, w, w[0]),
    "linear 3d": lambda t, w: F.linear(t[None], w).tanh(),
    "matmul": lambda t, w: (t[None, None] @ w[None, None]).sigmoid(),
    "layer_norm": lambda t, w: F.layer_norm(t, (4,), w[0], w[1]),
    "group_norm": lambda t, w: F.group_norm(t.view(2, 2, 4), 2, w[0, :2]),
    "batch_norm": lambda t, w: F.batch_norm(t, None, None, w[0], w[1], True),
    "softmax": lambda t, w: torch.softmax(t * w, 1).log_softmax(0),
    "glu": lambda t, w: F.glu(t * w, 1),
    "prelu": lambda t, w: F.prelu(t, w[0]),
    "logsigmoid": lambda t, w: F.logsigmoid(t * w),
    "max_pool": lambda t, w: F.max_pool2d((t * w)[None], 2),
    "avg_pool": lambda t, w: F.avg_pool2d((t * w)[None], 2),
    "mul in place": lambda t, w: (t * 2).mul_(w.sin()).mul_(t),
    "std": lambda t, w: (t * w).std(1) + t.var(0),
    "norm": lambda t, w: F.normalize(t * w) * t.norm(),
    "attention": lambda t, w: F.scaled_dot_product_attention(t[None, None], *[w[None, None]] * 2),
    "cross_entropy": lambda t, w: F.cross_entropy(t @ w, torch.arange(4), reduction="none"),
    "slices": lambda t, w: torch.cat([t[:, 1:3] * w[:, :2], torch.stack([t[:, -1]] * 2, 1)], 1),
    "smooth": lambda t, w: F.smooth_l1_loss(t, w, reduction="none") + F.huber_loss(t, w)[None],
}  # fmt: skip


def slope(f: Any) -> Any:
    return torch.func.grad(lambda t, w: f(t, w).pow(2).sum())


HIGHER = {
    "grad of grad": lambda f: slope(lambda t, w: slope(f)(t, w).sin()),
    "create_graph": lambda f: lambda t, w: penalty(f, t, w),
    "vmap of grad": lambda f: (
        lambda t, w: torch.func.vmap(slope(f), (0, None))(torch.stack([t, 2 * t]), w)
    ),
    "jvp": lambda f: lambda t, w: torch.func.jvp(lambda u: f(u, w), (t,), (w,)),
    "jvp of grad": lambda f: lambda t, w: torch.func.jvp(lambda u: slope(f)(u, w), (t,), (w,)),
    "jacrev": lambda f: torch.func.jacrev(f),
}


def penalty(f: Any, t: Any, w: Any) -> Any:
    t, w = t.detach().requires_grad_(), w.detach().requires_grad_()
    (first,) = torch.autograd.grad(f(t, w).pow(2).sum(), t, create_graph=True)
    return torch.autograd.grad(first.pow(2).sum(), (t, w), allow_unused=True)


@pytest.mark.parametrize("kind", HIGHER)
@pytest.mark.parametrize("layer", LAYERS)
def test_higher_derivatives_are_those_of_the_program(layer: str, kind: str) -> None:
    torch.manual_seed(0)
    program = HIGHER[kind](LAYERS[layer])
    t, w = torch.rand(4, 4, dtype=torch.float64) + 0.2, torch.rand(4, 4, dtype=torch.float64) + 0.3
    try:
        want = program(t, w)
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=re.escape(str(error).splitlines()[0])):
            make_fx(program)(t, w)
        return
    graph = make_fx(program)(t, w)
    torch.testing.assert_close(graph(t, w), want)
    t, w = t + 0.1 * torch.rand_like(t), w + 0.1 * torch.rand_like(w)
    torch.testing.assert_close(graph(t, w), program(t, w))


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
