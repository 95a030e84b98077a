"""Passes of `torch.fx` give what PyTorch 2.13's give; `tests/pass_programs.py` recorded it."""

from __future__ import annotations

import copy
import json
import operator
from typing import Any, NamedTuple

import pass_programs
import pytest

import pytensorlib as torch
from pytensorlib import fx
from pytensorlib.fx.passes import pass_manager
from pytensorlib.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes
from pytensorlib.fx.passes.fake_tensor_prop import FakeTensorProp
from pytensorlib.fx.passes.graph_transform_observer import GraphTransformObserver
from pytensorlib.fx.passes.param_fetch import extract_attrs_for_lowering
from pytensorlib.fx.passes.reinplace import reinplace
from pytensorlib.fx.passes.split_utils import getattr_recursive, setattr_recursive
from pytensorlib.fx.passes.tools_common import stable_topological_sort
from pytensorlib.fx.passes.utils.common import compare_graphs
from pytensorlib.fx.traceback import (
    NodeSource,
    NodeSourceAction,
    annotate_fn,
    preserve_node_meta,
)

WANT = json.loads(pass_programs.DATA.read_text())
HAVE = pass_programs.results(torch)
WRITTEN = pass_programs.written(torch)


@pytest.mark.parametrize("name", WANT)
def test_pass_gives_what_pytorchs_gives(name: str) -> None:
    assert HAVE[name] == WANT[name]


@pytest.mark.parametrize("name", WRITTEN)
def test_program_that_writes_computes_the_same_and_writes_to_no_argument(name: str) -> None:
    gm, function, x = WRITTEN[name]
    before = x.clone()
    torch.testing.assert_close(gm(x), function(x))
    assert torch.equal(x, before)


def test_what_is_put_back_after_two_operators_has_both() -> None:
    # PyTorch's pass loses the second operator here.
    def two(x: Any) -> Any:
        y = x.add(1)
        return torch.select_scatter(y, y.select(0, 1).mul(2).add(1), 0, 1)

    x = torch.ones(3, 3)
    gm = reinplace(fx.experimental.proxy_tensor.make_fx(two)(x), x)
    assert not any("scatter" in str(n.target) for n in gm.graph.nodes)
    assert torch.equal(gm(x), two(x))


Pair = NamedTuple("Pair", [("first", int), ("second", torch.Tensor)])  # noqa: UP014


@pytest.mark.parametrize(
    ("kind", "index", "want"),
    [
        (tuple[int, float], 1, float),
        (tuple[int, ...], 5, int),
        (list[str], 3, str),
        (Pair, 0, int),
        (None, 0, None),
        (torch.Tensor, 0, None),
    ],
)
def test_elements_of_sequences_have_types(kind: Any, index: int, want: Any) -> None:
    graph = fx.Graph()
    item = graph.call_function(operator.getitem, (graph.placeholder("x", type_expr=kind), index))
    annotate_getitem_nodes(graph)
    name = getattr(item.type, "__name__", item.type)
    assert name == getattr(want, "__name__", want)


def test_element_that_a_type_does_not_have_is_refused() -> None:
    graph = fx.Graph()
    graph.call_function(operator.getitem, (graph.placeholder("x", type_expr=tuple[int]), 2))
    with pytest.raises(AssertionError, match="Index 2 out of range"):
        annotate_getitem_nodes(graph)


def test_layers_run_without_memory_and_keep_their_state() -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten())
    gm = fx.symbolic_trace(net)
    result = FakeTensorProp(gm).propagate(torch.ones(1, 3, 8, 8))
    assert result.device.type == "meta"
    assert [tuple(n.meta["val"].shape) for n in gm.graph.nodes][1:] == [
        (1, 4, 6, 6), (1, 4, 6, 6), (1, 144), (1, 144),
    ]  # fmt: skip
    assert net[1].num_batches_tracked == 0
    made = fx.symbolic_trace(lambda x: x + torch.arange(3, device="cpu"))
    assert tuple(FakeTensorProp(made).propagate(torch.ones(2, 3)).shape) == (2, 3)


def test_layer_that_is_not_in_the_book_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"activation\.Tanh is not in the module_fetch_book"):
        extract_attrs_for_lowering(torch.nn.Tanh())


def test_graph_with_a_cycle_is_refused() -> None:
    gm = fx.symbolic_trace(lambda x: x.sin().cos())
    sin, cos = [n for n in gm.graph.nodes if n.op == "call_method"]
    sin.args = (cos,)
    with pytest.raises(AssertionError, match="Input graph has cycles"):
        stable_topological_sort(gm)


def test_graphs_are_equal_whatever_their_names_are() -> None:
    graph = fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
    assert compare_graphs(graph, fx.symbolic_trace(lambda y: torch.relu(y) + 1).graph)
    assert not compare_graphs(graph, fx.symbolic_trace(lambda y: torch.relu(y) * 1).graph)


def test_attributes_are_read_and_set_by_paths() -> None:
    net = torch.nn.ModuleDict({"a": torch.nn.ModuleList([torch.nn.ReLU()])})
    setattr_recursive(net, "a.0.inplace", True)
    assert getattr_recursive(net, "a.0.inplace") is True
    assert getattr_recursive(net, "a.1.inplace") is None
    assert getattr_recursive(net, "a.0.no") is None


def add(n: int) -> int:
    return n + 1


def double(n: int) -> int:
    return n * 2


def test_passes_run_in_an_order_that_is_checked() -> None:
    manager = pass_manager.PassManager([add, double])
    manager.add_constraint(pass_manager.this_before_that_pass_constraint(add, double))
    assert manager(1) == 4
    manager.passes.reverse()
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        manager(1)
    looped = [pass_manager.loop_pass(double, 3), pass_manager.loop_pass(add, 2)]
    rule = pass_manager.these_before_those_pass_constraint(add, double)
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        pass_manager.PassManager(looped, [rule])(1)
    manager = pass_manager.PassManager.build_from_passlist(looped)
    assert manager(1) == 10
    manager.replace_pass(double, add)
    manager.remove_pass(["nothing"])
    manager.add_pass(pass_manager.inplace_wrapper(pass_manager.log_hook(lambda n: None)))
    assert manager(1) == 4
    with pytest.raises(AssertionError, match="Exactly one"):
        pass_manager.loop_pass(add)
    with pytest.raises(RuntimeError, match="n_iter must be positive"):
        pass_manager.loop_pass(add, 0)


def test_observer_notes_what_a_pass_makes_replaces_and_erases() -> None:
    gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)

    def smooth(graph: Any) -> int:
        relu = next(n for n in graph.nodes if n.target is torch.relu)
        with graph.inserting_before(relu):
            made = graph.call_function(torch.tanh, relu.args)
        relu.replace_all_uses_with(made)
        graph.erase_node(relu)
        return 7

    observer = GraphTransformObserver(gm, "smooth")
    assert observer.apply_graph_pass(smooth) == 7
    assert (observer.created_nodes, observer.erased_nodes) == ({"tanh"}, {"relu"})
    (source,) = next(n for n in gm.graph.nodes if n.name == "tanh").meta["from_node"]
    # As PyTorch writes it.
    assert str(source) == (
        f"(name=relu, pass_name=smooth, action=replace+create, graph_id={id(gm.graph)})\n"
    )
    # Afterwards nothing is noted, of copies neither.
    gm.graph.call_function(torch.sin, (next(iter(gm.graph.nodes)),))
    assert observer.created_nodes == {"tanh"}
    with observer as watching:
        other = copy.deepcopy(gm)
    other.graph.call_function(torch.cos, (next(iter(other.graph.nodes)),))
    assert watching.created_nodes == set()


def test_sources_of_nodes_are_kept_with_what_they_come_from() -> None:
    node = next(iter(fx.symbolic_trace(lambda x: x.sin()).graph.nodes))
    node.meta["from_node"] = [NodeSource(None, "first", NodeSourceAction.CREATE)]
    source = NodeSource(node, "second", [NodeSourceAction.REPLACE])
    assert source.to_dict()["from_node"] == [
        {
            "name": "",
            "target": "",
            "graph_id": -1,
            "pass_name": "first",
            "action": "create",
            "from_node": [],
        }
    ]
    assert source == NodeSource(node, "second", NodeSourceAction.REPLACE)
    assert source != NodeSource(node, "third", NodeSourceAction.REPLACE)


def test_function_notes_its_nodes() -> None:
    @annotate_fn({"stage": 1})
    def inner(x: Any) -> Any:
        return x.sin()

    with preserve_node_meta():
        gm = fx.symbolic_trace(lambda x: inner(x).cos())
    notes = {n.name: n.meta.get("custom") for n in gm.graph.nodes if n.op == "call_method"}
    assert notes == {"sin": {"stage": 1}, "cos": None}
