"""Runs a module on tensors without memory and makes an exported program of what it does."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytensorlib as pt

from .. import _C
from .._dynamo.exc import UserError
from .._higher_order_ops import control as _control
from .._ops import ops
from .._symbolic.ints import SymInt, SymNode, _Sym
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ..utils import _pytree as pytree
from . import _sections
from ._numbers import Polynomial
from ._tracer import MoreExamples, OperatorTracer, Specialized
from .dynamic_shapes import Dim, _DimHintType, combine, int_oo, leaf_shapes, open_sizes
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, ValueRanges
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

EXAMPLES = 4
_PRIMES = [
    5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101,
    103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193, 197,
    199, 211, 223, 227, 229, 233, 239, 241, 251, 257, 263, 269, 271, 277, 281, 283, 293, 307, 311,
]  # fmt: skip
_LARGE = (2003, 2011, 2017, 2027, 2029, 2039, 2053, 2063, 2069, 2081, 2083, 2087, 2089, 2099)

_DROPPED = ("aten.detach_.default", "aten.lift_fresh_copy.default", "aten.sym_size.int")


class Open:
    """An open size: which sizes of arguments it gives, and between what it lies."""

    def __init__(self, key: str, dim: Any) -> None:
        self.key, self.dim = key, dim
        self.places: list[tuple[str, int, int, int]] = []  # path, dimension, factor, offset
        self.hint: int | None = None
        named = isinstance(dim, Dim)
        self.named = named
        self.auto = not named and dim.type is _DimHintType.AUTO
        self.low: int = dim.root.min if named else 2
        self.high: Any = dim.root.max if named else int_oo
        if not named:
            self.low = dim.min if dim.min is not None else 2
            self.high = dim.max if dim.max is not None else int_oo

    def source(self) -> str:
        path, d, _, _ = self.places[-1]
        return f"{path}.size()[{d}]"

    def said(self) -> str:
        """Return how an error names it."""
        return self.key if self.named else self.source()


def find_open(leaves: list[tuple[str, Any, Any]]) -> dict[str, Open]:
    """Return the open sizes of the arguments by name."""
    found: dict[str, Open] = {}
    for path, value, said in leaves:
        if not isinstance(value, pt.Tensor):
            continue
        for d, dim in open_sizes(path, value, said).items():
            size = value.shape[d]
            named = isinstance(dim, Dim)
            key = dim.root.__name__ if named else f"{path}.size()[{d}]"
            factor, offset = (dim.factor, dim.offset) if named else (1, 0)
            group = found.setdefault(key, Open(key, dim))
            hint, rest = divmod(size - offset, factor)
            if rest:
                raise UserError(
                    f"Constraints violated: expected shape[{d}] = {size} of {path} to be of the "
                    f"form {dim.__name__}, where {dim.root.__name__} is an integer"
                )
            if group.hint is not None and group.hint != hint:
                first = group.places[0]
                raise UserError(
                    f"Cannot associate shape {size} specified at {path}.size()[{d}] to dimension "
                    f"{dim.__name__}: {first[0]}.size()[{first[1]}] has {group.hint}. Sizes of one "
                    "Dim must be equal."
                )
            if not (group.low <= hint <= group.high):
                raise UserError(
                    f"Constraints violated ({group.said()})! {hint} not in range "
                    f"[{group.low}, {group.high}]"
                )
            group.hint = hint
            group.places.append((path, d, factor, offset))
    return found


class Plan:
    """Which open sizes are taken for equal, and which for fixed, in one attempt."""

    def __init__(self, groups: dict[str, Open], leader: dict[str, str], fixed: set[str]) -> None:
        self.groups, self.leader, self.fixed = groups, leader, fixed

    def open(self) -> list[str]:
        return [k for k in self.groups if self.leader.get(k, k) == k and k not in self.fixed]

    def values(self) -> dict[str, tuple[int, ...]]:
        """Return what each open size is in the examples."""
        taken: set[int] = {int(g.hint or 0) for g in self.groups.values()}
        found: dict[str, tuple[int, ...]] = {}
        for key in self.open():
            group = self.groups[key]
            members = [g for k, g in self.groups.items() if self.leader.get(k, k) == key]
            low, high = max(g.low for g in members), min(g.high for g in members)
            hint = int(group.hint or 0)
            row = [hint]
            above = [p for p in _PRIMES if p > hint and low <= p <= high and p not in taken]
            below = [p for p in range(int(min(high, hint - 1)), int(low) - 1, -1) if p not in taken]
            more = [p for p in range(hint + 1, int(min(high, hint + 64)) + 1) if p not in taken]
            # Far from each other in no pattern, so that sizes fit no formula by chance. A size with
            # a name must do for all of its range: examples are the least, but for 0 and 1, which
            # programs may treat as no other, and a large one.
            ends: list[int] = []
            if all(g.named for g in members):
                ends += [p for p in range(max(2, int(low)), hint) if p not in taken][:1]
                ends += [p for p in _LARGE if hint < p <= high and p not in taken][:1]
            tried = above[:1] + ends + above[4:5] + above[11:12] + more + below
            for p in list(dict.fromkeys(tried))[: EXAMPLES - 1]:
                row.append(p)
                taken.add(p)
            while len(row) < EXAMPLES:
                row.append(row[-1])
            found[key] = tuple(row)
        return found


def symbol_name(source: str, taken: set[str]) -> str:
    """Return PyTorch's name for an open size."""
    n = int(hashlib.sha256(source.encode()).hexdigest(), 16) % 100
    while f"s{n}" in taken:
        n += 1
    taken.add(f"s{n}")
    return f"s{n}"


def placeholder_name(path: str) -> str:
    """Return ``L['d']['q'][0]`` as ``d_q_0``."""
    parts = re.findall(r"\['?([^'\]]*)'?\]", path)
    return re.sub(r"[^0-9a-zA-Z_]", "_", "_".join(parts)).lower()


@contextlib.contextmanager
def _kept_state(mod: Any) -> Iterator[Callable[[], list[tuple[Any, Any]]]]:
    """Give modules their tensors back; say which buffers were assigned, and what to them."""
    modules = list(mod.named_modules())
    buffers = [(m, dict(m._buffers)) for _, m in modules]
    plain = [
        (path, m, {k: v for k, v in vars(m).items() if isinstance(v, pt.Tensor)})
        for path, m in modules
    ]

    def assigned() -> list[tuple[Any, Any]]:
        for path, m, before in plain:
            for name, value in vars(m).items():
                if isinstance(value, pt.Tensor) and before.get(name) is not value:
                    raise ValueError(
                        f"The tensor attribute self.{f'{path}.' if path else ''}{name} was "
                        "assigned during export. Such attributes must be registered as buffers "
                        "using the `register_buffer` API "
                        "(https://pytorch.org/docs/stable/generated/torch.nn.Module.html"
                        "#torch.nn.Module.register_buffer)."
                    )
        pairs = [(v, m._buffers.get(k)) for m, before in buffers for k, v in before.items()]
        return [(v, now) for v, now in pairs if v is not None and now is not None and now is not v]

    try:
        yield assigned
    finally:
        for m, before in buffers:
            for name, value in before.items():
                m._buffers[name] = value
        for _, m, before in plain:
            made = [k for k, v in vars(m).items() if isinstance(v, pt.Tensor) and k not in before]
            for name in made:
                del vars(m)[name]
            vars(m).update(before)


@contextlib.contextmanager
def _calls(mod: Any, tracer: Any) -> Iterator[None]:
    """Let a tracer know which modules are called."""
    paths = {id(m): path for path, m in mod.named_modules()}
    counts: dict[str, int] = {}

    def enter(module: Any, args: Any) -> None:
        path = paths.get(id(module))
        n = counts.get(path or "", 0)
        key = f"L__self__{path}@{n}" if n else f"L__self__{path}"
        kind = type(module)
        # Of what the program does not know only the place in the stack is kept.
        if path is not None:
            counts[path] = n + 1
            home = kind.__module__.replace("pytensorlib", "torch", 1)
            tracer.modules.append((key, (path, f"{home}.{kind.__qualname__}")))
        left.append(path is not None)

    def leave(module: Any, args: Any, output: Any) -> None:
        if left and left.pop():
            tracer.modules.pop()

    left: list[bool] = []
    handles = [
        register_module_forward_pre_hook(enter),
        register_module_forward_hook(leave, always_call=True),
    ]
    before, tracer.modules = tracer.modules, []
    try:
        yield
    finally:
        tracer.modules = before
        for handle in handles:
            handle.remove()


class Recording:
    """One attempt at a program."""

    def __init__(
        self,
        mod: Any,
        args: Any,
        kwargs: Any,
        leaves: Any,
        plan: Plan,
        examples: int = 1,
        kind: Callable[..., Any] = OperatorTracer,
    ) -> None:
        self.mod, self.plan = mod, plan
        self.graph = Graph()
        self.tracer = kind(self.graph, EXAMPLES if plan.open() else examples)
        self.given: dict[Any, Any] = {}  # what placeholders are when the module runs
        self.tracer.given = self.given
        self.tracer.lift = self.lift
        self.tracer.root = self.root = pt.nn.Module()
        self.inputs: list[InputSpec] = []
        self.constants: dict[str, Any] = {}
        self.state: dict[str, Any] = {}
        self.ranges: dict[str, ValueRanges] = {}
        self.first_input: Any = None
        self.lifted = 0
        self.places: dict[tuple[int, ...], tuple[Any, int]] = {}  # whose sizes symbols are
        self.lifted_specs: list[InputSpec] = []
        self.attributes = {
            id(v): f"{path}.{name}" if path else name
            for path, m in mod.named_modules()
            for name, v in vars(m).items()
            if isinstance(v, pt.Tensor)
        }
        self.symbols(leaves)
        self.add_state()
        self.args, self.kwargs = self.add_inputs(args, kwargs, leaves)

    def symbols(self, leaves: Any) -> None:
        """Name the open sizes."""
        taken: set[str] = set()
        self.values = self.plan.values()
        self.names: dict[str, str] = {}
        for key in self.values:
            members = [g for k, g in self.plan.groups.items() if self.plan.leader.get(k, k) == key]
            group = members[-1]
            name = symbol_name(group.source(), taken)
            self.names[key] = name
            self.tracer.sizes[self.values[key]] = Polynomial({(name,): 1})
            low, high = max(g.low for g in members), min(g.high for g in members)
            self.ranges[name] = ValueRanges(low, high)

    def add_state(self) -> None:
        persistent = {
            f"{path}.{name}" if path else name: name not in m._non_persistent_buffers_set
            for path, m in self.mod.named_modules(remove_duplicate=False)
            for name in m._buffers
        }
        for kind, pairs in (
            (InputKind.PARAMETER, self.mod.named_parameters(remove_duplicate=False)),
            (InputKind.BUFFER, self.mod.named_buffers(remove_duplicate=False)),
        ):
            for name, t in pairs:
                letter = "p" if kind is InputKind.PARAMETER else "b"
                node = self.graph.placeholder(f"{letter}_{re.sub('[^0-9a-zA-Z_]', '_', name)}")
                keep = persistent.get(name) if kind is InputKind.BUFFER else None
                self.inputs.append(InputSpec(kind, TensorArgument(node.name), name, keep))
                if keep is not False:
                    self.state[name] = t
                else:
                    self.constants[name] = t
                self.place(t, node)

    def place(self, t: Any, node: Any) -> None:
        from ._tracer import shadow

        self.given[node] = t
        known = self.tracer.known.get(id(t))
        if known is not None:
            known.node = node
            node.meta["val"] = self.tracer.described(known)
            return
        meta = shadow(t)
        self.tracer.track(t, node, [meta] * self.tracer.examples, t.device)

    def lift(self, t: Any) -> Any:
        """Add a tensor that is neither argument nor state as a constant."""
        name = self.attributes.get(id(t))
        if name is None:
            name = f"lifted_tensor_{self.lifted}"
            self.lifted += 1
        self.constants[name] = t.detach()
        point = self.graph.inserting_before(self.first_input)
        with point if self.first_input is not None else contextlib.nullcontext():
            label = f"c_{name.replace('.', '_')}"
            node = self.graph.create_node("placeholder", label, name=label)
        self.given[node] = t
        self.lifted_specs.append(
            InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), name)
        )
        return node

    def add_inputs(self, args: Any, kwargs: Any, leaves: Any) -> Any:
        tracer, made = self.tracer, {}
        used: set[str] = set()
        for path, value, _ in leaves:
            label = placeholder_name(path)
            node = self.graph.placeholder(label)
            if label not in used and label not in {s.arg.name for s in self.inputs}:
                node.name = label  # also where it is the name of something in Python
            node.target = node.name
            self.given[node] = value
            if self.first_input is None:
                self.first_input = node
            used.add(label)
            if not isinstance(value, pt.Tensor):
                self.inputs.append(
                    InputSpec(InputKind.USER_INPUT, ConstantArgument(node.name, value), None)
                )
                node.meta["val"] = value
                continue
            shapes = [list(value.shape) for _ in range(tracer.examples)]
            for key, group in self.plan.groups.items():
                lead = self.plan.leader.get(key, key)
                for where, d, factor, offset in group.places:
                    if where == path and lead in self.values:
                        for i in range(tracer.examples):
                            shapes[i][d] = self.values[lead][i] * factor + offset
            for d in range(value.dim()):
                column = tuple(s[d] for s in shapes)
                if len(set(column)) > 1:
                    self.places[column] = (node, d)
                    if column not in tracer.symbols:
                        self.add_symbol(column)
            public = tracer.input(node, [tuple(s) for s in shapes], value)
            made[id(value)] = public
            self.inputs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None))
        swap = lambda v: made.get(id(v), v) if isinstance(v, pt.Tensor) else v  # noqa: E731
        self.inputs_by_path = [(p, v) for p, v, _ in leaves]
        return pytree.tree_map(swap, args), pytree.tree_map(swap, kwargs)

    def add_symbol(self, column: tuple[int, ...]) -> None:
        from ._numbers import fit

        text = fit(column, self.tracer.sizes)

        def make() -> Any:
            tracer = self.tracer
            last = [n for n in self.graph.nodes if n.op == "placeholder"][-1]
            with self.graph.inserting_after(last):
                target = ops.aten.sym_size.int
                found = self.graph.create_node(
                    "call_function", target, self.places[column], {}, "sym_size_int"
                )
            found.meta["val"] = sym
            assert tracer is not None  # noqa: S101
            return found

        sym = SymInt(SymNode(self.tracer, column, text, make))
        self.tracer.symbols[column] = sym

    def run(self) -> Any:
        """Run the module; return its result."""
        iterate = vars(_C.Tensor).get("__iter__")
        tracer = self.tracer

        def iter_(t: Any) -> Any:
            if id(t) in tracer.known:
                return iter(pt.unbind(t))
            return iterate(t) if iterate is not None else iter([t[i] for i in range(len(t))])

        before, _control.recording.tracer = _control.recording.tracer, tracer
        _C.Tensor.__iter__ = iter_  # type: ignore[method-assign]
        try:
            state, calls = _kept_state(self.mod), _calls(self.mod, tracer)
            with self.tracer, state as assigned, calls:
                result = self.mod(*self.args, **self.kwargs)
                for before_, now in assigned():
                    before_.copy_(now)
                return result
        finally:
            _control.recording.tracer = before
            if iterate is None:
                del _C.Tensor.__iter__
            else:
                _C.Tensor.__iter__ = iterate  # type: ignore[method-assign]

    def finish(self, result: Any) -> tuple[list[OutputSpec], Any]:
        leaves, out_spec = pytree.tree_flatten(result)
        values, specs = [], []
        for leaf in leaves:
            if isinstance(leaf, pt.Tensor):
                node = self.tracer.traced(leaf).node
                values.append(node)
                specs.append(OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None))
            elif isinstance(leaf, _Sym):
                node = leaf.node.graph_node()
                values.append(node)
                specs.append(OutputSpec(OutputKind.USER_OUTPUT, SymIntArgument(node.name), None))
            else:
                if leaf is not None and not isinstance(leaf, (int, float, bool, str, complex)):
                    raise UserError(
                        f"export: the module returns a {type(leaf).__name__}; it must return "
                        "tensors and plain values in tuples, lists, dictionaries and dataclasses "
                        "that torch.utils._pytree knows"
                    )
                values.append(leaf)
                specs.append(OutputSpec(OutputKind.USER_OUTPUT, ConstantArgument("", leaf), None))
        self.graph.output(tuple(values))
        self.drop_unused_constants()
        renamed = _sections.wrap(self.tracer, self.graph, self.root)
        for spec in specs:
            name = getattr(spec.arg, "name", "")
            spec.arg.name = renamed.get(name, name)
        for name in list(self.tracer.data):
            low, high = self.tracer.ranges[name]
            self.ranges[name] = ValueRanges(low, int_oo if high is None else high)
        return specs, out_spec

    def drop_unused_constants(self) -> None:
        """Erase new tensors that nothing uses; number the others in order."""
        for node in reversed(self.graph.nodes):
            target = str(node.target)
            if not node.users and target in _DROPPED:
                self.graph.erase_node(node)
        nodes = {n.name: n for n in self.graph.nodes if n.op == "placeholder"}
        kept, n = [], 0
        for spec in self.lifted_specs:
            node, before = nodes[spec.arg.name], str(spec.target)
            if not before.startswith("lifted_tensor_"):
                kept.append(spec)
            elif not node.users:
                self.graph.erase_node(node)
                del self.constants[before]
            else:
                spec.target = f"lifted_tensor_{n}"
                spec.arg.name = node.name = node.target = f"c_{spec.target}"
                self.constants[spec.target] = self.constants.pop(before)
                kept.append(spec)
                n += 1
        self.lifted_specs = kept


def attempt(
    mod: Any, args: Any, kwargs: Any, leaves: Any, groups: dict[str, Open], kind: Any
) -> Any:
    """Record a module with as many open sizes as it allows."""
    leader: dict[str, str] = {}
    fixed = {k for k, g in groups.items() if g.auto and (g.hint or 0) < 2}

    def tried(lead: dict[str, str], fix: set[str]) -> Any:
        plan = Plan(groups, lead, fix)
        try:
            recording = Recording(mod, args, kwargs, leaves, plan, kind=kind)
            return recording, recording.run()
        except MoreExamples:
            recording = Recording(mod, args, kwargs, leaves, plan, EXAMPLES, kind)
            return recording, recording.run()

    try:
        return tried(leader, fixed)
    except Specialized as e:
        error = e
    # Sizes without a name that were equal at first may have to be.
    by_hint: dict[Any, str] = {}
    for key, group in groups.items():
        if not group.named and key not in fixed:
            leader[key] = by_hint.setdefault(group.hint, key)
    if any(k != v for k, v in leader.items()):
        with contextlib.suppress(Specialized):
            return tried(leader, fixed)
    leader = {}
    autos = [k for k, g in groups.items() if g.auto and k not in fixed]
    for key in autos:
        with contextlib.suppress(Specialized):
            return tried(leader, {*fixed, key})
    if autos:
        try:
            return tried(leader, {*fixed, *autos})
        except Specialized as e:
            error = e
    raise violated(groups, fixed, tried, error)


def violated(groups: dict[str, Open], fixed: set[str], tried: Any, error: Specialized) -> UserError:
    """Return the error of a program that does not allow what is asked for."""
    head = 'Constraints violated ({})! For more information, run with TORCH_LOGS="+dynamic".\n'
    keys = [k for k in groups if k not in fixed]
    named = [k for k in keys if groups[k].named]
    for i, a in enumerate(named):
        for b in named[i + 1 :]:
            if groups[a].hint == groups[b].hint:
                with contextlib.suppress(Specialized):
                    tried({b: a}, fixed)
                    return UserError(
                        head.format(b) + f"  - The values of {b} = {groups[b].source()} and {a} = "
                        f"{groups[a].source()} must always be equal.\nSuggested fixes:\n  {b} = {a}"
                    )
    for key in keys:
        with contextlib.suppress(Specialized):
            tried({}, {*fixed, key})
            said = one_violation(groups[key], error)
            return UserError(head.format(groups[key].said()) + said + reason(error))
    every = "\n".join(one_violation(groups[k], error) for k in keys)
    names = ", ".join(groups[k].said() for k in keys)
    return UserError(head.format(names) + every + reason(error))


def reason(error: Specialized) -> str:
    """Return what an operator said of sizes that do not fit."""
    return "" if error.text else f"\nWhat failed with other sizes: {error}"


def one_violation(group: Open, error: Specialized) -> str:
    text = str(error.text)
    if re.search(r" (<|<=|>|>=) ", text):
        name = f"{group.said()} = {group.source()}" if group.named else group.source()
        said = re.sub(r"\bs\d+\b", lambda m: group.source(), text)
        return (
            f"  - Not all values of {name} in the specified range satisfy the generated guard "
            f"{said if error.values[0] else f'not ({said})'}"
        )
    fix = f"\nSuggested fixes:\n  {group.key} = {group.hint}" if group.named else ""
    return (
        f"  - You marked {group.said()} as dynamic but your code specialized it to be a constant "
        f"({group.hint}). If you're using mark_dynamic, either remove it or use "
        "maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or "
        f"Dim.AUTO.{fix}"
    )


def argument_names(mod: Any, args: Any, kwargs: Any) -> list[str]:
    """Return the names of a call's arguments, one for each."""
    signature = inspect.signature(mod.forward)
    names: list[str] = []
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}_{i}" for i in range(len(value))]
        else:
            names += list(value) if kind is inspect.Parameter.VAR_KEYWORD else [name]
    return names


def check(mod: Any, args: Any) -> None:
    """Raise unless a module and its arguments can be exported."""
    if not isinstance(mod, pt.nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        shown = str(type(args)).replace("pytensorlib.", "torch.")
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {shown}")


def trace(
    mod: Any, args: Any, kwargs: Any, dynamic_shapes: Any, kind: Any = OperatorTracer
) -> ExportedProgram:
    """Return a module's program, which a kind of tracer records."""
    combined = combine(mod, args, kwargs)
    if hasattr(dynamic_shapes, "dynamic_shapes"):
        extra, dynamic_shapes = dynamic_shapes, dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    else:
        extra = None
    leaves = leaf_shapes(combined, dynamic_shapes)
    groups = find_open(leaves)
    recording, result = attempt(mod, args, kwargs, leaves, groups, kind)
    specs, out_spec = recording.finish(result)
    in_spec = pytree.tree_structure((args, kwargs))
    names = argument_names(mod, args, kwargs)
    for name, value in vars(recording.root).get("_modules", {}).items():
        setattr(recording.root, name, value)
    module = GraphModule(recording.root, recording.graph, "GraphModule")
    n = sum(s.kind is not InputKind.USER_INPUT for s in recording.inputs)
    inputs = [*recording.inputs[:n], *recording.lifted_specs, *recording.inputs[n:]]
    entries = [
        ModuleCallEntry("", ModuleCallSignature([], [], in_spec, out_spec, names or None)),
        *(ModuleCallEntry(name, None) for name, _ in mod.named_modules() if name),
    ]
    program = ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=ExportGraphSignature(inputs, specs),
        state_dict=recording.state,
        range_constraints=recording.ranges,
        module_call_graph=entries,
        example_inputs=(args, kwargs),
        constants=recording.constants,
    )
    if extra is not None and hasattr(extra, "verify"):
        extra.verify(program)
    return program
