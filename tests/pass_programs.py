"""Programs that passes of `torch.fx` change, and what becomes of them.

``python tests/pass_programs.py`` in a Python that has PyTorch writes what its passes give to
``tests/data/pass_texts.json``.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent / "data" / "pass_texts.json"


def codes(gm: Any) -> dict[str, str]:
    """Return the code of a program and of its parts."""
    return {"": gm.code, **{k: m.code for k, m in gm.named_children() if hasattr(m, "code")}}


def raised(f: Callable[[], Any]) -> list[str]:
    """Return the class and text of what a function raises."""
    try:
        f()
    except Exception as e:
        return [type(e).__name__, str(e)]
    return []


@contextlib.contextmanager
def silent() -> Any:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        yield out


class Library:
    """The modules of a library by their names."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def __getattr__(self, name: str) -> Any:
        return importlib.import_module(f"{self.torch.__name__}.fx.passes.{name}")


def tagged(torch: Any) -> dict[str, Any]:
    """Return what `split_by_tags` gives."""
    nn = torch.nn
    split = Library(torch).split_utils.split_by_tags

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1, self.linear2 = nn.Linear(2, 3), nn.Linear(2, 3)
            self.linear3 = nn.Linear(3, 3)
            self.p = nn.Parameter(torch.ones(3))

        def forward(self, a, b):
            r1, r2 = self.linear1(a), self.linear2(b)
            return self.linear3(torch.cat([r1, r2])) + self.p, r1

    gm = torch.fx.symbolic_trace(Net())
    plain = torch.fx.symbolic_trace(Net())
    tags = {"linear1": "ro", "linear2": "main", "cat": "main", "linear3": "main", "add": "last"}
    for n in gm.graph.nodes:
        if n.name in tags:
            n.tag = tags[n.name]
    order = ["ro", "main", "last"]
    made, names = split(gm, order, return_fqn_mapping=True)
    return {
        "tags": codes(made),
        "tags names": names,
        "tags tuples": codes(split(gm, order, return_tuple=True)),
        "tags in another order": raised(lambda: split(gm, ["main", "ro", "last"])),
        "tags left out": raised(lambda: split(plain, order)),
    }


def split(torch: Any) -> dict[str, Any]:
    """Return what a splitter gives."""
    passes, nn = Library(torch), torch.nn
    base, x = passes.splitter_base, torch.ones(2, 2)

    class Diamond(nn.Module):
        def forward(self, a):
            return torch.sin(a) + torch.cos(a)

    class Long(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(2, 2)

        def forward(self, a, b):
            y, z = torch.relu(self.l(a)), torch.tanh(b)
            y = y + z
            w = y.view(y.size(0), -1)
            return torch.relu(w) * 2, z

    def splitter(module: Any, args: Any, names: str, **settings: Any) -> Any:
        support = passes.operator_support.OperatorSupport(dict.fromkeys(names.split()))
        gm = torch.fx.symbolic_trace(module())
        return base._SplitterBase(gm, args, support, base._SplitterSettingBase(**settings))

    def parts(*args: Any, **settings: Any) -> Any:
        with silent() as out:
            made = splitter(*args, **settings)
            found = codes(made())
        said = [line for line in out.getvalue().splitlines() if "Got" in line]
        return [found, said, made.get_node_submodule_map()]

    linear = "torch.nn.modules.linear.Linear"
    most = f"torch.relu {linear} _operator.add _operator.mul size"
    every = f"{most} view"
    with silent():
        long = splitter(Long, (x, x), every)
        support, preview = long.node_support_preview(), long.split_preview()
        results = splitter(Diamond, (x,), "torch.sin").generate_split_results()
    free = {"allow_non_tensor": True}
    return {
        "diamond": parts(Diamond, (x,), "torch.sin torch.cos"),
        "long": parts(Long, (x, x), every),
        "long without groups": parts(Long, (x, x), every, skip_fusion=True, **free),
        "long without small parts": parts(Long, (x, x), every, min_acc_module_size=3),
        "numbers": parts(Long, (x, x), most),
        "numbers allowed": parts(Long, (x, x), most, **free),
        "numbers moved": parts(
            Long, (x, x), most, skip_fusion=True, move_non_tensor_nodes_on_boundary=True, **free
        ),
        "support": support,
        "preview": preview,
        "results": [list(results.submodule_inputs), results.non_acc_submodule_prefix],
    }


def orders(torch: Any) -> dict[str, Any]:
    """Return what sorting gives."""
    common = Library(torch).tools_common

    def program(x, y):
        a = x.sin()
        b = a.cos()
        c = y.exp()
        return (c + b).tanh() * a

    found = {}
    for name in ("legalize_graph", "stable_topological_sort"):
        for after in ("output", "sin", "y"):
            gm = torch.fx.symbolic_trace(program)
            nodes = {n.name: n for n in gm.graph.nodes}
            if after != "output":
                nodes[after].append(nodes["mul"])
            getattr(common, name)(gm)
            found[f"{name} {after}"] = [n.name for n in gm.graph.nodes]
    gm = torch.fx.symbolic_trace(lambda x: torch.nn.functional.relu(torch.sin(x)).exp() + 1)
    calls = [n for n in gm.graph.nodes if n.op in common.CALLABLE_NODE_OPS]
    found["targets"] = [common.get_node_target({}, n) for n in calls]
    return found


def noted(torch: Any) -> dict[str, Any]:
    """Return what passes note on nodes."""
    passes, nn = Library(torch), torch.nn
    sizes = passes.graph_manipulation
    gm = torch.fx.symbolic_trace(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2)))
    sizes.get_size_of_all_nodes(gm, [torch.ones(1, 3, 8, 8)])
    passes.param_fetch.lift_lowering_attrs_to_nodes(gm)
    layers = [n.attrs_for_lowering for n in gm.graph.nodes if n.op == "call_module"]
    other = torch.fx.symbolic_trace(lambda x: torch.relu(torch.relu(x) + 1))
    first = next(iter(other.graph.nodes))
    missing = raised(lambda: sizes.get_size_of_node(other, first))
    sizes.replace_target_nodes_with(other, "call_function", torch.relu, "call_method", "abs")
    fake = torch.fx.symbolic_trace(lambda x: (torch.relu(x).flatten(1) + 1).sum(1))
    passes.fake_tensor_prop.FakeTensorProp(fake).propagate(torch.ones(1, 3, 8, 8))
    values = [n.meta["val"] for n in fake.graph.nodes]
    return {
        "bytes": [list(n.size_bytes) for n in gm.graph.nodes if n.op != "output"],
        "bytes of a node without notes": missing,
        "layers": [
            {k: list(v.shape) if isinstance(v, torch.Tensor) else v for k, v in row.items()}
            for row in layers
        ],
        "other targets": other.code,
        "fake": [[list(v.shape), str(v.dtype), str(v.device)] for v in values],
    }


def written(torch: Any) -> dict[str, Any]:
    """Return what `reinplace` gives, and the functions that it is given."""
    a = torch.ops.aten

    def scattered(x):
        y = x.add(1)
        return torch.diagonal_scatter(y, y.diagonal().mul(2))

    def viewed(x):
        y = x.clone()
        return y + y[0].add(1)

    def twice(x):
        y = x.add(1)
        return y.mul(y)

    functions = {
        "chain": lambda x: x.add(1).mul(2).sin(),
        "used later": lambda x: (lambda y: y.mul(2) + y)(x.add(1)),
        "scattered": scattered,
        "put": lambda x: torch.select_scatter(x.add(1), x[0], 0, 1),
        "of another type": lambda x: x.add(1).ge(2).logical_not(),
        "viewed": viewed,
        "twice": twice,
        "through a view": lambda x: x.add(1).view(-1).add(1).sum(),
        "larger": lambda x: a.add.Tensor(x[0].neg(), x),
        "expanded": lambda x: x.expand(4, 3, 3).add(0).mul(2),
        "argument": lambda x: torch.slice_scatter(x.clone(), x[:1], 0, 1, 2),
    }
    make_fx = importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx
    x = torch.arange(9.0).view(3, 3)
    run = Library(torch).reinplace.reinplace
    return {name: (run(make_fx(f)(x), x), f, x) for name, f in functions.items()}


def minimized(torch: Any) -> dict[str, Any]:
    """Return which nodes are found to differ."""
    base, x = Library(torch).net_min_base, torch.ones(2)

    class Minimizer(base._MinimizerBase):
        bad: tuple[str, ...] = ()

        def run_a(self, mod, inputs, report_idx=-1):
            return mod(*inputs)

        def run_b(self, mod, inputs, report_idx=-1):
            return mod(*inputs) + sum(n.name in self.bad for n in mod.graph.nodes)

    def equal(a: Any, b: Any, names: Any) -> Any:
        return float((a - b).abs().max()), bool(torch.equal(a, b))

    def found(method: str, *bad: str, find_all: bool = False, **given: Any) -> list[str]:
        gm = torch.fx.symbolic_trace(lambda x: (x.sin().exp().cos() + x.tanh()).relu())
        settings = base._MinimizerSettingBase(traverse_method=method, find_all=find_all)
        with silent():
            search = Minimizer(gm, (x,), equal, settings)
            search.bad = bad
            return sorted(n.name for n in search.minimize(**given))

    made: dict[str, Any] = {}
    for method in ("sequential", "binary", "accumulate"):
        made[f"{method} one"] = found(method, "exp")
        made[f"{method} none"] = found(method)
    made["sequential all"] = found("sequential", "exp", "tanh", find_all=True)
    made["skip"] = found("skip", "exp", skip_nodes=["exp"])
    made["block one"] = found("block", "exp")
    made["block two"] = found("block", "exp", "tanh")
    made["block none"] = found("block")
    made["block last"] = found("block", "exp", find_last_node=True)
    made["block first"] = found("block", "exp", find_last_node=False)
    made["sequential elsewhere"] = found("sequential", "exp", start="cos", end="add")
    made["no such method"] = raised(lambda: found("no"))
    made["skip nothing"] = raised(lambda: found("skip"))
    return made


def sources(torch: Any) -> dict[str, Any]:
    """Return the nodes of layers."""
    nn = torch.nn
    match = importlib.import_module(f"{torch.__name__}.fx.passes.utils.source_matcher_utils")
    named = importlib.import_module(
        f"{torch.__name__}.fx.passes.utils.matcher_with_name_node_map_utils"
    )

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.r = nn.Linear(2, 3), nn.Linear(3, 2), nn.ReLU()

        def forward(self, x):
            return self.b(self.r(self.a(x))) + x

    class Pattern(nn.Module):
        def forward(self, x):
            y = x.relu()
            return y + 1, {"inner": y}

    class Other(nn.Module):
        def forward(self, x):
            return (x.sin().relu() + 1) * 2

    args = (torch.ones(2, 2),)
    graph = torch.export.export(Net(), args).graph
    parts = match.get_source_partitions(graph, [nn.Linear, nn.ReLU])
    (first, second), (relu,) = parts[nn.Linear], parts[nn.ReLU]
    pattern = torch.export.export(Pattern(), args).module()
    other = torch.export.export(Other(), args).module()
    (found,) = named.SubgraphMatcherWithNameNodeMap(pattern).match(other.graph)
    return {
        "layers' nodes": [
            [[n.name for n in each] for each in (part.nodes, part.output_nodes, part.params)]
            + [sorted(n.name for n in part.input_nodes)]
            for part in (first, second, relu)
        ],
        "layers that are connected": [
            match.check_subgraphs_connected(a, b)
            for a in (first, relu, second)
            for b in (first, relu, second)
        ],
        "names in a pattern": {k: n.name for k, n in found.name_node_map.items()},
    }


def results(torch: Any) -> dict[str, Any]:
    """Return what passes give, by name."""
    found: dict[str, Any] = {}
    for each in (tagged, split, orders, noted, minimized, sources):
        found.update(each(torch))
    found.update({f"reinplace {k}": gm.code for k, (gm, _, _) in written(torch).items()})
    return json.loads(json.dumps(found, default=str))  # type: ignore[no-any-return]


if __name__ == "__main__":
    import torch

    DATA.write_text(json.dumps(results(torch), indent=1) + "\n")
