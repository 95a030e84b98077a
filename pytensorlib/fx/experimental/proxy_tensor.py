"""`make_fx`: the graph of the operators that a function calls below gradients."""

from __future__ import annotations

import contextlib
import inspect
import operator
import sys
import types as types_
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytensorlib as pt

from ... import _C
from ..._absent.modules import fill, tell_missing
from ..._absent.table import EAGER
from ..._ops import OpOverload, ops
from ..._symbolic import SymBool, SymFloat, SymInt
from ..._tensor.functions import without_asking
from ...autograd import _levels
from ...autograd import function as function_
from ...autograd import graph as graph_
from ...overrides import TorchFunctionMode
from ...utils import _pytree as pytree
from ...utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from .._codegen import _PyTreeCodeGen, _PyTreeInfo
from .._names import snake_case
from ..graph import Graph
from ..graph_module import GraphModule
from . import _forms, _gradients, _whole_calls, _writer

__all__ = ["get_proxy_mode", "has_proxy_slot", "is_sym_node", "make_fx", "py_sym_types"]

fill(
    globals(),
    EAGER,
    "dispatch_trace get_isolated_graphmodule PythonKeyTracer ProxyTorchDispatchMode "
    "DecompositionInterpreter selective_decompose wrapper_and_args_for_make_fx decompose "
    "pythonkey_decompose track_tensor_tree track_tensor thunkify fetch_object_proxy "
    "fetch_sym_proxy get_proxy_slot set_proxy_slot _ProxyTensor _SymNodeDict _ModuleStackTracer",
)
py_sym_types = (SymInt, SymFloat, SymBool)
_modes: list[Any] = []
# Where tensors are made that stand for others.
_STAND_INS = (_levels.__name__, function_.__name__)


def _key(t: Any) -> Any:
    """Return what tells a tensor from others: the core hands tensors on without their objects."""
    if t.numel() == 0 or t.device.type != "cpu" or t.layout is not pt.strided:
        return id(t)
    return t.data_ptr(), tuple(t.shape), t.stride(), t.dtype


def _storage(t: Any) -> int | None:
    """Return what tells the memory of a tensor from others; None where it has none."""
    plain = t.numel() > 0 and t.device.type == "cpu" and t.layout is pt.strided
    return t.untyped_storage()._cdata if plain else None


class _Recorder(TorchDispatchMode):
    """Adds each operator to a graph, and computes it."""

    def __init__(self, table: dict[Any, Any]) -> None:
        super().__init__()
        self.graph, self.root, self.table = Graph(), pt.nn.Module(), table
        self.nodes: dict[Any, Any] = {}
        # By object: tensors that stay the same, while others come that look alike.
        self.exact: dict[int, Any] = {}
        # By storage, the first tensor that had it, and parameters that functions were called with.
        self.owners: dict[int, tuple[Any, Any]] = {}
        self.parameters: dict[Any, Any] = {}
        self.constants: dict[Any, str] = {}  # names of attributes
        self.kept: list[Any] = []
        self.left: list[Any] = []  # nodes that go where nothing uses them
        self.standing = False  # whether a transform makes what stands for an argument
        self.begins = False  # whether the call begins a gradient
        self.seen: dict[str, list[Any]] = defaultdict(list)  # parameters of calls, by operator
        self.made: list[_writer.Call] = []  # calls of operators, until a function returns
        self.fitted: dict[Any, Any] = {}  # what the core is going to sum, and the sums
        self.latest = -1  # the newest node of a gradient that was looked at

    def note(self, t: Any, node: Any) -> None:
        self.nodes[_key(t)] = node
        self.exact[id(t)] = node
        if (storage := _storage(t)) is not None:
            self.owners.setdefault(storage, (t, node))
        self.kept.append(t)
        node.meta["val"] = _described(t)

    def known(self, given: Any) -> dict[Any, Any]:
        """Return the nodes of tensors among arguments."""
        keys = [_key(t) for t in pytree.tree_leaves(given) if isinstance(t, pt.Tensor)]
        return {k: self.nodes[k] for k in keys if k in self.nodes}

    def forget(self, given: Any, known: dict[Any, Any]) -> None:
        """Take back which nodes arguments are of: those within a call go."""
        self.nodes.update(known)
        for t in pytree.tree_leaves(given):
            if isinstance(t, pt.Tensor):
                self.exact.pop(id(t), None)

    def remember(self, t: Any) -> None:
        """Keep which node an argument is of, whatever looks like it later."""
        if _key(t) not in self.constants:
            self.exact.setdefault(id(t), self.nodes[_key(t)])
            self.kept.append(t)

    def overwritten(self, t: Any) -> None:
        """Forget which tensors were in memory that is written to."""
        old = {self.nodes.get(_key(t))}
        self.exact = {k: n for k, n in self.exact.items() if n not in old}

    def parts(self, out: Any, node: Any, every: bool = False) -> Any:
        """Note the results of an operator that gives several; return them."""
        for i, t in enumerate(out):
            if every or isinstance(t, pt.Tensor):
                made = self.graph.create_node("call_function", operator.getitem, (node, i))
                if isinstance(t, pt.Tensor):
                    self.note(t, made)
        return out

    def whole(self, call: Any, own: Any, given: Any, results: Any) -> Any:
        """Return the call of one operator with these arguments that a function was."""
        if call.outputs:
            users = {n.args[1]: n for n in own.users if n.target is operator.getitem}
            last = own
            for i, t in enumerate(results):
                if i not in users:
                    with self.graph.inserting_after(last):
                        part = self.graph.create_node("call_function", operator.getitem, (own, i))
                    users[i] = part
                last = users[i]
                if i != call.place and isinstance(t, pt.Tensor):
                    self.note(t, last)
        args, kwargs = given
        return _writer.Call(call.target, args, kwargs, results)

    def later(self, fitted: Any, old: Any) -> Any:
        """Return what the core sums or casts to a gradient that is written already."""
        carrier = old.detach().clone()
        self.fitted[_key(carrier)] = fitted
        self.kept.append(carrier)
        return carrier

    def fit(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Return what a step of the core towards such a gradient gives."""
        fitted = self.fitted.pop(_key(args[0]))
        out = func(*args, **kwargs)
        if out.shape == fitted.shape and out.dtype is fitted.dtype:
            return fitted
        return self.later(fitted, out)

    def active(self) -> bool:
        """Return whether a program is recorded, and by nothing above."""
        return bool(_modes) and _modes[-1] is self

    def mark(self) -> Any:
        """Return what tells where the recorder is."""
        last = next(iter(reversed(self.graph.nodes)), None)
        return last, dict(self.nodes), dict(self.owners)

    def since(self, mark: Any, until: Any = None) -> list[Any]:
        """Return the nodes that were made after a mark, the newest first."""
        found = []
        passing = until is not None
        for n in reversed(self.graph.nodes):
            if n is mark[0]:
                break
            passing = passing and n is not until[0]
            if not passing:
                found.append(n)
        return found

    def restore(self, mark: Any) -> None:
        """Take back which node a tensor is of."""
        self.nodes, self.owners = dict(mark[1]), dict(mark[2])

    def erase(self, nodes: Any) -> None:
        """Take nodes out of the graph, the newest first."""
        for n in nodes:
            self.graph.erase_node(n)
            if n.op == "get_attr" and all(n.target != m.target for m in self.graph.nodes):
                delattr(self.root, n.target)
                self.constants = {k: v for k, v in self.constants.items() if v != n.target}

    def node_of(self, t: Any) -> Any:
        known = self.exact.get(id(t))
        if known is not None and known.op != "get_attr" and not known._erased:
            return known
        name = self.constants.get(_key(t))
        if name is not None:  # each use reads it again
            self.note(t, self.graph.create_node("get_attr", name))
        elif _key(t) not in self.nodes and not self.alias(t):
            t = self.parameters.get(_key(t), t)
            prefix = "_param_constant" if isinstance(t, pt.nn.Parameter) else "_tensor_constant"
            i = 0
            while hasattr(self.root, f"{prefix}{i}"):
                i += 1
            if prefix == "_param_constant":
                setattr(self.root, f"{prefix}{i}", t)
            else:
                self.root.register_buffer(f"{prefix}{i}", t)
            self.constants[_key(t)] = f"{prefix}{i}"
            self.note(t, self.graph.create_node("get_attr", f"{prefix}{i}"))
        return self.nodes[_key(t)]

    def alias(self, t: Any) -> bool:
        """Note a tensor in the memory of another one, of which no view was asked for."""
        found = self.owners.get(_storage(t) or 0)
        if found is None or found[0].dtype != t.dtype:
            return False
        base, node = found
        sizes = list(t.shape)
        if base.is_contiguous() and t.is_contiguous() and base.numel() == t.numel():
            made = self.graph.call_function(ops.aten.view.default, (node, sizes))
        else:
            places = (node, sizes, list(t.stride()), t.storage_offset())
            made = self.graph.call_function(ops.aten.as_strided.default, places)
        self.note(t, made)
        return True

    def lift(self, t: Any) -> None:
        """Note a tensor that the program made of numbers: a copy of a constant, in each run."""
        if _key(t) in self.nodes:
            return
        with _disable_current_modes():
            kept = t.detach().clone()
        name = "lift_fresh_copy"
        copied = getattr(ops.aten, name).default
        node = self.graph.create_node("call_function", copied, (self.node_of(kept),), name=name)
        self.note(t, node)

    def argument(self, value: Any) -> Any:
        def node(v: Any) -> Any:
            return self.node_of(v) if isinstance(v, pt.Tensor) else v

        return pytree.tree_map(node, value)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in self.table:
            with self:
                out = self.table[func](*args, **(kwargs or {}))
            if out is not NotImplemented:
                return out
        before = _C._rest_torch_function(2)
        try:
            done, out = self.recorded(func, args, kwargs or {})
        finally:
            _C._rest_torch_function(before)
        if done:
            return out
        with self:
            return out()

    def recorded(self, func: Any, args: Any, kwargs: Any) -> tuple[bool, Any]:
        """Record an operator: True and its result, or False and what computes it with others."""
        from ...export import _aten

        if func._opname in ("detach", "view") and not hasattr(func, "_op"):
            # What stands for the argument of a transform is that argument.
            asks = sys._getframe(2).f_globals.get("__name__", "")
            if (self.standing or asks in _STAND_INS) and args[0].shape == (
                out := func(*args, **kwargs)
            ).shape:
                if _key(out) != _key(args[0]):
                    self.note(out, self.node_of(args[0]))
                self.kept.append(out)
                return True, out
        if self.fitted and args and isinstance(args[0], pt.Tensor) and _key(args[0]) in self.fitted:
            return True, self.fit(func, args, kwargs)
        told = None
        if hasattr(func, "_op") and not kwargs:
            told = _forms.below(func, args, self.seen)
        elif func._opname in ("pow", "_softmax", "_log_softmax") and len(args) > 1:
            self.seen[func._opname].append(args[1])
        elif func._opname == "gelu":
            self.seen["gelu"].append(kwargs.get("approximate", "none"))
        if told is not None and not isinstance(told[0], OpOverload):
            return False, lambda: told[0](*told[1])
        written, named, target = args, kwargs, func
        if told is not None:
            target, written = told
        bound = None if hasattr(func, "_op") else _aten.bind(func._opname, args, kwargs)
        if bound is not None:
            schema, written, named = bound
            target = getattr(func.overloadpacket, schema.overload)
        if (wanted := _forms.WANTED.get(func._opname)) is not None:
            target = wanted
        elif not hasattr(target, "_op"):  # which keeps its options
            named = _forms.factory_options(func._opname, dict(named))
        if self.begins and func._opname == "ones_like":
            named["memory_format"] = pt.preserve_format  # where a gradient begins
        nodes = self.argument(tuple(written)), self.argument(dict(named))
        for t in pytree.tree_leaves((written, named)):
            if isinstance(t, pt.Tensor):
                self.remember(t)
        out = func(*args, **kwargs)
        node = self.graph.create_node(
            "call_function", target, *nodes, snake_case(target.overloadpacket.__name__)
        )
        if target._opname.endswith("_"):
            self.overwritten(args[0])
        if isinstance(out, pt.Tensor):
            self.note(out, node)
        elif isinstance(out, (list, tuple)):
            self.parts(out, node)
        told_all = told is not None or bound is not None
        call = _writer.Call(
            target, written, named, out if isinstance(out, (list, tuple)) else [out]
        )
        call.known = call.known and told_all
        call.node = node
        self.made.append(call)
        return True, out


class _Lifting(TorchFunctionMode):
    """Tells a recorder of tensors that are made of numbers, and of parameters."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        self.forming: list[Any] = []  # what simpler functions compute

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for a in (*args, *(kwargs or {}).values()):
            if isinstance(a, pt.nn.Parameter):
                self.recorder.parameters[_key(a)] = a
        recorder, kwargs = self.recorder, kwargs or {}
        asks = sys._getframe(1).f_globals.get("__name__", "")
        if asks == graph_.__name__ and getattr(func, "__name__", "") == "view_as":
            recorder.standing = True
            try:
                return func(*args, **kwargs)
            finally:
                recorder.standing = False
        form = _forms.form(func)
        if form is not None and func not in self.forming:
            made = self.formed(form, func, args, kwargs)
            if made is not None:
                return made
        mapped = _gradients.mapped()
        call = None if mapped else _whole_calls.whole(func, args, kwargs)
        given: Any = ((), {})
        if call is not None:
            given = tuple(call.args), dict(call.kwargs)
            known = recorder.known(given)
            call.args = recorder.argument(tuple(call.args))
            call.kwargs = recorder.argument(dict(call.kwargs))
        elif isinstance(func, types_.FunctionType) and func is not pt.tensor:
            with self:
                return without_asking(func, args, kwargs)
        before = len(recorder.graph.nodes)
        recorder.made.clear()
        recorder.begins = asks == pt.autograd.__name__ or bool(_forms._BEGUN)
        try:
            out = func(*args, **kwargs)
        finally:
            recorder.begins = False
        if func is pt.tensor:
            recorder.lift(out)
        made, recorder.made = recorder.made, []
        nodes = _gradients.new_nodes(recorder, out)
        if call is not None and isinstance(out, pt.Tensor):
            call.result = recorder.node_of(out)
            call.nodes = list(recorder.graph.nodes)[before:]
            with _writer.quiet():
                results = _whole_calls.results(call, given, out)
            own = _whole_calls.replace(recorder.graph, call, results)
            if own is not None:
                if not call.name.endswith("_"):
                    recorder.forget(given, known)
                whole = recorder.whole(call, own, given, results)
                if len(nodes) == 1:
                    made = [c for c in made[:-1] if c.name == "clone"] + [whole]
                recorder.left += [n for n in call.nodes if not call.keeps(n, own)]
        if not mapped:
            _whole_calls.as_asked(func, args, made)
        _gradients.follow(recorder, nodes, made)
        return out

    def formed(self, form: Any, func: Any, args: Any, kwargs: Any) -> Any:
        """Return what simpler functions give, or None."""
        self.forming.append(func)
        try:
            with self:
                return form(*args, **kwargs)
        except TypeError:
            return None  # the function says what is wrong
        finally:
            self.forming.pop()


def _described(t: Any) -> Any:
    from ...export._fake import FakeTensor

    return FakeTensor.of(t)


def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
    **options: Any,
) -> Callable[..., GraphModule]:
    """Return a function that runs `f` and returns the operators that it called as a module.

    What gradients compute is seen as well.

    Parameters
    ----------
    f : callable
        Takes and returns tensors in containers.
    decomposition_table : dict, optional
        Functions by operators that are called in their place.
    tracing_mode : str, default "real"
        "real" computes; "fake" and "symbolic" do the same here: sizes in the graph are numbers.
    pre_dispatch : bool, default False
        Whether operators are named as programs call them, as in `torch.export`.
    record_module_stack, record_stack_traces : bool, default False
        Not used.

    Returns
    -------
    callable
        Takes examples of the arguments and returns a `GraphModule`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.experimental.proxy_tensor import make_fx
    >>> print(make_fx(lambda x: (x + 1).sin())(torch.ones(2)).code.strip())
    def forward(self, x_1):
        add = torch.ops.aten.add.Tensor(x_1, 1);  x_1 = None
        sin = torch.ops.aten.sin.default(add);  add = None
        return sin
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")
    if pre_dispatch:
        return lambda *args: _as_called(f, args)

    def traced(*args: Any) -> GraphModule:
        recorder = _Recorder(dict(decomposition_table or {}))
        names = _names(f, args)
        made = []
        for name, arg in zip(names, args, strict=True):
            leaves, spec = pytree.tree_flatten(arg)
            parts = []
            for i, leaf in enumerate(leaves, 1):
                node = recorder.graph.placeholder(f"{name}_{i}")
                if isinstance(leaf, pt.Tensor):
                    # Another tensor, so that one that comes twice is two arguments.
                    same = (
                        leaf.detach().clone().requires_grad_(leaf.requires_grad and leaf.is_leaf)
                        if (_key(leaf) in recorder.nodes)
                        else leaf
                    )
                    recorder.note(same, node)
                    leaf = same
                parts.append(leaf)
            made.append(pytree.tree_unflatten(parts, spec))
        _modes.append(recorder)
        try:
            with recorder, _Lifting(recorder):
                result = f(*made)
        finally:
            _modes.pop()
        in_spec = pytree.tree_structure(args)
        if in_spec.num_leaves != len(args) or any(isinstance(a, (tuple, list, dict)) for a in args):
            leaves, out_spec = pytree.tree_flatten(result)
            recorder.graph.output(list(recorder.argument(leaves)))
            graph = recorder.graph
            graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, in_spec, out_spec))
        else:
            recorder.graph.output(recorder.argument(result))
        recorder.erase(n for n in reversed(recorder.left) if not n.users)
        _forms.tidied(recorder.graph)
        label = getattr(f, "__name__", type(f).__name__)
        label = label if label.isidentifier() else "<lambda>"
        return GraphModule(recorder.root, recorder.graph, label)

    return traced


def _names(f: Any, args: Any) -> list[str]:
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return [f"arg{i}" for i in range(len(args))]
    names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters) or len(names) < len(args):
        return [f"arg{i}" for i in range(len(args))]
    return names[: len(args)]


def _as_called(f: Any, args: Any) -> GraphModule:
    from ...export import export

    class Called(pt.nn.Module):
        def forward(self, *args: Any) -> Any:
            return f(*args)

    return export(Called(), args).module(check_guards=False)


def is_sym_node(node: Any) -> bool:
    """Return whether the value of a node is an open size."""
    return isinstance(node.meta.get("val"), py_sym_types)


def has_proxy_slot(obj: Any, tracer: Any) -> bool:
    """Return whether a tensor is followed by a tracer."""
    return any(_key(obj) in mode.nodes for mode in _modes)


def get_proxy_mode() -> Any:
    """Return the tracer at work, or None.

    Examples
    --------
    >>> from pytensorlib.fx.experimental.proxy_tensor import get_proxy_mode
    >>> get_proxy_mode() is None
    True
    """
    return _modes[-1] if _modes else None


get_innermost_proxy_mode = get_proxy_mode


@contextlib.contextmanager
def disable_proxy_modes_tracing(enable_current: bool = False) -> Iterator[None]:
    """Do without a tracer for a block."""
    with _disable_current_modes() if _modes else contextlib.nullcontext():
        yield


maybe_disable_thunkify = maybe_enable_thunkify = disable_proxy_modes_tracing
tell_missing(globals(), EAGER)
