"""Branches and loops in each other, and state that is assigned, in exported programs."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib._higher_order_ops import map as each
from pytensorlib._higher_order_ops import scan
from pytensorlib.export import Dim, export, load, save

x = torch.arange(8.0).view(2, 4) / 8


class Called(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.scale = nn.Parameter(torch.full((4,), 2.0))

    def forward(self, *args: Any) -> Any:
        return self.function(self, *args)


def branch(module: Any, t: Any) -> Any:
    def inner(t: Any) -> Any:
        return torch.cond(t.max() > 0.5, lambda t: t + module.scale, lambda t: t + 2, (t,))

    return torch.cond(t.sum() > 0, inner, lambda t: t.cos(), (t,))


def loop(module: Any, t: Any) -> Any:
    def body(i: Any, t: Any) -> Any:
        return i + 1, torch.cond(t.sum() > 3, lambda t: t + 1, lambda t: t * module.scale, (t,))

    return torch.while_loop(lambda i, t: i < 3, body, (torch.tensor(0), t))[1]


def rows(module: Any, t: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        made = torch.cond(
            row.sum() > 1, lambda c, r: c + r, lambda c, r: c - r * module.scale, (carry, row)
        )
        return made, made * 2

    return scan(step, torch.zeros(4), t)


def mapped(module: Any, t: Any) -> Any:
    return each(lambda row, s: (row * s).sum(), t, module.scale)


@pytest.mark.parametrize("function", [branch, loop, rows, mapped])
@pytest.mark.parametrize("stored", [False, True])
def test_branches_and_loops_nest_and_are_stored(function: Any, stored: bool) -> None:
    module = Called(function)
    program = export(module, (x,), dynamic_shapes={"args": ({0: Dim("rows", min=2)},)})
    if stored:
        file = io.BytesIO()
        save(program, file)
        program = load(io.BytesIO(file.getvalue()))
    names = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert sum(name in ("cond", "while_loop", "scan") for name in names) == 1
    with torch.no_grad():
        for given in (x, -x, x * 0.1, torch.cat([x, 1 - x])):
            torch.testing.assert_close(program.module()(given), module(given))


def test_branches_of_other_types_are_refused() -> None:
    module = Called(lambda m, t: torch.cond(t.sum() > 0, torch.sin, lambda t: t.double(), (t,)))
    with pytest.raises(RuntimeError, match="expected same dtype but got torch.float32 and torch.f"):
        export(module, (x,))
    module = Called(lambda m, t: torch.cond(t.sum() > 0, torch.sin, lambda t: t.sum(), (t,)))
    with pytest.raises(RuntimeError, match="expected same dim but got 2 and 0"):
        export(module, (x,))


def test_scan_puts_its_outputs_along_its_dimension() -> None:
    # torch 2.13: (tensor([0.75, 2.75]), [[0, 0, 1/32, 9/64], [0, 5/16, 27/32, 105/64]])
    last, outs = scan(lambda c, t: (c + t, c * t), torch.zeros(2), x, dim=1)
    assert last.tolist() == [0.75, 2.75]
    assert outs.tolist() == [[0.0, 0.0, 0.03125, 0.140625], [0.0, 0.3125, 0.84375, 1.640625]]
    run = Called(lambda m, t: scan(lambda c, r: (c + r, c * r), torch.zeros(2), t, dim=1)[1])
    assert torch.equal(export(run, (x,)).module()(x), outs)


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.ones(4) * 2)
        self.plain = torch.zeros(())

    def forward(self, t: Any) -> Any:
        self.seen = self.seen + t.sum()
        return t + self.seen


class Kept(Counted):
    def forward(self, t: Any) -> Any:
        self.plain = t.sum()
        return t


def test_buffer_that_is_assigned_is_written_in_the_program() -> None:
    module = Counted()
    program = export(module, (x,))
    assert module.seen.tolist() == [2.0] * 4
    run = program.module()
    first, second = run(x), run(x)
    assert torch.equal(first, x + 5.5) and torch.equal(second, x + 9.0)
    assert run.seen.tolist() == [9.0] * 4
    kinds = [s.kind.name for s in program.run_decompositions().graph_signature.output_specs]
    assert kinds == ["BUFFER_MUTATION", "USER_OUTPUT"]


def test_tensor_that_is_no_buffer_may_not_be_assigned() -> None:
    module = Kept()
    with pytest.raises(ValueError, match="The tensor attribute self.plain was assigned during exp"):
        export(module, (x,))
    assert module.plain.item() == 0.0


def test_default_decompositions_can_be_given_and_changed() -> None:
    program = export(nn.SiLU(), (x,))

    def names(table: Any) -> list[str]:
        nodes = program.run_decompositions(table).graph.nodes
        return [str(n.target) for n in nodes if n.op == "call_function"]

    table = torch.export.default_decompositions()
    assert names(table) == ["aten.sigmoid.default", "aten.mul.Tensor"]
    del table[torch.ops.aten.silu.default]
    assert names(table) == ["aten.silu.default"]


def test_keywords_of_a_call_must_be_those_of_the_example() -> None:
    class Two(nn.Module):
        def forward(self, t: Any, y: Any = None) -> Any:
            return t if y is None else t * y

    program = export(Two(), (x,), {"y": x})
    with pytest.raises(ValueError, match=r"keyword mismatch.*\[\] but expected \['y'\]"):
        program.module()(x)
