"""Names of PyTorch's graphs of programs: nothing is traced here.

What only marks functions for a tracer works; tracing raises and says so.
"""

from __future__ import annotations

from typing import Any, TypeVar

from .. import nn
from .._named import fill, refusing, tell_missing
from .._named_modules import EAGER

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]

T = TypeVar("T")

fill(
    globals(),
    EAGER,
    "CodeGen Graph[create_node] Interpreter Node Proxy ProxyableClassMeta Tracer Transformer "
    "map_arg replace_pattern symbolic_trace",
)
GraphModule = refusing("GraphModule", __name__, EAGER, (nn.Module,))


def wrap(fn_or_name: T) -> T:
    """Return the function, or the name of one, as it is; tells a tracer not to look inside.

    Parameters
    ----------
    fn_or_name : callable or str
        A global function, or its name.

    Returns
    -------
    callable or str
        The same.

    Raises
    ------
    RuntimeError
        It is neither.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> @torch.fx.wrap
    ... def double(x):
    ...     return 2 * x
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    return fn_or_name


def has_side_effect(fn: T) -> T:
    """Return the function as it is; tells a graph to keep calls of it.

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
    return fn


tell_missing(globals(), EAGER)
