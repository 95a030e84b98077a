"""PyTorch's signatures of its operators: which one a call is, and how a graph writes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytensorlib as pt

from .._ops.dispatch import _form
from .._symbolic.ints import SymBool, SymFloat, SymInt

__all__ = ["Argument", "Schema", "bind", "schemas", "written"]


class Argument(NamedTuple):
    """One argument of an operator."""

    name: str
    kind: str
    default: Any
    has_default: bool
    named: bool


class Schema(NamedTuple):
    """One form of an operator."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: str


_WORDS: dict[str, Any] = {"True": True, "False": False, "None": None}


def _default(kind: str, text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("["):
        inner = text[1:-1]
        return [int(v) for v in inner.split(",") if v.strip()]
    if text.startswith(('"', "'")):
        return text[1:-1]
    if text in ("contiguous_format", "preserve_format", "strided"):
        return text
    if text in ("Mean", "Sum"):
        return {"Mean": 1, "Sum": 2}[text]
    if text in ("inf", "-inf"):
        return float(text)
    number = float(text)
    whole = kind.startswith(("int", "Scalar", "bool")) and "." not in text and "e" not in text
    value: Any = int(number) if whole else number
    return [value] if "[" in kind and not isinstance(value, list) else value


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


def _parse(line: str) -> Schema:
    head, _, returns = (
        line.partition(" -> ") if line.count(" -> ") == 1 else line.rpartition(" -> ")
    )
    full, _, inside = head.partition("(")
    name, _, overload = full.partition(".")
    arguments, named = [], False
    for part in _split(inside.rpartition(")")[0]):
        if part == "*":
            named = True
            continue
        match = re.match(r"(\S+) (\w+)(?:=(.*))?$", part)
        if match is None:
            raise AssertionError(f"cannot read the signature {line!r}")
        kind, label, default = match.groups()
        value = _default(kind, default) if default is not None else None
        arguments.append(Argument(label, kind, value, default is not None, named))
    return Schema(name, overload or "default", tuple(arguments), returns)


@cache
def _lines() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("_aten.txt").read_text().splitlines():
        found.setdefault(re.split(r"[.(]", line, maxsplit=1)[0], []).append(line)
    return found


@cache
def schemas(name: str) -> tuple[Schema, ...]:
    """Return the forms of an operator of PyTorch's, as they are declared there."""
    return tuple(_parse(line) for line in _lines().get(name, ()))


def written(name: str) -> str | None:
    """Return the first form of an operator of PyTorch's as it is written there."""
    lines = _lines().get(name)
    return f"aten::{lines[0]}" if lines else None


def _is_int(v: Any) -> bool:
    return isinstance(v, (int, SymInt)) and not isinstance(v, bool)


def _is_number(v: Any) -> bool:
    return isinstance(v, (int, float, complex, SymInt, SymFloat, SymBool))


def _fits(kind: str, value: Any, numbers: bool) -> bool:
    if value is None:
        return kind.endswith("?")
    kind = kind.removesuffix("?")
    if kind.endswith("]"):
        inner = kind[:-1].partition("[")[0]
        if isinstance(value, (list, tuple)):
            return all(_fits(inner, v, numbers) for v in value)
        return inner in ("int", "float") and _fits(inner, value, numbers)
    if kind == "Tensor":
        return isinstance(value, pt.Tensor) or (numbers and _is_number(value))
    if kind == "int":
        return _is_int(value)
    if kind == "float":
        return isinstance(value, (int, float, SymFloat, SymInt)) and not isinstance(value, bool)
    if kind == "Scalar":
        return _is_number(value)
    if kind == "bool":
        return isinstance(value, (bool, SymBool))
    checks: dict[str, Callable[[Any], bool]] = {
        "str": lambda v: isinstance(v, str),
        "ScalarType": lambda v: isinstance(v, pt.dtype),
        "Device": lambda v: isinstance(v, (pt.device, str)) or _is_int(v),
        "Layout": lambda v: isinstance(v, pt.layout),
        "MemoryFormat": lambda v: isinstance(v, pt.memory_format),
        "Generator": lambda v: isinstance(v, pt.Generator),
    }
    check = checks.get(kind)
    return check is not None and check(value)


def _cast(kind: str, value: Any) -> Any:
    """Return a value as a graph has it."""
    if value is None:
        return None
    kind = kind.removesuffix("?")
    if kind.endswith("]"):
        inner, _, size = kind[:-1].partition("[")
        if not isinstance(value, (list, tuple)):
            value = [value] * int(size or 1)
        elif size and len(value) == 1 and int(size) > 1:
            value = list(value) * int(size)
        return [_cast(inner, v) for v in value]
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind == "Device" and not isinstance(value, pt.device):
        return pt.device(value)
    return value


# Names by which some functions have their arguments, beside those of the signatures.
_ALIASES = {"input": "self", "axis": "dim", "tensors": "self", "x": "self"}


def _match(schema: Schema, args: Any, kwargs: dict[str, Any], numbers: bool) -> Any:
    """Return the arguments by place and by name, or None where they do not fit."""
    values: list[Any] = list(args)
    positional = [a for a in schema.arguments if not a.named]
    if len(values) > len(positional):
        # view(2, 3) for view([2, 3]).
        at = next((i for i, a in enumerate(positional) if a.kind.startswith("int[")), None)
        if at is None or at != len(positional) - 1 or not all(map(_is_int, values[at:])):
            return None
        values[at:] = [list(values[at:])]
    given = dict(zip((a.name for a in positional), values, strict=False))
    known = {a.name for a in schema.arguments}
    for key, value in kwargs.items():
        name = key if key in known else _ALIASES.get(key, key)
        if name not in known or name in given:
            if value is None or (key == "requires_grad" and not value):
                continue
            return None
        given[name] = value
    for a in schema.arguments:
        if a.name in given:
            value = given[a.name]
            if value is None and a.has_default and not a.kind.endswith("?"):
                given[a.name] = a.default  # what wrappers leave open
            elif not _fits(a.kind, value, numbers):
                return None
        elif not a.has_default and not a.kind.endswith("?"):
            return None
    return given


def _written(schema: Schema, given: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments as a graph has them: without the last ones that are the defaults."""
    places: list[Any] = []
    kept = 0
    for a in (a for a in schema.arguments if not a.named):
        value = _cast(a.kind, given.get(a.name, a.default))
        places.append(value)
        default = _cast(a.kind, a.default) if a.has_default else ...
        same = a.has_default and type(value) is type(default) and not isinstance(value, pt.Tensor)
        if not (same and value == default):
            kept = len(places)
    named = {}
    for a in (a for a in schema.arguments if a.named):
        if a.name not in given:
            continue
        value = _cast(a.kind, given[a.name])
        if value is None or (a.has_default and value == a.default):
            continue
        named[a.name] = value
    return tuple(places[:kept]), named


def bind(name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return the form of an operator that a call is, and its arguments as a graph has them.

    Parameters
    ----------
    name : str
        The operator's.
    args, kwargs : tuple, dict
        What its function was called with.

    Returns
    -------
    tuple or None
        The schema, the arguments by place and those by name; None where PyTorch has no such form.
    """
    forms = schemas(name)
    if not forms:
        return None
    try:
        likely = _form(name, args, kwargs)
    except Exception:
        likely = "default"
    for numbers in (False, True):
        found = []
        for schema in forms:
            given = _match(schema, args, kwargs, numbers)
            if given is not None:
                found.append((schema, given))
        if name in _TENSOR_FIRST and not numbers:
            mode = kwargs.get("rounding_mode") is not None
            first = "default" if name.startswith("floor_divide") else "Tensor"
            wanted = next(s for s in forms if s.overload == (first + "_mode" * mode))
            given = _match(wanted, args, kwargs, True)
            if given is not None and isinstance(args[0] if args else None, pt.Tensor):
                return (wanted, *_written(wanted, given))
        if likely == "correction" and "correction" not in kwargs:
            likely = "dim"
        if found:
            schema, given = next((f for f in found if f[0].overload == likely), found[0])
            return (schema, *_written(schema, given))
    return None


# Of these PyTorch makes a tensor of a number, and has no form for numbers in graphs.
_TENSOR_FIRST = frozenset(
    f"{name}{tail}"
    for name in "add sub mul div true_divide floor_divide multiply subtract divide".split()
    for tail in ("", "_")
)
