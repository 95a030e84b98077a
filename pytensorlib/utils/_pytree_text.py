"""Structures of trees as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._pytree_nodes import SERIALIZED_TYPE_TO_PYTHON_TYPE, SUPPORTED_SERIALIZED_TYPES, VERSION
from ._pytree_spec import _LEAF, TreeSpec

__all__ = ["treespec_dumps", "treespec_loads", "treespec_pprint"]


def _told(spec: TreeSpec) -> Mapping[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if known is None or known.serialized_type_name is None:
        raise NotImplementedError(
            f"Serializing {spec.type} in pytree is not supported: register it with a "
            "serialized_type_name"
        )
    context = spec.context
    try:
        text = json.dumps(context) if known.to_dumpable_context is None else None
        text = text or known.to_dumpable_context(context)  # type: ignore[misc]
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context. Please make the context json dump-able, or register a "
            "custom serializer using register_pytree_node."
        ) from error
    children = [_told(child) for child in spec.children_specs]
    return {"type": known.serialized_type_name, "context": text, "children_spec": children}


def _read(told: Any) -> TreeSpec:
    if told["type"] is None:
        return _LEAF
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE.get(told["type"])
    if kind is None:
        raise NotImplementedError(f"Deserializing {told['type']} in pytree is not registered.")
    known = SUPPORTED_SERIALIZED_TYPES[kind]
    context = told["context"]
    read = known.from_dumpable_context or json.loads
    context = read(context)
    return TreeSpec(kind, context, [_read(child) for child in told["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Write a structure as text.

    Parameters
    ----------
    treespec : TreeSpec
        Of classes that have names for it.
    protocol : int, optional
        1, the only one.

    Returns
    -------
    str
        JSON.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> spec = pytree.tree_structure({"a": [1, 2]})
    >>> pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    True
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps(treespec): expected a TreeSpec, got {type(treespec)}")
    if protocol not in (None, VERSION):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{VERSION}]")
    return json.dumps((VERSION, _told(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """Read a structure that `treespec_dumps` wrote.

    Parameters
    ----------
    serialized : str
        JSON.

    Returns
    -------
    TreeSpec
        An equal one.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> text = pytree.treespec_dumps(pytree.tree_structure((1, 2)))
    >>> pytree.treespec_loads(text).unflatten("ab")
    ('a', 'b')
    """
    version, told = json.loads(serialized)
    if version != VERSION:
        raise ValueError(f"Unknown protocol {version}. Available protocols: [{VERSION}]")
    return _read(told)


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return a structure as it looks with stars for leaves.

    Parameters
    ----------
    treespec : TreeSpec
        Any.

    Returns
    -------
    str
        For people.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.treespec_pprint(pytree.tree_structure({"a": [1, 2]}))
    "{'a': [*, *]}"
    """

    class Star:
        def __repr__(self) -> str:
            return "*"

    return repr(treespec.unflatten([Star()] * treespec.num_leaves))
