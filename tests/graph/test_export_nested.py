"""Branches and loops in each other, and state that is assigned, in exported programs."""

from __future__ import annotations

import io
import textwrap
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
    assert sum(name in ("cond", "while_loop", "scan", "map_impl") for name in names) == 1
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


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(4, 2)

    def forward(self, xs: Any, y: Any) -> Any:
        z = y.sin()

        def f(row: Any, y: Any) -> Any:
            made = self.l(row) + each(lambda v, z: v * z, y, z[1:])
            return {"a": made, "b": (row.sum(),)}

        return each(f, xs, y)


# As torch 2.13 prints them.
TEXTS = [
    """
    def forward(self, p_l_weight, p_l_bias, xs, y):
        sin = torch.ops.aten.sin.default(y)
        body_graph_0 = self.body_graph_0
        map_impl = torch.ops.higher_order.map_impl(body_graph_0, [xs], [y, p_l_weight, p_l_bias, \
sin]);  body_graph_0 = xs = y = p_l_weight = p_l_bias = sin = None
        getitem = map_impl[0]
        getitem_1 = map_impl[1];  map_impl = None
        return (getitem, getitem_1)""",
    """
    def forward(self, xs, y, p_l_weight, p_l_bias, sin):
        linear = torch.ops.aten.linear.default(xs, p_l_weight, p_l_bias);  \
p_l_weight = p_l_bias = None
        slice_1 = torch.ops.aten.slice.Tensor(sin, 0, 1, 9223372036854775807);  sin = None
        body_graph_0 = self.body_graph_0
        map_impl = torch.ops.higher_order.map_impl(body_graph_0, [y], [slice_1]);  \
body_graph_0 = y = slice_1 = None
        getitem = map_impl[0];  map_impl = None
        add = torch.ops.aten.add.Tensor(linear, getitem);  linear = getitem = None
        sum_1 = torch.ops.aten.sum.default(xs);  xs = None
        return (add, sum_1)""",
    """
    def forward(self, y, slice_1):
        mul = torch.ops.aten.mul.Tensor(y, slice_1);  y = slice_1 = None
        return (mul,)""",
]


def test_map_is_written_as_in_pytorch() -> None:
    module, y = Rows(), torch.tensor([0.5, 1.0])
    program = export(module, (x, y))
    graph: Any = program.graph_module
    for text in TEXTS:
        assert graph.code.strip() == textwrap.dedent(text).strip()
        graph = getattr(graph, "body_graph_0", None)
    found = program.module()(x, y)
    rows = x @ module.l.weight.T + module.l.bias
    torch.testing.assert_close(found["a"], rows[:, None] + (y * y[1].sin())[:, None])
    torch.testing.assert_close(found["b"][0], x.sum(1))


def test_map_in_a_program_is_differentiated_and_mapped() -> None:
    program = export(Called(mapped), (x,)).module()
    scale = torch.tensor([2.0, 1.0, 0.5, 0.0])
    with torch.no_grad():
        program.scale.copy_(scale)
    close, func = torch.testing.assert_close, torch.func
    close(func.grad(lambda x: (program(x) ** 2).sum())(x), 2 * (x @ scale)[:, None] * scale)
    close(func.jvp(program, (x,), (x + 1,))[1], (x + 1) @ scale)
    close(torch.vmap(program)(torch.stack([x, -x])), torch.stack([x, -x]) @ scale)
    close(
        torch.vmap(lambda s: each(lambda row, s: row * s, x, s))(scale)[1:3],
        scale[1:3, None, None] * x,
    )
    program(x).sum().backward()
    close(program.scale.grad, x.sum(0))


def test_map_says_what_it_takes() -> None:
    def same(t: Any) -> Any:
        return t

    for xs in (3, (), (x, 1)):
        with pytest.raises(RuntimeError, match="Mapped xs can only consist of tensors. Got xs"):
            each(same, xs)
    with pytest.raises(RuntimeError, match="Leading dimensions of mapped xs must be consistent"):
        each(same, (x, x[:1]))
    with pytest.raises(RuntimeError, match="Leading dimensions of mapped xs cannot be 0"):
        each(same, x[:0])
    with pytest.raises(RuntimeError, match="f must return tensors or None, got 1"):
        each(lambda t: 1, x)
    with pytest.raises(RuntimeError, match="Leading dimensions of mapped xs cannot be 0"):
        export(Called(lambda m, t: each(same, t[:0])), (x,))
    assert each(lambda t: None, x) is None
    # Called by its name it gives a tuple, as in torch 2.13.
    (made,) = torch.ops.higher_order.map_impl(lambda t, y: (t * y,), (x,), (torch.tensor(2.0),))
    assert torch.equal(made, x * 2)


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
