"""Grad mode, `detach` and autocast inside exported programs: the program's gradients and types.

The law is that a program trains as the module does from which it was exported.
"""

from __future__ import annotations

import io
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.export import Dim, export, load, save, unflatten

x = torch.arange(6.0).view(2, 3) / 6


class Two(nn.Module):
    """Two layers and an average that is kept."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two, self.function = nn.Linear(3, 3), nn.Linear(3, 3), function
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, t: Any) -> Any:
        return self.function(self, t)


def detached(m: Any, t: Any) -> Any:
    return m.one(t) * m.two(t).detach()


def data(m: Any, t: Any) -> Any:
    return m.one(t) * m.two(t).data


def without(m: Any, t: Any) -> Any:
    with torch.no_grad():
        kept = m.two(t)
    return m.one(t) * kept


def within(m: Any, t: Any) -> Any:
    one = m.one(t)
    with torch.no_grad():
        two = m.two(one)
        with torch.enable_grad():
            three = m.one(two)
    return one * two * three


def average(m: Any, t: Any) -> Any:
    one = m.one(t) + m.two(t)
    with torch.no_grad():
        m.mean.mul_(0.9).add_(one.mean(0), alpha=0.1)
    return one + m.mean


def parts(m: Any, t: Any) -> Any:
    with torch.no_grad():
        n = t.shape[0]
        a, b = m.two(t).split([1, 2], 1)
    return m.one(t) * a + b.sum() + n


def chosen(m: Any, t: Any) -> Any:
    def yes(t: Any) -> Any:
        with torch.no_grad():
            kept = m.two(t)
        return m.one(t) * kept

    return torch.cond(t.sum() > 0, yes, lambda t: m.one(t) * 1, (t,))


def frozen_choice(m: Any, t: Any) -> Any:
    with torch.no_grad():
        kept = torch.cond(t.sum() > 0, lambda t: m.two(t), lambda t: m.two(t) * 2, (t,))
    return m.one(t) * kept


PROGRAMS = [detached, data, without, within, average, parts, chosen, frozen_choice]


def trained(module: Any, t: Any) -> Any:
    """Return results and gradients of two steps."""
    first = module(t)
    first.sum().backward()
    second = module(t + 1)
    second.sum().backward()
    state = {n: p.grad for n, p in module.named_parameters()}
    return first.detach(), second.detach(), state, dict(module.named_buffers())["mean"]


def same(a: Any, b: Any) -> None:
    for left, right in zip(a, b, strict=True):
        torch.testing.assert_close(left, right)


@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("form", ["module", "stored", "unflatten", "open"])
def test_program_has_the_gradients_of_its_module(function: Any, form: str) -> None:
    shapes = {"t": {0: Dim("rows", max=50)}} if form == "open" else None
    program = export(Two(function), (x,), dynamic_shapes=shapes)
    if form == "stored":
        file = io.BytesIO()
        save(program, file)
        file.seek(0)
        program = load(file)
    module = unflatten(program) if form == "unflatten" else program.module()
    t = torch.arange(12.0).view(4, 3) / 12 if form == "open" else x
    same(trained(module, t), trained(Two(function), t))


@pytest.mark.parametrize("function", PROGRAMS)
def test_program_for_inference_has_the_results(function: Any) -> None:
    program = export(Two(function), (x,)).run_decompositions()
    code = program.graph_module.code
    assert "wrap_with_set_grad_enabled" not in code
    assert ("aten.alias.default" in code) == (function in (detached, data))
    module, own = program.module(), Two(function)
    for t in (x, x - 1):
        torch.testing.assert_close(module(t), own(t))
    torch.testing.assert_close(module.mean, own.mean)


@pytest.mark.parametrize("function", PROGRAMS)
def test_onnx_has_the_results(function: Any) -> None:
    pytest.importorskip("onnxruntime")
    module = Two(function)
    program = torch.onnx.export(module, (x,))
    (found,) = program(x)
    torch.testing.assert_close(found, Two(function)(x))


def test_graph_names_the_mode_as_that_of_pytorch() -> None:
    program = export(Two(without), (x,))
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    assert [str(n.target) for n in calls] == [
        "wrap_with_set_grad_enabled", "<built-in function getitem>", "aten.linear.default",
        "aten.mul.Tensor",
    ]  # fmt: skip
    assert calls[0].args[0] is False
    part = program.graph_module.submod_1
    names = [n.name for n in part.graph.nodes if n.op == "placeholder"]
    assert names == ["t", "p_two_weight", "p_two_bias"]
    assert "aten.detach.default" in export(Two(detached), (x,)).graph_module.code


def low(m: Any, t: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = m.one(t)
        z = torch.softmax(y, -1) + y
        with torch.autocast("cpu", enabled=False):
            w = m.two(t)
    return m.two(z.float()), z, w


def low_choice(m: Any, t: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = torch.cond(t.sum() > 0, lambda t: m.one(t), lambda t: m.two(t), (t,))
        return a, m.one(t) @ m.two(t).mT


@pytest.mark.parametrize("function", [low, low_choice])
@pytest.mark.parametrize("lowered", [False, True])
def test_autocast_inside_a_program(function: Any, lowered: bool) -> None:
    program = export(Two(function), (x,))
    if lowered:
        program = program.run_decompositions()
    found, own = program.module(), Two(function)
    for t in (x, -x):
        for a, b in zip(found(t), own(t), strict=True):
            assert a.dtype is b.dtype
            torch.testing.assert_close(a, b)
    for node in program.graph.output_node().args[0]:
        assert node.meta["val"].dtype in (torch.bfloat16, torch.float32)


def test_autocast_around_the_export_is_no_part_of_the_program() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        program = export(nn.Linear(3, 3), (x,))
    assert program.module()(x).dtype is torch.float32
