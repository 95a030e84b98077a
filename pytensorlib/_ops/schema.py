"""The schema of an operator, read off a Python function."""

from __future__ import annotations

import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytensorlib as pt

__all__ = ["infer_schema"]


_TYPES: dict[Any, str] = {
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    pt.Tensor: "Tensor",
    pt.dtype: "ScalarType",
    pt.device: "Device",
    int | float | bool: "Scalar",
}


def _type_name(kind: Any, where: str) -> str:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    try:
        if kind in _TYPES:
            return _TYPES[kind]
    except TypeError:
        pass
    if origin in (typing.Union, types.UnionType) and type(None) in args:
        rest = [a for a in args if a is not type(None)]
        inner = functools.reduce(operator.or_, rest)
        return _type_name(inner, where) + "?"
    if isinstance(origin, type) and issubclass(origin, Sequence) and origin is not tuple:
        return _type_name(args[0], where) + "[]"
    raise ValueError(f"infer_schema(func): {where} has unsupported type {kind}")


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str] = (),
    op_name: str | None = None,
) -> str:
    """Return the arguments and results of an annotated function, as operators write them.

    Parameters
    ----------
    prototype_function : callable
        Each parameter and the result has an annotation.
    mutates_args : sequence of str or "unknown"
        Which arguments it writes to; "unknown" means every tensor.
    op_name : str, optional
        Put before the parentheses.

    Returns
    -------
    str
        For example ``"(Tensor x, SymInt n=2) -> Tensor"``.

    Raises
    ------
    ValueError
        An annotation is missing, or of a type that operators do not have.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> def scale(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    ...     return x * factor
    >>> torch.library.infer_schema(scale, mutates_args=())
    '(Tensor x, float factor=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function, eval_str=True)
    written = set() if mutates_args == "unknown" else set(mutates_args)
    unknown = written - set(signature.parameters)
    if unknown:
        raise ValueError(f"infer_schema(func): mutates_args names no parameter: {sorted(unknown)}")
    parts: list[str] = []
    star = False
    for name, p in signature.parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ValueError(f"infer_schema(func): *args and **kwargs have no types: {name}")
        if p.annotation is p.empty:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        kind = _type_name(p.annotation, f"Parameter {name}")
        if kind.startswith("Tensor") and (name in written or mutates_args == "unknown"):
            kind = kind.replace("Tensor", f"Tensor(a{len(parts)}!)", 1)
        if p.kind is p.KEYWORD_ONLY and not star:
            parts, star = [*parts, "*"], True
        default = p.default
        shown = f'"{default}"' if isinstance(default, str) else str(default).replace("torch.", "")
        parts.append(f"{kind} {name}" + ("" if default is p.empty else f"={shown}"))
    result = signature.return_annotation
    if result is signature.empty:
        raise ValueError("infer_schema(func): the return type annotation was not provided.")
    if result is None:
        shown = "()"
    elif typing.get_origin(result) is tuple:
        shown = f"({', '.join(_type_name(a, 'Return') for a in typing.get_args(result))})"
    else:
        shown = _type_name(result, "Return")
    return f"{op_name or ''}({', '.join(parts)}) -> {shown}"
