"""The classes of results that have names, such as ``torch.return_types.max``.

A class is that of the operator of its name (with ``linalg_`` before the name where it is one of
`linalg`); its other name with ``_out`` is the same class.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from . import _C
from ._ops.results import make

__all__: list[str] = ["pytree_register_structseq"]


def pytree_register_structseq(cls: type) -> None:
    """Let `torch.utils._pytree` take results of a class apart; ours are known already.

    Parameters
    ----------
    cls : type
        Of tuples, made of an iterable.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Pair(tuple):
    ...     n_fields = 2
    >>> torch.return_types.pytree_register_structseq(Pair)
    >>> torch.utils._pytree.tree_map(lambda v: -v, Pair([1, 2]))
    (-1, -2)
    """
    from .utils import _pytree

    _pytree.register_pytree_node(
        cls,
        lambda values: (list(values), None),
        lambda values, _: cls(values),
        flatten_with_keys_fn=lambda values: (
            [(_pytree.SequenceKey(i), v) for i, v in enumerate(values)],
            None,
        ),
    )


@cache
def _classes() -> dict[str, Any]:
    """Return the class of each operator whose schema names several results."""
    found = {"histogramdd": make("histogramdd", ["hist", "bin_edges"])}
    for schema, place, *_ in _C._schemas():
        matched = re.fullmatch(r"(\w+)[\w.]*\(.*\) -> \((.*)\)", schema)
        results = [part.split() for part in matched[2].split(", ")] if matched else []
        if matched and results and all(len(result) == 2 for result in results):
            name = ("linalg_" if place == "linalg" else "") + matched[1]
            if not name.startswith("_"):
                found[name] = make(name, [field for _, field in results])
    return found


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        return list(_classes().values())
    found = _classes().get(name.removesuffix("_out"))
    if found is None or name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_classes(), "all_return_types"})
