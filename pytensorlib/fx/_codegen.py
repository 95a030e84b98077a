"""Writes the Python program of a graph."""

from __future__ import annotations

import enum
import re
import types
import typing
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytensorlib as pt

from ..utils import _pytree as pytree
from ._names import (
    INPLACE,
    MAGIC,
    REFLECTED,
    Namespace,
    builtin_names,
    from_torch,
    qualified,
    reaches,
    type_name,
)
from .node import Node

__all__ = ["CodeGen", "PyTreeCodeGen", "PythonCode"]

_MAGIC = {**MAGIC, **REFLECTED}
_TYPING: dict[Any, Any] = {
    list: typing.List,  # noqa: UP006
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}


# The line before those of a node, while they are written; the node's place follows.
_MARK = "# COUNTER: "


@dataclass
class PythonCode:
    """The program of a graph, and the global names that it uses."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


def _format_target(base: str, target: str) -> str:
    """Return an attribute's place as an expression."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


def _shape_text(shape: Iterable[Any]) -> str:
    return f"[{', '.join(str(s) for s in shape)}]"


def _annotation(value: Any) -> str | None:
    """Return what a comment says of a node's value."""
    from ..utils._dtype_abbrs import dtype_abbrs

    if isinstance(value, pt.Tensor):
        shape = getattr(value, "_symbolic_shape", value.shape)
        return f"{dtype_abbrs[value.dtype]}{_shape_text(shape)}"
    if type(value).__name__ in ("SymInt", "SymFloat", "SymBool", "Symbol"):
        return f"Sym({value})"
    shape = getattr(value, "shape", None)
    if shape is not None and getattr(value, "dtype", None) in dtype_abbrs:
        return f"{dtype_abbrs[value.dtype]}{_shape_text(shape)}"
    return None


class _Writer:
    """Writes the lines of one graph."""

    def __init__(self, namespace: Namespace, root_module: str, verbose: bool) -> None:
        self.namespace, self.root_module, self.verbose = namespace, root_module, verbose
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.free_vars: list[str] = []
        self.body: list[str] = []
        self.returns = ""
        self.last_trace: str | None = None
        for name, known in builtin_names().items():
            self.add_global(name, known.obj)

    def add_global(self, hint: str, obj: Any) -> str:
        # An operator that keeps the parameters of one call is not the one of its name.
        if from_torch(obj) and obj is not pt.device and not hasattr(obj, "_op"):
            name = qualified(obj)
            if reaches(name, obj):
                return name
        name = self.namespace.create_name(hint, obj)
        if name in self.globals:
            if self.globals[name] != obj:
                raise AssertionError(f"Global name {name} was given out for something else")
            return name
        self.globals[name] = obj
        return name

    def type_repr(self, kind: Any) -> str:
        if kind == ():
            return "()"
        origin = getattr(kind, "__origin__", None)
        if isinstance(kind, types.UnionType):
            return "|".join(self.type_repr(a) for a in kind.__args__)
        if origin is None:
            return self.add_global(type_name(kind), kind)
        if type(kind).__module__ == "typing":  # typing.List[int], not list[int]
            origin = _TYPING.get(origin, origin)
        head = self.add_global(type_name(origin), origin)
        inner = [self.type_repr(a) for a in getattr(kind, "__args__", ())]
        return f"{head}[{','.join(inner)}]" if inner else head

    def get_repr(self, arg: Any) -> str:
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            name = self.add_global(qualified(type(arg)), type(arg))
            return f"{name}{self.get_repr(tuple(arg))}"
        if isinstance(arg, tuple):
            inner = ", ".join(self.get_repr(a) for a in arg)
            return f"({inner}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(self.get_repr(a) for a in arg)}]"
        if isinstance(arg, slice):
            parts = (arg.start, arg.stop, arg.step)
            return f"slice({', '.join(self.get_repr(p) for p in parts)})"
        if isinstance(arg, dict):
            inner = ", ".join(f"{self.get_repr(k)}: {self.get_repr(v)}" for k, v in arg.items())
            return f"{{{inner}}}"
        if isinstance(arg, enum.Enum):
            kind = type(arg)
            return f"{self.add_global(kind.__name__, kind)}.{arg.name}"
        if isinstance(arg, Node):
            return repr(arg)
        if type(arg).__name__ == "OpOverload":
            return self.add_global(qualified(arg), arg)
        if isinstance(arg, type) and arg.__module__ != "builtins":
            return self.add_global(qualified(arg), arg)
        return repr(arg)

    def format_args(self, args: Any, kwargs: Any) -> str:
        parts = [self.get_repr(a) for a in args]
        parts += [f"{k} = {self.get_repr(v)}" for k, v in kwargs.items()]
        return ", ".join(parts)

    def where(self, node: Node) -> None:
        """Write where the program made a node, once for those of one line."""
        if not self.verbose or node.op in ("placeholder", "output"):
            return
        trace = node.stack_trace
        if trace:
            if trace != self.last_trace:
                self.last_trace = trace
                if said := _summary(trace):
                    self.body.append(f"\n# {said}\n")
        elif self.last_trace != "":
            self.last_trace = ""
            self.body.append("# No stacktrace found for following nodes\n")

    def emit(self, node: Node) -> None:
        kind = "" if node.type is None else f" : {self.type_repr(node.type)}"
        comment = ""
        if self.verbose:
            value = node.meta.get("val", node.meta.get("tensor_meta"))
            said = _annotation(value)
            if said is not None:
                if node.op == "placeholder" or node.op != "output":
                    kind = f': "{said}"'
        name = repr(node)
        if node.op == "placeholder":
            default = f" = {self.get_repr(node.args[0])}" if node.args else ""
            self.free_vars.append(f"{node.target}{kind}{default}{comment}")
            raw = str(node.target).replace("*", "")
            if raw != name:
                self.body.append(f"{name} = {raw}\n")
            return
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type_repr(node.type)}"
            self.body.append(self.returned(node))
            return
        if node.op == "get_attr":
            self.body.append(f"{name}{kind} = {_format_target(self.root_module, str(node.target))}")
        elif node.op == "call_method":
            first, *rest = node.args
            call = _format_target(self.get_repr(first), str(node.target))
            self.body.append(f"{name}{kind} = {call}({self.format_args(rest, node.kwargs)})")
        elif node.op == "call_module":
            call = _format_target(self.root_module, str(node.target))
            self.body.append(f"{name}{kind} = {call}({self.format_args(node.args, node.kwargs)})")
        else:
            self.function(node, name, kind)

    def function(self, node: Node, name: str, kind: str) -> None:
        target: Any = node.target
        short = target.__name__
        args = [self.get_repr(a) for a in node.args]
        if getattr(target, "__module__", None) == "_operator":
            if short in _MAGIC and not node.kwargs:
                if not isinstance(node.args, tuple):
                    raise AssertionError(f"Expected node.args to be a tuple, got {node.args}")
                self.body.append(f"{name}{kind} = {_MAGIC[short].format(*args)}")
                return
            if short in INPLACE and not node.kwargs:
                text = INPLACE[short].format(*args)
                self.body.append(f"{text};  {name}{kind} = {args[0]}")
                return
        full = qualified(target)
        reached = self.add_global(full, target)
        if reached == "getattr" and len(node.args) == 2 and not node.kwargs:
            attribute = node.args[1]
            if isinstance(attribute, str) and attribute.isidentifier():
                self.body.append(f"{name}{kind} = {_format_target(args[0], attribute)}")
                return
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(reached)
        self.body.append(f"{name}{kind} = {reached}({self.format_args(node.args, node.kwargs)})")

    def returned(self, node: Node) -> str:
        raise NotImplementedError


def _summary(trace: str) -> str | None:
    """Return where a trace of a stack ends, and the line there."""
    found = None
    lines = trace.strip().split("\n")
    for i, line in enumerate(lines):
        match = re.match(r'^\s*File "(.+)", line (\d+), in (.+)$', line)
        if match:
            code = lines[i + 1].strip() if i + 1 < len(lines) else ""
            found = f"File: {match[1]}:{match[2]} in {match[3]}, code: {code}"
    return found


class CodeGen:
    """How the program of a graph is written: its signature, what it returns and what is around.

    A subclass given to `Graph.set_codegen` changes them.
    """

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the line that begins the function."""
        if len(free_vars) == 0 or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *args: Any, **kwargs: Any) -> str:
        """Return the line that returns."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of placeholders for the arguments of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return what a call returns for the value of the output."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return further names that the program has."""
        return []

    def _gen_python_code(
        self,
        nodes: Any,
        root_module: str,
        namespace: Namespace,
        *,
        verbose: bool = False,
        **options: Any,
    ) -> PythonCode:
        writer = _Writer(namespace, root_module, verbose)
        writer.returned = lambda node: self.generate_output(  # type: ignore[method-assign]
            map_repr(writer, node.args[0])
        )
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        user_of: dict[Node, Node] = {}
        last_uses: dict[Node, list[Node]] = defaultdict(list)
        for node in reversed(nodes):
            for n in node._input_nodes:
                if n not in user_of:
                    user_of[n] = node
                    last_uses[node].append(n)
        for i, node in enumerate(nodes):
            writer.where(node)
            writer.body.append(f"{_MARK}{i}\n")
            writer.emit(node)
            if node.op == "placeholder":
                continue
            if node.op == "output":
                writer.body.append("\n")
                continue
            gone = last_uses[node]
            if len(node.users) == 0:
                gone = [*gone, node]
            text = " = ".join([*(repr(n) for n in gone), "None"])
            writer.body.append(f";  {text}\n" if gone else "\n")
        body = writer.body
        if all(line.startswith(_MARK) or not line.strip() for line in body):
            body = [*body, "pass\n"]
        if self._body_transformer:
            body = self._body_transformer(body)
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        prologue = self.gen_fn_def(writer.free_vars, writer.returns)
        lines, node_of = _unmarked("".join(body).lstrip("\n"))
        code = "\n".join("    " + line for line in lines)
        source = f"\n{wraps}\n\n{prologue}\n{code}"
        first = prologue.count("\n") + 1
        places: dict[int, int | None] = {first + n: i for n, i in enumerate(node_of)}
        return PythonCode(source, writer.globals, _lineno_map=places)


def _unmarked(code: str) -> tuple[list[str], list[int | None]]:
    """Return the lines of a program, and the place of the node that each is from."""
    lines: list[str] = []
    node_of: list[int | None] = []
    at: int | None = None
    for line in code.split("\n"):
        if line.startswith(_MARK):
            at = int(line.removeprefix(_MARK))
            continue
        lines.append(line)
        node_of.append(at)
    while len(lines) > 1 and not lines[0]:
        del lines[0], node_of[0]
    return lines, node_of


class _Text:
    """A value whose `repr` is the expression that it holds."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def map_repr(writer: _Writer, value: Any) -> Any:
    """Return the value of an output, which prints as an expression of the program."""
    return _Text(writer.get_repr(value))


@dataclass
class _PyTreeInfo:
    """The names of a function's arguments, and the structures of what it takes and returns."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class PyTreeCodeGen(CodeGen):
    """Takes arguments apart, and puts the result together, by structures that were recorded."""

    def __init__(self, pytree_info: Any) -> None:
        super().__init__()
        self.pytree_info = (
            pytree_info if hasattr(pytree_info, "in_spec") else _PyTreeInfo(*pytree_info)
        )

    def process_inputs(self, *inputs: Any) -> Any:
        """Return the leaves of the arguments."""
        return pytree.tree_leaves(inputs)

    def process_outputs(self, outputs: Any) -> Any:
        """Return the result put together."""
        if not isinstance(outputs, (list, tuple)):
            outputs = [outputs]
        return pytree.tree_unflatten(list(outputs), self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the line that begins the function, and the one that takes arguments apart."""
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation)
        args = list(self.pytree_info.orig_args)
        has_self = bool(args) and args[0] == "self"
        if has_self:
            args = args[1:]
        if has_self and "self" in free_vars:
            free_vars.remove("self")
        prologue = super().gen_fn_def([*args], maybe_return_annotation)
        if not free_vars:
            return prologue
        bare = [re.split(r"[:=]", v)[0].strip() for v in free_vars]
        said = [re.match(r"(\w+)\s*:\s*(\S.*)", v) for v in free_vars]
        spec, structure = self.pytree_info.in_spec, "self._in_spec"
        both = (
            spec.type is tuple
            and spec.num_children == 2
            and spec.children()[0].type is tuple
            and spec.children()[1].type is dict
        )
        if both:
            count = spec.children()[0].num_children
            keyed = list(spec.children()[1].context)
            by_name = ", ".join(f"'{k}':{n}" for k, n in zip(keyed, args[count:], strict=False))
            taken = f"([{', '.join(args[:count])}], {{{by_name}}})"
        else:
            # A module's structure has the module in it.
            own = ["self"] if has_self else []
            taken, bare = f"[{', '.join(own + args)}]", own + bare
        lines = "".join(f"\n    {m[1]} : {m[2]}" for m in said if m and '"' not in m[2])
        unpacked = f"{', '.join(bare)}, = fx_pytree.tree_flatten_spec({taken}, {structure})"
        return f"{prologue}{lines}\n    {unpacked}"

    def generate_output(self, output_args: Any, *args: Any, **kwargs: Any) -> str:
        """Return the line that returns the result put together."""
        if self.pytree_info is not None and self.pytree_info.out_spec is not None:
            text = repr(output_args)
            whole = text[:1] in "([" and text != "()"
            inner = text if whole else f"[{text}]"
            return f"return pytree.tree_unflatten({inner}, self._out_spec)"
        return super().generate_output(output_args)


_PyTreeCodeGen = PyTreeCodeGen
