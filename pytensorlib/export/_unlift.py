"""Makes a module of an exported program: its state becomes attributes again."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from .._ops import ops
from ..fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule, _assign_attr
from ..fx.proxy import Proxy
from ..utils import _pytree as pytree
from .dynamic_shapes import int_oo
from .graph_signature import ConstantArgument, InputKind, OutputKind

__all__ = ["unlift"]


class _Guards(pt.nn.Module):
    """Raises where arguments are not what a program was exported for."""

    _is_impure = True  # it stays, though nothing uses what it returns

    def __init__(self, checks: list[tuple[str, Any]]) -> None:
        super().__init__()
        self.checks = checks

    def forward(self, *args: Any) -> None:
        """Check the arguments, in the order of the graph; `fx` has none while it traces."""
        if any(isinstance(a, Proxy) for a in args):
            return
        for said, check in self.checks:
            if not check(args):
                raise AssertionError(f"Guard failed: {said}")


def checks_of(program: Any, names: list[str]) -> list[tuple[str, Any]]:
    """Return what the sizes of arguments must be: texts, and functions of the arguments."""
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    found: list[tuple[str, Any]] = []
    first: dict[str, tuple[str, int, int]] = {}
    values = {
        s.arg.name: s.arg.value
        for s in program.graph_signature.input_specs
        if isinstance(s.arg, ConstantArgument)
    }
    for i, name in enumerate(names):
        if isinstance(values.get(name), (bool, int, float, str)):
            fixed = values[name]
            found.append((f"{name} == {fixed!r}", lambda a, i=i, v=fixed: a[i] == v))
        value = nodes[name].meta.get("val")
        for d, size in enumerate(getattr(value, "shape", ())):
            said, text = f"{name}.size()[{d}]", str(size)
            if type(size) is int:
                found.append((f"{said} == {size}", lambda a, i=i, d=d, n=size: a[i].shape[d] == n))
            elif text in first:
                other, j, e = first[text]
                found.append(
                    (
                        f"{said} == {other}",
                        lambda a, i=i, d=d, j=j, e=e: a[i].shape[d] == a[j].shape[e],
                    )
                )
            else:
                first[text] = (said, i, d)
                found += _range_checks(program, said, text, i, d)
    return found


def _range_checks(program: Any, said: str, text: str, i: int, d: int) -> list[tuple[str, Any]]:
    known = program.range_constraints.get(text)
    if known is None:
        return []
    found: list[tuple[str, Any]] = []
    if known.lower > 2:
        found.append((f"{said} >= {known.lower}", lambda a, n=known.lower: a[i].shape[d] >= n))
    if known.upper != int_oo:
        found.append((f"{said} <= {known.upper}", lambda a, n=known.upper: a[i].shape[d] <= n))
    return found


def _checked_spec(spec: Any) -> Any:
    """Return a hook that raises where a call's arguments have another structure."""

    def check(module: Any, args: Any, kwargs: Any) -> Any:
        given = pytree.tree_structure((args, kwargs))
        keyed = spec.children()[1].context
        if given != spec and sorted(kwargs) == sorted(keyed):
            kwargs = {k: kwargs[k] for k in keyed}
            given = pytree.tree_structure((args, kwargs))
        if sorted(kwargs) != sorted(keyed):
            raise ValueError(
                f"Ran into a kwarg keyword mismatch: Got the following keywords {list(kwargs)} but "
                f"expected {list(keyed)}"
            )
        if given != spec:
            raise ValueError(
                "Trying to flatten user inputs with exported input tree spec: \n"
                f"{spec}\nbut actually got inputs with tree spec of: \n{given}.\n"
                "Please check that the inputs have the same number and type of args and kwargs as "
                "the ones you used when tracing."
            )
        return args, kwargs

    return check


def unlift(program: Any, check_guards: bool = True) -> GraphModule:
    """Return a program as a module."""
    signature = program.graph_signature
    call = program.module_call_graph[0].signature
    root = pt.nn.Module()
    for name, value in vars(program.graph_module).get("_modules", {}).items():
        setattr(root, name, value)
    graph, env = Graph(), {}
    specs = {getattr(s.arg, "name", None): s for s in signature.input_specs}
    names: list[str] = []
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        spec = specs[node.name]
        if spec.kind is InputKind.USER_INPUT:
            continue
        value = program.value_of(spec.target)
        if isinstance(value, pt.Tensor) and not isinstance(value, pt.nn.Parameter):
            *prefix, field = spec.target.split(".")
            at: Any = root
            for item in prefix:
                if not hasattr(at, item):
                    setattr(at, item, pt.nn.Module())
                at = getattr(at, item)
            keep = spec.kind is InputKind.BUFFER and spec.persistent is not False
            at.register_buffer(field, value, persistent=keep)
        else:
            _assign_attr(value, root, spec.target)
        made = graph.create_node("get_attr", spec.target, name=spec.target.replace(".", "_"))
        made.meta = dict(node.meta)
        env[node] = made
    for node in program.graph.nodes:
        if node.op == "placeholder" and node not in env:
            made = graph.placeholder(node.name)
            made.meta = dict(node.meta)
            env[node] = made
            names.append(node.name)
    checks = checks_of(program, names) if check_guards else []
    if check_guards:
        root._guards_fn = _Guards(checks)
        made_nodes = {n.name: env[n] for n in program.graph.nodes if n in env}
        graph.call_module("_guards_fn", tuple(made_nodes[n] for n in names))
    for node in program.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        env[node] = graph.node_copy(node, lambda n: env[n])
    outputs = program.graph.output_node().args[0]
    kept = []
    for spec, value in zip(signature.output_specs, outputs, strict=True):
        if spec.kind is OutputKind.USER_OUTPUT:
            kept.append(value)
            continue
        target = spec.target
        for name, source in specs.items():
            if (
                source.target == target and source.kind is not InputKind.USER_INPUT
            ) or name == target:
                node = next(n for n in env if n.name == name)
                graph.call_function(ops.aten.copy_.default, (env[node], env[value]))
    from ..fx.node import map_arg

    graph.output(map_arg(tuple(kept), lambda n: env[n]))
    order = list(call.forward_arg_names or [])
    graph._codegen = _PyTreeCodeGen(_PyTreeInfo(order, call.in_spec, call.out_spec))
    module = GraphModule(root, graph, "GraphModule")
    for name in {n.split(".")[0] for n in (*program.state_dict, *program.constants)}:
        if hasattr(root, name) and not hasattr(module, name):
            setattr(module, name, getattr(root, name))
    module.register_forward_pre_hook(_checked_spec(call.in_spec), with_kwargs=True)
    for name in ("train", "eval"):
        setattr(type(module), name, _no_mode(name))
    return module


def _no_mode(name: str) -> Any:
    """Return a method that raises: the mode in which a program was exported is part of it."""

    def method(self: Any, mode: bool = True) -> Any:
        raise NotImplementedError(
            f"Calling {name}() is not supported yet. The program computes as the module did in the "
            "mode in which it was exported; export it again in the other mode."
        )

    method.__name__ = name
    return method
