"""Modules whose `forward` is written from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytensorlib as pt

from ._codegen import PythonCode, _PyTreeCodeGen
from ._names import builtin_names, from_torch
from .graph import Graph

__all__ = ["GraphModule", "reduce_graph_module", "reduce_package_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_counter = itertools.count()


def _exec_with_source(src: str, space: dict[str, Any], traced: Any = None) -> None:
    """Run generated code, whose lines tracebacks can show."""
    name = f"<eval_with_key>.{next(_counter)}"
    if traced:
        place = f"{traced['co_filename']}:{traced['co_firstlineno']}"
        name += f" from {place} in {traced['co_name']}"
    linecache.cache[name] = (len(src), None, src.splitlines(True), name)
    exec(compile(src, name, "exec"), space)  # noqa: S102  (what a graph means is its program)


def _forward_from_src(src: str, space: dict[str, Any], traced: Any = None) -> Callable[..., Any]:
    return _method_from_src("forward", src, space, traced)


def _method_from_src(
    name: str, src: str, space: dict[str, Any], traced: Any = None
) -> Callable[..., Any]:
    space = dict(space)
    _exec_with_source(src, space, traced)
    found: Callable[..., Any] = space[name]
    return found


def _import_line(name: str, obj: Any) -> str:
    known = builtin_names().get(name)
    if known is not None:
        return known.import_str
    if from_torch(obj) or getattr(obj, "__module__", "").startswith(("torch.", "pytensorlib.")):
        return f"from {obj.__module__} import {obj.__name__} as {name}"
    module = getattr(obj, "__module__", None) or "builtins"
    return f"from {module} import {obj.__name__} as {name}"


def _import_block(space: dict[str, Any]) -> str:
    return "\n".join(sorted({_import_line(name, obj) for name, obj in space.items()}))


class _CodeOnlyModule(pt.nn.Module):
    """Holds what a program refers to, while its graph is found again."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Any:
    """Return the module that `GraphModule.__reduce__` took apart.

    Parameters
    ----------
    body : dict
        Its attributes and its program.
    import_block : str
        What the program imports.

    Returns
    -------
    GraphModule
        The module.
    """
    code = body.get("_code") or body.get("code")
    forward = _forward_from_src(import_block + str(code), {})
    return _deserialize_graph_module(forward, body)


def reduce_package_graph_module(importer: Any, body: dict[str, Any], name: str) -> Any:
    """Return the module whose program a package has.

    Parameters
    ----------
    importer : object
        Imports modules of the package.
    body : dict
        The module's attributes.
    name : str
        Where its program is.

    Returns
    -------
    GraphModule
        The module.
    """
    forward = importer.import_module(name).forward
    return _deserialize_graph_module(forward, body)


def _deserialize_graph_module(
    forward: Any, body: dict[str, Any], graph_module_cls: Any = None
) -> Any:
    from ._symbolic_trace import Tracer

    name = body.pop("_graphmodule_cls_name", "GraphModule")
    body.pop("_code", None)
    tracer_cls = body.pop("_tracer_cls", None) or Tracer
    com = _CodeOnlyModule(body)
    com.__dict__.pop("_forward", None)
    _CodeOnlyModule.forward = forward

    class KeepModules(tracer_cls):  # type: ignore[misc, valid-type]
        """Takes every module as a node: the program was flat."""

        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return True

    tracer = KeepModules()
    tracer_extras = body.get("_tracer_extras") or {}
    graph = tracer.trace(com, **tracer_extras)
    graph._tracer_cls = tracer_cls
    made = GraphModule(com, graph, class_name=name)
    for k, v in body.items():
        if not hasattr(made, k):
            setattr(made, k, v)
    return made


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    *prefix, field = target.split(".")
    for item in prefix:
        below = getattr(from_module, item, None)
        there = getattr(to_module, item, None)
        if below is there:
            return
        if there is None:
            there = pt.nn.Module()
            setattr(to_module, item, there)
        from_module, to_module = below, there
    value = getattr(from_module, field)
    if isinstance(value, pt.Tensor) and not isinstance(value, pt.nn.Parameter):
        persistent = field not in getattr(from_module, "_non_persistent_buffers_set", ())
        to_module.register_buffer(field, value, persistent=persistent)
    else:
        setattr(to_module, field, value)


def _assign_attr(from_obj: Any, to_module: Any, target: str) -> None:
    *prefix, field = target.split(".")
    for item in prefix:
        there = getattr(to_module, item, None)
        if there is None:
            there = pt.nn.Module()
            setattr(to_module, item, there)
        to_module = there
    if isinstance(from_obj, pt.Tensor) and not isinstance(from_obj, pt.nn.Parameter):
        to_module.register_buffer(field, from_obj)
    else:
        setattr(to_module, field, from_obj)


def _get_attr(model: Any, attr_name: str) -> Any:
    for item in attr_name.split("."):
        if not hasattr(model, item):
            raise AttributeError(f"Attribute {attr_name} not found")
        model = getattr(model, item)
    return model


def _del_attr(model: Any, attr_name: str) -> None:
    *prefix, field = attr_name.split(".")
    for item in prefix:
        model = getattr(model, item)
    delattr(model, field)


def _has_attr(model: Any, attr_name: str) -> bool:
    for item in attr_name.split("."):
        if not hasattr(model, item):
            return False
        model = getattr(model, item)
    return True


class _WrappedCall:
    """Calls a module, and shows the line of its program where it failed."""

    def __init__(self, cls: type, cls_call: Any) -> None:
        self.cls, self.cls_call = cls, cls_call

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)  # type: ignore[arg-type]
        except Exception as e:
            if not e.__traceback__:
                raise
            last = e.__traceback__
            while last.tb_next is not None:
                last = last.tb_next
            # Where the program itself failed, not what it called.
            of_graph = last.tb_frame.f_code.co_filename.startswith("<eval_with_key>")
            if of_graph and not hasattr(e, "_fx_told"):
                e._fx_told = True  # type: ignore[attr-defined]
                print(_error_text(last), file=sys.stderr)
            raise


def _error_text(at: Any) -> str:
    """Return the lines around the one of generated code that failed."""
    lines = linecache.getlines(at.tb_frame.f_code.co_filename)
    n: int = at.tb_lineno
    before, line = "".join(lines[max(0, n - 6) : n - 1]), lines[n - 1] if n <= len(lines) else ""
    after = "".join(lines[n : n + 5])
    said = f"Call using an FX-traced Module, line {n} of the traced Module's generated forward "
    said += "function:"
    marked = "~" * (len(line) - 1) + "~~~ <--- HERE\n"
    return "\n".join([said, before + line + marked + after])


class GraphModule(pt.nn.Module):
    """A module that runs the program of a graph.

    Parameters
    ----------
    root : Module or dict
        Has what the graph's targets name.
    graph : Graph
        The program.
    class_name : str, default "GraphModule"
        What its class is called.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    >>> print(traced.code.strip())
    def forward(self, input):
        input_1 = input
        _0 = getattr(self, "0")(input_1);  input_1 = None
        return _0
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Each has a class of its own, for its `forward`.
        for base in cls.__mro__:
            if not base.__qualname__.endswith("GraphModuleImpl"):
                cls = base  # noqa: PLW0642
                break

        class GraphModuleImpl(cls):  # type: ignore[misc, valid-type]
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        if isinstance(root, pt.nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    if not isinstance(node.target, str):
                        raise AssertionError(f"Expected node.target to be str, got {node.target}")
                    _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            self._fill(root, graph)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        self._tracer_cls = None
        if self.graph._tracer_cls and "<locals>" not in self.graph._tracer_cls.__qualname__:
            self._tracer_cls = self.graph._tracer_cls
        self._tracer_extras = self.graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        if isinstance(root, pt.nn.Module) and hasattr(root, "meta"):
            self.meta.update(root.meta)
        self._replace_hooks: list[Any] = []
        self._create_node_hooks: list[Any] = []
        self._erase_node_hooks: list[Any] = []
        self._deepcopy_hooks: list[Any] = []

    def _fill(self, root: dict[str, Any], graph: Graph) -> None:
        targets: list[str] = []
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not "
                        "provided in ``root``!"
                    )
                targets.append(str(node.target))
        for target in sorted(targets, key=lambda t: t.count(".")):
            _assign_attr(root[target], self, target)

    __jit_unused_properties__ = ["graph"]

    @property
    def graph(self) -> Graph:
        """The program; assign another, or change it and call `recompile`."""
        found: Graph = self._graph
        return found

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module as Python, with its state, into a folder.

        Parameters
        ----------
        folder : path
            Made where it is missing.
        module_name : str, default "FxModule"
            What the class is called there.
        """
        place = Path(folder)
        place.mkdir(exist_ok=True)
        pt.save(self.state_dict(), place / "state_dict.pt")
        own, tab = pt.__name__, " " * 4
        head = "import torch" if own == "torch" else f"import {own} as torch"
        imports = "\n".join(known.import_str for known in builtin_names().values())
        text = f"\n{head}\n{imports}\n\nfrom {own}.nn import *\nclass {module_name}("
        text += f"torch.nn.Module):\n{tab}def __init__(self):\n{tab * 2}super().__init__()\n"
        nn, blobbed = pt.nn, []
        shown = {nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d}
        shown |= {nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d}
        for name, module in self.named_children():
            made = repr(module)
            if type(module) not in shown:
                blobbed.append(name)
                file = place / f"{name}.pt"
                pt.save(module, file)
                shape = made.replace("\r", " ").replace("\n", " ")
                made = f"torch.load(r'{file}', weights_only=False)) # {shape}"
            else:
                made += ")"
            text += f"{tab * 2}setattr(self, '{name}', {made}\n"
        for name, value in (*self._buffers.items(), *self._parameters.items()):
            if value is None:
                continue
            dtype = str(value.dtype).rpartition(".")[2]
            empty = f"torch.empty({list(value.shape)}, dtype=torch.{dtype})"
            if name in self._buffers:
                text += f"{tab * 2}self.register_buffer('{name}', {empty})\n"
            else:
                text += f"{tab * 2}setattr(self, '{name}', torch.nn.Parameter({empty}))\n"
        text += f"{tab * 2}self.load_state_dict(torch.load(r'{place}/state_dict.pt'))\n"
        (place / "module.py").write_text(f"{text}{_indent(self.code, 4)}\n")
        (place / "__init__.py").write_text("from .module import *")
        if blobbed:
            warnings.warn(
                "Was not able to save the following children modules as reprs -saved as pickled "
                f"files instead: {blobbed}",
                stacklevel=2,
            )

    def add_submodule(self, target: str, m: Any) -> bool:
        """Put a module in under a name with dots; modules on the way are made.

        Parameters
        ----------
        target : str
            The name.
        m : Module
            The module.

        Returns
        -------
        bool
            False where something that is no module is on the way.
        """
        *prefix, field = target.split(".")
        at: Any = self
        for item in prefix:
            below = getattr(at, item, None)
            if below is None:
                below = pt.nn.Module()
                setattr(at, item, below)
            if not isinstance(below, pt.nn.Module):
                return False
            at = below
        at.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take a module out.

        Parameters
        ----------
        target : str
            Its name, with dots.

        Returns
        -------
        bool
            Whether there was one.
        """
        *prefix, field = target.split(".")
        at: Any = self
        for item in prefix:
            if not isinstance(at, pt.nn.Module) or not hasattr(at, item):
                return False
            at = getattr(at, item)
        if not isinstance(getattr(at, field, None), pt.nn.Module):
            return False
        delattr(at, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take modules out that the program does not use."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used |= {".".join(parts[: i + 1]) for i in range(len(parts))}
                if node.op == "call_module":
                    try:
                        inner = self.get_submodule(str(node.target))
                    except AttributeError:
                        continue
                    used |= {f"{node.target}.{n}" for n, _ in inner.named_modules() if n}
        for name in [n for n, _ in self.named_modules() if n and n not in used]:
            self.delete_submodule(name)

    @property
    def code(self) -> str:
        """The program as Python."""
        if not hasattr(self, "_code"):
            raise RuntimeError("GraphModule.code: no code was written yet; call recompile() first")
        return self._code

    def _graph_globals(self) -> dict[str, Any]:
        return self._graph.python_code("self").globals

    def recompile(self) -> PythonCode:
        """Write the program again after the graph was changed.

        Returns
        -------
        PythonCode
            What was written.
        """
        if isinstance(self._graph._codegen, _PyTreeCodeGen):
            self._in_spec = self._graph._codegen.pytree_info.in_spec
            self._out_spec = self._graph._codegen.pytree_info.out_spec
        python_code = self._graph.python_code("self")
        self._code = python_code.src
        self._lineno_map = python_code._lineno_map
        cls: Any = type(self)
        traced = getattr(self._graph, "_co_fields", None)
        cls.forward = _forward_from_src(self._code, python_code.globals, traced)
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, vars(cls).get("__call__"))

            def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
                return self._wrapped_call(self, *args, **kwargs)

            cls.__call__ = call_wrapped
        return python_code

    def _body(self) -> dict[str, Any]:
        body = self.__dict__.copy()
        del body["_graph"]
        body["_graphmodule_cls_name"] = self.__class__.__name__
        return body

    def __reduce__(self) -> Any:
        # The graph is found again by tracing the program: nodes refer to each other both ways.
        python_code = self.recompile()
        return reduce_graph_module, (self._body(), _import_block(python_code.globals))

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        fake = _CodeOnlyModule(
            copy.deepcopy(
                {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_deepcopy_hooks")},
                memo,
            )
        )
        GraphModule.__init__(
            made, fake, copy.deepcopy(self._graph, memo), class_name=self.__class__.__name__
        )
        for k, v in fake.__dict__.items():
            if k.startswith(("_parameters", "_buffers", "_modules")) or k in made.__dict__:
                continue
            made.__dict__[k] = v
        for name in ("_parameters", "_buffers", "_modules"):
            for k, v in fake.__dict__.get(name, {}).items():
                made.__dict__[name].setdefault(k, v)
        for hook in self._deepcopy_hooks:
            hook(made)
        made.meta = copy.deepcopy(self.meta, memo)
        if _USER_PRESERVED_ATTRIBUTES_KEY in made.meta:
            for name, attr in made.meta[_USER_PRESERVED_ATTRIBUTES_KEY].items():
                setattr(made, name, attr)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, copy.copy(self.graph), self.__class__.__name__)
        made.meta = dict(self.meta)
        return made

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        **options: Any,
    ) -> str:
        """Print the program as a class, with shapes and where each line comes from.

        Parameters
        ----------
        print_output : bool, default True
            Whether it is printed, not only returned.
        include_stride, include_device, colored : bool, default False
            Not used.

        Returns
        -------
        str
            The text.
        """
        return _print_readable(self, self._get_name(), print_output)

    def __str__(self) -> str:
        said = super().__str__()
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{said}\n{self._code}\n{hint}"

    def _replicate_for_data_parallel(self) -> Any:
        made = self.__copy__()
        made._is_replica = True
        return made

    def _set_replace_hook(self, f: Callable[..., Any]) -> Any:
        return _hooked(self._replace_hooks, f)

    def _register_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._erase_node_hooks.remove(f)

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._replace_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable[..., Any]) -> None:
        self._deepcopy_hooks.append(f)

    def _unregister_deepcopy_hook(self, f: Callable[..., Any]) -> None:
        self._deepcopy_hooks.remove(f)


def _hooked(hooks: list[Any], f: Any) -> Any:
    import contextlib

    @contextlib.contextmanager
    def block() -> Iterator[None]:
        hooks.append(f)
        try:
            yield
        finally:
            hooks.remove(f)

    return block()


def _indent(text: str, n: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * n + line if line.strip() else "" for line in rest)])


def _print_readable(module: Any, name: str, print_output: bool = True) -> str:
    src = module.graph.python_code("self", verbose=True).src.lstrip("\n")
    text = _indent(f"class {name}(torch.nn.Module):\n" + src, 4)
    inner = [""]
    inner += [
        _print_readable(child, child_name, False)
        for child_name, child in module.named_children()
        if hasattr(child, "graph")
    ]
    text += _indent("\n".join(inner), 4)
    if print_output:
        print(text)
    return text
