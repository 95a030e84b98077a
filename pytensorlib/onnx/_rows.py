"""The table from operators to functions that write them as ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["INVERSE", "ROWS", "VIEWS", "inverse", "row"]

# What writes an operator: takes the converter and the arguments, returns names of results.
ROWS: dict[str, Callable[..., Any]] = {}
# What writes the tensor that a view was made of, when the view has a new value.
INVERSE: dict[str, Callable[..., Any]] = {}
# Operators whose results share memory with their first argument.
VIEWS = frozenset(
    """alias as_strided chunk detach diagonal expand expand_as flatten movedim narrow numpy_T
    permute reshape select slice split split_with_sizes squeeze t transpose mT unbind unflatten
    unsqueeze view view_as swapaxes""".split()
)


def row(*names: str) -> Callable[[Any], Any]:
    """Keep a function as the row of operators."""

    def keep(f: Any) -> Any:
        ROWS.update(dict.fromkeys(names, f))
        return f

    return keep


def inverse(*names: str) -> Callable[[Any], Any]:
    """Keep a function as the inverse of views."""

    def keep(f: Any) -> Any:
        INVERSE.update(dict.fromkeys(names, f))
        return f

    return keep
