"""Runs a program on proxies and so finds its graph."""

from __future__ import annotations

import collections
import copy
import functools
import inspect
import math
from collections.abc import Callable
from contextvars import ContextVar
from types import FunctionType, ModuleType
from typing import Any

import pytensorlib as pt

from .. import _checks
from .._tensor import functions as _functions
from ..utils import _pytree as pytree
from . import _patching
from ._codegen import _PyTreeCodeGen, _PyTreeInfo
from ._names import OURS
from ._patching import Patcher as _Patcher
from ._patching import wrap
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, base_types
from .proxy import ParameterProxy, Scope, ScopeContextManager, TracerBase, asking

__all__ = [
    "PH",
    "PHBase",
    "ProxyableClassMeta",
    "Tracer",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]

_proxyable_classes: dict[type, None] = {}
_tracing: ContextVar[bool] = ContextVar("tracing", default=False)


def is_fx_tracing() -> bool:
    """Return whether a program is being traced.

    Returns
    -------
    bool
        True in what `Tracer.trace` calls.

    Examples
    --------
    >>> from pytensorlib.fx._symbolic_trace import is_fx_tracing
    >>> is_fx_tracing()
    False
    """
    return _tracing.get()


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """Of classes whose construction becomes a node where what they are made of is traced.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Pair(metaclass=torch.fx.ProxyableClassMeta):
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> for node in torch.fx.symbolic_trace(lambda x: Pair(x, 1).a + 1).graph.nodes:
    ...     print(node.name, node.args)
    x ()
    pair (x, 1)
    getattr_1 (pair, 'a')
    add (getattr_1, 1)
    output (add,)
    """

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if is_fx_tracing():
            proxy = _patching.find_proxy(args, kwargs)
            if proxy is not None:
                return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class PHBase:
    """Stands for an argument that `concrete_args` leaves open."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """An open argument that hands its attributes on to its placeholder."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def _with_plain_arguments(fn: Any, count: int) -> Any:
    """Return a function whose ``*args`` and ``**kwargs`` are arguments like others."""
    code = fn.__code__.replace(
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=fn.__code__.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
    )
    made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__dict__.update(fn.__dict__)
    return made


class Tracer(TracerBase):
    """Finds the graph of a module or a function by running it on proxies.

    A subclass changes what becomes a node: `is_leaf_module`, `call_module`, `create_arg`, `proxy`
    and others are asked.

    Parameters
    ----------
    autowrap_modules : tuple of modules, default (math,)
        Their functions are recorded, not run.
    autowrap_functions : tuple of callables, default ()
        Further functions that are recorded.
    param_shapes_constant : bool, default False
        Whether shapes of parameters are plain numbers.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> print(torch.fx.Tracer().trace(net))
    graph():
        %input_1 : [num_users=1] = placeholder[target=input]
        %_0 : [num_users=1] = call_module[target=0](args = (%input_1,), kwargs = {})
        %_1 : [num_users=1] = call_module[target=1](args = (%_0,), kwargs = {})
        return _1
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_function_ids = {
            id(value)
            for name, value in (pair for m in autowrap_modules for pair in vars(m).items())
            if not name.startswith("_") and callable(value)
        }
        self._autowrap_function_ids |= {id(f) for f in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Any, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return a name for a new attribute of the module.

        Parameters
        ----------
        prefix : str
            With what it begins.

        Returns
        -------
        str
            A name that the module does not have.
        """
        i = 0
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        return f"{prefix}{i}"

    def create_arg(self, a: Any) -> Argument:
        """Return an argument as a node has it.

        Parameters and buffers become nodes that get them, other tensors attributes of the module.

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
        NameError
            A parameter or a module is not part of what is traced.
        """
        if isinstance(a, pt.nn.Parameter):
            for name, p in self.root.named_parameters():
                if a is p:
                    return self.create_node("get_attr", name, (), {})
            qualname = self.get_fresh_qualname("_param_constant")
            setattr(self.root, qualname, a)
            return self.create_node("get_attr", qualname, (), {})
        if isinstance(a, pt.Tensor):
            for name, b in self.root.named_buffers():
                if a is b:
                    return self.create_node("get_attr", name, (), {})
            if a not in self.tensor_attrs:
                self.tensor_attrs[a] = self.get_fresh_qualname("_tensor_constant")
                setattr(self.root, self.tensor_attrs[a], a)
            qualname = self.tensor_attrs[a]
            return self.create_node("get_attr", qualname, (), {})
        if isinstance(a, pt.nn.Module):
            for name, m in self.root.named_modules():
                if a is m:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            args = tuple(self.create_arg(elem) for elem in a)
            return self.create_node("call_function", a.__class__, args, {})
        if type(a) in _proxyable_classes:
            qualname = self.get_fresh_qualname(f"_{a.__class__.__name__}_constant_")
            setattr(self.root, qualname, a)
            return self.create_node("get_attr", qualname, (), {})
        return super().create_arg(a)

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Return whether calls of a module become nodes, and are not looked into.

        Parameters
        ----------
        m : Module
            The module.
        module_qualified_name : str
            Its name, with dots.

        Returns
        -------
        bool
            True for the modules of ``torch.nn`` but `Sequential`.
        """
        root, _, rest = m.__module__.partition(".")
        ours = root in OURS and rest.partition(".")[0] == "nn"
        return ours and not isinstance(m, pt.nn.Sequential)

    def path_of_module(self, mod: Any) -> str:
        """Return the name of a module in what is traced.

        Parameters
        ----------
        mod : Module
            The module.

        Returns
        -------
        str
            Its name, with dots.

        Raises
        ------
        NameError
            It is not part of what is traced.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, p in self.root.named_modules():
            if mod is p:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return what a module's call gives while a program is traced.

        Parameters
        ----------
        m : Module
            The module.
        forward : callable
            Calls it.
        args, kwargs : tuple, dict
            What it is called with.

        Returns
        -------
        object
            A proxy of a node for leaves, what `forward` returns for others.
        """
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls > 0 else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = calls + 1
            if self.is_leaf_module(m, path):
                result = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            self.module_stack.popitem()
        return result

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return what a module's attribute gives while a program is traced.

        Parameters
        ----------
        attr : str
            Its name.
        attr_val : object
            What it is.
        parameter_proxy_cache : dict
            Proxies that were made, by name.

        Returns
        -------
        object
            A proxy for a parameter, else `attr_val`.
        """

        def proxied(pairs: Any) -> Any:
            for name, p in pairs:
                if attr_val is p:
                    if name not in parameter_proxy_cache:
                        make: Any = None
                        if self.param_shapes_constant and isinstance(p, pt.nn.Parameter):
                            make = functools.partial(_parameter_proxy, self, name, attr_val)
                        # Tracers of programs need not know the option.
                        option = {} if make is None else {"proxy_factory_fn": make}
                        parameter_proxy_cache[name] = self.create_proxy(
                            "get_attr", name, (), {}, **option
                        )
                    return parameter_proxy_cache[name]
            return None

        if isinstance(attr_val, pt.nn.Parameter):
            found = proxied(self.root.named_parameters())
            if found is not None:
                return found
        if self.proxy_buffer_attributes and isinstance(attr_val, pt.Tensor):
            found = proxied(self.root.named_buffers())
            if found is not None:
                return found
        return attr_val

    def _placeholder(self, name: str, concrete: Any, signature: Any, fn: Any) -> Any:
        def default() -> tuple[Any, ...]:
            if name[0] == "*":
                return ()
            value = signature.parameters[name].default
            return () if value is inspect.Parameter.empty else (value,)

        if concrete is not None and name in concrete:
            count = 0

            def replace(x: Any) -> Any:
                nonlocal count
                count += 1
                out = self.create_proxy("placeholder", f"{name}_{count}", default(), {})
                if isinstance(x, PHBase):
                    if x is not PH:
                        _hand_on(x, out.node)
                    return out
                said = f"{name} has been specialized to have value {x} but got another value"
                if x is None:
                    self.create_proxy("call_function", _assert_is_none, (out, said), {})
                elif isinstance(x, base_types) and not isinstance(x, pt.Tensor):
                    _checks._assert(out == x, said)
                else:
                    import warnings

                    warnings.warn(
                        f"Was not able to add assertion to guarantee correct input {name} to "
                        "specialized function. It is up to the user to make sure that your inputs "
                        "match the inputs you specialized the function with.",
                        stacklevel=2,
                    )
                return x

            return pytree.tree_map(replace, concrete[name])
        kind = _annotated(fn, name)
        return self.create_proxy("placeholder", name, default(), {}, type_expr=kind)

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """Add the placeholders of a function.

        Parameters
        ----------
        root_fn : callable
            The function.
        is_module : bool
            Whether its first argument is the module.
        concrete_args : dict or tuple, optional
            Arguments that are known.

        Returns
        -------
        tuple
            The function, which may be another, and its arguments.
        """
        analysed = inspect.unwrap(root_fn)
        code = analysed.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = iter(code.co_varnames)
        args: list[Any] = []
        skip = 0
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            skip = 1
            next(names)
            args.append(self.root)
        signature = inspect.signature(analysed)
        arg_names = [next(names) for _ in range(skip, total)]
        if isinstance(concrete_args, tuple):
            if len(arg_names) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(arg_names)} arguments but got {len(concrete_args)} "
                    "concrete arguments"
                )
            concrete_args = dict(zip(arg_names, concrete_args, strict=True))
        args += [self._placeholder(n, concrete_args, signature, analysed) for n in arg_names]
        variable = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        if code.co_kwonlyargcount > 0 or variable:
            for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
                if code.co_flags & flag:
                    args.append(
                        self._placeholder(stars + next(names), concrete_args, signature, analysed)
                    )
            root_fn = _with_plain_arguments(root_fn, len(args))
        flat_args, in_spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        info = _PyTreeInfo(list(code.co_varnames[:total]), in_spec, None)
        self.graph._codegen = _PyTreeCodeGen(info)

        def flatten_fn(*flat: Any) -> Any:
            result = root_fn(*pytree.tree_unflatten(list(flat), in_spec))
            out_args, info.out_spec = pytree.tree_flatten(result)
            return out_args

        return flatten_fn, flat_args

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module or a function.

        Parameters
        ----------
        root : Module or callable
            What is traced.
        concrete_args : dict, optional
            Arguments that are known.

        Returns
        -------
        Graph
            What it does with its other arguments.
        """
        token = _tracing.set(True)
        try:
            with asking():
                return self._trace(root, concrete_args)
        finally:
            _tracing.reset(token)

    def _trace(self, root: Any, concrete_args: Any) -> Graph:
        if isinstance(root, pt.nn.Module):
            self.root = root
            name = getattr(self, "traced_func_name", "forward")
            if not hasattr(type(root), name):
                raise AssertionError(
                    f"traced_func_name={name} doesn't exist in {type(root).__name__}"
                )
            fn = getattr(type(root), name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {mod: path for path, mod in root.named_modules()}
        else:
            self.root = pt.nn.Module()
            fn = _functions.plain(root)
        self.graph = Graph(tracer_cls=type(self))
        if fn.__code__ is not None and hasattr(fn, "__code__"):
            self.graph._co_fields = {
                "co_name": fn.__code__.co_name,
                "co_filename": fn.__code__.co_filename,
                "co_firstlineno": fn.__code__.co_firstlineno,
            }
        self.tensor_attrs: dict[Any, str] = {}
        self._note_tensors(self.root, [])
        if not isinstance(fn, FunctionType):
            raise AssertionError(f"cannot trace {type(fn)}: a Python function is needed")
        space = fn.__globals__
        plain = fn
        fn, args = self.create_args_for_root(fn, isinstance(root, pt.nn.Module), concrete_args)
        if fn is plain and not isinstance(root, pt.nn.Module):
            fn = root  # a function of the library asks the proxies first
        cache: dict[str, Any] = {}
        base: Any = pt.nn.Module
        original_call, original_getattr = base.__call__, base.__getattr__

        @functools.wraps(original_getattr)
        def getattr_(mod: Any, attr: str) -> Any:
            return self.getattr(attr, original_getattr(mod, attr), cache)

        @functools.wraps(original_call)
        def call(mod: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return original_call(mod, *args, **kwargs)

            patcher.autowrap(
                getattr(getattr(mod, "forward", mod), "__globals__", {}),
                self._autowrap_function_ids,
            )
            return self.call_module(mod, forward, args, kwargs)

        with _Patcher() as patcher:
            patcher.patch_method(pt.nn.Module, "__getattr__", getattr_)
            patcher.patch_method(pt.nn.Module, "__call__", call)
            patcher.wrap_registered()
            patcher.autowrap(space, self._autowrap_function_ids)
            for module in self._autowrap_search:
                patcher.autowrap(vars(module), self._autowrap_function_ids)
            self.create_node(
                "output",
                "output",
                (self.create_arg(fn(*args)),),
                {},
                type_expr=_annotated(fn, "return"),
            )
        self.submodule_paths = None
        return self.graph

    def _note_tensors(self, m: Any, prefix: list[str]) -> None:
        """Note the tensors that are plain attributes of modules."""
        for k, v in vars(m).items():
            if isinstance(v, pt.Tensor):
                self.tensor_attrs[v] = ".".join([*prefix, k])
        for k, v in m.named_children():
            self._note_tensors(v, [*prefix, k])

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = Tracer.__new__(Tracer)
        for k, v in vars(self).items():
            shared = k == "_autowrap_search"
            made.__dict__[k] = copy.copy(v) if shared else copy.deepcopy(v, memo)
        return made


def _hand_on(ph: PHBase, node: Any) -> None:
    """Give a placeholder the attributes of what stands for it, where it has none of the name."""
    for name in dir(ph):
        if not (name.startswith("_") or hasattr(node, name) or callable(getattr(ph, name))):
            setattr(node, name, getattr(ph, name))


def _parameter_proxy(tracer: Any, name: str, param: Any, node: Any) -> ParameterProxy:
    return ParameterProxy(tracer, node, name, param)


def _annotated(fn: Any, name: str) -> Any:
    """Return the type of an argument; None where there is none, or its text means nothing."""
    kind = getattr(fn, "__annotations__", {}).get(name)
    if not isinstance(kind, str):
        return kind
    space = fn.__globals__
    if space.get("__name__", "").partition(".")[0] in OURS:
        return None  # PyTorch's modules have no types there, or others
    try:
        return eval(kind, space)  # noqa: S307  (a type of the traced program itself)
    except Exception:
        return None


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Return a module whose program is the graph of a module or a function.

    Parameters
    ----------
    root : Module or callable
        What is traced.
    concrete_args : dict, optional
        Arguments that are known; they become constants.

    Returns
    -------
    GraphModule
        Does the same, for what does not depend on values.

    Raises
    ------
    TraceError
        The program branches on values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) * 2)
    >>> traced(torch.tensor([-1.0, 1.0]))
    tensor([0., 2.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, pt.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


_wrapped_fns_to_patch = _patching.functions_to_patch
_wrapped_methods_to_patch = _patching.methods_to_patch
