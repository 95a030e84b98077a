"""Types of values, said within a program that is traced."""

from __future__ import annotations

from typing import Any

from .proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """Return a value as it is; the node of a proxy gets a type.

    Parameters
    ----------
    val : object
        Anything.
    type : type
        What generated code says that it is.

    Returns
    -------
    object
        The same value.

    Raises
    ------
    RuntimeError
        The node has a type already.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.annotate import annotate
    >>> print(torch.fx.symbolic_trace(lambda x: annotate(x + 1, int)).code.strip())
    def forward(self, x):
        add : int = x + 1;  x = None
        return add
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                "Tried to annotate a value that already had a type on it! Existing type is "
                f"{val.node.type} and new type is {type}. A parameter's type stands in the "
                "function's signature; annotate each value once."
            )
        val.node.type = type
    return val
