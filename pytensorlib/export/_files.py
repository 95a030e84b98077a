"""Exported programs as plain containers, which `save` writes and `load` reads."""

from __future__ import annotations

import json
from typing import Any

import pytensorlib as pt

from .._ops import OpOverload, ops
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..utils import _pytree as pytree
from . import graph_signature as kinds
from ._control_flow import HigherOrderOperator
from ._fake import FakeTensor
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, ValueRanges

__all__ = ["read", "write"]

FORMAT = "pytensorlib.export"
VERSION = 1
_SYMBOLS = ("SymInt", "SymFloat", "SymBool")


def _name(obj: Any) -> str:
    return str(obj).rpartition(".")[2]


def encode(value: Any) -> Any:
    """Return a value in JSON's terms; what is no plain value is a dictionary."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, Node):
        return {"node": value.name}
    if isinstance(value, tuple):
        return {"tuple": [encode(v) for v in value]}
    if isinstance(value, list):
        return [encode(v) for v in value]
    if isinstance(value, dict):
        return {"dict": [[encode(k), encode(v)] for k, v in value.items()]}
    if isinstance(value, slice):
        return {"slice": [encode(v) for v in (value.start, value.stop, value.step)]}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    for kind in ("dtype", "memory_format", "layout"):
        if isinstance(value, getattr(pt, kind)):
            return {kind: _name(value)}
    if isinstance(value, pt.device):
        return {"device": str(value)}
    raise TypeError(f"torch.export.save: a {type(value).__name__} in a graph cannot be written")


def decode(value: Any, nodes: dict[str, Node]) -> Any:
    """Return the value of what `encode` gave."""
    if isinstance(value, list):
        return [decode(v, nodes) for v in value]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "float":
        return float.fromhex(inner)
    if kind == "node":
        return nodes[inner]
    if kind == "tuple":
        return tuple(decode(v, nodes) for v in inner)
    if kind == "dict":
        return {decode(k, nodes): decode(v, nodes) for k, v in inner}
    if kind == "slice":
        return slice(*(decode(v, nodes) for v in inner))
    if kind == "complex":
        return complex(*map(float.fromhex, inner))
    if kind == "device":
        return pt.device(inner)
    if kind in ("dtype", "memory_format", "layout"):
        return getattr(pt, inner)
    raise RuntimeError(f"torch.export.load: the file has an unknown value {kind!r}")


class Symbol:
    """An open size of a program that was read: it is known by how it is written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return str(other) == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def _value(val: Any) -> Any:
    if hasattr(val, "dtype") and hasattr(val, "shape"):
        sizes = [s if isinstance(s, int) else str(s) for s in val.shape]
        return {"sizes": sizes, "dtype": _name(val.dtype), "device": str(val.device),
                "strides": list(val.stride())}  # fmt: skip
    if isinstance(val, (tuple, list)):
        return [_value(v) for v in val]
    return {"symbol": str(val)} if type(val).__name__ in (*_SYMBOLS, "Symbol") else None


def _unvalue(saved: Any) -> Any:
    if isinstance(saved, list):
        return tuple(_unvalue(v) for v in saved)
    if saved is None:
        return None
    if "symbol" in saved:
        return Symbol(saved["symbol"])
    shape: Any = tuple(s if isinstance(s, int) else Symbol(s) for s in saved["sizes"])
    if all(isinstance(s, int) for s in shape):
        shape = pt.Size(shape)
    device = pt.device(saved["device"])
    return FakeTensor(shape, getattr(pt, saved["dtype"]), device, tuple(saved["strides"]))


def target_name(target: Any) -> str:
    """Return the name of what a node calls."""
    if isinstance(target, str):
        return target
    module = getattr(target, "__module__", "")
    if module.startswith("torch.ops."):
        return f"{module[6:]}.{target.__name__}"
    if module == "_operator":
        return f"operator.{target.__name__}"
    if module in ("math", "builtins"):
        return f"{module}.{target.__name__}"
    return f"torch.{target.__name__}"


def target_of(name: str) -> Any:
    """Return what a node calls, by its name."""
    root, *rest = name.split(".")
    if root in ("operator", "math", "builtins"):
        import importlib

        module = importlib.import_module(root)
        allowed = ("getitem add sub mul floordiv mod truediv pow neg eq ne lt le gt ge and_ or_ "
                   "sqrt floor ceil trunc round abs max min").split()  # fmt: skip
        if rest[0] not in allowed:
            raise RuntimeError(f"torch.export.load: the file calls {name}, which no graph does")
        return getattr(module, rest[0])
    at: Any = ops if root == "ops" else pt
    for part in rest:
        at = getattr(at, part, None) if not part.startswith("__") else None
    # Operators alone: nothing else of the package is called for a file.
    kinds = (OpOverload, HigherOrderOperator) if root == "ops" else (type(pt.add),)
    if isinstance(at, kinds) or (root == "torch" and name.startswith("torch.sym_")):
        return at
    raise RuntimeError(f"torch.export.load: the file calls {name}, which no graph does")


def write_graph(module: Any) -> dict[str, Any]:
    """Return a graph in JSON's terms, with those inside it."""
    nodes = [
        {
            "op": n.op, "name": n.name, "target": target_name(n.target), "args": encode(n.args),
            "kwargs": encode(dict(n.kwargs)), "val": _value(n.meta.get("val")),
            "trace": n.stack_trace,
            "stack": [[k, *v] for k, v in (n.meta.get("nn_module_stack") or {}).items()],
        }
        for n in module.graph.nodes
    ]  # fmt: skip
    inner = {name: write_graph(m) for name, m in module.named_children() if hasattr(m, "graph")}
    return {"nodes": nodes, "modules": inner}


def read_graph(saved: dict[str, Any]) -> GraphModule:
    """Return the module of a graph."""
    root = pt.nn.Module()
    for name, inner in saved["modules"].items():
        setattr(root, name, read_graph(inner))
    graph: Graph = Graph()
    nodes: dict[str, Node] = {}
    for n in saved["nodes"]:
        called = n["op"] == "call_function"
        target = target_of(n["target"]) if called else n["target"]
        args, kwargs = decode(n["args"], nodes), decode(n["kwargs"], nodes)
        made = graph.create_node(n["op"], target, args, kwargs, n["name"])
        made.name = n["name"]
        val = _unvalue(n["val"])
        if val is not None:
            made.meta["val"] = val
        if n["trace"]:
            made.meta["stack_trace"] = n["trace"]
        if n.get("stack"):
            made.meta["nn_module_stack"] = {k: (path, kind) for k, path, kind in n["stack"]}
        nodes[n["name"]] = made
    return GraphModule(root, graph, "GraphModule")


def _argument(arg: Any) -> list[Any]:
    kind = type(arg).__name__
    if isinstance(arg, kinds.ConstantArgument):
        return [kind, arg.name, encode(arg.value)]
    return [kind, arg.name]


def _unargument(saved: list[Any]) -> Any:
    kind, name, *value = saved
    if kind == "ConstantArgument":
        return kinds.ConstantArgument(name, decode(value[0], {}))
    return {"TensorArgument": kinds.TensorArgument, "SymIntArgument": kinds.SymIntArgument}[kind](
        name
    )


def write(ep: ExportedProgram, extra_files: dict[str, Any] | None) -> dict[str, Any]:
    """Return a program as what `torch.save` writes."""
    call = ep.module_call_graph[0].signature
    assert call is not None  # noqa: S101
    signature = ep.graph_signature
    ranges = {
        k: [None if abs(b) == float("inf") else b for b in (r.lower, r.upper)]
        for k, r in ep.range_constraints.items()
    }
    described = {
        "graph": write_graph(ep.graph_module),
        "inputs": [
            [s.kind.name, _argument(s.arg), s.target, s.persistent] for s in signature.input_specs
        ],
        "outputs": [[s.kind.name, _argument(s.arg), s.target] for s in signature.output_specs],
        "ranges": ranges,
        "in_spec": pytree.treespec_dumps(call.in_spec),
        "out_spec": pytree.treespec_dumps(call.out_spec),
        "names": call.forward_arg_names,
        "modules": [e.fqn for e in ep.module_call_graph[1:]],
    }
    tensors = {k: v.detach() for k, v in ep.state_dict.items()}
    return {
        "format": FORMAT,
        "version": VERSION,
        "program": json.dumps(described),
        "state_dict": tensors,
        "trained": [k for k, v in ep.state_dict.items() if isinstance(v, pt.nn.Parameter)],
        "constants": {k: v.detach() for k, v in ep.constants.items()},
        "extra_files": dict(extra_files or {}),
    }


def read(saved: Any, extra_files: dict[str, Any] | None) -> ExportedProgram:
    """Return the program of what `write` gave."""
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise RuntimeError(
            "torch.export.load: the file was not written by torch.export.save here; PyTorch's .pt2 "
            "archives cannot be read. Export the module again, or load its state_dict."
        )
    if saved["version"] > VERSION:
        raise RuntimeError(
            f"torch.export.load: the file has format {saved['version']}, and this package knows "
            f"{VERSION}; use a newer one"
        )
    for name in extra_files or ():
        extra_files[name] = saved["extra_files"].get(name, "")  # type: ignore[index]
    described = json.loads(saved["program"])
    trained = set(saved["trained"])
    state = {
        k: pt.nn.Parameter(v, v.dtype.is_floating_point) if k in trained else v
        for k, v in saved["state_dict"].items()
    }
    module = read_graph(described["graph"])
    inputs = [
        kinds.InputSpec(kinds.InputKind[k], _unargument(a), t, p)
        for k, a, t, p in described["inputs"]
    ]
    outputs = [
        kinds.OutputSpec(kinds.OutputKind[k], _unargument(a), t) for k, a, t in described["outputs"]
    ]
    inf = float("inf")
    ranges = {
        k: ValueRanges(-inf if a is None else a, inf if b is None else b)
        for k, (a, b) in described["ranges"].items()
    }
    in_spec = pytree.treespec_loads(described["in_spec"])
    out_spec = pytree.treespec_loads(described["out_spec"])
    call = ModuleCallSignature([], [], in_spec, out_spec, described["names"])
    entries = [ModuleCallEntry("", call), *(ModuleCallEntry(n) for n in described["modules"])]
    return ExportedProgram(
        root=module, graph=module.graph,
        graph_signature=kinds.ExportGraphSignature(inputs, outputs), state_dict=state,
        range_constraints=ranges, module_call_graph=entries, constants=saved["constants"],
    )  # fmt: skip
