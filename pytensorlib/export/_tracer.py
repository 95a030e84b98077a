"""Records the operators of a program, on tensors without memory, in several examples at once."""

from __future__ import annotations

import builtins
import contextlib
import operator
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytensorlib as pt

from .. import _C, _symbolic
from .._ops import ops, registered
from .._symbolic.ints import SymBool, SymFloat, SymInt, SymNode, _Sym
from .._tensor import functions as _functions
from ..amp import autocast_mode as _amp
from ..fx._names import short_name, snake_case
from ..fx.graph import Graph
from ..fx.node import map_arg
from ..overrides import TorchFunctionMode
from ..utils import _pytree as pytree
from . import _aten, _methods
from ._numbers import Polynomial, fit, text_of

__all__ = ["OperatorTracer", "Specialized"]


class Specialized(Exception):  # noqa: N818
    """A program needs a plain number for an open one."""

    def __init__(self, values: tuple[Any, ...], text: Any, said: str = "") -> None:
        super().__init__(said or f"{text} has to be {values[0]}")
        self.values, self.text = values, text


class MoreExamples(Exception):  # noqa: N818
    """A size turns out to depend on the data, which one example cannot show."""


class Traced:
    """A tensor of the program: its node, and what it is in each example."""

    __slots__ = ("device", "node", "public", "shadows")

    def __init__(self, public: Any, node: Any, shadows: list[Any], device: Any) -> None:
        self.public, self.node, self.shadows, self.device = public, node, shadows, device


def shadow(t: Any) -> Any:
    """Return a tensor like another, without memory."""
    with pt.no_grad():
        return pt.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta")


_SKIPPED = "/fx/ /export/ /_tensor/functions.py /overrides.py /_symbolic/ints.py /onnx/".split()


def place_of_caller() -> str | None:
    """Return where in the program an operator is called, as the end of a traceback."""
    import linecache

    frame: Any = sys._getframe(2)
    ours = pt.__file__.rpartition("/")[0]
    while frame is not None:
        name = frame.f_code.co_filename
        own = name.startswith(ours)
        inside = own and (any(s in name for s in _SKIPPED) or "/nn/functional/" in name)
        if not inside and not name.startswith("<"):
            if own and "/nn/modules/" not in name and "/examples/" not in name:
                frame = frame.f_back
                continue
            line = linecache.getline(name, frame.f_lineno).strip()
            return f'  File "{name}", line {frame.f_lineno}, in {frame.f_code.co_name}\n    {line}'
        frame = frame.f_back
    return None


class OperatorTracer(TorchFunctionMode):
    """Sees every operator that a program calls, and adds it to a graph.

    Parameters
    ----------
    graph : Graph
        Gets the nodes.
    examples : int
        In how many examples at once sizes are known.
    """

    def __init__(self, graph: Graph, examples: int = 1) -> None:
        super().__init__()
        self.graph, self.examples = graph, examples
        self.known: dict[int, Traced] = {}
        self.by_shadow: dict[int, Traced] = {}
        self.kept: list[Any] = []
        self.sizes: dict[tuple[int, ...], Any] = {}
        self.symbols: dict[tuple[int, ...], Any] = {}
        self.data: set[str] = set()
        self.ranges: dict[str, tuple[int, int | None]] = {}
        self.lift: Callable[[Any], Any] | None = None
        self.given: dict[Any, Any] = {}
        self.constants: dict[int, tuple[Any, Any]] = {}
        self.modules: list[tuple[str, tuple[str, str]]] = []  # the calls that it is in
        self.placed: dict[int, str] = {}
        self.resting = False  # whether operators run unseen
        self.inside: Any = None  # the branch that is recorded
        self.root: Any = pt.nn.Module()
        self.trace_of: str | None = None  # where a program is from that is recorded again
        self.grad_mode = self.grad_mode_outside = pt.is_grad_enabled()
        self.modes: dict[Any, bool] = {}  # of nodes whose grad mode is another than outside
        self.casts = _amp.casts()

    # Tensors.

    def track(self, public: Any, node: Any, shadows: list[Any], device: Any = None) -> Any:
        """Keep a tensor's node and shapes."""
        device = pt.device("cpu") if device is None else device
        traced = Traced(public, node, shadows, device)
        self.known[id(public)] = traced
        self.by_shadow[id(shadows[0])] = traced
        self.kept += [public, *shadows]
        if "val" not in node.meta:
            node.meta["val"] = self.described(traced)
        return public

    def input(self, node: Any, shapes: list[tuple[int, ...]], like: Any) -> Any:
        """Return a tensor that stands for an argument, with its shape in each example."""
        shadows = []
        for shape in shapes:
            same = tuple(shape) == tuple(like.shape)
            with pt.no_grad():
                shadows.append(
                    shadow(like) if same else pt.empty(shape, dtype=like.dtype, device="meta")
                )
        public = shadows[0]
        if like.requires_grad and like.is_leaf:
            public.requires_grad_()
        return self.track(public, node, shadows, like.device)

    def described(self, traced: Traced) -> Any:
        """Return what a node's value is said to be: a tensor without memory."""
        from ._fake import FakeTensor

        return FakeTensor.of(traced.shadows[0], self.shape(traced), traced.device)

    def shape(self, traced: Traced) -> Any:
        """Return the sizes of a tensor, open ones among them."""
        sizes = [self.size(traced, d) for d in range(traced.shadows[0].dim())]
        return pt.Size(sizes)

    def size(self, traced: Traced, d: int) -> Any:
        """Return one size of a tensor."""
        values = tuple(s.size(d) for s in traced.shadows)
        d = d % max(len(traced.shadows[0].shape), 1)
        if len(set(values)) == 1:
            return values[0]
        if values in self.symbols:
            return self.symbols[values]
        text = fit(values, self.sizes)
        if text is None:
            text = Polynomial({(f"z{len(self.sizes)}",): 1})
        self.sizes[values] = text
        node = traced.node

        def make() -> Any:
            return self.call(ops.aten.sym_size.int, (node, d), {}, "sym_size_int", made)

        made: Any = SymInt(SymNode(self, values, text, make))
        return made

    def traced(self, t: Any) -> Traced:
        """Return the record of a tensor; a tensor that the trace has not seen is a constant."""
        found = self.known.get(id(t))
        if found is None:
            if t.device.type == "meta":
                raise RuntimeError(
                    "torch.export: a tensor came about where the exporter does not see it; use "
                    "tensors that the module's arguments, parameters and operators give"
                )
            assert self.lift is not None  # noqa: S101
            node = self.lift(t)
            meta = shadow(t)
            self.track(t, node, [meta] * self.examples, t.device)
            found = self.known[id(t)]
        return found

    # Numbers.

    def is_data(self, node: SymNode) -> bool:
        """Return whether a number depends on the data."""
        text = str(node.text)
        return any(name in text for name in self.data)

    def text_of(self, function: Any, args: Any, values: Any) -> Any:
        """Return how a computed number is written."""
        text = text_of(function, args)
        if isinstance(text, Polynomial):
            self.sizes.setdefault(values, text)
        return text

    def number_node(self, function: Any, nodes: tuple[Any, ...], sym: Any) -> Any:
        """Add the node of a computed number."""
        if function is max:
            function = _symbolic.sym_max
        elif function is min:
            function = _symbolic.sym_min
        elif function is operator.not_:
            function = _symbolic.sym_not
        return self.call(function, nodes, {}, function.__name__, sym)

    def specialize(self, node: SymNode) -> Any:
        """Return the plain number, where it is one in all examples."""
        if self.is_data(node):
            raise self.data_dependent(node)
        if len(set(node.values)) > 1:
            raise Specialized(node.values, node.text)
        return node.values[0]

    def truth(self, node: SymNode) -> bool:
        """Return a condition, where it is the same in all examples."""
        truths = {builtins.bool(v) for v in node.values}
        if self.is_data(node):
            raise self.data_dependent(node)
        if len(truths) > 1:
            raise Specialized(node.values, node.text)
        return truths.pop()

    def check(self, condition: SymNode) -> None:
        """Add a check of a condition that the program states."""
        node = condition.graph_node()
        text = f"Runtime assertion failed for expression {condition.text} on node '{node.name}'"
        target = ops.aten._assert_scalar.default
        self.call(target, (node, text), {}, "_assert_scalar_default")
        match = re.fullmatch(r"(u\d+) (<|<=|>|>=) (-?\d+)", str(condition.text))
        if match and match[1] in self.ranges:
            low, high = self.ranges[match[1]]
            n = int(match[3])
            if match[2][0] == ">":
                low = max(low, n + (match[2] == ">"))
            else:
                n -= match[2] == "<"
                high = n if high is None else min(high, n)
            self.ranges[match[1]] = (low, high)

    def data_dependent(self, node: SymNode) -> Exception:
        """Return the error of a program that branches on data."""
        from ..fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

        return GuardOnDataDependentSymNode(
            f"Could not guard on data-dependent expression {node.text} (unhinted: {node.text}).  "
            "(Size-like symbols: none)\n\nconsider using data-dependent friendly APIs such as "
            "guard_or_false, guard_or_true and statically_known_true.\nA branch on what a tensor "
            "holds can be written with torch.cond."
        )

    def new_symbol(self, kind: type[Any], low: int = 0, high: int | None = None) -> Any:
        """Return a number that only the data tells, and where its node is to be put."""
        if self.examples == 1:
            raise MoreExamples
        name = f"u{len(self.data)}"
        self.data.add(name)
        self.ranges[name] = (low, high)
        primes = [7, 11, 13, 17, 19]
        n = len(self.data)
        values: tuple[Any, ...] = tuple(primes[i] + 2 * n for i in range(self.examples))
        if high is not None:
            values = tuple(min(v, high) for v in values)
        if kind is SymBool:
            values = (True,) * self.examples
        elif kind is SymFloat:
            values = tuple(float(v) + 0.5 for v in values)
        text: Any = Polynomial({(name,): 1})
        if kind is SymInt and len(set(values)) > 1:
            self.sizes[values] = text
        return name, values, text

    def remembered(self, node: Any, dim: int) -> None:
        """Know that only the data tells a size of a node."""

    # Nodes.

    def call(
        self, target: Any, args: Any, kwargs: Any, name: str | None = None, value: Any = None
    ) -> Any:
        """Add a node."""
        if self.inside is not None:
            args, kwargs = map_arg((args, kwargs), self.inside.node_of)
        node = self.graph.create_node("call_function", target, args, kwargs, name)
        if self.grad_mode is not self.grad_mode_outside:
            self.modes[node] = self.grad_mode
        place = self.trace_of or place_of_caller()
        if place is not None:
            node.meta["stack_trace"] = place
        if self.modules:
            node.meta["nn_module_stack"] = dict(self.modules)
        if value is not None:
            node.meta["val"] = value
        return node

    def argument(self, value: Any) -> Any:
        """Return an argument as a node has it."""
        if isinstance(value, (pt.Tensor, _Sym)):
            node = (
                self.traced(value).node
                if isinstance(value, pt.Tensor)
                else (value.node.graph_node())
            )
            return node if self.inside is None else self.inside.node_of(node)
        if isinstance(value, (list, tuple)):
            made = [self.argument(v) for v in value]
            return made if isinstance(value, list) else tuple(made)
        if isinstance(value, dict):
            return {k: self.argument(v) for k, v in value.items()}
        if isinstance(value, slice):
            return slice(*(self.argument(p) for p in (value.start, value.stop, value.step)))
        return value

    def example(self, value: Any, i: int) -> Any:
        """Return an argument in one example."""
        if isinstance(value, pt.Tensor):
            return self.traced(value).shadows[i]
        if isinstance(value, _Sym):
            return value.node.values[i]
        if isinstance(value, (list, tuple)):
            made = [self.example(v, i) for v in value]
            return made if type(value) is list else tuple(made)
        if isinstance(value, dict):
            return {k: self.example(v, i) for k, v in value.items()}
        return value

    def run(self, function: Any, args: Any, kwargs: Any) -> list[Any]:
        """Return what a function gives in each example."""
        results = []
        for i in range(self.examples):
            with self.away():
                try:
                    results.append(function(*self.example(args, i), **self.example(kwargs, i)))
                except Exception as e:
                    if i == 0 or isinstance(e, Specialized):
                        raise
                    raise Specialized((), "", f"{e}") from e
        return results

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Let operators run unseen for a block."""
        before, resting = _C._rest_torch_function(2), self.resting
        self.resting = True
        try:
            with pt.no_grad():
                yield
        finally:
            self.resting = resting
            _C._rest_torch_function(before)

    def custom(self, op: Any, args: Any, kwargs: Any) -> Any:
        """Record an operator of the program's own."""
        with self.away():
            results = self.run(op, args, kwargs)
            nodes = self.argument(tuple(args)), self.argument(dict(kwargs))
            node = self.call(op._opoverload, *nodes, op._name)
            return self.results(node, results, self.device_of(args, kwargs))

    def record(self, name: str, function: Any, args: Any, kwargs: Any, *, run: Any = None) -> Any:
        """Add a call of an operator; return its results."""
        with self.away():
            return self._record(name, function, args, kwargs, run)

    def _record(self, name: str, function: Any, args: Any, kwargs: Any, run: Any) -> Any:
        bound = _aten.bind(name, args, kwargs)
        if bound is None:
            target, label = function, None
            written, named = args, kwargs
        else:
            schema, written, named = bound
            target = getattr(getattr(ops.aten, schema.name), schema.overload)
            label = snake_case(schema.name)
            named = self.with_factory_options(schema, kwargs, named)
        device = self.device_of(args, kwargs)
        nodes = self.argument(written), self.argument(named)
        options = dict(kwargs)
        makes = name in _methods.FACTORIES and not name.endswith("_like") and "new_" not in name
        if makes or isinstance(options.get("device"), (pt.device, str, int)):
            options["device"] = "meta"
        results = self.run(run or function, args, options)
        node = self.call(target, *nodes, label)
        return self.results(node, results, device)

    def with_factory_options(
        self, schema: Any, kwargs: Any, named: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the options of a function that makes tensors as PyTorch's graphs have them."""
        known = {a.name for a in schema.arguments}
        if schema.name not in _methods.FACTORIES or "pin_memory" not in known:
            return named
        like = schema.name.endswith("_like") or schema.name.startswith("new_")
        found = {k: v for k, v in named.items() if k not in ("device", "pin_memory")}
        device = kwargs.get("device")
        if device is None and not like:
            device = pt.get_default_device()
        if device is not None:
            found["device"] = self.real_device(device)
        found["pin_memory"] = False
        order = [a.name for a in schema.arguments]
        return dict(sorted(found.items(), key=lambda kv: order.index(kv[0])))

    def real_device(self, device: Any) -> Any:
        device = pt.device(device) if not isinstance(device, pt.device) else device
        return pt.device("cpu") if device.type == "meta" else device

    def device_of(self, args: Any, kwargs: Any) -> Any:
        """Return on which device a call's results are."""
        if kwargs.get("device") is not None:
            return self.real_device(kwargs["device"])
        for leaf in pytree.tree_leaves((args, kwargs)):
            if isinstance(leaf, pt.device):
                return self.real_device(leaf)
        for leaf in pytree.tree_leaves((args, kwargs)):
            if isinstance(leaf, pt.Tensor):
                return self.traced(leaf).device
        return None

    def results(self, node: Any, results: list[Any], device: Any) -> Any:
        """Return the results of a call as the program gets them, and keep their nodes."""
        first = results[0]
        if isinstance(first, pt.Tensor):
            return self.result(node, results, device)
        if isinstance(first, (list, tuple)):
            if len({len(r) for r in results}) > 1:
                raise Specialized((), "", "the number of results depends on a size")
            items = []
            for i in range(len(first)):
                column = [r[i] for r in results]
                if not isinstance(first[i], pt.Tensor):
                    items.append(first[i])
                    continue
                part = self.graph.create_node("call_function", operator.getitem, (node, i))
                part.meta.update({k: v for k, v in node.meta.items() if k != "val"})
                items.append(self.result(part, column, device))
            node.meta["val"] = tuple(
                self.described(self.known[id(t)]) if isinstance(t, pt.Tensor) else t for t in items
            )
            if isinstance(first, list):
                return items
            return type(first)(items) if hasattr(first, "n_fields") else tuple(items)
        return first

    def result(self, node: Any, column: list[Any], device: Any) -> Any:
        known = self.by_shadow.get(id(column[0]))
        if known is not None and any(
            a is not b for a, b in zip(column, known.shadows, strict=True)
        ):  # returned as it is in some examples only
            column, known = [t.detach() for t in column], None
        if known is not None:  # what was written to, or returned as it is
            known.node = node
            node.meta["val"] = self.described(known)
            return known.public
        if len({t.dim() for t in column}) > 1:
            raise Specialized((), "", "the number of dimensions depends on a size")
        return self.track(column[0], node, column, device)

    # The program's calls.

    def __torch_function__(self, func: Any, types_: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.resting:
            self.grad_mode = pt.is_grad_enabled()
        name = getattr(func, "__name__", "")
        if _amp.casts() != self.casts and not isinstance(func, types.FunctionType):
            with self, _amp.cast_anew():
                args, kwargs = _amp.cast_arguments(func, args, kwargs)
        if name == "__get__":
            attribute = getattr(func, "__self__", None)
            return _methods.attribute(self, getattr(attribute, "__name__", ""), func, args[0])
        special = _methods.SPECIAL.get(name)
        if special is not None and not (
            isinstance(func, types.FunctionType) and name in _methods.C_ONLY
        ):
            return special(self, func, args, kwargs)
        if isinstance(func, types.FunctionType):
            with self:
                return _functions.without_asking(func, args, kwargs)
        if isinstance(func, types.MethodType):
            with self:
                return func(*args, **kwargs)
        if name in _methods.PLAIN:
            with self.away():
                return func(*self.example(args, 0), **self.example(kwargs, 0))
        own = registered.get(getattr(func, "_qualified_op_name", ""))
        if own is not None:
            return self.custom(own, *own._bound(args, kwargs))
        name = short_name(func) if hasattr(func, "__module__") else name  # linalg_diagonal
        return self.record(_methods.RENAMED.get(name, name), func, args, kwargs)
