"""How the program of a graph takes its arguments apart, also where those are proxies."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

__all__ = ["SUPPORTED_NODES", "register_pytree_flatten_spec"]


def _by_key(container: Any, spec: Any) -> list[Any]:
    return [container[key] for key in spec.context]


def _by_place(container: Any, spec: Any) -> list[Any]:
    return [container[i] for i in range(spec.num_children)]


# By places and keys that the structure says: a proxy cannot be iterated.
SUPPORTED_NODES: dict[type, Callable[..., list[Any]]] = {
    dict: _by_key,
    list: _by_place,
    tuple: _by_place,
    namedtuple: _by_place,  # type: ignore[dict-item]
}


def register_pytree_flatten_spec(
    cls: type, flatten_fn_spec: Callable[..., list[Any]], *args: Any
) -> None:
    """Keep how the leaves of `cls` are found for a known structure."""
    SUPPORTED_NODES[cls] = flatten_fn_spec


def tree_flatten_spec(pytree: Any, spec: Any) -> list[Any]:
    """Return the leaves of a container of a known structure.

    Parameters
    ----------
    pytree : container
        Any.
    spec : TreeSpec
        Its structure, down to the leaves that are wanted.

    Returns
    -------
    list
        The leaves.

    Raises
    ------
    RuntimeError
        A class in the structure has no function that tells its leaves.

    Examples
    --------
    >>> from pytensorlib.fx._pytree import tree_flatten_spec
    >>> from pytensorlib.utils import _pytree as pytree
    >>> tree_flatten_spec([1, (2, 3)], pytree.tree_structure([0, (0, 0)]))
    [1, 2, 3]
    """
    if spec.is_leaf():
        return [pytree]
    flatten = SUPPORTED_NODES.get(spec.type)
    if flatten is not None:
        children = flatten(pytree, spec)
    else:
        from ..utils import _pytree_nodes

        known = _pytree_nodes.SUPPORTED_NODES
        if spec.type not in known:
            raise RuntimeError(
                f"{type(pytree)} does not have a flatten_fn_spec associated with it. Please "
                "register one with torch.fx._pytree.register_pytree_flatten_spec."
            )
        children = known[spec.type].flatten_fn(pytree)[0]
    parts = zip(children, spec.children(), strict=False)
    return [leaf for child, inner in parts for leaf in tree_flatten_spec(child, inner)]
