"""Arguments of calls by the names of what is called."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import pytensorlib as pt

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]


class ArgsKwargsPair(NamedTuple):
    """Arguments by position and by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """Return the signatures of an operator, or None where it has none.

    Parameters
    ----------
    op : callable
        A function of the package.
    return_schemas : bool, default False
        Whether a second result, of schemas, is returned; it is None.

    Returns
    -------
    list of inspect.Signature or None
        One, where there is one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.operator_schemas import get_signature_for_torch_op
    >>> list(get_signature_for_torch_op(torch.nn.functional.softmax)[0].parameters)[:2]
    ['input', 'dim']
    """
    try:
        found = [_signature(op)]
    except (TypeError, ValueError):
        found = None
    return (found, None) if return_schemas else found


def _signature(op: Any) -> inspect.Signature:
    """Return the signature of a function, or that of PyTorch's operator."""
    if type(op).__name__ != "OpOverload" or op.namespace != "aten":
        return inspect.signature(op)
    from ..export._aten import _cast, schemas

    for schema in schemas(op._opname):
        if schema.overload == op._overloadname:
            break
    else:
        raise ValueError(f"there is no signature of {op}")
    kind = inspect.Parameter
    return inspect.Signature(
        [
            kind(
                a.name,
                kind.KEYWORD_ONLY if a.named else kind.POSITIONAL_OR_KEYWORD,
                default=_cast(a.kind, a.default) if a.has_default else kind.empty,
            )
            for a in schema.arguments
        ]
    )


def check_for_mutable_operation(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise where a call writes to its arguments.

    Parameters
    ----------
    target : callable
        What is called.
    args, kwargs : tuple, dict
        What it is called with.

    Raises
    ------
    RuntimeError
        It writes to one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.operator_schemas import check_for_mutable_operation
    >>> check_for_mutable_operation(torch.add, (1, 2), {})
    """
    name = getattr(target, "__name__", "")
    written = name.endswith("_") and not name.endswith("__")
    if (written or kwargs.get("out") is not None) and getattr(pt, name, None) is target:
        raise RuntimeError(
            f"Tried to trace mutable operation {_writing(name, written)}. FX only supports "
            "functional code, so operations that mutate operands in-place (e.g. via `out` "
            "arguments) are not supported"
        )


def _writing(name: str, written: bool) -> str:
    """Return PyTorch's signature of the form of an operator that writes to an argument."""
    from ..export import _aten

    said = _aten.written(name)
    if said is None:
        return name
    if written:
        return said.replace("(Tensor self", "(Tensor(a!) self").replace(
            "-> Tensor", "-> Tensor(a!)"
        )
    head, _, inside = said.partition("(")
    head = head.partition(".")[0]
    named = "" if "*, " in inside else "*, "
    inside = inside.replace(") -> Tensor", f", {named}Tensor(a!) out) -> Tensor(a!)")
    return f"{head}.out({inside}"


def create_type_hint(x: Any) -> Any:
    """Return a container's type with that of its elements."""
    if isinstance(x, (list, tuple)) and x:
        kinds = {type(e) for e in x}
        inner = kinds.pop() if len(kinds) == 1 else Any
        return list[inner] if isinstance(x, list) else tuple[inner, ...]  # type: ignore[valid-type]
    return x


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Return whether an argument of a type fits a signature."""
    if signature_type is argument_type or signature_type is Any:
        return True
    inner = types.GenericAlias
    if isinstance(signature_type, inner) or isinstance(argument_type, inner):
        return bool(signature_type == argument_type)
    return isinstance(argument_type, type) and issubclass(argument_type, signature_type)


def _by_name(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], only_named: bool
) -> ArgsKwargsPair | None:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return None
        if only_named or parameter.kind == parameter.KEYWORD_ONLY or i >= len(args):
            named[name] = bound.arguments[name]
        else:
            positional.append(bound.arguments[name])
    return ArgsKwargsPair(tuple(positional), named)


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the arguments of a call by the function's names, with its defaults.

    Parameters
    ----------
    target : callable
        What is called.
    args, kwargs : tuple, dict
        What it is called with.
    arg_types, kwarg_types : tuple, dict, optional
        Not needed here.
    normalize_to_only_use_kwargs : bool, default False
        Whether all are given by name.

    Returns
    -------
    ArgsKwargsPair or None
        None where the function does not tell its signature, or does not take these.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.operator_schemas import normalize_function
    >>> normalize_function(torch.nn.functional.relu, (1,), normalize_to_only_use_kwargs=True).kwargs
    {'input': 1, 'inplace': False}
    """
    for signature in get_signature_for_torch_op(target) or ():
        found = _by_name(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
        if found is not None:
            return found
    return None


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the arguments of a module's call by the names of its `forward`.

    Parameters
    ----------
    root : Module
        What holds the module.
    target : str
        Its name, with dots.
    args, kwargs : tuple, dict
        What it is called with.
    normalize_to_only_use_kwargs : bool, default False
        Whether all are given by name.

    Returns
    -------
    ArgsKwargsPair or None
        The arguments.

    Raises
    ------
    RuntimeError
        There is no such module.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.operator_schemas import normalize_module
    >>> net = torch.nn.Sequential(torch.nn.ReLU())
    >>> normalize_module(net, "0", (1,), normalize_to_only_use_kwargs=True).kwargs
    {'input': 1}
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as e:
        raise RuntimeError(
            f"Tried to normalize arguments for module {target} but root module had no submodule "
            "by that name"
        ) from e
    signature = inspect.signature(type(module).forward)
    kept = list(signature.parameters.values())[1:]
    return _by_name(
        signature.replace(parameters=kept), args, kwargs or {}, normalize_to_only_use_kwargs
    )
