"""Parts of a program for a backend; names and graphs as PyTorch 2.13 gives them."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import fx, nn
from pytensorlib.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from pytensorlib.fx.passes.operator_support import (
    OperatorSupport,
    OpSupports,
    any_chain,
    chain,
    create_op_support,
)
from pytensorlib.fx.passes.shape_prop import ShapeProp
from pytensorlib.fx.passes.utils.fuser_utils import (
    fuse_as_graphmodule,
    fuse_by_partitions,
    topo_sort,
    validate_partition,
)
from pytensorlib.nn import functional as F  # noqa: N812

quick = create_op_support(lambda modules, n: n.target in (operator.add, F.relu))


def program(x: Any, y: Any) -> Any:
    return F.relu(x + y).sum() + F.relu(y + 1)


def test_parts_are_as_large_as_can_be_without_a_cycle() -> None:
    gm = fx.symbolic_trace(program)
    finder = CapabilityBasedPartitioner(gm, quick, allows_single_node_partition=True)
    parts = finder.propose_partitions()
    names = sorted(sorted(n.name for n in p.nodes) for p in parts)
    assert names == [["add", "relu"], ["add_1", "add_2", "relu_1"]]
    fused = finder.fuse_partitions(parts)
    assert [n.name for n in fused.graph.nodes] == [
        "x", "y", "fused_1", "sum_1", "fused_0", "output",
    ]  # fmt: skip
    x, y = torch.randn(3), torch.randn(3)
    assert torch.equal(fused(x, y), program(x, y))


def test_part_of_one_node_is_left_unless_it_is_allowed() -> None:
    gm = fx.symbolic_trace(lambda x: F.relu(x).sum())
    assert CapabilityBasedPartitioner(gm, quick).propose_partitions() == []
    name = "torch.nn.functional.relu"
    finder = CapabilityBasedPartitioner(gm, quick, allowed_single_node_partition_ops=[name])
    assert [p.size() for p in finder.propose_partitions()] == [1]


def test_nodes_apart_come_together_unless_that_is_declined() -> None:
    gm = fx.symbolic_trace(lambda x, y: (F.relu(x), F.relu(y)))
    for skip, sizes in ((False, [2]), (True, [1, 1])):
        finder = CapabilityBasedPartitioner(gm, quick, True, skip_horizontal_fusion=skip)
        assert [p.size() for p in finder.propose_partitions()] == sizes


def test_items_of_a_tuple_are_where_it_is_made() -> None:
    gm = fx.symbolic_trace(lambda x: torch.max(x, 0)[0] + 1)
    support = create_op_support(lambda modules, n: n.target is torch.max)
    (part,) = CapabilityBasedPartitioner(gm, support, True).propose_partitions()
    assert sorted(n.name for n in part.nodes) == ["getitem", "max_1"]
    assert torch.equal(fuse_by_partitions(gm, [part.nodes])(torch.eye(2)), torch.full((2,), 2.0))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.lin = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(8, 4)
        self.p = nn.Parameter(torch.ones(4))

    def forward(self, x: Any) -> Any:
        flat = F.relu(self.bn(self.conv(x))).flatten(1)
        return (self.lin(flat) + self.p).softmax(-1), flat.sum()


def test_modules_are_fused_in_their_order() -> None:
    net, x = Net().eval(), torch.randn(2, 1, 4, 4)
    gm = fx.symbolic_trace(net)
    nodes = {n.name: n for n in gm.graph.nodes}
    fuse_by_partitions(gm, [{nodes["conv"]: None, nodes["bn"]: None}])
    assert [n.name for n in gm.graph.nodes] == [
        "x", "fused_0", "relu", "flatten", "lin", "p", "add", "softmax", "sum_1", "output",
    ]  # fmt: skip
    for have, want in zip(gm(x), net(x), strict=True):
        torch.testing.assert_close(have, want)


def test_nodes_around_another_one_are_no_part() -> None:
    gm = fx.symbolic_trace(program)
    nodes = {n.name: n for n in gm.graph.nodes}
    around = [nodes["relu"], nodes["add_2"]]
    assert not validate_partition(around) and validate_partition([nodes["add"], nodes["relu"]])
    with pytest.raises(AssertionError, match="Invalid partition, found dependency cycles"):
        fuse_as_graphmodule(gm, around, "fused")
    module, inputs, outputs = fuse_as_graphmodule(gm, [nodes["add"], nodes["relu"]], "fused")
    assert [n.name for n in inputs] == ["x", "y"] and outputs == (nodes["relu"],)
    assert module(torch.ones(1), torch.ones(1)).item() == 2.0
    order = list(gm.graph.nodes)
    assert topo_sort(reversed(order))[-1].op == "output"


def test_support_is_by_names_and_types() -> None:
    net = Net().eval()
    gm = fx.symbolic_trace(net)
    ShapeProp(gm).propagate(torch.randn(2, 1, 4, 4))
    modules = dict(gm.named_modules())
    table = {
        "torch.nn.functional.relu": (((torch.float32,),), {}),
        "torch.nn.modules.linear.Linear": None,
        "flatten": (((torch.float64,),), {}),
    }

    def names(support: Any) -> list[str]:
        calls = [n for n in gm.graph.nodes if n.op.startswith("call")]
        return [n.name for n in calls if support.is_node_supported(modules, n)]

    by_table = OperatorSupport(table)
    assert names(by_table) == ["relu", "lin"]
    no_relu = OpSupports.decline_if_node_in_names({"relu"})
    assert names(chain(by_table, no_relu)) == ["lin"]
    assert "relu" not in names(no_relu) and "add" in names(any_chain(by_table, no_relu))
    assert names(OpSupports.decline_if_input_dtype(torch.float32))[:1] != ["bn"]


def test_node_in_two_groups_is_refused() -> None:
    gm = fx.symbolic_trace(lambda x: (x.sin() + 1).sum())
    nodes = {n.name: n for n in gm.graph.nodes}
    with pytest.raises(AssertionError, match=r"\['add'\] are in two groups"):
        fuse_by_partitions(gm, [[nodes["sin"], nodes["add"]], [nodes["add"], nodes["sum_1"]]])


def test_elements_of_a_tuple_are_where_it_is_made() -> None:
    def program(a: Any, b: Any) -> Any:
        first, second = a.split(1, 0)
        return first + b + second

    gm = fx.symbolic_trace(program)
    taken = create_op_support(lambda modules, n: n.target in (operator.add, operator.getitem))
    (part,) = CapabilityBasedPartitioner(gm, taken).propose_partitions()
    assert {n.name for n in part.nodes} == {"add", "add_1"}


def test_operators_that_do_not_count_leave_the_ends_of_a_part() -> None:
    def program(x: Any) -> Any:
        return torch.permute(torch.neg(torch.permute(x, (1, 0)) + 1) * 2, (1, 0))

    gm = fx.symbolic_trace(program)
    every = create_op_support(lambda modules, n: True)
    finder = CapabilityBasedPartitioner(gm, every, non_compute_ops=["torch.permute"])
    parts = finder.propose_partitions()
    finder.remove_bookend_non_compute_ops(parts)
    assert {n.name for n in parts[0].nodes} == {"add", "neg", "mul"}


def test_match_whose_argument_is_made_of_its_result_is_none() -> None:
    from pytensorlib.fx.passes.utils.matcher_utils import SubgraphMatcher

    def pattern(a: Any, c: Any) -> Any:
        first = a.sin()
        return first, first * c

    def program(x: Any) -> Any:
        first = x.sin()
        return (first * first.exp()).sum()

    matcher = SubgraphMatcher(fx.symbolic_trace(pattern).graph)
    assert matcher.match(fx.symbolic_trace(program).graph) == []
    other = fx.symbolic_trace(lambda x: (x.sin() * x.exp()).sum()).graph
    assert len(matcher.match(other)) == 1
