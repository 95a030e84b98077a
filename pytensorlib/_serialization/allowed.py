"""The names that a checkpoint may use when it is loaded with ``weights_only``."""

from __future__ import annotations

import contextlib
from collections import Counter, OrderedDict
from collections.abc import Iterator
from pickle import UnpicklingError
from typing import Any

import pytensorlib as pt

from .. import _C, _utils
from .._legacy.names import STORED
from .machine import CorruptCheckpointError

__all__ = [
    "add_safe_globals",
    "build_allowed",
    "clear_safe_globals",
    "find_allowed",
    "get_safe_globals",
    "is_allowed",
    "safe_globals",
]

_safe: list[Any] = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let ``load(weights_only=True)`` use these classes and functions.

    Each entry is the object, or a tuple of it and the full name that files know it by.

    Parameters
    ----------
    safe_globals : list
        Classes, functions, or tuples.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from fractions import Fraction
    >>> torch.serialization.add_safe_globals([Fraction])
    >>> torch.serialization.get_safe_globals()
    [<class 'fractions.Fraction'>]
    >>> torch.serialization.clear_safe_globals()
    """
    _safe.extend(entry for entry in safe_globals if entry not in _safe)


def get_safe_globals() -> list[Any]:
    """Return what `add_safe_globals` allowed.

    Returns
    -------
    list
        In no particular order.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.serialization.get_safe_globals()
    []
    """
    return list(_safe)


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` allowed.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.serialization.clear_safe_globals()
    """
    _safe.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Allow some classes and functions within a ``with`` block.

    Parameters
    ----------
    safe_globals : list
        As of `add_safe_globals`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from fractions import Fraction
    >>> with torch.serialization.safe_globals([Fraction]):
    ...     torch.serialization.get_safe_globals()
    [<class 'fractions.Fraction'>]
    """
    before = list(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe[:] = before


def _literal_bytearray(data: Any = b"", encoding: Any = None) -> bytearray:
    # bytearray(n) would allocate what the file says.
    if isinstance(data, str) and encoding == "latin-1":
        return bytearray(data, "latin-1")
    if not isinstance(data, bytes):
        raise CorruptCheckpointError(f"bytearray: needs bytes, got {type(data).__name__}")
    return bytearray(data)


def _latin_bytes(text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise CorruptCheckpointError(f"_codecs.encode: only text in latin1, got {encoding!r}")
    return text.encode("latin-1")


# What a file may call, and with what; the words are those of rust/base/src/pickle/check.rs.
CALLABLE: dict[str, tuple[Any, str]] = {
    "builtins.bytearray": (_literal_bytearray, "text|bytes? text? -> bytes"),
    "builtins.bytes": (bytes, "-> bytes key"),
    "builtins.complex": (complex, "number number? -> key"),
    "builtins.set": (set, "keys? -> any"),
    "_codecs.encode": (_latin_bytes, "text text? -> bytes key"),
    "collections.Counter": (Counter, "dict? -> dict"),
    "collections.OrderedDict": (OrderedDict, "pairs|dict? -> dict"),
    "torch.Size": (pt.Size, "ints? -> key"),
    "torch.device": (pt.device, "text int? -> key"),
    "torch._utils._rebuild_tensor": (_utils._rebuild_tensor, "storage int ints ints -> tensor key"),
    "torch._utils._rebuild_tensor_v2": (
        _utils._rebuild_tensor_v2,
        "storage int ints ints bool any any? -> tensor key",
    ),
    "torch._utils._rebuild_tensor_v3": (
        _utils._rebuild_tensor_v3,
        "storage int ints ints bool any value any? -> tensor key",
    ),
    "torch._utils._rebuild_meta_tensor_no_storage": (
        _utils._rebuild_meta_tensor_no_storage,
        "value ints ints bool -> tensor key",
    ),
    "torch._utils._rebuild_wrapper_subclass": (
        _utils._rebuild_wrapper_subclass,
        "value value ints ints int value key bool -> tensor key",
    ),
    "torch.serialization._get_layout": (_utils._get_layout, "text -> value"),
    "torch._utils._rebuild_sparse_tensor": (
        _utils._rebuild_sparse_tensor,
        "value tuple -> tensor key",
    ),
    "torch._utils._rebuild_parameter": (
        _utils._rebuild_parameter,
        "tensor bool any -> tensor key",
    ),
    "torch._utils._rebuild_parameter_with_state": (
        _utils._rebuild_parameter_with_state,
        "tensor bool any any -> tensor key",
    ),
    "torch._tensor._rebuild_from_type_v2": (
        _utils._rebuild_from_type_v2,
        "maker value tuple any -> tensor key",
    ),
}


class StorageKind:
    """A storage class named in a file: only good for a persistent id."""

    def __init__(self, name: str, dtype: Any) -> None:
        self.name, self.dtype = name, dtype

    def __repr__(self) -> str:
        return f"torch.{self.name}"


KINDS = {f"torch.{name}": StorageKind(name, dt) for dt, name in STORED.items()}
KINDS["torch.UntypedStorage"] = StorageKind("UntypedStorage", pt.uint8)
KINDS["torch.storage.UntypedStorage"] = KINDS["torch.UntypedStorage"]
CONSTANTS: dict[str, Any] = {
    **KINDS,
    **{f"torch.{str(dt).rpartition('.')[2]}": dt for dt in STORED},
    "torch.Tensor": pt.Tensor,
    "torch._tensor.Tensor": pt.Tensor,
}
CONSTANTS |= {f"torch.{name}": dt for name, dt in vars(_C).items() if isinstance(dt, pt.dtype)}
CONSTANTS["torch.nn.parameter.Parameter"] = CONSTANTS["torch.nn.Parameter"] = None


def full_name(module: str, name: str) -> str:
    if module == "__builtin__":
        module = "builtins"
    root, dot, rest = module.partition(".")
    module = "torch" + dot + rest if root == "pytensorlib" else module
    for owner in ("storage",):  # our storage classes live one level deeper
        if module == f"torch.{owner}" and f"torch.{name}" in KINDS:
            module = "torch"
    return f"{module}.{name}"


def _user_name(entry: Any) -> tuple[str, Any]:
    if isinstance(entry, tuple):
        return entry[1], entry[0]
    return full_name(entry.__module__, entry.__qualname__), entry


def find_allowed(module: str, name: str) -> tuple[Any, str | None]:
    full = full_name(module, name)
    if full in CALLABLE:
        return CALLABLE[full]
    if full.endswith("Parameter") and full in CONSTANTS:
        return pt.nn.Parameter, None
    if full in CONSTANTS:
        return CONSTANTS[full], None
    for entry in _safe:
        user, obj = _user_name(entry)
        if user in (full, f"{module}.{name}"):
            return obj, ""
    raise UnpicklingError(
        f"Unsupported global: GLOBAL {full} was not an allowed global by default. If you trust "
        f"it, allow it with `add_safe_globals([{name}])`"
    )


def is_allowed(module: str, name: str) -> bool:
    try:
        find_allowed(module, name)
    except UnpicklingError:
        return False
    return True


def build_allowed(obj: Any, state: Any) -> None:
    kind = type(obj)
    if kind is OrderedDict and isinstance(state, dict):
        for name in state:
            if not isinstance(name, str) or hasattr(OrderedDict, name):
                raise CorruptCheckpointError("an attribute of a dict would hide one of its own")
        obj.__dict__.update(state)  # the versions that a state_dict carries
        return
    if any(kind is _user_name(entry)[1] for entry in _safe):
        if hasattr(obj, "__setstate__"):
            obj.__setstate__(state)
        else:
            attributes, slots = state if isinstance(state, tuple) else (state, None)
            obj.__dict__.update(attributes or {})
            for name, value in (slots or {}).items():
                setattr(obj, name, value)
        return
    raise UnpicklingError(f"can only build state for allowed classes, but got {kind.__name__}")
