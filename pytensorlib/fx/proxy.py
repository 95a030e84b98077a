"""Proxies: they stand for values while a program is traced, and operations on them become nodes."""

from __future__ import annotations

import collections
import contextlib
import copy
import dis
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytensorlib as pt

from .._tensor import functions as _functions
from ._names import MAGIC, REFLECTED
from .graph import Graph
from .node import Argument, Node, Target, base_types, map_aggregate
from .operator_schemas import check_for_mutable_operation
from .traceback import get_current_meta, has_preserved_node_meta

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]


# What a node is told of, where it is made of another.
_PASSED_ON = (
    "stack_trace nn_module_stack torch_fn source_fn_stack original_aten recompute from_node custom"
).split()


class Scope:
    """In which module a tracer is.

    Examples
    --------
    >>> from pytensorlib.fx.proxy import Scope
    >>> Scope("layer.0", None).module_path
    'layer.0'
    """

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Lets a tracer be in a module for a block.

    Examples
    --------
    >>> from pytensorlib.fx.proxy import Scope, ScopeContextManager
    >>> scope = Scope("", None)
    >>> with ScopeContextManager(scope, Scope("a", None)) as inside:
    ...     inside.module_path
    'a'
    """

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._prev_scope = copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *error: object) -> None:
        self._scope.module_path = self._prev_scope.module_path
        self._scope.module_type = self._prev_scope.module_type


class TraceError(ValueError):
    """What a program does that cannot be traced.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.fx.proxy.TraceError, ValueError)
    True
    """


class TracerBase:
    """Makes nodes and proxies; `Tracer` is the one that runs programs."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: collections.OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, type]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node to the graph.

        Parameters
        ----------
        kind, target, args, kwargs, name, type_expr
            As of `Graph.create_node`.

        Returns
        -------
        Node
            The new one.
        """
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)  # type: ignore[arg-type]
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = getattr(self, "scope", None)
        if scope is not None:
            self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
        if has_preserved_node_meta():
            notes = get_current_meta()
            node.meta.update((k, copy.copy(notes[k])) for k in _PASSED_ON if k in notes)
        elif stack := getattr(self, "module_stack", None):
            node.meta["nn_module_stack"] = copy.copy(stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return a proxy for a node.

        Parameters
        ----------
        node : Node
            The node.

        Returns
        -------
        Proxy
            What stands for its value.
        """
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node for a call that takes proxies, and return the proxy of its result.

        Parameters
        ----------
        kind, target, args, kwargs, name, type_expr
            As of `Graph.create_node`.
        proxy_factory_fn : callable, optional
            Makes the proxy of the node.

        Returns
        -------
        Proxy
            What stands for the result.
        """
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(args_, tuple) or not isinstance(kwargs_, dict):
            raise AssertionError(f"args and kwargs became {type(args_)} and {type(kwargs_)}")
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        proxy = proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = stack_of_caller()
        return proxy

    def create_arg(self, a: Any) -> Argument:
        """Return an argument as a node has it: proxies become their nodes.

        Parameters
        ----------
        a : object
            Anything; containers are looked into.

        Returns
        -------
        Argument
            For a node.

        Raises
        ------
        NotImplementedError
            A node cannot have it.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(e) for e in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return [self.create_arg(e) for e in a]
        if isinstance(a, dict):
            return self._create_dict(a)
        if isinstance(a, slice):
            return slice(*(self.create_arg(p) for p in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*(self.create_arg(p) for p in (a.start, a.stop, a.step)))
        if is_dataclass(a) and not isinstance(a, type):
            values = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", a.__class__, (), values)
        if isinstance(a, base_types) or a is None or a is ...:
            return a
        if type(a).__name__ in ("OpOverload", "HigherOrderOperator", "OpOverloadPacket"):
            return a
        if isinstance(a, (pt.layout, pt.memory_format, type)):
            return a
        if hasattr(a, "__fx_keep__") or type(a).__module__ == "enum" or hasattr(a, "_member_map_"):
            return a
        import enum

        if isinstance(a, enum.Enum):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_dict(self, a: dict[Any, Any]) -> dict[Any, Any]:
        def no_node(x: Any) -> Any:
            if isinstance(x, Node):
                raise RuntimeError(
                    f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {x}"
                )
            return x

        found = {}
        for k, v in a.items():
            key = self.create_arg(k)
            map_aggregate(key, no_node)
            found[key] = self.create_arg(v)
        return found

    def to_bool(self, obj: Proxy) -> bool:
        """Return the truth of a proxy; raise, since it is not known.

        Parameters
        ----------
        obj : Proxy
            What a program asks.

        Returns
        -------
        bool
            Never here.

        Raises
        ------
        TraceError
            Always.
        """
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Return what a proxy yields; raise, since it is not known.

        Parameters
        ----------
        obj : Proxy
            What a program goes through.

        Returns
        -------
        iterator
            Never here.

        Raises
        ------
        TraceError
            Always.
        """
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. See the torch.fx docs on "
            "pytorch.org for a more detailed explanation of what types of control flow can be "
            "traced, and check out the Proxy docstring for help troubleshooting Proxy iteration "
            "errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Return the keys of a proxy, for ``**proxy``.

        Parameters
        ----------
        obj : Proxy
            What a program unpacks.

        Returns
        -------
        Proxy
            A call of its method `keys`.
        """
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds what is done with its proxies to a graph that is there.

    Parameters
    ----------
    graph : Graph
        The graph.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder("x"))
    >>> (x + 1).node.name
    'add'
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: Any) -> None:
    """Raise where a condition does not hold, as ``assert`` does."""
    if not x:
        raise AssertionError("Assertion failed")


def stack_of_caller() -> str:
    """Return the stack of the program that is traced, without the tracer's own frames."""
    import traceback

    here = __name__.rpartition(".")[0]
    own = (here.rpartition("/")[0] or here).replace(".", "/")
    frames = [
        frame
        for frame in traceback.extract_stack()
        if f"/{own}/" not in frame.filename.replace("\\", "/")
    ]
    return "".join(traceback.StackSummary.from_list(frames).format()).strip()


class _Asked:
    """Lets functions of tensors ask the classes of their arguments, as long as it is in force."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(issubclass(kind, Proxy) for kind in types):
            return NotImplemented  # the proxy answers
        return func(*args, **(kwargs or {}))


# How many blocks let functions ask, and whether they do for good: a proxy was made outside.
_blocks = 0
_asked = False


@contextlib.contextmanager
def asking() -> Iterator[None]:
    """Let functions of tensors ask proxies for a block; afterwards they are as quick as before."""
    global _blocks
    _functions.install()
    pt._C._push_torch_function_mode(_Asked(), True)
    _blocks += 1
    try:
        yield
    finally:
        _blocks -= 1
        pt._C._take_torch_function_mode()


class Proxy:
    """Stands for a value of a program that is traced; what is done with it becomes nodes.

    Parameters
    ----------
    node : Node
        Whose value it is.
    tracer : TracerBase, optional
        Makes the nodes; one that adds to the node's graph when left out.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder("x"))
    >>> torch.relu(x).neg()
    Proxy(neg)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Let functions of tensors ask proxies, from the first one on outside a trace."""
        global _asked
        if not _asked and not _blocks:
            _asked = True
            pt._C._enable_torch_function()
        return super().__new__(cls)

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k in ("node", "tracer", "__fx_create_arg__") or k.startswith("__array_"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = self.__class__.__new__(self.__class__)
        for k, v in self.__dict__.items():
            made.__dict__[k] = v if isinstance(v, TracerBase) else copy.deepcopy(v, memo)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = sys._getframe(1)
        for inst in dis.get_instructions(frame.f_code):
            if inst.offset == frame.f_lasti and inst.opname == "UNPACK_SEQUENCE":
                whole: Any = self
                return (whole[i] for i in range(inst.argval))
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            frame = sys._getframe(1)
            code = list(dis.get_instructions(frame.f_code))
            at = next(i for i, inst in enumerate(code) if inst.offset == frame.f_lasti)
            if _is_assert(code, at):
                self.tracer.create_proxy("call_function", assert_fn, (self,), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Return the keys, for ``**proxy``.

        Returns
        -------
        Proxy
            A call of its method `keys`.
        """
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None
    ) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[Any, None] = {}

        def find(a: Any) -> Any:
            if isinstance(a, cls):
                tracers[a.tracer] = None
            return a

        map_aggregate(args, find)
        map_aggregate(kwargs, find)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace "
                f"operations {orig_method}"
            )
        if not tracers:
            for a in (*args, *kwargs.values()):
                for inner in a if isinstance(a, (list, tuple)) else (a,):
                    if isinstance(inner, Proxy):
                        tracers[inner.tracer] = None
        tracer = next(iter(tracers))
        from ..overrides import is_tensor_method_or_property

        name = orig_method.__name__
        if is_tensor_method_or_property(orig_method):
            if name in ("__get__", "__set__"):
                owner: Any = getattr(orig_method, "__self__", None)
                return tracer.create_proxy(
                    "call_function",
                    getattr,
                    (args[0], owner.__name__),
                    {},
                )
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy(
            "call_function",
            orig_method,
            args,
            kwargs,
            name=tracer.graph._target_to_str(orig_method),
        )


def _is_assert(code: list[Any], at: int) -> bool:
    """Return whether the truth that is asked for is that of an ``assert``."""
    jump = code[at]
    if "POP_JUMP" not in jump.opname:
        return False
    after = code[at + 1] if at + 1 < len(code) else None
    return after is not None and after.opname == "LOAD_ASSERTION_ERROR"


class Attribute(Proxy):
    """Stands for an attribute of a value; a node only where it is not called at once.

    Parameters
    ----------
    root : Proxy
        Whose attribute it is.
    attr : str
        Its name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder("x"))
    >>> x.shape.node.target is getattr
    True
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node, made when it is asked for."""
        if self._node is None:
            made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = made.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter, whose shape is known.

    Parameters
    ----------
    tracer : TracerBase
        Makes the nodes.
    node : Node
        That which gets the parameter.
    name : str
        Its name.
    param : Parameter
        The parameter.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.fx.proxy.ParameterProxy, torch.fx.Proxy)
    True
    """

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, pt.nn.Parameter):
            raise AssertionError(f"expected a Parameter, got {type(param)}")
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The shape."""
        return self.param.shape

    def size(self, *args: Any) -> Any:
        """Return the shape, or a part of it."""
        return self.param.size(*args)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return int(self.param.dim())

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self.param.ndim)

    def numel(self) -> int:
        """Return the number of elements."""
        return int(self.param.numel())

    def nelement(self) -> int:
        """Return the number of elements."""
        return int(self.param.nelement())


def _define(name: str, function: Any, reflected: bool = False) -> None:
    """Let proxies have an operator."""

    def forward(self: Proxy, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (self, *args), kwargs)

    def backward(self: Proxy, rhs: Any) -> Any:
        return self.tracer.create_proxy(
            "call_function", function, (rhs, self), {}, name=name.strip("_")
        )

    method = f"__{'r' if reflected else ''}{name.strip('_')}__"
    chosen = backward if reflected else forward
    chosen.__name__ = chosen.__qualname__ = method
    setattr(Proxy, method, chosen)


for _name in {**MAGIC, **REFLECTED}:
    if hasattr(operator, _name):
        _define(_name, getattr(operator, _name))
for _name in REFLECTED:
    if _name != "getitem" and hasattr(operator, _name):
        _define(_name, getattr(operator, _name), reflected=True)
