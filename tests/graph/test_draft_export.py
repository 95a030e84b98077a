"""`draft_export` goes on as its example does; the kinds of failures are those PyTorch reports."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.export import Dim, draft_export, export


class Of(nn.Module):
    def __init__(self, f: Any) -> None:
        super().__init__()
        self.f = f

    def forward(self, *args: Any) -> Any:
        return self.f(*args)


@torch.library.custom_op("test_draft::plain", mutates_args=())
def plain(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy().copy()).sin()


@torch.library.custom_op("test_draft::wrong", mutates_args=())
def wrong(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


@wrong.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty(3, 3, dtype=torch.int32)


@torch.library.custom_op("test_draft::adds", mutates_args=("x",))
def adds(x: torch.Tensor) -> None:
    x.add_(1)


@adds.register_fake
def _(x: torch.Tensor) -> None:
    return None


def branch(x: Any, y: Any) -> Any:
    return y * 2 if x.sum() > 0 else y + 1


def kept(x: Any) -> Any:
    found = x.nonzero()
    return found + 1 if found.shape[0] > 2 else found


def shaped(n: Any, y: Any) -> Any:
    return y.reshape(int(n.item()), -1) + 1


def repeated(x: Any) -> Any:
    total = 0
    for row in x:
        if row.max() > 1:
            total = total + row
    return total + torch.zeros(2)


def own(x: Any) -> Any:
    return torch.ops.test_draft.plain(x) + 1


def mistaken(x: Any) -> Any:
    return torch.ops.test_draft.wrong(x) + 1


def counted(x: Any) -> Any:
    x = x.clone()
    torch.ops.test_draft.adds(x)
    return x * 2 if x.sum() > 5 else x


ones = torch.ones
CASES = [
    (branch, (ones(3), ones(2)), ["DATA_DEPENDENT_ERROR"]),
    (branch, (-ones(3), ones(2)), ["DATA_DEPENDENT_ERROR"]),
    (kept, (ones(5),), ["DATA_DEPENDENT_ERROR"]),
    (shaped, (torch.tensor(3), ones(6)), ["DATA_DEPENDENT_ERROR"]),
    (repeated, (torch.tensor([[1.0, 2], [0, 1], [3, 3]]),), ["DATA_DEPENDENT_ERROR"]),
    (own, (ones(5),), ["MISSING_FAKE_KERNEL"]),
    (mistaken, (ones(5),), ["MISMATCHED_FAKE_KERNEL"]),
    (counted, (ones(3),), ["DATA_DEPENDENT_ERROR"]),
    (torch.relu, (ones(3),), []),
]


@pytest.mark.parametrize(("function", "args", "kinds"), CASES)
def test_program_goes_on_as_its_example_and_reports_what_export_refuses(
    function: Any, args: Any, kinds: list[str], caplog: Any
) -> None:
    program = draft_export(Of(function), args)
    report = program._report
    assert [f.failure_type.name for f in report.failures] == kinds
    assert report.successful() == (not kinds)
    torch.testing.assert_close(program.module()(*args), function(*args))
    # A program with a failure says so once, and names the place or the operator.
    assert len(caplog.records) == bool(kinds)
    if kinds == ["DATA_DEPENDENT_ERROR"]:
        assert __file__ in str(report)
        assert f"in {function.__name__}" in str(report)
    elif kinds:
        assert f"torch.ops.{report.failures[0].data['op']}" in str(report)


def test_program_asserts_what_the_example_decided() -> None:
    taken = draft_export(Of(branch), (ones(3), ones(2))).module()
    with pytest.raises(RuntimeError, match=r"Runtime assertion failed for expression Eq\(u0, 1\)"):
        taken(-ones(3), ones(2))
    other = draft_export(Of(branch), (-ones(3), ones(2))).module()
    assert other(-ones(3), ones(2)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        other(ones(3), ones(2))
    with pytest.raises(RuntimeError, match=r"Runtime assertion failed.*Eq\(u0, 3\)"):
        draft_export(Of(shaped), (torch.tensor(3), ones(6))).module()(torch.tensor(2), ones(6))


def test_places_that_are_asked_several_times_are_one_failure() -> None:
    x = torch.tensor([[1.0, 2], [0, 1], [3, 3]])
    (failure,) = draft_export(Of(repeated), (x,))._report.failures
    assert failure.data["occurrences"] == 3
    assert failure.data["expr"] == "Eq(u0, 1)"
    assert failure.data["result"] == "True"


def test_sizes_that_a_program_does_not_allow_are_fixed_and_reported() -> None:
    module = Of(lambda x: x + torch.ones(3))
    program = draft_export(module, (ones(3),), dynamic_shapes=(({0: Dim("n")},),))
    (failure,) = program._report.failures
    assert failure.failure_type.name == "GUARD_ADDED"
    assert failure.data["new_dynamic_shapes"] == (({0: Dim.AUTO},),)
    assert program.module()(ones(3)).tolist() == [2, 2, 2]
    # One that it allows stays open.
    program = draft_export(Of(torch.relu), (ones(3),), dynamic_shapes=(({0: Dim("n")},),))
    assert program._report.successful()
    assert program.module()(ones(5)).shape == (5,)


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.n.add_(1)
        return x * 2 if self.n > 0 else x


def test_state_of_the_module_is_as_before() -> None:
    module = Counts()
    program = draft_export(module, (ones(2),))
    assert module.n == 0
    assert program._report.failures[0].data["result"] == "True"
    assert program.module()(ones(2)).tolist() == [2, 2]


def test_errors_of_the_module_and_of_arguments_are_raised() -> None:
    with pytest.raises(RuntimeError, match="must match"):
        draft_export(Of(lambda x: x + ones(4)), (ones(3),))
    with pytest.raises(ValueError, match="Expected `mod` to be an instance"):
        draft_export(torch.relu, (ones(3),))  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        draft_export(Of(torch.relu), (ones(3),))._report.apply_suggested_fixes()


def test_what_export_can_do_is_the_same_program() -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    args = (torch.randn(4, 2),)
    assert draft_export(module, args).graph_module.code == export(module, args).graph_module.code


def test_table_of_decompositions_can_be_changed_and_copied() -> None:
    table = torch.export.default_decompositions()
    assert isinstance(table, torch.export.CustomDecompTable)
    other = table.copy()
    del other[torch.ops.aten.linear.default]
    assert torch.ops.aten.linear.default in table.materialize()
    assert torch.ops.aten.linear.default not in other.materialize()


def test_report_is_silent_about_what_is_meant(caplog: Any) -> None:
    program = draft_export(Of(branch), (ones(3), ones(2)))
    for failure in program._report.failures:
        failure.xfail = True
    assert program._report.successful()
    assert "No issues" in str(program._report)
    assert [r.levelno for r in caplog.records] == [logging.WARNING]


def test_guards_with_an_answer_for_what_only_data_tells_need_no_draft() -> None:
    # PyTorch's program gives 2213 for these arguments.
    from pytensorlib.fx.experimental import symbolic_shapes as shapes

    def asked(x: Any) -> Any:
        n = x.nonzero().shape[0]
        y = x + (1 if shapes.guard_or_false(n > 2) else 2)
        y = y + (10 if shapes.guard_or_true(n > 2) else 20)
        y = y + (100 if shapes.statically_known_true(n > 2) else 200)
        return y + (1000 if shapes.guard_or_false(x.shape[0] == 1) else 2000)

    program = export(Of(asked), (ones(5),), dynamic_shapes=(({0: Dim("n")},),))
    assert program.module()(ones(4)).tolist() == [2213] * 4


def test_program_with_a_branch_inside_and_open_sizes_is_decided_by_the_example_too() -> None:
    def both(x: Any, i: Any) -> Any:
        y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
        above = x[x > 0]
        if above.shape[0] > 3:
            y = y * 2
        for k in range(int(i.max())):
            y = y + k
        return y, above.shape[0]

    sizes = (({0: Dim("n")}, {0: Dim("k")}),)
    args = torch.ones(3, 4), torch.tensor([1, 2, 3])
    program = draft_export(Of(both), args, dynamic_shapes=sizes)
    assert [f.data["expr"] for f in program._report.failures] == ["u0 > 3", "u1"]
    for x in (args[0], torch.rand(5, 4)):
        given = x, torch.tensor([3, 0])
        have, want = program.module()(*given), both(*given)
        torch.testing.assert_close(have[0], want[0])
        assert have[1] == want[1]
