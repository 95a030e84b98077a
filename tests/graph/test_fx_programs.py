"""Programs as graphs: what PyTorch's own cases of `torch.fx` ask for, with its answers."""

from __future__ import annotations

import copy
import functools
import operator
import pickle
from collections import namedtuple

import pytest

import pytensorlib as torch
from pytensorlib import fx, nn
from pytensorlib.fx import PH
from pytensorlib.fx._symbolic_trace import PHWithMeta
from pytensorlib.fx.annotate import annotate
from pytensorlib.fx.experimental.const_fold import (
    get_unique_attr_name_in_module,
    split_const_subgraphs,
)
from pytensorlib.fx.experimental.proxy_tensor import make_fx
from pytensorlib.fx.experimental.rewriter import AST_Rewriter, RewritingTracer
from pytensorlib.fx.node import _format_arg
from pytensorlib.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from pytensorlib.fx.passes.infra.pass_base import PassResult
from pytensorlib.fx.passes.infra.pass_manager import (
    PassManager,
    _topological_sort_passes,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from pytensorlib.fx.passes.utils.matcher_utils import SubgraphMatcher

aten = torch.ops.aten
Point = namedtuple("Point", "x y")


def around(f):
    @functools.wraps(f)
    def inner(*args):
        return f(*args)

    return inner


@fx.wrap
@around
def decorated(x):
    return x + 1


def calls_decorated(x):
    return decorated(x)


class Pair(metaclass=fx.ProxyableClassMeta):
    def __init__(self, a, b):
        self.a, self.b = a, b
        if a.sum() > 0:  # known only when the program runs
            self.positive = True


def targets(graph):
    return [str(n.target) for n in graph.nodes if n.op == "call_function"]


def test_operators_of_torch_ops_are_nodes_of_their_own():
    def program(a):
        first = aten.add(a, a)
        second = aten.cat.default((a, a))
        return first, second, aten.max_pool2d_with_indices(a, [2, 2], stride=[1, 1])

    traced = fx.symbolic_trace(program)
    nodes = [n for n in traced.graph.nodes if n.op == "call_function"]
    assert [(n.name, n.target) for n in nodes] == [
        ("add", aten.add),
        ("cat_default", aten.cat.default),
        ("max_pool2d_with_indices", aten.max_pool2d_with_indices),
    ]
    assert nodes[2].args[1:] == ([2, 2],)
    assert nodes[2].kwargs == {"stride": [1, 1]}
    x = torch.arange(16.0).reshape(1, 4, 4)
    added, joined, (pooled, places) = traced(x)
    assert added.equal(x * 2)
    assert joined.equal(torch.cat([x, x]))
    assert pooled.equal(x[:, 1:, 1:])  # the largest of each window is its last
    assert places.equal(pooled.long())


def test_operator_that_is_not_here_is_a_node_all_the_same():
    traced = fx.symbolic_trace(lambda x: aten._reshape_alias_copy.default(x, [1, 2], [3, 4]))
    assert targets(traced.graph) == ["aten._reshape_alias_copy.default"]
    with pytest.raises(NotImplementedError, match="_reshape_alias_copy"):
        traced(torch.ones(2))


def test_construction_of_a_proxyable_class_is_a_node():
    traced = fx.symbolic_trace(lambda x: Pair(x, 1).a + 1)
    nodes = [(n.op, n.name, n.args) for n in traced.graph.nodes]
    assert [(op, name) for op, name, _ in nodes] == [
        ("placeholder", "x"),
        ("call_function", "pair"),
        ("call_function", "getattr_1"),
        ("call_function", "add"),
        ("output", "output"),
    ]
    assert traced(torch.ones(2)).equal(torch.full((2,), 2.0))
    assert fx.symbolic_trace(lambda x: Pair(x, 1))(torch.ones(2)).positive


def test_wrapped_function_may_be_decorated():
    traced = fx.symbolic_trace(calls_decorated)
    assert "decorated(x)" in traced.code
    assert traced(1) == 2


def test_placeholders_take_over_what_stands_for_them():
    traced = fx.symbolic_trace(
        lambda a: a["f"] + a["g"],
        concrete_args={"a": {"f": PHWithMeta(ph_key="f"), "g": PHWithMeta(ph_key="g")}},
    )
    found = [(n.name, n.ph_key) for n in traced.graph.nodes if n.op == "placeholder"]
    assert found == [("a_1", "f"), ("a_2", "g")]


class Summed(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 2.0))

    def forward(self, x, flag=True):
        return {"sum": sum(x) * self.w, "pair": (x[0], x[1]) if flag else x}


def test_containers_of_a_module_are_taken_apart_traced_again_and_pickled():
    x = [torch.ones(2), torch.ones(2) * 2, torch.ones(2)]
    known = {"x": [PH, PH, PH], "flag": False}
    taken = fx.symbolic_trace(Summed(), concrete_args=known)
    assert sum(n.op == "placeholder" for n in taken.graph.nodes) == 4
    assert "fx_pytree.tree_flatten_spec([self, x, flag], self._in_spec)" in taken.code
    whole = fx.symbolic_trace(taken)
    assert "getitem_2 = x[2]" in whole.code
    again = fx.symbolic_trace(whole, concrete_args=known)
    read = pickle.loads(pickle.dumps(again))  # noqa: S301
    for program in (taken, whole, again, read):
        found = program(x, False)
        assert found["sum"].equal(torch.full((2,), 8.0))
        assert len(found["pair"]) == 3


def test_named_tuples_keep_their_class_as_arguments():
    graph = fx.Graph()
    a = graph.placeholder("a")
    node = graph.call_function(operator.getitem, (Point(a, 2), 0))
    assert type(node.args[0]) is Point
    assert _format_arg(node.args[0]) == "(%a, 2)"

    class Shown:
        def _custom_fx_repr_fn(self):
            return "shown"

    assert _format_arg([Shown()]) == "[shown]"


class Writes(nn.Module):
    def forward(self, x):
        return torch.log_(x)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (lambda x: torch.sigmoid(x, out=torch.rand(2)), "aten::sigmoid.out(Tensor self, *, Tensor"),
        (Writes(), "aten::log_(Tensor(a!) self) -> Tensor(a!)"),
        (lambda x: torch.add(x, 1, out=x), "aten::add.out(Tensor self"),
    ],
)
def test_writing_operator_is_told_by_its_signature(program, said):
    class Careful(fx.Tracer):
        check_mutable_operations = True

    with pytest.raises(RuntimeError, match="^Tried to trace mutable operation ") as caught:
        Careful().trace(program)
    assert said in str(caught.value)


def test_branch_on_a_proxy_says_what_was_expected():
    def program(x):
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    with pytest.raises(RuntimeError, match=r"Expected pred to be bool or tensor, but got Proxy"):
        fx.symbolic_trace(program)


def test_transformer_keeps_what_nodes_were_told():
    traced = fx.symbolic_trace(Summed(), concrete_args={"x": [PH, PH], "flag": True})
    for node in traced.graph.nodes:
        if node.op == "get_attr":
            node.meta |= {"nn_module_stack": "self", "source_fn_stack": "here", "own": 1}
            node.stack_trace = "the line"
    made = fx.Transformer(traced).transform()
    (node,) = (n for n in made.graph.nodes if n.op == "get_attr")
    assert node.meta == {
        "nn_module_stack": "self",
        "source_fn_stack": "here",
        "stack_trace": "the line",
    }


def test_generated_program_names_what_was_traced_and_whose_lines_are_whose():
    class M(nn.Module):
        def forward(self, a, b):
            return torch.sin(a) + torch.cos(b)

    traced = fx.symbolic_trace(M())
    file = traced.forward.__code__.co_filename
    assert file.startswith("<eval_with_key>")
    assert "test_fx_programs.py" in file
    assert file.endswith("in forward")
    # PyTorch 2.13: the nodes are a, b, sin, cos, add, output.
    assert traced._lineno_map == {1: 2, 2: 3, 3: 4, 4: 5, 5: 5}
    traced.graph.on_generate_code(lambda _: lambda body: ["print('made')\n", *body])
    traced.recompile()
    assert {n: traced._lineno_map[n] for n in (2, 3, 4, 5)} == {2: 2, 3: 3, 4: 4, 5: 5}
    assert "COUNTER" not in traced.code


def test_copies_of_a_module_follow_its_notes_and_run():
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    traced.meta["self"] = traced
    copied = copy.deepcopy(traced)
    assert copied.meta["self"] is copied
    assert traced._replicate_for_data_parallel()(torch.tensor([-1.0, 1.0])).tolist() == [0, 1]


def test_type_names_are_those_of_pytorch():
    # PyTorch 2.13.
    values = ("a", 1, None, torch.nn.Linear, torch.nn.Linear(1, 1), torch.zeros(1), len)
    assert [torch.typename(v).replace("pytensorlib", "torch") for v in values] == [
        "str", "int", "NoneType", "torch.nn.modules.linear.Linear",
        "torch.nn.modules.linear.Linear", "torch.FloatTensor", "len",
    ]  # fmt: skip
    assert torch.typename(torch.log_).endswith(".log_")


class Pattern(nn.Module):
    def __init__(self):
        super().__init__()
        self.tanh = nn.Tanh()

    def forward(self, x):
        return self.tanh(x)


class Replacement(nn.Module):
    def __init__(self):
        super().__init__()
        self.other = nn.Linear(2, 2)

    def forward(self, x):
        return self.other(x)


def test_replacement_that_is_a_module_brings_copies_of_its_modules():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.tanh = nn.Tanh()

        def forward(self, x):
            return self.tanh(x) + 1

    traced, new = fx.symbolic_trace(M()), Replacement()
    assert len(fx.replace_pattern(traced, Pattern(), new)) == 1
    x = torch.randn(3, 2)
    assert traced(x).equal(new(x) + 1)
    assert traced.other is not new.other
    assert not hasattr(traced, "tanh")


def test_patterns_match_calls_whose_defaults_are_said_or_left_out():
    traced = fx.symbolic_trace(
        lambda x: aten.max_pool2d_with_indices.default(x, [2, 2], stride=[2, 2])
    )

    def pattern(x, size, stride):
        return aten.max_pool2d_with_indices.default(x, size, stride, padding=[0, 0])

    assert len(SubgraphMatcher(fx.symbolic_trace(pattern).graph).match(traced.graph)) == 1

    def other(x, size, stride):
        return aten.max_pool2d_with_indices.default(x, size, stride, padding=[1, 1])

    assert not SubgraphMatcher(fx.symbolic_trace(other).graph).match(traced.graph)


def test_functions_of_the_library_can_be_traced_themselves():
    traced = fx.symbolic_trace(torch.nn.functional.relu)
    assert "relu = torch.nn.functional.relu(input_1, inplace = inplace)" in traced.code
    assert traced(torch.tensor([-1.0, 2.0])).tolist() == [0, 2]


def test_types_are_annotated_once():
    traced = fx.symbolic_trace(lambda x: annotate(x + 1, int))
    assert "add : int = x + 1" in traced.code
    assert annotate(3, int) == 3
    with pytest.raises(RuntimeError, match="already had a type"):
        fx.symbolic_trace(lambda x: annotate(annotate(x + 1, int), float))


class Asserts(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale, self.inner = scale, Inner()

    def forward(self, x, *, bias: float = 0.0):
        assert x.dim() == 2, "a matrix"
        y: torch.Tensor = x * self.scale + bias
        return self.inner(y)


class Inner(nn.Module):
    def forward(self, x):
        assert x.size(0) > 1
        return x + 1


def test_rewriting_tracer_records_assertions_and_leaves_the_module_alone():
    module = Asserts(2.0)
    traced = fx.GraphModule(module, RewritingTracer().trace(module))
    assert traced.code.count("torch._assert(") == 2
    assert [n.type for n in traced.graph.nodes if n.name == "add"] == [torch.Tensor]
    assert traced(torch.ones(2, 2), bias=1.0).equal(torch.full((2, 2), 4.0))
    with pytest.raises(AssertionError, match="a matrix"):
        traced(torch.ones(2))
    assert type(module).forward is Asserts.forward
    assert type(module.inner) is Inner
    outer = 3

    def encloses(x):
        assert outer == 3
        return x * outer

    assert AST_Rewriter().rewrite(encloses)(2) == 6


class Folds(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(2, 2)), nn.Parameter(torch.randn(2, 2))
        self.lin = nn.Linear(2, 2)
        self.register_buffer("kept", torch.ones(2))

    def forward(self, x):
        w = self.lin(self.a + self.b)
        return x @ w + self.a.sum() + self.kept, x + self.kept


def test_constants_are_folded_in_the_first_call():
    module = Folds()
    folded = split_const_subgraphs(module)
    assert [n.op for n in folded.graph.nodes].count("call_module") == 0
    names = [n.target for n in folded.graph.nodes if n.op == "get_attr"]
    assert set(names) == {"_FX_CONST_FOLDED_ATTRS.0", "_FX_CONST_FOLDED_ATTRS.1", "kept"}
    x = torch.randn(3, 2)
    for _ in range(2):
        for have, want in zip(folded(x), module(x), strict=True):
            torch.testing.assert_close(have, want)
    with pytest.raises(AssertionError, match="computed already"):
        folded.run_folding()
    skipped = split_const_subgraphs(module, skip_folding_node_fn=lambda n: n.op != "get_attr")
    assert skipped.const_subgraph_module is None
    assert get_unique_attr_name_in_module(module, "a") == "a_1"
    assert get_unique_attr_name_in_module(module, "1.x") == "_1_x"


def test_equal_calls_are_one_but_drawn_numbers_are_not():
    def program(x):
        return x.cos() + x.cos() + torch.rand_like(x) + torch.rand_like(x) + (x + 1) + (x + 1.0)

    traced = make_fx(program)(torch.ones(2))
    result = CSEPass(get_CSE_banned_ops())(traced)
    assert result.modified
    assert len(traced.graph.nodes) - len(result.graph_module.graph.nodes) == 1
    again = CSEPass(get_CSE_banned_ops())(result.graph_module)
    assert not again.modified
    torch.manual_seed(0)
    want = program(torch.ones(2))
    torch.manual_seed(0)
    torch.testing.assert_close(result.graph_module(torch.ones(2)), want)


def test_calls_that_hide_their_parameters_stay_apart():
    def program(x):
        pool = torch.nn.functional.max_pool2d
        return pool(x, 2).sum() + pool(x, 3).sum()

    x = torch.randn(1, 1, 6, 6)
    result = CSEPass()(make_fx(program)(x))
    torch.testing.assert_close(result.graph_module(x), program(x))


def test_tensors_of_numbers_are_made_in_each_run_of_a_graph():
    def program(x):
        y = torch.tensor([3.0])
        y.add_(1)
        return x + y

    traced = make_fx(program)(torch.ones(2))
    # PyTorch 2.13.
    assert targets(traced.graph) == [
        "aten.lift_fresh_copy.default", "aten.add_.Tensor", "aten.add.Tensor",
    ]  # fmt: skip
    for _ in range(2):
        assert traced(torch.ones(2)).tolist() == [5, 5]


def test_passes_are_put_in_order_checked_and_named():
    def rename(old, new):
        def change(gm):
            for node in gm.graph.nodes:
                if node.target is old:
                    node.target = new

        change.__name__ = f"to_{new.__name__}"
        return pass_result_wrapper(change)

    first, second = rename(torch.add, torch.mul), rename(torch.mul, torch.sub)
    traced = fx.symbolic_trace(lambda x: torch.add(x, x))
    order = this_before_that_pass_constraint(first, second)
    manager = PassManager([second, first], [order])
    assert targets(manager(traced).graph_module.graph) == [str(torch.sub)]
    assert manager.passes == [first, second]
    with pytest.raises(TypeError, match="only take in one variable"):
        manager.add_checks(lambda module, more: None)

    def refuse(module):
        raise ValueError("not this one")

    manager.add_checks(refuse)
    with pytest.raises(ValueError, match="not this one"):
        manager(traced)
    with pytest.raises(RuntimeError, match="^Circular dependency detected within"):
        _topological_sort_passes(
            [first, second], [order, this_before_that_pass_constraint(second, first)]
        )

    def fails(module):
        raise KeyError("gone")

    with pytest.raises(Exception, match=r"running the 'fails' pass after .*\['to_mul'\]"):
        PassManager([first, fails])(traced)
    assert pass_result_wrapper(None) is None
    kept = PassResult(traced, False)
    assert pass_result_wrapper(lambda m: kept)(traced) is kept
