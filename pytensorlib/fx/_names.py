"""Names of functions and types in graphs, and the objects that have those names."""

from __future__ import annotations

import builtins
import keyword
import re
import types
from collections import defaultdict
from typing import Any, NamedTuple

import pytensorlib as pt

from .._absent.modules import shown

__all__ = [
    "INPLACE",
    "MAGIC",
    "REFLECTED",
    "Namespace",
    "from_torch",
    "qualified",
    "snake_case",
    "type_name",
]

# How generated code writes functions of `operator`.
MAGIC = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}",
    "ge": "{} >= {}", "pos": "+{}", "neg": "-{}", "invert": "~{}", "getitem": "{}[{}]",
}  # fmt: skip
REFLECTED = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}",
    "truediv": "{} / {}", "div": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}",
    "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
INPLACE = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}",
    "imod": "{} %= {}", "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}",
    "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip

OURS = {__name__.partition(".")[0], "pytensorlib", "torch"}


class Builtin(NamedTuple):
    """A name that generated code has, and how a file of that code makes it."""

    import_str: str
    obj: Any


def home(module: str) -> str:
    """Return the name by which users know one of our modules; other names stay."""
    return shown(module) if module.partition(".")[0] in OURS else module


def _public(func: Any, name: str) -> str | None:
    """Return the module in which PyTorch has a function of the extension."""
    if getattr(getattr(pt._C, "_nn", None), name, None) is func and not hasattr(pt, name):
        return "torch._C._nn"
    for place, module in (("torch", pt), ("torch.nn.functional", pt.nn.functional)):
        if getattr(module, name, None) is func:
            return place
    return None


def module_of(func: Any) -> str:
    """Return the module that has a function, by the name that users know."""
    module: Any = getattr(func, "__module__", None)
    name = func.__name__
    if module is None or module.partition(".")[0] in OURS:
        found = _public(func, name)
        if found is not None and not isinstance(func, types.FunctionType | type):
            return found
    if module is None:
        raise RuntimeError(f"cannot find module for {func}")
    return home(module)


# Where PyTorch has the functions of these families, and with what their names begin there.
_FAMILIES = {f"torch._C._{family}": family for family in ("fft", "linalg", "special")}


class _Family:
    """The functions of a family, by PyTorch's private names: ``linalg_norm``."""

    def __init__(self, family: str) -> None:
        self._family = family

    def __getattr__(self, name: str) -> Any:
        prefix, _, rest = name.partition("_")
        if prefix != self._family:
            raise AttributeError(name)
        return getattr(getattr(pt, self._family), rest)


def short_name(func: Any) -> str:
    """Return a function's name as PyTorch's graphs have it."""
    name: str = func.__name__
    module = getattr(func, "__module__", None)
    family = _FAMILIES.get(home(module)) if isinstance(module, str) else None
    return name if family is None or name.startswith(f"{family}_") else f"{family}_{name}"


def qualified(func: Any) -> str:
    """Return a function's name with the module that it is found in, such as ``torch.add``."""
    short: str = getattr(func, "__name__", "")
    if func is not None and getattr(builtins, short, None) is func:
        return short
    if isinstance(func, types.MethodType):
        owner: Any = func.__self__
        return f"{qualified(owner)}.{func.__name__}"
    name: str = func.__name__
    kind: Any = getattr(func, "__objclass__", None)
    if isinstance(kind, type) and issubclass(pt.Tensor, kind):
        return f"torch.Tensor.{name}"
    if name == "<lambda>":
        import inspect

        name = inspect.getsource(func).split("=")[0].strip()
    module = module_of(func).replace("torch._ops", "torch.ops")
    return f"{module}.{short_name(func) if name != '<lambda>' else name}"


def from_torch(obj: Any) -> bool:
    """Return whether generated code can reach an object by ``torch.``."""
    module = getattr(obj, "__module__", None)
    if module is not None:
        return module.partition(".")[0] in OURS
    name = getattr(obj, "__name__", None)
    # A global function of a submodule of ours that has no module.
    return (
        name is not None
        and name != "torch"
        and any(getattr(place, name, None) is obj for place in (pt, pt.nn.functional))
    )


def reaches(name: str, obj: Any) -> bool:
    """Return whether a name that begins with ``torch`` leads to an object."""
    at: Any = pt
    for part in name.split(".")[1:]:
        at = getattr(at, part, None)
    return at is obj or (isinstance(at, type(obj)) and bool(at == obj))


def type_name(obj: Any) -> str:
    """Return a type as generated code writes it."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return f"{home(obj.__module__)}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj)


_camel = re.compile(r"(?<=[a-z])([A-Z])")


def snake_case(text: str) -> str:
    """Return ``camelCase`` as ``camel_case``."""
    return _camel.sub(r"_\1", text).lower()


BUILTINS: dict[str, Builtin] = {}


def builtin_names() -> dict[str, Builtin]:
    """Return the names that generated code always has."""
    if not BUILTINS:
        from ..utils import _pytree as pytree
        from . import _pytree as fx_pytree

        own = pt.__name__
        for family in _FAMILIES.values():
            if not hasattr(pt._C, f"_{family}"):
                setattr(pt._C, f"_{family}", _Family(family))
        as_torch = "import torch" if own == "torch" else f"import {own} as torch"
        for name, text, obj in (
            ("inf", "from math import inf", float("inf")),
            ("nan", "from math import nan", float("nan")),
            ("NoneType", "NoneType = type(None)", type(None)),
            ("torch", as_torch, pt),
            ("device", f"from {own} import device", pt.device),
            ("fx_pytree", f"import {own}.fx._pytree as fx_pytree", fx_pytree),
            ("pytree", f"import {own}.utils._pytree as pytree", pytree),
        ):
            BUILTINS[name] = Builtin(text, obj)
    return BUILTINS


class _Same:
    """An operator that keeps the parameters of one call; those of others are other objects."""

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.obj is self.obj

    def __hash__(self) -> int:
        return id(self.obj)


class Namespace:
    """Gives out names that are valid in Python and that nothing else has.

    Examples
    --------
    >>> from pytensorlib.fx.graph import _Namespace
    >>> names = _Namespace()
    >>> names.create_name("relu", None), names.create_name("relu", None)
    ('relu', 'relu_1')
    """

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = defaultdict(int)

    def create_name(self, candidate: str, obj: Any) -> str:
        """Return a name like `candidate`, the same each time where an object is given."""
        if hasattr(obj, "_op"):
            obj = _Same(obj)
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.match(r"(.*)_(\d+)$", candidate)
        base, num = (candidate, None) if match is None else (match[1], int(match[2]))
        candidate = base if num is None else f"{base}_{num}"
        if not num:
            num = self._base_count[base]
        while candidate in self._used_names or self._is_illegal_name(candidate, obj):
            num += 1
            candidate = f"{base}_{num}"
        self._used_names.add(candidate)
        self._base_count[base] = num
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Keep a name that was given out for an object."""
        self._obj_to_name.setdefault(obj, name)

    def _is_illegal_name(self, name: str, obj: Any) -> bool:
        if name in keyword.kwlist:
            return True
        if name in vars(builtins):
            return vars(builtins)[name] is not obj
        known = builtin_names().get(name)
        return known is not None and known.obj is not obj

    def _rename_object(self, obj: Any, name: str) -> None:
        self._obj_to_name[obj] = name
        self._used_names.add(name)
