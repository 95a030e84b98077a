"""Modules of exported programs; names and graphs as PyTorch 2.13 makes them of the same modules."""

from __future__ import annotations

import io
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.export import Dim, FlatArgsAdapter, export, load, save, unflatten

x = torch.arange(8.0).view(2, 4) / 8


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin, self.act = nn.Linear(4, 4), nn.ReLU()

    def forward(self, t: Any, k: float = 1.0) -> Any:
        return self.act(self.lin(t)) * k, t


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part, self.lin = Part(), nn.Linear(4, 4)
        self.register_buffer("seen", torch.ones(4))

    def forward(self, t: Any) -> Any:
        y, z = self.part(t, k=2.0)
        w = self.lin(self.lin(y))
        self.seen.add_(1)
        return w + z + self.seen


def test_modules_have_their_names_state_and_graphs() -> None:
    module = Whole()
    again = unflatten(export(module, (x,)))
    assert [n for n, _ in again.named_modules()] == ["", "part", "part.lin", "part.act", "lin"]
    assert again.state_dict().keys() == module.state_dict().keys()
    ops = {
        name: [(n.op, str(n.target)) for n in m.graph.nodes] for name, m in again.named_modules()
    }
    assert ops["part"] == [
        ("placeholder", "t"),
        ("call_module", "lin"),
        ("call_module", "act"),
        ("call_function", "aten.mul.Tensor"),
        ("output", "output"),
    ]
    # One module for two equal calls.
    assert [t for op, t in ops[""] if op == "call_module"] == ["part", "lin", "lin"]


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("decomposed", [False, True])
def test_unflattened_program_computes_what_the_module_does(stored: bool, decomposed: bool) -> None:
    module = Whole()
    program = export(module, (x,), dynamic_shapes=({0: Dim("n")},))
    if stored:
        file = io.BytesIO()
        save(program, file)
        program = load(io.BytesIO(file.getvalue()))
    if decomposed:
        program = program.run_decompositions()
    again = unflatten(program)
    for given in (x, torch.cat([x, x])):
        torch.testing.assert_close(again(given), module(given))
    assert torch.equal(again.seen, torch.full((4,), 3.0))


def test_module_can_be_replaced_and_trained() -> None:
    again = unflatten(export(Whole(), (x,)))
    again.lin = nn.Identity()
    y = torch.relu(torch.nn.functional.linear(x, again.part.lin.weight, again.part.lin.bias)) * 2
    found = again(x)
    torch.testing.assert_close(found, y + x + 2)
    found.sum().backward()
    assert again.part.lin.weight.grad is not None


def test_calls_that_differ_become_modules_of_their_own() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Part()

        def forward(self, t: Any) -> Any:
            return self.part(self.part(t, 2.0)[0], 3.0)[0]

    module = Twice()
    again = unflatten(export(module, (x,)))
    assert [n for n, _ in again.named_children()] == ["part", "part@1"]
    assert again.get_submodule("part@1").lin.weight is again.part.lin.weight
    torch.testing.assert_close(again(x), module(x))


def test_tied_weights_stay_tied() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
            self.b.weight = self.a.weight

        def forward(self, t: Any) -> Any:
            return self.b(self.a(t))

    module = Tied()
    again = unflatten(export(module, (x,)))
    assert again.a.weight is again.b.weight and again.a.weight is not module.a.weight
    torch.testing.assert_close(again(x), module(x))


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (2, 3, 8)),
        (
            nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.MaxPool2d(2)).eval(),
            (1, 1, 8, 8),
        ),
        (nn.Sequential(nn.Embedding(5, 4), nn.GRU(4, 3)), None),
    ],
)
def test_layers_are_taken_apart(module: Any, shape: Any) -> None:
    given = torch.tensor([[1, 2], [3, 4]]) if shape is None else torch.randn(shape)
    found, want = unflatten(export(module, (given,)))(given), module(given)
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


def test_branches_stay_where_they_are() -> None:
    class Branch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, t: Any) -> Any:
            return torch.cond(t.sum() > 0, lambda t: self.lin(t), lambda t: t.cos(), (t,))

    module = nn.Sequential(Branch(), nn.ReLU())
    again = unflatten(export(module, (x,)))
    for given in (x, -x):
        torch.testing.assert_close(again(given), module(given))


def test_arguments_of_another_structure_need_an_adapter() -> None:
    class Pair(nn.Module):
        def forward(self, pair: Any) -> Any:
            return pair["a"] - pair["b"]

    program = export(Pair(), ({"a": x, "b": 2 * x},))
    with pytest.raises(ValueError, match="exported input tree spec"):
        unflatten(program)([x, 2 * x])

    class Lists(FlatArgsAdapter):
        def adapt(
            self, target_spec: Any, input_spec: Any, input_args: Any, metadata: Any = None,
            obj: Any = None,
        ) -> Any:  # fmt: skip
            return input_args

    assert torch.equal(unflatten(program, Lists())([x, 2 * x]), -x)
