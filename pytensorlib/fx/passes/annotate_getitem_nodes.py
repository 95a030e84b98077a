"""The types of what is taken out of tuples and lists."""

from __future__ import annotations

import operator
import typing

from ..graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Note the type of nodes that take an element of a sequence whose type is noted.

    Parameters
    ----------
    graph : Graph
        Changed in place.

    Raises
    ------
    AssertionError
        The type has no such element.

    Examples
    --------
    >>> import operator
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes
    >>> graph = torch.fx.Graph()
    >>> pair = graph.placeholder("pair", type_expr=tuple[int, float])
    >>> item = graph.call_function(operator.getitem, (pair, 1))
    >>> annotate_getitem_nodes(graph)
    >>> item.type
    <class 'float'>
    """
    for n in graph.nodes:
        if n.target is not operator.getitem:
            continue
        sequence, index = n.args
        kind = sequence.type
        if not kind:
            continue
        home, parts = typing.get_origin(kind), typing.get_args(kind)
        if home is tuple:
            if len(parts) == 2 and parts[1] is ...:
                n.type = parts[0]
                continue
            if len(parts) <= index:
                raise AssertionError(
                    f"Index {index} out of range for parameterized_types (len={len(parts)})"
                )
            n.type = parts[index]
        elif home is list:
            if len(parts) != 1:
                raise AssertionError(f"Expected 1 parameterized type, got {len(parts)}")
            n.type = parts[0]
        elif hasattr(kind, "_fields"):
            n.type = kind.__annotations__[kind._fields[index]]
