"""The structure of a tree, and its leaves."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

from ._pytree_nodes import SUPPORTED_NODES, _get_node_type

__all__ = [
    "IsLeaf",
    "LeafSpec",
    "PyTreeSpec",
    "TreeSpec",
    "tree_flatten",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_structure",
    "tree_unflatten",
]


class TreeSpec:
    """The structure of a tree: what is left of it without the leaves.

    Parameters
    ----------
    type : type or None
        Of the container; None for a leaf.
    context : object
        What the class keeps beside its children.
    children_specs : list of TreeSpec
        Of its children.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> spec = pytree.tree_structure({"a": 1, "b": [2, 3]})
    >>> spec.num_leaves, spec.unflatten("xyz")
    (3, {'a': 'x', 'b': ['y', 'z']})
    """

    __slots__ = ("_children", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any = None, children_specs: Any = ()) -> None:
        self.type, self.context, self._children = type, context, list(children_specs)
        leaf = type is None
        self.num_children = len(self._children)
        self.num_leaves = 1 if leaf else sum(c.num_leaves for c in self._children)
        self.num_nodes = 1 + sum(c.num_nodes for c in self._children)

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The structures of the children."""
        return self._children

    def children(self) -> list[TreeSpec]:
        """Return the structures of the children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """Return the structure of a child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Return whether it is that of a leaf."""
        return self.type is None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        context = self.context
        if isinstance(context, list):
            context = repr(context)
        return hash((self.type, context, tuple(self._children)))

    def __getstate__(self) -> Any:
        return self.type, self.context, self._children

    def __setstate__(self, state: Any) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        name = getattr(self.type, "__name__", str(self.type))
        inner = [c.__repr__(indent + 2) for c in self._children]
        pad = ",\n" + " " * (indent + 2)
        body = pad.join(inner)
        return f"TreeSpec({name}, {self.context}, [{body}])"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree of this structure with these leaves.

        Parameters
        ----------
        leaves : iterable
            As many as there are.

        Raises
        ------
        ValueError
            There are more, or fewer.
        """
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec "
                f"refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves: Any) -> Any:
        if self.type is None:
            return next(leaves)
        children = [child._build(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return what a tree has where this structure has leaves.

        Parameters
        ----------
        tree : tree
            Of this structure, with any trees for leaves.

        Raises
        ------
        ValueError
            Its structure is another one.
        """
        found: list[Any] = []
        self._match(tree, found)
        return found

    def _match(self, tree: Any, found: list[Any]) -> None:
        if self.type is None:
            found.append(tree)
            return
        kind = _get_node_type(tree)
        alike = (dict, OrderedDict, defaultdict)
        if kind is not self.type and not (kind in alike and self.type in alike):
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if self.type in alike:
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {keys}, got {list(tree)}.")
            children = [tree[key] for key in keys]
        elif context != self.context and kind is not deque:
            raise ValueError(f"Node context mismatch; expected {self.context}, got {context}.")
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        for spec, child in zip(self._children, children, strict=True):
            spec._match(child, found)


class _LeafSpec(TreeSpec):
    __slots__ = ()

    def __init__(self, *_: Any) -> None:
        super().__init__(None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and other.is_leaf()

    def __hash__(self) -> int:
        return hash(None)


LeafSpec = _LeafSpec


PyTreeSpec = TreeSpec


_LEAF = LeafSpec()


IsLeaf = Callable[[Any], bool] | None


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether an object is no container of a known class.

    Parameters
    ----------
    tree : object
        Anything.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    bool
        True of None too.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_is_leaf(None), pytree.tree_is_leaf([])
    (True, False)
    """
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    kind = _get_node_type(tree)
    node = SUPPORTED_NODES.get(kind)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    children, context = node.flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Take a tree apart into leaves and structure.

    Parameters
    ----------
    tree : tree
        Lists, tuples, dicts and other known containers, and what is in them.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tuple of list and TreeSpec
        Dicts keep the order of their keys.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> leaves, spec = pytree.tree_flatten({"a": 1, "b": (2, None)})
    >>> leaves, pytree.tree_unflatten("xyz", spec)
    ([1, 2, None], {'a': 'x', 'b': ('y', 'z')})
    """
    leaves: list[Any] = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Put a tree together.

    Parameters
    ----------
    leaves : iterable
        As many as there are in `treespec`.
    treespec : TreeSpec
        The structure.

    Returns
    -------
    tree
        Of this structure.

    Raises
    ------
    TypeError
        `treespec` is none.
    ValueError
        There are more leaves, or fewer.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_unflatten([1, 2], pytree.tree_structure((0, 0)))
    (1, 2)
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec "
            f"but got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterable[Any]:
    """Yield the leaves of a tree.

    Parameters
    ----------
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> list(pytree.tree_iter([1, (2, [])]))
    [1, 2]
    """
    if tree_is_leaf(tree, is_leaf):
        yield tree
    else:
        for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
            yield from tree_iter(child, is_leaf)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree.

    Parameters
    ----------
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    list
        In order.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_leaves({"b": 1, "a": [2, 3]})
    [1, 2, 3]
    """
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the structure of a tree.

    Parameters
    ----------
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    TreeSpec
        Equal for trees that differ in their leaves only.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_structure([1, {"a": 2}])
    TreeSpec(list, None, [*,
      TreeSpec(dict, ['a'], [*])])
    """
    return tree_flatten(tree, is_leaf)[1]


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list[Any] | None:
    """Return a leaf for each of a structure's, where a tree has one for all below it, or None."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _get_node_type(tree) is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the leaves of arguments."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_leaves(value)]


def treespec_leaf() -> Any:
    """Return the structure of a leaf."""
    return LeafSpec()
