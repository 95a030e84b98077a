"""Runs graphs node by node, so that a subclass can change what each does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, Target, map_aggregate, map_arg
from .proxy import Proxy, asking
from .traceback import preserve_node_meta, set_current_meta

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a module's graph; a method for each kind of node can be overridden.

    Parameters
    ----------
    module : Module
        With a graph, or what has the graph's targets.
    garbage_collect_values : bool, default True
        Whether a value goes after its last use.
    graph : Graph, optional
        That of the module when left out.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Doubled(torch.fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         return 2 * super().call_function(target, args, kwargs)
    >>> Doubled(torch.fx.symbolic_trace(lambda x: torch.neg(x))).run(torch.ones(1))
    tensor([-2.])
    """

    def __init__(
        self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            last: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for n in node._input_nodes:
                    if n not in last:
                        last.add(n)
                        self.user_to_last_uses.setdefault(node, []).append(n)

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Run the graph.

        Parameters
        ----------
        *args
            The values of its placeholders.
        initial_env : dict, optional
            Values of nodes that are known already.
        enable_io_processing : bool, default True
            Whether arguments are taken apart, and the result put together, as the program does.

        Returns
        -------
        object
            What the graph returns.
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as e:
                if self.extra_traceback and not getattr(e, "_fx_noted", False):
                    e._fx_noted = True  # type: ignore[attr-defined]
                    text = f"While executing {node.format_node()}"
                    if node.stack_trace:
                        text += f"\nOriginal traceback:\n{node.stack_trace}"
                    said = f"{e.args[0]}\n\n{text}" if e.args else text
                    e.args = (said, *e.args[1:])
                raise
            for gone in self.user_to_last_uses.get(node, ()):
                del self.env[gone]
            if node.op == "output":
                out = self.env[node]
                return self.graph.process_outputs(out) if enable_io_processing else out
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph with a list of arguments, which is emptied.

        Parameters
        ----------
        args_list : list
            The values of the placeholders.

        Returns
        -------
        object
            What the graph returns.
        """
        args = list(args_list)
        args_list.clear()
        return self.run(*args, enable_io_processing=False)

    def run_node(self, n: Node) -> Any:
        """Return the value of a node.

        Parameters
        ----------
        n : Node
            The node.

        Returns
        -------
        object
            What the method for its kind gives.
        """
        with set_current_meta(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next argument.

        Parameters
        ----------
        target, args, kwargs
            Of the node; the first of `args` is what an argument is where it is left out.

        Returns
        -------
        object
            Its value.
        """
        if isinstance(target, str) and target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return an attribute of the module.

        Parameters
        ----------
        target, args, kwargs
            Of the node.

        Returns
        -------
        object
            What it holds.
        """
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a function gives.

        Parameters
        ----------
        target, args, kwargs
            The function, and the values of its arguments.

        Returns
        -------
        object
            Its result.
        """
        return target(*args, **kwargs)  # type: ignore[operator]

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a method of the first argument gives.

        Parameters
        ----------
        target, args, kwargs
            The method's name, and the values of its arguments.

        Returns
        -------
        object
            Its result.
        """
        obj, *rest = args
        return getattr(obj, str(target))(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a module gives.

        Parameters
        ----------
        target, args, kwargs
            The module's name, and the values of its arguments.

        Returns
        -------
        object
            Its result.
        """
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the graph returns.

        Parameters
        ----------
        target, args, kwargs
            Of the node; the first of `args` is the value.

        Returns
        -------
        object
            The value.
        """
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return an attribute of the module by its name with dots.

        Parameters
        ----------
        target : str
            The name.

        Returns
        -------
        object
            What it holds.

        Raises
        ------
        RuntimeError
            There is none.
        """
        at, atoms = self.module, target.split(".")
        for i, atom in enumerate(atoms):
            if not hasattr(at, atom):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(atoms[: i + 1])}")
            at = getattr(at, atom)
        return at

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the values of a node's arguments.

        Parameters
        ----------
        n : Node
            The node.

        Returns
        -------
        tuple
            Those by position and those by name.
        """
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """Return arguments with values in the place of nodes.

        Parameters
        ----------
        args : Argument
            Of the node.
        n : Node
            The node.

        Returns
        -------
        object
            Of the same shape.
        """

        def load(arg: Node) -> Any:
            if arg not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {arg}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[arg]

        return map_arg(args, load)


class _TransformerTracer(Tracer):
    """Adds to a graph that is there; modules and attributes stay what they are."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.tensor_attrs = {}

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Return True."""
        return True


class Transformer(Interpreter):
    """Makes a module of another by running its graph on proxies.

    Parameters
    ----------
    module : GraphModule
        What is transformed; its methods are overridden as of `Interpreter`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Swap(torch.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         target = torch.cos if target is torch.sin else target
    ...         return super().call_function(target, args, kwargs)
    >>> print(Swap(torch.fx.symbolic_trace(lambda x: torch.sin(x))).transform().code.strip())
    def forward(self, x):
        cos = torch.cos(x);  x = None
        return cos
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """Return the proxy of a new placeholder."""
        default = next(iter(args)) if args else ...
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """Return the proxy of a node that gets an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what calling a module gives: the proxy of a node."""
        module = self.fetch_attr(str(target))
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the proxy of a call."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return the module that the overridden methods make.

        Returns
        -------
        GraphModule
            With the attributes of the first.
        """
        with asking(), preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:

            def strip(a: Any) -> Any:
                return a.node if isinstance(a, Proxy) else a

            made = self.new_graph.output(map_aggregate(result, strip))
            old = self.graph.output_node()
            made.meta = {**old.meta, **made.meta}
        return GraphModule(self.module, self.new_graph)
