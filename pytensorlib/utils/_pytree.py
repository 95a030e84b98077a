"""Trees of containers: taken apart into leaves, and put together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _alias
from . import _pytree_nodes, _pytree_paths, _pytree_spec, _pytree_text
from ._pytree_nodes import (
    Context,
    GetAttrKey,
    KeyPath,
    MappingKey,
    PyTree,
    SequenceKey,
    is_namedtuple,
    is_structseq,
    register_constant,
    register_dataclass,
    register_pytree_node,
)
from ._pytree_paths import (
    key_get,
    keystr,
    tree_flatten_with_path,
    tree_leaves_with_path,
    tree_map_with_path,
)
from ._pytree_spec import (
    IsLeaf,
    LeafSpec,
    TreeSpec,
    tree_flatten,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_structure,
    tree_unflatten,
)
from ._pytree_text import treespec_dumps, treespec_loads, treespec_pprint

__all__ = [
    "Context",
    "GetAttrKey",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "is_namedtuple",
    "is_structseq",
    "key_get",
    "keystr",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]

# Libraries read private names here, too.
for _part in (_pytree_nodes, _pytree_spec, _pytree_paths, _pytree_text):
    _names = [name for name in vars(_part) if not name.startswith("__")]
    globals().update({name: getattr(_part, name) for name in _names})
    _own = (
        name for name in _names if getattr(getattr(_part, name), "__module__", "") == _part.__name__
    )
    _alias.adopt(globals(), _own)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Return a tree with ``func`` of each leaf.

    Parameters
    ----------
    func : callable
        Takes a leaf of `tree` and what the others have in its place.
    tree : tree
        Any.
    *rests : tree
        Of the same structure, at least down to where `tree` has leaves.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tree
        Of the structure of `tree`.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_map(lambda a, b: a + b, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(map(func, leaves, *others))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Call ``func`` of each leaf and return the tree as it was.

    Parameters
    ----------
    func : callable
        Takes a leaf of `tree` and what the others have in its place.
    tree : tree
        Any.
    *rests : tree
        Of the same structure.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tree
        The same object.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_map_(print, [1])
    1
    [1]
    """
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _is_a(kinds: Any) -> Callable[[Any], bool]:
    if isinstance(kinds, (type, tuple)) or hasattr(kinds, "__or__"):
        try:
            isinstance(None, kinds)
        except TypeError:
            return kinds
        return lambda x: isinstance(x, kinds)
    return kinds


def map_only(kinds: Any, /) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator whose function leaves objects of other classes as they are.

    Parameters
    ----------
    kinds : type, tuple of types or callable
        Which objects are meant.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.map_only(int)(lambda x: -x)("a")
    'a'
    """
    chosen = _is_a(kinds)
    return lambda func: lambda x: func(x) if chosen(x) else x


def tree_map_only(
    kinds: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """Return a tree with ``func`` of the leaves of some classes.

    Parameters
    ----------
    kinds : type, tuple of types or callable
        Which leaves are meant.
    func : callable
        Takes a leaf.
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tree
        Of the same structure.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_map_only(int, lambda x: -x, [1, "a"])
    [-1, 'a']
    """
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    kinds: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """Call ``func`` of the leaves of some classes and return the tree as it was.

    Parameters
    ----------
    kinds : type, tuple of types or callable
        Which leaves are meant.
    func : callable
        Takes a leaf.
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tree
        The same object.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_map_only_(int, print, [1, "a"])
    1
    [1, 'a']
    """
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether something is true of all leaves.

    Parameters
    ----------
    pred : callable
        Takes a leaf.
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_all(bool, [1, [0]])
    False
    """
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether something is true of a leaf.

    Parameters
    ----------
    pred : callable
        Takes a leaf.
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_any(bool, [1, [0]])
    True
    """
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    kinds: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Return whether something is true of all leaves of some classes.

    Parameters
    ----------
    kinds : type, tuple of types or callable
        Which leaves are meant.
    pred : callable
        Takes a leaf.
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_all_only(int, lambda x: x > 0, [1, "a"])
    True
    """
    chosen = _is_a(kinds)
    return all(pred(x) for x in tree_iter(tree, is_leaf) if chosen(x))


def tree_any_only(
    kinds: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Return whether something is true of a leaf of some classes.

    Parameters
    ----------
    kinds : type, tuple of types or callable
        Which leaves are meant.
    pred : callable
        Takes a leaf.
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_any_only(str, str.isupper, [1, "a"])
    False
    """
    chosen = _is_a(kinds)
    return any(pred(x) for x in tree_iter(tree, is_leaf) if chosen(x))
