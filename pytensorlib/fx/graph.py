"""Graphs of programs: lists of nodes, from which Python is written."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytensorlib as pt

from ._codegen import CodeGen, PythonCode
from ._names import MAGIC, REFLECTED
from ._names import Namespace as _Namespace
from ._names import short_name as _short_name
from ._names import snake_case as _snake_case
from .node import Argument, Node, Target, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]

magic_methods = {**MAGIC, **REFLECTED}
reflectable_magic_methods = REFLECTED


class _InsertPoint:
    """A context in which new nodes are inserted at another place."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.before, graph._insert = graph, graph._insert, insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.before


class _node_list:  # noqa: N801
    """The nodes of a graph, in order."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        at = getattr(root, self.direction)
        while at is not root:
            if not at._erased:
                yield at
            at = getattr(at, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class Graph:
    """A program as a list of nodes.

    Parameters
    ----------
    owning_module : GraphModule, optional
        Whose program it is.
    tracer_cls : type, optional
        What traced it.
    tracer_extras : dict, optional
        What that tracer is made with.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(torch.relu, (x,))
    >>> _ = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(
        self,
        owning_module: Any = None,
        tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._used_names: dict[str, int] = {}
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen: CodeGen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        """Whose program it is, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """The nodes in order; can be gone through backwards by ``reversed``."""
        return _node_list(self)

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Return the nodes of one kind.

        Parameters
        ----------
        op : str
            As of `Node`.
        target : callable or str, optional
            What they call.
        sort : bool, default True
            Whether they come in the order of the graph; they always do.

        Returns
        -------
        list of Node
            Those found.
        """
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Copy the nodes of another graph to the end of this one.

        Parameters
        ----------
        g : Graph
            The other.
        val_map : dict
            Copies by nodes; filled, and what it has is not copied.
        return_output_node : bool, default False
            Whether the other's output is returned as well.

        Returns
        -------
        Argument
            What the other graph returns, in nodes of this one.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        g = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        copies: dict[Node, Node] = {}
        result = g.graph_copy(self, val_map=copies, return_output_node=True)
        g._codegen = copy.deepcopy(self._codegen)
        if result is not None:
            value, old = result
            made = g.output(value, type_expr=getattr(old, "type", None))
            made.meta = copy.copy(old.meta)
        return g

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node where new nodes come.

        Parameters
        ----------
        op, target, args, kwargs
            As of `Node`.
        name : str, optional
            What its name is made of; made of the target when left out.
        type_expr : type, optional
            What generated code says that it is.

        Returns
        -------
        Node
            The new one.
        """
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")
        candidate = name if name is not None else self._target_to_str(target)
        name = self._graph_namespace.create_name(candidate, None)
        made = Node(self, name, op, target, args, kwargs, type_expr)
        hooks = getattr(self.owning_module, "_create_node_hooks", ())
        self._graph_namespace.associate_name_with_obj(name, made)
        self._insert(made)
        self._len += 1
        for hook in hooks:
            hook(made)
        return made

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of placeholders for the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return what a call returns for the value of the output."""
        return self._codegen.process_outputs(out)

    def erase_node(self, to_erase: Node) -> None:
        """Take a node that nothing uses out of the graph.

        Parameters
        ----------
        to_erase : Node
            One of this graph.

        Raises
        ------
        RuntimeError
            It is used, or of another graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            import warnings

            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase.args, to_erase.kwargs = (), {}

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Let new nodes come before a node, for a ``with`` block.

        Parameters
        ----------
        n : Node, optional
            The beginning of the graph when left out.

        Returns
        -------
        context manager
            For the block.
        """
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Let new nodes come after a node, for a ``with`` block.

        Parameters
        ----------
        n : Node, optional
            The end of the graph when left out.

        Returns
        -------
        context manager
            For the block.
        """
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an argument of the program.

        Parameters
        ----------
        name : str
            Its name; with stars, one of ``*args`` or ``**kwargs``.
        type_expr : type, optional
            What generated code says that it is.
        default_value : object, optional
            What it is where a call leaves it out.

        Returns
        -------
        Node
            The new one.
        """
        from inspect import Signature

        none = default_value is ... or default_value is Signature.empty
        args = () if none else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add what an attribute of the module holds.

        Parameters
        ----------
        qualified_name : str
            Its name, with dots.
        type_expr : type, optional
            What generated code says that it is.

        Returns
        -------
        Node
            The new one.
        """
        if self.owning_module is not None and not _reaches(self.owning_module, qualified_name):
            import warnings

            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning "
                "GraphModule! Call GraphModule.add_submodule to add the necessary submodule, "
                "GraphModule.add_parameter to add the necessary Parameter, or "
                "nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a module in the module.

        Parameters
        ----------
        module_name : str
            Its name, with dots.
        args, kwargs : tuple, dict, optional
            What it is called with.
        type_expr : type, optional
            What generated code says that it returns.

        Returns
        -------
        Node
            The new one.
        """
        if self.owning_module is not None:
            with contextlib.suppress(AttributeError):
                self.owning_module.get_submodule(module_name)
                return self.create_node("call_module", module_name, args, kwargs, None, type_expr)
            import warnings

            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the "
                "owning GraphModule! Call GraphModule.add_submodule to add the necessary "
                "submodule",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a method of the first argument.

        Parameters
        ----------
        method_name : str
            Its name.
        args, kwargs : tuple, dict, optional
            What it is called with; first the object.
        type_expr : type, optional
            What generated code says that it returns.

        Returns
        -------
        Node
            The new one.
        """
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function.

        Parameters
        ----------
        the_function : callable
            What is called.
        args, kwargs : tuple, dict, optional
            What it is called with.
        type_expr : type, optional
            What generated code says that it returns.
        name : str, optional
            What the node's name is made of.

        Returns
        -------
        Node
            The new one.
        """
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x
    ) -> Node:
        """Add a copy of a node, of this graph or another.

        Parameters
        ----------
        node : Node
            The node.
        arg_transform : callable, optional
            Gives the node of this graph for each that it uses.

        Returns
        -------
        Node
            The new one.
        """
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Add what the program returns.

        Parameters
        ----------
        result : Argument
            Nodes and plain values in containers.
        type_expr : type, optional
            What generated code says that it is.

        Returns
        -------
        Node
            The new one.
        """
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def output_node(self) -> Node:
        """Return the node that says what the program returns."""
        return next(iter(reversed(self.nodes)))

    def _target_to_str(self, target: Target | None) -> str:
        if callable(target):
            name = _short_name(target)
        else:
            name = str(target)
            if name.startswith("__") and name.endswith("__"):
                name = name[2:-2]
        return _snake_case(name)

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        **options: Any,
    ) -> PythonCode:
        """Return the program as Python.

        Parameters
        ----------
        root_module : str
            What the code calls the module.
        verbose : bool, default False
            Whether it says where nodes come from, and what shapes they have.
        include_stride, include_device, colored, expanded_def, record_func : bool, default False
            Not used.

        Returns
        -------
        PythonCode
            Its `src`, and the `globals` that it needs.
        """
        namespace = _Namespace()

        def name_of(node: Node) -> str:
            return namespace.create_name(node.name, node)

        before = [(node, node._repr_fn) for node in self.nodes]
        try:
            for node, _ in before:
                node._repr_fn = name_of
            return self._codegen._gen_python_code(
                self.nodes, root_module, namespace, verbose=verbose, **options
            )
        finally:
            for node, fn in before:
                node._repr_fn = fn

    def __str__(self) -> str:
        returns, names = [""], []  # type: tuple[list[str], list[str]]
        lines = [node.format_node(None, returns) for node in self.nodes]
        text = f"graph({', '.join(names)}){returns[0]}:"
        return text + "".join(f"\n    {line}" for line in lines if line)

    def print_tabular(self) -> None:
        """Print the nodes as a table; needs the package tabulate.

        Raises
        ------
        ImportError
            The package is not installed.
        """
        try:
            from tabulate import tabulate
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on "
                "this machine. Run `pip install tabulate` to install the library."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def lint(self) -> None:
        """Raise where the graph is not in order.

        Raises
        ------
        RuntimeError
            A node is used before it comes, two have one name, or nodes name what is not there.
        """
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.op not in (
                "placeholder", "call_method", "call_module", "call_function", "get_attr", "output",
            ):  # fmt: skip
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for arg in node._input_nodes:
                if arg.graph is not self:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was "
                        "used as an argument! If you are copying nodes from another graph, make "
                        "sure to use ``arg_transform`` on node_copy() to remap values\n" + str(self)
                    )
                if arg not in seen:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            if node.op == "call_function" and not callable(node.target):
                raise RuntimeError(f"Node {node} target {node.target} is not a callable")
            root = self.owning_module
            if root is not None and node.op in ("get_attr", "call_module"):
                self._lint_target(node, root)

    def _lint_target(self, node: Node, root: Any) -> None:
        walked: list[str] = []
        at = root
        for i, atom in enumerate(str(node.target).split(".")):
            if not hasattr(at, atom):
                place = ".".join(walked)
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {atom} of "
                    f"{place}"
                )
            at = getattr(at, atom)
            walked.append(atom)
            last = i + 1 == str(node.target).count(".") + 1
            if node.op == "call_module" and last and not isinstance(at, pt.nn.Module):
                raise RuntimeError(
                    f"Node {node} target {node.target} {atom} of {'.'.join(walked)} does not "
                    "reference an nn.Module"
                )

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase nodes that nothing uses and that have no effects.

        Parameters
        ----------
        is_impure_node : callable, optional
            Says of a node whether it stays; `Node.is_impure` when left out.

        Returns
        -------
        bool
            Whether there were any.
        """
        self.lint()
        impure = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not impure(node) and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let another object write the program.

        Parameters
        ----------
        codegen : CodeGen
            The writer.
        """
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[..., Any]) -> Any:
        """Change the lines of the program as they are written.

        Parameters
        ----------
        make_transformer : callable
            Takes the function in force, or None, and returns the one that is to be: it takes and
            returns a list of lines, or is None.

        Returns
        -------
        context manager
            Whose end brings the former function back.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def until() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return until()


def _reaches(root: Any, name: str) -> bool:
    for atom in name.split("."):
        if not hasattr(root, atom):
            return False
        root = getattr(root, atom)
    return True
