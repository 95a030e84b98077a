"""Programs as graphs: PyTorch's texts, and what is done with graphs."""

from __future__ import annotations

import copy
import importlib
import io
import json
import operator
import pickle
import sys
import warnings

import graph_programs
import pytest
from graph_programs import plain

import pytensorlib as torch
from pytensorlib import fx, nn
from pytensorlib.fx.experimental.optimization import fuse, remove_dropout
from pytensorlib.fx.experimental.proxy_tensor import make_fx
from pytensorlib.fx.passes.infra.pass_base import PassResult
from pytensorlib.fx.passes.infra.pass_manager import PassManager
from pytensorlib.fx.passes.shape_prop import ShapeProp
from pytensorlib.fx.passes.split_module import split_module

TEXTS = json.loads(graph_programs.DATA.read_text())
PROGRAMS = graph_programs.traced_programs(torch)
REFUSED = graph_programs.refused_programs(torch)
F = torch.nn.functional


@fx.wrap
def counted(x):
    return len(x)


fx.wrap("len")


def uses_wrapped(x):
    return x * counted(x) + len(x)


@pytest.mark.parametrize("name", PROGRAMS)
def test_traced_program_has_pytorchs_code_and_graph(name):
    program, concrete = PROGRAMS[name]
    traced = fx.symbolic_trace(program, concrete_args=concrete)
    assert traced.code == plain(TEXTS["traced"][name]["code"])
    assert str(traced.graph) == plain(TEXTS["traced"][name]["graph"])
    traced.graph.lint()


@pytest.mark.parametrize("name", REFUSED)
def test_program_that_cannot_be_traced_says_so_in_pytorchs_words(name):
    kind, text = TEXTS["refused"][name]
    with pytest.raises(Exception) as caught:  # noqa: PT011  (its class and text are compared)
        fx.symbolic_trace(REFUSED[name])
    assert type(caught.value).__name__ == kind
    assert str(caught.value) == text


def test_trace_leaves_modules_as_quick_as_they_were():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    before = type(net).__getattr__, type(net).__call__
    fx.symbolic_trace(net)
    assert (type(net).__getattr__, type(net).__call__) == before
    assert "__getattr__" not in vars(nn.Linear)
    assert torch._C._torch_function_modes(True) == []  # nothing asks any more


def test_traced_module_computes_what_the_module_does_and_shares_its_parameters():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten())
    traced = fx.symbolic_trace(net)
    x = torch.randn(2, 3, 5, 5)
    assert torch.equal(traced.eval()(x), net.eval()(x))
    assert traced.get_parameter("0.weight") is net[0].weight
    assert list(traced.state_dict()) == list(net.state_dict())


def test_wrapped_functions_are_called_when_the_program_runs():
    traced = fx.symbolic_trace(uses_wrapped)
    assert "wrap(" in traced.code
    assert traced(torch.ones(3)).tolist() == [6.0, 6.0, 6.0]
    assert traced(torch.ones(2)).tolist() == [4.0, 4.0]


def test_pickled_and_copied_programs_are_the_same():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    x = torch.randn(4, 2)
    for other in (pickle.loads(pickle.dumps(traced)), copy.deepcopy(traced), copy.copy(traced)):
        assert other.code == traced.code
        assert torch.equal(other(x), traced(x))
    file = io.BytesIO()
    torch.save(traced, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x), traced(x))
    deep = copy.deepcopy(traced)
    assert deep.get_parameter("0.weight") is not traced.get_parameter("0.weight")


def test_program_written_to_a_folder_is_a_module_of_python(tmp_path, monkeypatch):
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    with pytest.warns(UserWarning, match=r"pickled files instead: \['1'\]"):
        traced.to_folder(tmp_path / "written", "Net")
    monkeypatch.syspath_prepend(str(tmp_path))
    net = importlib.import_module("written").Net()
    sys.modules.pop("written")
    x = torch.randn(4, 2)
    assert torch.equal(net(x), traced(x))


def test_graph_made_by_hand_runs_and_is_edited():
    graph = fx.Graph()
    a = graph.placeholder("a")
    b = graph.call_function(torch.add, (a, 2))
    unused = graph.call_function(torch.mul, (a, 3))
    graph.output(b)
    graph.lint()
    assert graph.eliminate_dead_code()
    assert unused not in graph.nodes
    with pytest.raises(RuntimeError, match="still had 1 users in the graph"):
        graph.erase_node(b)
    with graph.inserting_after(b):
        c = graph.call_method("relu", (b,))
    b.replace_all_uses_with(c, delete_user_cb=lambda user: user is not c)
    module = fx.GraphModule(nn.Module(), graph)
    assert module(torch.tensor([-3.0, 1.0])).tolist() == [0.0, 3.0]
    assert (a < b, b < c, c.prev is b, b.next is c) == (True, True, True, True)
    c.update_arg(0, a)
    module.recompile()
    assert module(torch.tensor([-3.0, 1.0])).tolist() == [0.0, 1.0]
    with pytest.raises(NotImplementedError, match="does not support mutation"):
        fx.immutable_collections.immutable_list([1]).append(2)


def test_lint_names_what_is_out_of_order():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.neg, (x,))
    graph.output(y)
    y.append(x)
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        graph.lint()


def test_interpreter_and_transformer_methods_are_asked():
    traced = fx.symbolic_trace(lambda x, y=3: torch.add(x, y).neg())
    seen = []

    class Log(fx.Interpreter):
        def run_node(self, n):
            seen.append(n.name)
            return super().run_node(n)

    assert Log(traced).run(torch.ones(1)).item() == -4
    assert seen == ["x", "y", "add", "neg", "output"]

    with pytest.raises(RuntimeError, match=r"While executing %add : \[num_users=1\]"):
        fx.Interpreter(traced).run(torch.ones(2), torch.ones(3))

    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.sub if target is torch.add else target, args, kwargs)

    assert Swap(traced).transform()(torch.ones(1)).item() == 2


def test_replaced_patterns_are_where_pytorch_puts_them():
    class Program(nn.Module):
        def forward(self, x, w1, w2):
            m1 = torch.cat([w1, w2]).sum()
            m2 = torch.cat([w1, w2]).sum()
            return x + torch.max(m1) + torch.max(m2)

    traced = fx.symbolic_trace(Program())
    found = fx.replace_pattern(
        traced,
        lambda w1, w2: torch.cat([w1, w2]).sum(),
        lambda w1, w2: torch.stack([w1, w2]),
    )
    assert len(found) == 2
    # PyTorch 2.13's text.
    assert traced.code.strip().splitlines() == [
        "def forward(self, x, w1, w2):",
        "    stack = torch.stack([w1, w2])",
        "    max_1 = torch.max(stack);  stack = None",
        "    add = x + max_1;  x = max_1 = None",
        "    stack_1 = torch.stack([w1, w2]);  w1 = w2 = None",
        "    max_2 = torch.max(stack_1);  stack_1 = None",
        "    add_1 = add + max_2;  add = max_2 = None",
        "    return add_1",
    ]


def test_shapes_are_noted_and_shown():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3)))
    ShapeProp(traced).propagate(torch.ones(4, 2))
    metas = [n.meta["tensor_meta"] for n in traced.graph.nodes]
    assert [tuple(m.shape) for m in metas] == [(4, 2), (4, 3), (4, 3)]
    assert metas[0].dtype is torch.float32
    assert metas[0].stride == (2, 1)
    assert '_0: "f32[4, 3]" = ' in traced.print_readable(print_output=False)


def test_split_parts_compute_what_the_whole_does():
    class Program(nn.Module):
        def __init__(self):
            super().__init__()
            self.param, self.linear = nn.Parameter(torch.rand(3, 4)), nn.Linear(4, 5)

        def forward(self, x, y):
            z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
            return z + self.linear(y).clamp(min=0.0), z * 2

    whole = Program()
    traced = fx.symbolic_trace(whole)
    order = {node: i // 3 for i, node in enumerate(traced.graph.nodes)}
    parts = split_module(traced, whole, order.__getitem__)
    x, y = torch.rand(3, 4), torch.rand(3, 4)
    for a, b in zip(parts(x, y), whole(x, y), strict=True):
        assert torch.equal(a, b)
    assert all(name.startswith("submod_") for name, _ in parts.named_children())


def test_passes_run_until_nothing_changes():
    calls = []

    def erase(module):
        calls.append(1)
        return PassResult(module, module.graph.eliminate_dead_code())

    traced = fx.symbolic_trace(lambda x: (x + 1, x)[1])
    assert PassManager([erase], steps=5)(traced).modified
    assert len(calls) == 2
    manager = PassManager([erase, len], constraints=[lambda a, b: b is not len])
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        manager.validate_constraints()


def test_drawer_without_its_package_says_what_to_install():
    try:
        import pydot  # noqa: F401
    except ImportError:
        from pytensorlib.fx.passes.graph_drawer import FxGraphDrawer

        with pytest.raises(RuntimeError, match="requires the pydot package to be installed"):
            FxGraphDrawer(fx.symbolic_trace(lambda x: x), "name")


def test_error_of_a_program_shows_its_line(capsys):
    traced = fx.symbolic_trace(lambda x: torch.neg(x) @ x)
    with pytest.raises(RuntimeError):
        traced(torch.ones(2, 3))
    assert "line 6 of the traced Module's generated forward function" in capsys.readouterr().err


def test_make_fx_gives_the_operators_below_gradients():
    def loss(x):
        return F.linear(x.sin(), x).relu().sum()

    # PyTorch 2.13's text.
    assert make_fx(loss)(torch.ones(3, 3)).code.strip().splitlines() == [
        "def forward(self, x_1):",
        "    sin = torch.ops.aten.sin.default(x_1)",
        "    t = torch.ops.aten.t.default(x_1);  x_1 = None",
        "    mm = torch.ops.aten.mm.default(sin, t);  sin = t = None",
        "    relu = torch.ops.aten.relu.default(mm);  mm = None",
        "    sum_1 = torch.ops.aten.sum.default(relu);  relu = None",
        "    return sum_1",
    ]

    def gradient(x):
        x = x.clone().requires_grad_()
        (g,) = torch.autograd.grad(loss(x), x)
        return g

    traced = make_fx(gradient)(torch.randn(3, 3))
    x = torch.randn(3, 3)
    torch.testing.assert_close(traced(x), gradient(x))


def test_make_fx_calls_decompositions_in_the_place_of_operators():
    table = {torch.ops.aten.sin.default: lambda x: torch.cos(x)}
    traced = make_fx(lambda x: x.sin() + 1, decomposition_table=table)(torch.ones(2))
    targets = [str(n.target) for n in traced.graph.nodes if n.op == "call_function"]
    assert targets == ["aten.cos.default", "aten.add.Tensor"]


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (F.softsign, ["aten.abs.default", "aten.add.Tensor", "aten.div.Tensor"]),
        (
            F.normalize,
            [f"aten.{n}" for n in ("linalg_vector_norm.default", "clamp_min.default")]
            + ["aten.expand.default", "aten.div.Tensor"],
        ),
    ],
)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_make_fx_has_the_parts_of_what_pytorch_composes(function, parts, requires_grad):
    x = torch.randn(2, 3, requires_grad=requires_grad)
    graph = make_fx(function)(x)
    graph.graph.eliminate_dead_code()  # what a gradient keeps
    calls = [n for n in graph.graph.nodes if n.op == "call_function"]
    assert [str(n.target) for n in calls] == parts
    assert len(calls[-1].args) == 2
    torch.testing.assert_close(graph(x), function(x))


def test_tracer_options_choose_what_becomes_a_node():
    class Deep(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    net = nn.Sequential(nn.Linear(2, 3))
    graph = Deep().trace(net)
    assert [n.op for n in graph.nodes] == [
        "placeholder", "get_attr", "get_attr", "call_function", "output",
    ]  # fmt: skip
    assert (
        fx.Tracer(autowrap_functions=(counted,))
        .trace(uses_wrapped)
        .find_nodes(op="call_function", target=counted)
    )
    assert operator.mul in {n.target for n in fx.Tracer().trace(uses_wrapped).nodes}


def test_fused_network_gives_the_same_with_fewer_layers():
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Conv2d(4, 2, 1)
    )
    net(torch.randn(8, 3, 6, 6))  # statistics other than those of the beginning
    net.eval()
    fused = remove_dropout(fuse(net))
    x = torch.randn(2, 3, 6, 6)
    torch.testing.assert_close(fused(x), net(x), rtol=1e-5, atol=1e-6)
    kinds = [type(m).__name__ for m in fused.children()]
    assert kinds == ["Conv2d", "ReLU", "Conv2d"]
    assert [type(m).__name__ for m in net.children()][1] == "BatchNorm2d"


def test_nothing_is_warned_of_while_a_program_is_traced():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))(torch.ones(1, 2))


def test_operators_of_programs_are_traced_as_calls_of_them():
    @torch.library.custom_op("traced::scale", mutates_args=())
    def scale(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    def f(x):
        ops = torch.ops.traced
        return ops.scale(x, 2.0) + ops.scale.default(x, 3.0) + scale(x, 4.0)

    traced = fx.symbolic_trace(f)
    # What PyTorch 2.13 has as targets.
    targets = [str(n.target) for n in traced.graph.nodes if "scale" in n.name]
    assert targets == ["traced.scale", "traced.scale.default", "traced.scale.default"]
    assert traced(torch.ones(1)).item() == 9
