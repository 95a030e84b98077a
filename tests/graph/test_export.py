"""Exported programs: PyTorch's texts, and that they compute what the modules do."""

from __future__ import annotations

import io
import json
import threading
import warnings

import graph_programs
import pytest
from graph_programs import plain

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib._dynamo.exc import UserError
from pytensorlib._higher_order_ops import associative_scan, scan
from pytensorlib.export import Dim, export
from pytensorlib.functorch.experimental import control_flow
from pytensorlib.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from pytensorlib.utils import _pytree as pytree

F = nn.functional
TEXTS = json.loads(graph_programs.DATA.read_text())
PROGRAMS = graph_programs.exported_programs(torch)
REFUSED = graph_programs.refused_exports(torch)


class Of(nn.Module):
    """A module of a function."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *args):
        return self.f(*args)


def same(a, b):
    a, b = pytree.tree_leaves(a), pytree.tree_leaves(b)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        if isinstance(y, torch.Tensor):
            torch.testing.assert_close(x, y, equal_nan=True)
        else:
            assert x == y


@pytest.mark.parametrize("name", PROGRAMS)
def test_exported_program_has_pytorchs_texts(name):
    module, args, kwargs, shapes = PROGRAMS[name]
    found = graph_programs.exported_texts(export(module, args, kwargs, dynamic_shapes=shapes))
    for key, text in TEXTS["exported"][name].items():
        assert plain(found[key]) == plain(text), key


LAYERS = graph_programs.layer_programs(torch)


@pytest.mark.parametrize("n", range(len(LAYERS)), ids=[type(m).__name__ for m, _ in LAYERS])
def test_exported_layer_has_pytorchs_code(n):
    module, x = LAYERS[n]
    args = x if isinstance(x, tuple) else (x,)
    assert export(module, args).graph_module.code == TEXTS["layers"][n]


@pytest.mark.parametrize("name", REFUSED)
def test_export_that_is_refused_says_so_in_pytorchs_words(name):
    module, args, shapes = REFUSED[name]
    kind, text = TEXTS["refused exports"][name]
    with pytest.raises(Exception) as caught:  # noqa: PT011  (its class and text are compared)
        export(module, args, dynamic_shapes=shapes)
    assert type(caught.value).__name__ == kind
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "net"])
def test_exported_program_and_its_decomposition_compute_what_the_module_does(name):
    module, args, kwargs, shapes = PROGRAMS[name]
    program = export(module, args, kwargs, dynamic_shapes=shapes)
    want = module(*args, **kwargs)
    same(program.module()(*args, **kwargs), want)
    same(program.run_decompositions().module()(*args, **kwargs), want)


OPEN = graph_programs.open_programs(torch)


@pytest.mark.parametrize("name", OPEN)
def test_open_program_computes_what_the_function_does_at_other_sizes(name):
    torch.manual_seed(0)
    batch = Dim("batch")
    shapes = (({0: batch, 1: Dim("length")}, {0: batch, 1: Dim("other")}),)
    program = export(
        Of(OPEN[name]), (torch.randn(2, 6, 8), torch.randn(2, 5, 8)), dynamic_shapes=shapes
    )
    for run in (program.module(), program.run_decompositions().module()):
        for n, a, b in ((2, 6, 5), (3, 9, 4), (1, 7, 12)):
            x, z = torch.randn(n, a, 8), torch.randn(n, b, 8)
            same(run(x, z), OPEN[name](x, z))


@pytest.mark.parametrize("name", ["heads", "rows", "masked", "products", "turned"])
def test_program_recorded_at_size_one_does_not_rely_on_it(name):
    batch = Dim("batch")
    shapes = (({0: batch, 1: Dim("length")}, {0: batch, 1: Dim("other")}),)
    program = export(
        Of(lambda x, z: OPEN[name](x.transpose(0, 1).contiguous().transpose(0, 1), z)),
        (torch.randn(1, 6, 8), torch.randn(1, 5, 8)),
        dynamic_shapes=shapes,
    )
    x, z = torch.randn(3, 4, 8), torch.randn(3, 7, 8)
    for run in (program.module(), program.run_decompositions().module()):
        same(run(x, z), OPEN[name](x, z))


@torch.library.custom_op("test_export::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def test_operator_of_a_program_is_one_node():
    program = export(Of(lambda x: twice(x) + 1), (torch.ones(2),))
    assert "torch.ops.test_export.twice.default(args_0)" in program.graph_module.code
    for run in (program.module(), program.run_decompositions().module()):
        assert run(torch.ones(2)).tolist() == [3.0, 3.0]


def test_decomposed_network_is_written_with_pytorchs_core_operators():
    module, args, kwargs, shapes = graph_programs.exported_programs(torch)["net"]
    program = export(module, args, kwargs, dynamic_shapes=shapes).run_decompositions()
    targets = [n.target.__name__ for n in program.graph.nodes if n.op == "call_function"]
    for target in (
        "convolution.default", "_native_batch_norm_legit_no_training.default", "relu.default",
        "mean.dim", "view.default", "permute.default", "addmm.default", "embedding.default",
        "native_layer_norm.default", "_softmax.default", "bmm.default",
    ):  # fmt: skip
        assert target in targets
    assert not any(t.partition(".")[0].endswith("_") for t in targets)
    kinds = [s.kind.name for s in program.graph_signature.output_specs]
    assert kinds == ["BUFFER_MUTATION", *["USER_OUTPUT"] * 3]
    assert program.graph_signature.buffers_to_mutate == {
        program.graph_signature.output_specs[0].arg.name: "buf"
    }


def test_open_sizes_take_other_sizes_and_guards_the_rest():
    module, args, kwargs, shapes = PROGRAMS["net"]
    run = export(module, args, kwargs, dynamic_shapes=shapes).module()
    image, ids = torch.randn(6, 3, 8, 8), torch.ones(6, 4, dtype=torch.long)
    assert run(image, ids)["q"].shape == (6, 5, 1)
    # PyTorch 2.13's words.
    for x, i, text in (
        (torch.ones(2, 3, 9, 8), ids[:2], r"Guard failed: x.size()[2] == 8"),
        (image, ids[:3], r"Guard failed: ids.size()[0] == x.size()[0]"),
        (torch.ones(66, 3, 8, 8), ids[:1].expand(66, 4), r"Guard failed: x.size()[0] <= 64"),
    ):
        with pytest.raises(AssertionError) as caught:
            run(x, i)
        assert str(caught.value) == text
    with pytest.raises(ValueError, match="Trying to flatten user inputs with exported input tree"):
        run(image)


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="no Vulkan, Metal or DX12 driver")
def test_program_of_a_gpu_makes_its_tensors_there():
    net = nn.Linear(4, 4).to("wgpu")
    module = Of(lambda x: net(x) + torch.ones(4, device=x.device))
    module.net = net
    x = torch.randn(2, 4, device="wgpu")
    program = export(module, (x,))
    for run in (program.module(), program.run_decompositions().module()):
        assert run(x).device == x.device
        torch.testing.assert_close(run(x), module(x))


def test_plain_arguments_are_guarded():
    class Scaled(nn.Module):
        def forward(self, x, flag=True, scale=2.0, name="a", y=None):
            return x * scale if flag else x

    run = export(Scaled(), (torch.ones(2), True, 3.0, "b")).module()
    assert run(torch.ones(2), True, 3.0, "b").tolist() == [3.0, 3.0]
    # PyTorch 2.13's words.
    for args, text in (
        ((False, 3.0, "b"), "flag == True"), ((True, 4.0, "b"), "scale == 3.0"),
        ((True, 3.0, "c"), "name == 'b'"),
    ):  # fmt: skip
        with pytest.raises(AssertionError) as caught:
            run(torch.ones(2), *args)
        assert str(caught.value) == f"Guard failed: {text}"


def test_writes_become_outputs_and_reach_buffers_and_arguments():
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.zeros(3, 4))

        def forward(self, x):
            self.kept[1].add_(x)
            self.kept[:, ::2] = 2.0
            y = x.clone()
            y.view(2, 2)[0] = 5.0
            x.mul_(2)
            return self.kept + y, self.kept.t()[0]

    plain_module = Writes()
    program = export(Writes(), (torch.ones(4),))
    for run in (program.module(), program.run_decompositions().module()):
        run.kept.zero_()
        plain_module.kept.zero_()
        x, y = torch.arange(4.0), torch.arange(4.0)
        same(run(x), plain_module(y))
        assert torch.equal(x, y)
        assert torch.equal(run.kept, plain_module.kept)


def test_branch_and_loop_stay_one_operator_each_and_run():
    net = nn.Linear(3, 3)

    def branch(x):
        return torch.cond(x.sum() > 0, lambda x: net(x).sin(), lambda x: x.cos(), (x,))

    module = Of(branch)
    module.net = net
    program = export(module, (torch.ones(2, 3),))
    assert [str(n.target) for n in program.graph.nodes].count("cond") == 1
    for x in (torch.ones(2, 3), -torch.ones(2, 3)):
        same(program.module()(x), module(x))
    loop = Of(
        lambda x: torch.while_loop(
            lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x)
        )
    )
    program = export(loop, (torch.ones(2),))
    assert [str(n.target) for n in program.graph.nodes].count("while_loop") == 1
    same(program.module()(torch.ones(2)), (torch.tensor(5), torch.full((2,), 32.0)))
    with pytest.raises(RuntimeError, match="both branches must return tensors of the same sizes"):
        export(
            Of(lambda x: torch.cond(x.sum() > 0, lambda x: x, lambda x: x[:1], (x,))),
            (torch.ones(2, 3),),
        )


W = torch.arange(9.0).reshape(3, 3) / 9
SCANS = {
    "scan": lambda x: scan(lambda c, x: (c * 0.5 + x @ W, c + x), torch.zeros(3), x),
    "reverse": lambda x: scan(
        lambda c, x: ((c[0] + x, c[1] * x), {"a": c[0], "b": x * 2}),
        (torch.zeros(3), torch.ones(3)),
        x,
        reverse=True,
    ),
    "dim": lambda x: scan(lambda c, x: (c + x, c.sin()), torch.zeros(5), x, dim=1),
    "map": lambda x: control_flow.map(lambda row, y: row.sum() + y, x, W[0]),
    "associative": lambda x: associative_scan(lambda a, b: a * b + a, x, 0),
    "associative reverse": lambda x: associative_scan(lambda a, b: a + b, x, 1, reverse=True),
}


@pytest.mark.parametrize("name", SCANS)
def test_loop_over_a_dimension_stays_one_operator_and_runs(name):
    x = torch.randn(5, 3)
    program = export(Of(SCANS[name]), (x,))
    kind = "map_impl" if name == "map" else "scan"
    assert [str(n.target) for n in program.graph.nodes].count(kind) == 1
    for run in (program.module(), program.run_decompositions().module()):
        same(run(x), SCANS[name](x))


def test_scan_of_an_open_length_is_what_a_loop_gives():
    def by_hand(x):
        carry, outs = torch.zeros(3), []
        for row in x:
            outs.append(carry + row)
            carry = carry * 0.5 + row @ W
        return carry, torch.stack(outs)

    shapes = (({0: Dim("length")},),)
    program = export(Of(SCANS["scan"]), (torch.randn(5, 3),), dynamic_shapes=shapes)
    x = torch.randn(9, 3)
    same(program.module()(x), by_hand(x))
    same(SCANS["scan"](x), by_hand(x))
    with pytest.raises(RuntimeError, match="all tensors of xs must be as long"):
        scan(lambda c, x: (c, x), torch.zeros(1), (torch.ones(2), torch.ones(3)))
    with pytest.raises(RuntimeError, match="scan: xs is empty"):
        scan(lambda c, x: (c, x), torch.zeros(1), torch.ones(0))


def test_sizes_that_depend_on_data_stay_open():
    def program(x):
        n = x.nonzero()
        i = x[0, 0].item()
        torch._check(i >= 0)
        torch._check(i < 10)
        return n, torch.arange(n.shape[0]), x[x > 0], x.reshape(-1)[:i]

    module = Of(program)
    exported = export(module, (torch.ones(2, 3, dtype=torch.long),))
    assert str(exported.range_constraints["u1"]) == "VR[0, 9]"
    x = torch.tensor([[2, 0, 3], [0, 0, 1]])
    same(exported.module()(x), module(x))
    with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u1 < 10"):
        exported.module()(x + 20)


def test_branch_on_data_is_refused_and_names_what_to_use():
    with pytest.raises(GuardOnDataDependentSymNode, match=r"torch\.cond"):
        export(Of(lambda x: x if x.sum() > 0 else -x), (torch.ones(2),))
    with pytest.raises(RuntimeError, match=r"Tensor\.tolist needs the numbers"):
        export(Of(lambda x: x.tolist()), (torch.ones(2),))


@pytest.mark.parametrize("name", PROGRAMS)
def test_saved_program_is_read_back_whole(name):
    module, args, kwargs, shapes = graph_programs.exported_programs(torch)[name]
    program = export(module, args, kwargs, dynamic_shapes=shapes)
    file = io.BytesIO()
    torch.export.save(program, file, extra_files={"note": "text"})
    file.seek(0)
    notes = {"note": ""}
    read = torch.export.load(file, extra_files=notes)
    assert notes == {"note": "text"}
    assert str(read) == str(program)
    first = read.module()(*args, **kwargs)
    same(first, program.module()(*args, **kwargs))
    assert list(read.state_dict) == list(program.state_dict)


def test_file_of_another_kind_or_a_harmful_one_is_refused(tmp_path):
    torch.save({"a": 1}, tmp_path / "a.pt")
    with pytest.raises(RuntimeError, match=r"not written by torch\.export\.save"):
        torch.export.load(tmp_path / "a.pt")
    file = tmp_path / "b.pt2"
    torch.export.save(export(nn.ReLU(), (torch.ones(2),)), file)
    saved = torch.load(file)
    for name in (
        "builtins.eval", "torch.nn.__builtins__", "operator.call", "torch.hub.load",
        "torch._sys.exit", "ops.load_library", "ops.aten.nothing",
    ):  # fmt: skip
        harmful = saved | {"program": saved["program"].replace("ops.aten.relu.default", name)}
        torch.save(harmful, file)
        with pytest.raises(RuntimeError, match="which no graph does"):
            torch.export.load(file)


def test_dims_have_names_ranges_and_arithmetic():
    batch = Dim("batch", min=2, max=8)
    assert repr(batch) == "Dim('batch', min=2, max=8)"
    assert repr(2 * batch + 1) == "2*batch+1"
    with pytest.raises(AssertionError, match="inconsistent min=3, max=2"):
        Dim("batch", min=3, max=2)
    with pytest.raises(AssertionError, match="valid identifier"):
        Dim("not a name")
    with pytest.raises(NotImplementedError, match="where an integer was expected"):
        batch * 1.5
    half = Dim("half")
    module = Of(lambda x: x.view(x.shape[0] // 2, 2, -1))
    program = export(module, (torch.ones(4, 6),), dynamic_shapes=(({0: 2 * half},),))
    assert program.module()(torch.ones(10, 6)).shape == (5, 2, 6)


def test_shapes_are_said_by_tensor_or_found_from_examples():
    x = torch.ones(4, 3)
    shapes = torch.export.ShapesCollection()
    shapes[x] = {0: Dim.DYNAMIC}
    assert export(nn.ReLU(), (x,), dynamic_shapes=shapes).module()(torch.ones(9, 3)).shape[0] == 9
    more = torch.export.AdditionalInputs()
    more.add((torch.ones(4, 5),))
    program = export(nn.ReLU(), (x,), dynamic_shapes=more)
    assert program.module()(torch.ones(4, 7)).shape == (4, 7)
    with pytest.raises(AssertionError, match=r"size\(\)\[0\] == 4"):
        program.module()(torch.ones(5, 7))


def test_exporting_is_told_while_it_runs():
    seen = []

    def elsewhere():
        seen.append((torch.compiler.is_exporting(), twice(torch.ones(1)).item()))

    def program(x):
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
        seen.append((torch.compiler.is_exporting(), torch.compiler.is_compiling()))
        return x + 1

    export(Of(program), (torch.ones(2),))
    assert seen == [(False, 2.0), (True, True)]  # other threads run as before
    assert not torch.compiler.is_exporting()


def test_program_shares_parameters_and_is_not_called_itself():
    net = nn.Linear(2, 3)
    program = export(net, (torch.ones(1, 2),))
    assert program.module().weight is net.weight
    assert [n for n, _ in program.named_parameters()] == ["weight", "bias"]
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(torch.ones(1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(net, torch.ones(1, 2))
    same(export(traced, (torch.ones(1, 2),)).module()(torch.ones(1, 2)), net(torch.ones(1, 2)))


def test_unknown_tensors_are_constants_of_the_program():
    table = torch.arange(6.0).reshape(2, 3)
    program = export(Of(lambda x: x + table), (torch.ones(2, 3),))
    assert list(program.constants) == ["lifted_tensor_0"]
    same(program.module()(torch.ones(2, 3)), table + 1)


def test_error_of_a_module_passes_through():
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        export(nn.Linear(2, 3), (torch.ones(1, 5),))
    with pytest.raises(UserError, match="must return tensors"):
        export(Of(lambda x: object()), (torch.ones(1),))
