"""Makes modules within each other of an exported program, as the module was that it is of."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from typing import Any

import pytensorlib as pt

from .._absent.modules import tell_missing
from .._absent.table import EAGER
from .._ops import ops
from ..fx.graph import Graph
from ..fx.interpreter import Interpreter
from ..fx.node import Node, map_arg
from ..utils import _pytree as pytree
from ._unlift import _checked_spec
from .graph_signature import InputKind, OutputKind

__all__ = ["FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter(ABC):
    """Changes the arguments of a call whose structure is not that of the example."""

    @abstractmethod
    def adapt(
        self,
        target_spec: Any,
        input_spec: Any,
        input_args: list[Any],
        metadata: dict[str, Any] | None = None,
        obj: Any = None,
    ) -> list[Any]:
        """Return the tensors in the order of `target_spec`."""


class InterpreterModule(pt.nn.Module):
    """A module that runs a graph, whose submodules may be replaced.

    Parameters
    ----------
    graph : Graph
        Of its submodules' calls and its own operators.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph

    def forward(self, *args: Any) -> Any:
        """Run the graph."""
        return Interpreter(self, graph=self.graph).run(*args, enable_io_processing=False)

    def finalize(self) -> None:
        """Nothing is left to do."""

    def print_readable(self) -> str:
        """Print and return the graph."""
        text = str(self.graph)
        print(text)
        return text


class UnflattenedModule(InterpreterModule):
    """What `unflatten` gives: called as the module that was exported.

    Parameters
    ----------
    export_module : ExportedProgram
        What it is of.
    flat_args_adapter : FlatArgsAdapter, optional
        Changes arguments of another structure.
    """

    def __init__(self, export_module: Any, flat_args_adapter: Any = None) -> None:
        super().__init__(Graph())
        self.flat_args_adapter = flat_args_adapter
        self.module_call_graph = export_module.module_call_graph
        call = self.module_call_graph[0].signature
        self.in_spec, self.out_spec = call.in_spec, call.out_spec
        _Builder(export_module, self).build()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graphs.

        Raises
        ------
        ValueError
            The arguments have another structure than those of the example.
        """
        flat, spec = pytree.tree_flatten((args, kwargs))
        if spec != self.in_spec and self.flat_args_adapter is not None:
            flat = self.flat_args_adapter.adapt(
                target_spec=self.in_spec, input_spec=spec, input_args=flat
            )
        elif spec != self.in_spec:
            flat = pytree.tree_leaves(_checked_spec(self.in_spec)(self, args, kwargs))
        return pytree.tree_unflatten(list(super().forward(*flat)), self.out_spec)


class _Frame:
    """One call of a module: its graph, and what its nodes are there."""

    def __init__(self, path: str, module: InterpreterModule) -> None:
        self.path, self.module, self.graph = path, module, module.graph
        self.env: dict[Node, Any] = {}


class _Builder:
    """Takes the graph of a program apart, by the modules that its nodes are of."""

    def __init__(self, program: Any, root: UnflattenedModule) -> None:
        self.program, self.root = program, root
        self.signature = program.graph_signature
        self.nodes = [n for n in program.graph.nodes if n.op in ("call_function", "get_attr")]
        self.output = program.graph.output_node()
        self.stacks = self.stacks_of()
        kinds = {s.arg.name: s for s in self.signature.input_specs if hasattr(s.arg, "name")}
        holders = [n for n in program.graph.nodes if n.op == "placeholder"]
        self.state = {
            n: str(kinds[n.name].target)
            for n in holders
            if kinds[n.name].kind is not InputKind.USER_INPUT
        }
        self.inputs = [n for n in holders if n not in self.state]
        # By path, the modules that calls became: how their graphs read, and their names.
        self.made: dict[str, list[tuple[Any, str]]] = {}

    def stacks_of(self) -> dict[Node, list[tuple[str, str]]]:
        """Return the calls that each node is in, from the outermost: keys and paths."""
        found, before = {}, [("", "")]
        for n in self.nodes:
            stack = n.meta.get("nn_module_stack")
            if stack:
                before = [(key, path) for key, (path, _) in stack.items()]
            elif n.op == "get_attr":
                user = next(iter(n.users), n)
                before = [
                    (k, p) for k, (p, _) in (user.meta.get("nn_module_stack") or {}).items()
                ] or before
            elif n.target is not operator.getitem:
                before = [("", "")]
            found[n] = before
        return found

    def build(self) -> None:
        frame = _Frame("", self.root)
        copies: dict[int, Any] = {}  # tensors with several names stay one
        for name, value in (*self.program.state_dict.items(), *self.program.constants.items()):
            if id(value) not in copies:
                copied = value.detach().clone()
                trained = isinstance(value, pt.nn.Parameter)
                copies[id(value)] = (
                    pt.nn.Parameter(copied, requires_grad=value.requires_grad)
                    if trained
                    else copied
                )
            _assign(self.root, name, copies[id(value)], self.signature)
        for n in self.inputs:
            frame.env[n] = frame.graph.placeholder(n.name)
        self.fill(frame, self.nodes, 0)
        values, outputs = self.output.args[0], []
        for spec, value in zip(self.signature.output_specs, values, strict=True):
            here = map_arg(value, lambda n: self.value(frame, n))
            if spec.kind is OutputKind.USER_OUTPUT:
                outputs.append(here)
                continue
            by_name = {n.name: n for n in self.inputs}
            target = (
                by_name[spec.target]
                if spec.target in by_name
                else next(n for n, path in self.state.items() if path == spec.target)
            )
            frame.graph.call_function(ops.aten.copy_.default, (self.value(frame, target), here))
        frame.graph.output(tuple(outputs))

    def value(self, frame: _Frame, node: Node) -> Any:
        """Return what a node of the program is in a call; its own state is an attribute."""
        if node not in frame.env:
            path = self.state[node]
            prefix = f"{frame.path}." if frame.path else ""
            frame.env[node] = frame.graph.get_attr(path.removeprefix(prefix))
        return frame.env[node]

    def owns(self, frame_path: str, node: Node) -> bool:
        prefix = f"{frame_path}." if frame_path else ""
        return node in self.state and self.state[node].startswith(prefix)

    def fill(self, frame: _Frame, nodes: list[Node], depth: int) -> None:
        """Record the nodes of one call, and the calls within it."""
        i = 0
        while i < len(nodes):
            n = nodes[i]
            deeper = self.stacks[n][depth + 1 :]
            if not deeper:
                self.copy(frame, n)
                i += 1
                continue
            end = i
            key = deeper[0][0]
            while end < len(nodes) and [k for k, _ in self.stacks[nodes[end]]][
                depth + 1 : depth + 2
            ] == [key]:
                end += 1
            self.enter(frame, nodes[i:end], depth + 1, key, deeper[0][1])
            i = end

    def copy(self, frame: _Frame, n: Node) -> None:
        if n.op == "get_attr":
            branch = getattr(self.program.graph_module, str(n.target))
            setattr(frame.module, str(n.target), branch)
            frame.env[n] = frame.graph.get_attr(str(n.target))
            return
        made = frame.graph.node_copy(n, lambda m: self.value(frame, m))
        frame.env[n] = made

    def enter(self, frame: _Frame, nodes: list[Node], depth: int, key: str, path: str) -> None:
        """Record a call of a module within another one."""
        inside = set(nodes)
        used = [m for n in nodes for m in n.all_input_nodes if m not in inside]
        given = [m for m in dict.fromkeys(used) if not self.owns(path, m)]
        results = [n for n in nodes if any(u not in inside for u in n.users)]
        inner = _Frame(path, InterpreterModule(Graph()))
        for m in given:
            inner.env[m] = inner.graph.placeholder(m.name)
            inner.env[m].meta = dict(m.meta)
        self.fill(inner, nodes, depth)
        made = [inner.env[n] for n in results]
        inner.graph.output(made[0] if len(made) == 1 else tuple(made))
        name = self.placed(frame, inner, path)
        args = tuple(self.value(frame, m) for m in given)
        call = frame.graph.call_module(name, args)
        if len(results) == 1:
            frame.env[results[0]] = call
            call.meta["val"] = results[0].meta.get("val")
            return
        for i, n in enumerate(results):
            frame.env[n] = frame.graph.call_function(operator.getitem, (call, i))

    def placed(self, frame: _Frame, inner: _Frame, path: str) -> str:
        """Put a module in its place, or find the one that is there; return its name."""
        prefix = f"{frame.path}." if frame.path else ""
        name = path.removeprefix(prefix)
        text = _reads(inner.graph)
        known = self.made.setdefault(path, [])
        for read, label in known:
            if read == text:
                return self.within(frame, label)
        label = f"{path}@{len(known)}" if known else path
        known.append((text, label))
        old = _place(self.root, label, inner.module)
        source = old if old is not None else _find(self.root, path)
        for key, value in (*source._parameters.items(), *source._buffers.items()):
            _set(inner.module, key, value, key in source._non_persistent_buffers_set)
        for key, child in source._modules.items():
            if child is not None and key not in inner.module._modules:
                inner.module.add_module(key, child)
        if not path.startswith(prefix):
            return self.within(frame, label)
        return label.removeprefix(prefix) if label == path else f"{name}@{len(known) - 1}"

    def within(self, frame: _Frame, label: str) -> str:
        """Return how a call names a module; one that lies elsewhere too is put beside its own."""
        prefix = f"{frame.path}." if frame.path else ""
        if label.startswith(prefix):
            return label.removeprefix(prefix)
        name = label.replace(".", "_")
        _place(frame.module, name, _find(self.root, label))
        return name


def _reads(graph: Graph) -> Any:
    """Return what a graph does, whatever its nodes are called."""
    places = {n: i for i, n in enumerate(graph.nodes)}
    return [
        (n.op, "" if n.op == "placeholder" else str(n.target), str(map_arg(n.args, places.get)),
         str(map_arg(dict(n.kwargs), places.get)))
        for n in graph.nodes
    ]  # fmt: skip


def _find(root: Any, path: str) -> Any:
    for part in path.split(".") if path else ():
        if part not in root._modules:
            root.add_module(part, pt.nn.Module())
        root = root._modules[part]
    return root


def _place(root: Any, path: str, module: Any) -> Any:
    """Put a module at a path; return what was there."""
    *above, last = path.split(".")
    owner = _find(root, ".".join(above))
    old = owner._modules.get(last)
    owner.add_module(last, module)
    return old


def _set(owner: Any, name: str, value: Any, transient: bool) -> None:
    if isinstance(value, pt.nn.Parameter) or value is None:
        owner.register_parameter(name, value)
    else:
        owner.register_buffer(name, value, persistent=not transient)


def _assign(root: Any, path: str, value: Any, signature: Any) -> None:
    *above, last = path.split(".")
    transient = next(
        (s.persistent is not True for s in signature.input_specs if s.target == path), False
    )
    _set(_find(root, ".".join(above)), last, value, transient)


def unflatten(module: Any, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """Return an exported program as modules within each other.

    The modules have the names and the state that those had of which the program is, so that some
    can be replaced by others. Each takes the tensors that its graph needs, not what it was called
    with.

    Parameters
    ----------
    module : ExportedProgram
        Of `export`.
    flat_args_adapter : FlatArgsAdapter, optional
        Changes arguments whose structure is not that of the example.

    Returns
    -------
    UnflattenedModule
        Called as the module that was exported.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    >>> program = torch.export.export(net, (torch.ones(1, 2),))
    >>> again = torch.export.unflatten(program)
    >>> [name for name, _ in again.named_children()]
    ['0', '1']
    >>> again.add_module("1", torch.nn.Identity())
    >>> torch.equal(again(torch.ones(1, 2)), net[0](torch.ones(1, 2)))
    True
    """
    return UnflattenedModule(module, flat_args_adapter)


tell_missing(globals(), EAGER)
