"""Exported programs without writes to tensors, and with fewer kinds of operators."""

from __future__ import annotations

import operator
from typing import Any

import pytensorlib as pt

from .._ops import ops
from .._symbolic.ints import SymInt, SymNode, _Sym
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node, map_arg
from . import _methods, _sections
from ._numbers import Polynomial
from ._tracer import OperatorTracer
from ._views import INVERSE, VIEWS
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

__all__ = ["decompose"]


_OF_DATA = ("nonzero", "masked_select", "argwhere", "item", "repeat_interleave")


class Ref:
    """A tensor of the program: its value now, and of which it is a view."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.base: Ref | None = None
        self.node: Node | None = None
        self.index: int | None = None
        self.version = self.seen = 0


class Functional:
    """Runs a graph again and records it without writes.

    Parameters
    ----------
    program : ExportedProgram
        Whose graph is run.
    table : dict
        Functions by operators.
    """

    def __init__(self, program: Any, table: dict[Any, Any]) -> None:
        self.program, self.table = program, table
        self.graph = Graph()
        self.examples = max(
            (len(s.node.values) for n in program.graph.nodes for s in _open(n.meta.get("val"))
             if isinstance(s, _Sym)),
            default=4 if any(_open(n.meta.get("val")) for n in program.graph.nodes) else 1,
        )  # fmt: skip
        self.tracer = OperatorTracer(self.graph, self.examples)
        self.tracer.root = self.root = pt.nn.Module()
        self.tracer.lift = self.lift
        self.env: dict[Node, Any] = {}
        self.texts: dict[str, tuple[int, ...]] = {}
        self.modules = program.graph_module

    def lift(self, t: Any) -> Any:
        raise RuntimeError("run_decompositions: a decomposition makes a tensor of data")

    def values(self, size: Any) -> tuple[int, ...]:
        """Return an open size of an argument in the examples."""
        if isinstance(size, _Sym):
            found: tuple[int, ...] = size.node.values
            return found
        text = str(size)
        primes = [7, 11, 29, 61, 97, 13, 37, 71, 101, 17]
        n = len(self.texts)
        return self.texts.setdefault(
            text, tuple(primes[(i + n) % 10] + 2 * n for i in range(self.examples))
        )

    def placeholder(self, node: Node) -> Any:
        made = self.graph.create_node("placeholder", node.name, name=node.name)
        made.name = node.name  # also where it is the name of something in Python
        made.meta = dict(node.meta)
        val: Any = node.meta.get("val")
        if not hasattr(val, "dtype"):
            return None
        shapes = [[] for _ in range(self.examples)]  # type: list[list[int]]
        for d, size in enumerate(val.shape):
            column = (size,) * self.examples if type(size) is int else self.values(size)
            for row, s in zip(shapes, column, strict=True):
                row.append(s)
            if type(size) is not int and column not in self.tracer.symbols:
                self.symbol(column, str(size), made, d)
        shadows = [pt.empty(s, dtype=val.dtype, device="meta") for s in shapes]
        if all(type(s) is int for s in val.shape):
            shadows = [pt.empty_strided(val.shape, val.stride(), dtype=val.dtype, device="meta")]
            shadows *= self.examples
        return Ref(self.tracer.track(shadows[0], made, shadows, val.device))

    def symbol(self, column: Any, text: str, node: Node, d: int) -> None:
        polynomial = Polynomial({(text,): 1})
        self.tracer.sizes[column] = polynomial

        def make() -> Any:
            last = [n for n in self.graph.nodes if n.op == "placeholder"][-1]
            with self.graph.inserting_after(last):
                found = self.graph.create_node(
                    "call_function", ops.aten.sym_size.int, (node, d), {}, "sym_size_int"
                )
            found.meta["val"] = sym
            return found

        sym = SymInt(SymNode(self.tracer, column, polynomial, make))
        self.tracer.symbols[column] = sym

    # Values.

    def read(self, ref: Ref) -> Any:
        """Return a tensor; a view of one that was written to is made again."""
        base = ref.base
        if base is not None:
            self.read(base)
            if base.version != ref.seen:
                ref.seen = base.version
                assert ref.node is not None  # noqa: S101
                args, kwargs = self.arguments(ref.node)
                made = self.call(ref.node, (base.value, *args[1:]), kwargs)
                ref.value = made if ref.index is None else made[ref.index]
        return ref.value

    def write(self, ref: Ref, value: Any) -> None:
        """Let a tensor be another value, and the one that it is a view of."""
        self.read(ref)
        ref.value = value
        ref.version += 1
        if ref.base is not None:
            node = ref.node
            assert node is not None  # noqa: S101
            name = node.target.overloadpacket.__name__  # type: ignore[union-attr]
            if name not in INVERSE:
                raise RuntimeError(
                    f"run_decompositions: a view made by {node.target} is written to, which cannot "
                    "be said without writing"
                )
            args, kwargs = self.arguments(node)
            made = INVERSE[name](
                self.recorded, ref.base.value, value, ref.index, *args[1:], **kwargs
            )
            self.write(ref.base, made)
            ref.seen = ref.base.version

    def arguments(self, node: Node) -> Any:
        def value(n: Node) -> Any:
            found: Any = self.env[n]
            if isinstance(found, Ref):
                return self.read(found)
            return (
                [self.read(f) if isinstance(f, Ref) else f for f in found]
                if isinstance(found, (list, tuple))
                else found
            )

        return map_arg(node.args, value), map_arg(dict(node.kwargs), value)

    def recorded(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Record an operator, by its name or with a form; it may be one of the table."""
        from ._aten import bind

        name, _, form = name.partition(".")
        packet = getattr(ops.aten, name)
        if form:
            made = self.tracer.record(name, packet, args, kwargs)
            self.tracer.traced(made).node.target = getattr(packet, form)
            return made
        bound = bind(name, args, kwargs)
        if bound is not None:
            target = getattr(packet, bound[0].overload)
            if target in self.table:
                return self.replaced(target, args, kwargs)
        return self.tracer.record(name, packet, args, kwargs)

    def replaced(self, target: Any, args: Any, kwargs: Any) -> Any:
        made = self.table[target](self.recorded, *args, **kwargs)
        if made is NotImplemented:
            name = target.overloadpacket.__name__
            return self.tracer.record(name, target, args, kwargs)
        return made

    def call(self, node: Node, args: Any, kwargs: Any) -> Any:
        target: Any = node.target
        if target in self.table:
            return self.replaced(target, args, kwargs)
        packet = getattr(target, "overloadpacket", None)
        if packet is None or target.namespace != "aten":
            return self.other(node, args, kwargs)
        name = packet.__name__
        if name in _OF_DATA:
            return _methods.SPECIAL[name](self.tracer, packet, args, kwargs)
        if name == "index" and any(t is not None and t.dtype is pt.bool for t in args[1]):
            return _methods._masked(self.tracer, args[0], list(args[1]))
        return self.tracer.record(packet.__name__, target, args, kwargs)

    def other(self, node: Node, args: Any, kwargs: Any) -> Any:
        """Record an operator that is none of ATen's, as it is."""
        target: Any = node.target
        if target is operator.getitem or (
            not any(isinstance(a, pt.Tensor) for a in (*args, *kwargs.values()))
            and getattr(target, "__module__", "") == "_operator"
        ):
            return target(*args, **kwargs)
        val: Any = node.meta.get("val")
        written = self.tracer.argument(list(args)), self.tracer.argument(dict(kwargs))
        made = self.tracer.call(target, tuple(written[0]), written[1], node.name)
        many = isinstance(val, (tuple, list))
        columns = []
        for v in val if many else [val]:
            if not hasattr(v, "dtype"):
                return None
            columns.append([
                pt.empty([self.values(s)[i] if type(s) is not int else s for s in v.shape],
                         dtype=v.dtype, device="meta")
                for i in range(self.examples)
            ])  # fmt: skip
        rows = [tuple(c[i] for c in columns) for i in range(self.examples)]
        return self.tracer.results(made, rows if many else columns[0], pt.device("cpu"))

    def run(self, node: Node) -> None:
        """Record a node of the program."""
        name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
        if name.startswith("_assert_tensor_metadata"):
            self.env[node] = None
            return
        part = _sections.wrapped(node, self.modules)
        if part is not None:
            self.inline(node, *part)
            return
        if name == "detach_":
            self.env[node] = self.env[node.args[0]]
            return
        if name == "sym_size" or node.target is operator.getitem:
            args, kwargs = self.arguments(node)
            if name == "sym_size":
                self.env[node] = self.tracer.size(self.tracer.traced(args[0]), args[1])
                return
            source = self.env[node.args[0]]
            if isinstance(source, (list, tuple)):
                self.env[node] = source[node.args[1]]
                return
        args, kwargs = self.arguments(node)
        if name.endswith("_") and not name.startswith("_"):
            target = self.env[node.args[0]]
            plain = name[:-1]
            if plain in ("fill", "zero"):
                value = args[1] if plain == "fill" else 0
                made = self.written_number(args[0], value)
            elif plain == "copy":
                made = args[1]
                if made.dtype is not args[0].dtype:
                    made = self.recorded("_to_copy", made, dtype=args[0].dtype)
                made = self.recorded("expand", made, list(self.sizes(args[0])))
            else:
                made = self.recorded(plain, *args, **kwargs)
            self.write(target, made)
            self.env[node] = target
            return
        if name == "batch_norm" and node.target in self.table and args[5] and args[3] is not None:
            result, *_, mean, var = self.recorded("_native_batch_norm_legit_functional", *args[:8])
            for at, made in ((3, mean), (4, var)):
                self.write(self.env[node.args[at]], made)
        else:
            result = self.call(node, args, kwargs)
        first = self.env.get(node.args[0]) if node.args and isinstance(node.args[0], Node) else None
        self.env[node] = self.wrapped(node, name, result, first)

    def inline(self, node: Node, module: Any, given: dict[Node, Any]) -> None:
        """Record a part with another grad mode, which a program of this kind does not keep."""
        before, self.modules = self.modules, module
        try:
            self.env.update((holder, self.env[n]) for holder, n in given.items())
            self.record(module.graph)
            results = module.graph.output_node().args[0]
            self.env[node] = [self.env[n] for n in results]
        finally:
            self.modules = before

    def record(self, graph: Graph) -> None:
        """Record the nodes of a graph."""
        tracer = self.tracer
        for node in graph.nodes:
            if node.op == "get_attr" and not _sections.is_part(node):
                self.env[node] = self.branch(str(node.target))
            elif node.op == "call_function":
                if node.stack_trace:
                    tracer.trace_of = node.stack_trace
                tracer.modules = list((node.meta.get("nn_module_stack") or {}).items())
                self.run(node)

    def branch(self, name: str) -> Any:
        """Return the node of a branch's module."""
        inner = getattr(self.modules, name)
        label, i = name, 0
        while getattr(self.root, label, inner) is not inner:
            label, i = f"{name}_{i}", i + 1
        setattr(self.root, label, inner)
        return self.graph.create_node("get_attr", label, name=label)

    def sizes(self, t: Any) -> Any:
        return self.tracer.shape(self.tracer.traced(t))

    def written_number(self, x: Any, value: Any) -> Any:
        if isinstance(value, pt.Tensor):
            return self.recorded("expand", value, list(self.sizes(x)))
        return self.recorded("full_like", x, value)

    def wrapped(self, node: Node, name: str, result: Any, first: Any) -> Any:
        known = {id(r.value): r for r in self.env.values() if isinstance(r, Ref)}

        def ref(value: Any, index: int | None) -> Any:
            if not isinstance(value, pt.Tensor):
                return value
            if id(value) in known:
                return known[id(value)]
            made = Ref(value)
            if name in VIEWS and isinstance(first, Ref):
                made.base, made.node, made.index, made.seen = first, node, index, first.version
            return made

        if isinstance(result, (list, tuple)):
            return [ref(v, i) for i, v in enumerate(result)]
        return ref(result, None)


def _open(val: Any) -> list[Any]:
    if isinstance(val, (list, tuple)):
        return [s for v in val for s in _open(v)]
    return [s for s in getattr(val, "shape", ()) if type(s) is not int]


def decompose(program: Any, table: dict[Any, Any] | None) -> Any:
    """Return an exported program without writes, with operators replaced by a table."""
    from ._decompositions import table as default

    own = default()
    chosen = (
        own
        if table is None
        else {k: v if own.get(k) is v else _adapted(v) for k, v in table.items()}
    )
    run = Functional(program, chosen)
    tracer = run.tracer
    first: dict[str, Any] = {}
    with tracer.away():
        for node in program.graph.nodes:
            if node.op == "placeholder":
                run.env[node] = run.placeholder(node)
                first[node.name] = run.env[node]
        run.record(program.graph)
        old = program.graph_signature
        specs, values = [], []
        for spec in old.input_specs:
            ref = first.get(spec.arg.name)
            if isinstance(ref, Ref) and ref.version:
                kind = {
                    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
                    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
                }.get(spec.kind, OutputKind.USER_INPUT_MUTATION)
                made = tracer.traced(run.read(ref)).node
                target = spec.target if spec.target is not None else spec.arg.name
                specs.append(OutputSpec(kind, TensorArgument(made.name), target))
                values.append(made)
        outputs = program.graph.output_node().args[0]
        for spec, value in zip(old.output_specs, outputs, strict=True):
            if isinstance(spec.arg, ConstantArgument) or not isinstance(value, Node):
                specs.append(spec)
                values.append(value)
                continue
            found = run.env[value]
            if isinstance(found, Ref):
                made = tracer.traced(run.read(found)).node
            else:
                made = found.node.graph_node() if isinstance(found, _Sym) else found
            kind_ = type(spec.arg)
            specs.append(OutputSpec(spec.kind, kind_(getattr(made, "name", "")), spec.target))
            values.append(made)
    run.graph.output(tuple(values))
    run.graph.eliminate_dead_code()
    module = GraphModule(run.root, run.graph, "GraphModule")
    return program._replaced(module, ExportGraphSignature(list(old.input_specs), specs))


def _adapted(function: Any) -> Any:
    """Return a caller's decomposition, which calls operators itself, as one of the table."""

    def call(recorded: Any, *args: Any, **kwargs: Any) -> Any:
        tracer = recorded.__self__.tracer
        from .. import _C

        before = _C._rest_torch_function(0)
        try:
            with tracer:
                return function(*args, **kwargs)
        finally:
            _C._rest_torch_function(before)

    return call
