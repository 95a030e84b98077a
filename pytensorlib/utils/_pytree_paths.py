"""Leaves of trees with their places."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ._pytree_nodes import SUPPORTED_NODES, KeyPath, _get_node_type
from ._pytree_spec import IsLeaf, TreeSpec, tree_is_leaf, tree_structure

__all__ = [
    "key_get",
    "keystr",
    "tree_flatten_with_path",
    "tree_leaves_with_path",
    "tree_map_with_path",
]


def _walk(path: KeyPath, tree: Any, is_leaf: IsLeaf) -> Iterable[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = _get_node_type(tree)
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _walk((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return the leaves of a tree, each with the way to it.

    Parameters
    ----------
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    list of tuples
        Keys from the root on, and the leaf.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> [(pytree.keystr(p), v) for p, v in pytree.tree_leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_walk((), tree, is_leaf))


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Take a tree apart into leaves, each with the way to it, and structure.

    Parameters
    ----------
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tuple of list and TreeSpec
        As of `tree_leaves_with_path` and `tree_structure`.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_flatten_with_path([1])[0]
    [((SequenceKey(idx=0),), 1)]
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None
) -> Any:
    """Return a tree with ``func`` of each leaf and the way to it.

    Parameters
    ----------
    func : callable
        Takes the way, the leaf, and what the others have in its place.
    tree : tree
        Any.
    *rests : tree
        Of the same structure.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tree
        Of the structure of `tree`.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_map_with_path(lambda path, x: pytree.keystr(path), {"a": 1})
    {'a': "['a']"}
    """
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    paths, leaves = zip(*pairs, strict=True) if pairs else ((), ())
    return spec.unflatten(map(func, paths, leaves, *others))


def keystr(kp: KeyPath) -> str:
    """Return the way to a leaf as Python would write it.

    Parameters
    ----------
    kp : tuple of keys
        As of `tree_leaves_with_path`.

    Returns
    -------
    str
        For example ``"['a'][0]"``.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.keystr((pytree.MappingKey("a"), pytree.SequenceKey(0)))
    "['a'][0]"
    """
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return what is at the end of a way.

    Parameters
    ----------
    obj : tree
        Any.
    kp : tuple of keys
        As of `tree_leaves_with_path`.

    Returns
    -------
    object
        A leaf, or a part of the tree.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.key_get({"a": [5]}, (pytree.MappingKey("a"), pytree.SequenceKey(0)))
    5
    """
    for key in kp:
        obj = key.get(obj)
    return obj
