"""A node of a graph: one call, with what it takes and who takes its result."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytensorlib as pt

from ._names import INPLACE
from ._names import qualified as _get_qualified_name
from ._names import type_name as _type_repr
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Target = Callable[..., Any] | str
Argument = Any
base_types = (str, int, float, bool, complex, pt.dtype, pt.Tensor, pt.device)
_legal_ops = dict.fromkeys(
    "placeholder call_method call_module call_function get_attr output root".split()
)
_side_effectful_functions: set[Callable[..., Any]] = set()


def has_side_effect(fn: Any) -> Any:
    """Return the function as it is, and keep calls of it that nothing uses.

    Parameters
    ----------
    fn : callable
        Any.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.fx.has_side_effect(print) is print
    True
    """
    _side_effectful_functions.add(fn)
    return fn


_side_effectful_functions |= {getattr(pt, name) for name in ("_assert", "_assert_async")}


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Return containers with a function applied to each thing in them.

    Parameters
    ----------
    a : object
        Tuples, lists, dictionaries and slices are looked into.
    fn : callable
        Takes and returns what is inside.

    Returns
    -------
    object
        Of the same shape; lists and dictionaries cannot be changed.

    Examples
    --------
    >>> from pytensorlib.fx.node import map_aggregate
    >>> map_aggregate({"a": [1, (2, 3)]}, lambda x: x * 2)
    {'a': [2, (4, 6)]}
    """
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        # What operators return is a tuple with names, not a class of the program's.
        named = hasattr(a, "_fields") and type(a).__module__ != "torch.return_types"
        return type(a)(*items) if named else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(v, fn)) for k, v in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Return containers with a function applied to each node in them.

    Parameters
    ----------
    a : object
        Arguments of a node.
    fn : callable
        Takes a node.

    Returns
    -------
    object
        Of the same shape.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> torch.fx.map_arg([x, 1], lambda n: n.name)
    ['x', 1]
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    if hasattr(arg, "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, list):
        items = [_format_arg(a) for i, a in enumerate(arg) if i < max_list_len]
        more = len(arg) - len(items)
        if more > 0:
            items.append(f"...[total_len={len(arg)}]")
        return f"[{', '.join(items)}]"
    if isinstance(arg, tuple):
        inner = ", ".join(_format_arg(a) for a in arg)
        return f"({inner}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{k}: {_format_arg(v)}' for k, v in arg.items())}}}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """One call in a graph, its arguments and its users.

    Parameters
    ----------
    graph : Graph
        The graph that it is in.
    name : str
        Its own in the graph.
    op : str
        "placeholder", "get_attr", "call_function", "call_module", "call_method" or "output".
    target : callable or str
        What is called, or the name of it.
    args, kwargs : tuple, dict
        Nodes and plain values.
    return_type : type, optional
        What generated code says that it is.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: x.relu() + 1)
    >>> [(node.op, node.name) for node in traced.graph.nodes]
    [('placeholder', 'x'), ('call_method', 'relu'), ('call_function', 'add'), ('output', 'output')]
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not one of {list(_legal_ops)}")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                    f"{type(target)} but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target)} but a str is expected"
            )
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self._args: Any = ()
        self._kwargs: Any = {}
        self._update_args_kwargs(map_arg(args, _same), map_arg(kwargs, _same))
        self.type = return_type
        self._erased = False
        self._prev = self._next = self
        self._sort_key: Any = ()
        self._repr_fn: Callable[[Node], str] | None = None
        self.meta: dict[str, Any] = {}

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move a node of this graph to just before this one.

        Parameters
        ----------
        x : Node
            The node to move.
        """
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        x._sort_key = _between(before, self)

    def append(self, x: Node) -> None:
        """Move a node of this graph to just after this one.

        Parameters
        ----------
        x : Node
            The node to move.
        """
        self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    _remove_from_list = _unlink

    def __lt__(self, other: Node) -> bool:
        return bool(self._sort_key < other._sort_key)

    def __le__(self, other: Node) -> bool:
        return bool(self._sort_key <= other._sort_key)

    def __gt__(self, other: Node) -> bool:
        return bool(self._sort_key > other._sort_key)

    def __ge__(self, other: Node) -> bool:
        return bool(self._sort_key >= other._sort_key)

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments; assign others to change them."""
        found: tuple[Any, ...] = self._args
        return found

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._update_args_kwargs(map_arg(a, _same), self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name; assign others to change them."""
        found: dict[str, Any] = self._kwargs
        return found

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._update_args_kwargs(self._args, map_arg(k, _same))

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Put another positional argument in a place.

        Parameters
        ----------
        idx : int
            The place.
        arg : Argument
            What comes there.
        """
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Put a positional argument before another.

        Parameters
        ----------
        idx : int
            The place that it gets.
        arg : Argument
            What comes there.
        """
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Put another argument under a name.

        Parameters
        ----------
        key : str
            The name.
        arg : Argument
            What comes there.
        """
        self.kwargs = {**self.kwargs, key: arg}

    @property
    def stack_trace(self) -> str | None:
        """The stack trace of the program's line that made the node, if it was recorded."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _update_args_kwargs(self, args: Any, kwargs: Any) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._args, self._kwargs, self._input_nodes = args, kwargs, {}

        def use(n: Node) -> Node:
            self._input_nodes.setdefault(n)
            n.users.setdefault(self)
            return n

        map_arg(args, use)
        map_arg(kwargs, use)

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        name = getattr(target, "__name__", None) or type(target).__name__
        module = getattr(target, "__module__", None)
        if module == "builtins":
            return f"builtins.{name}"
        if module == "_operator":
            return f"operator.{name}"
        return _get_qualified_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """Return the node as a line of ``str(graph)``.

        Parameters
        ----------
        placeholder_names : list of str, optional
            Gets the line of a placeholder.
        maybe_return_typename : list of str, optional
            Its first element becomes the type of an output.
        include_tensor_metadata : bool, default False
            Whether shapes are shown; not used.

        Returns
        -------
        str or None
            The line.
        """
        kind = f"{_type_repr(self.type)} " if self.type else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            text = self.target if isinstance(self.target, str) else str(self.target)
            default = f"(default={self.args[0]})" if self.args else ""
            line = f"{head}[target={text}]{default}"
            if placeholder_names:
                placeholder_names.append(line)
                return None
            return line
        if self.op == "get_attr":
            return f"{head}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        args, kwargs = _format_arg(self.args), _format_arg(self.kwargs)
        target = self._pretty_print_target(self.target)
        return f"{head}[target={target}](args = {args}, kwargs = {kwargs})"

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let the users of this node use another.

        Parameters
        ----------
        replace_with : Node
            The other node.
        delete_user_cb : callable, optional
            Says of a user whether it is changed.
        propagate_meta : bool, default False
            Whether the other node takes over what is noted here.

        Returns
        -------
        list of Node
            The users that were changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                    "replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [n for n in self.users if delete_user_cb is None or delete_user_cb(n)]
        for user in changed:
            user.replace_input_with(self, replace_with)
            module = self.graph.owning_module
            for hook in getattr(module, "_replace_hooks", ()):
                hook(old=self, new=replace_with.name, user=user)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take another node where this one took `old_input`.

        Parameters
        ----------
        old_input, new_input : Node
            What is taken now, and what shall be.
        """

        def swap(n: Node) -> Node:
            return new_input if n is old_input else n

        self._update_args_kwargs(map_arg(self.args, swap), map_arg(self.kwargs, swap))

    _replace_input_with = replace_input_with

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether it must stay though nothing uses its result.

        Parameters
        ----------
        impure_random : bool, default True
            Whether random numbers count.

        Returns
        -------
        bool
            True for placeholders, outputs, what writes to its arguments and what is marked.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in _side_effectful_functions:
                return True
            schema = getattr(self.target, "_schema", None)
            if schema is not None and schema.is_mutable:
                return True
            if getattr(self.target, "__module__", "") == "torch.ops.profiler":
                return True  # a range begins or ends
            name = getattr(self.target, "__name__", "").partition(".")[0]
            if impure_random and schema is not None and name in _RANDOM:
                return True
            return self.target in _INPLACE
        if self.op == "call_module":
            if self.graph.owning_module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            module = self.graph.owning_module.get_submodule(str(self.target))
            return bool(getattr(module, "_is_impure", False))
        return False

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """Return the arguments by the names of what is called, or None where those are unknown.

        Parameters
        ----------
        root : Module
            Where called modules are.
        arg_types, kwarg_types : tuple, dict, optional
            Types that choose among signatures; not needed here.
        normalize_to_only_use_kwargs : bool, default False
            Whether all are given by name.

        Returns
        -------
        ArgsKwargsPair or None
            The arguments.
        """
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            target: Any = self.target
            return normalize_function(
                target,
                self.args,
                self.kwargs,
                arg_types,
                kwarg_types,
                normalize_to_only_use_kwargs,
            )
        if self.op == "call_module":
            return normalize_module(
                root, str(self.target), self.args, self.kwargs, normalize_to_only_use_kwargs
            )
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("_prev", "_next")}


def _same(n: Node) -> Node:
    return n


def _between(before: Node, after: Node) -> tuple[int, ...]:
    """Return a key that sorts between those of two neighbours."""
    p, n = before._sort_key, after._sort_key
    if len(p) > len(n):
        return (*p[: len(n)], p[len(n)] + 1)
    if len(p) < len(n):
        return (*n[: len(p)], n[len(p)] - 1)
    return (*p, 0)


_RANDOM = frozenset(
    "rand randn randint randperm bernoulli multinomial normal dropout native_dropout rand_like "
    "randn_like randint_like".split()
)
_INPLACE = {getattr(operator, name) for name in INPLACE} | {operator.setitem}
