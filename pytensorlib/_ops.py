"""``torch.ops``: operators by namespace and name, ours and those that programs define."""

from __future__ import annotations

import importlib
from typing import Any

import pytensorlib as pt

__all__ = ["OpOverload", "OpOverloadPacket", "Operators", "registered"]

# Operators that programs defined, by "namespace::name"; `torch.library` fills it.
registered: dict[str, Any] = {}

# Where the operators of PyTorch's own namespace are found, in this order.
_HOMES = ("", "nn.functional", "special", "linalg", "fft", "Tensor", "_C._nn")


class OpOverload:
    """One form of an operator: ``torch.ops.aten.add.Tensor``."""

    def __init__(self, packet: OpOverloadPacket, name: str) -> None:
        self.overloadpacket, self._overloadname = packet, name
        self._qualified_op_name = packet._qualified_op_name
        self.__name__ = f"{packet.__name__}.{name}"
        self.__module__ = packet.__module__
        self.namespace = packet._namespace

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def name(self) -> str:
        """Return ``namespace::name.form``."""
        form = "" if self._overloadname == "default" else f".{self._overloadname}"
        return self._qualified_op_name + form

    __str__ = name

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._qualified_op_name}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An operator with all its forms, which are one function here: ``torch.ops.aten.add``."""

    def __init__(self, namespace: str, name: str, function: Any) -> None:
        self._namespace, self._function = namespace, function
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__, self.__module__ = name, f"torch.ops.{namespace}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'{self}' has no attribute {name!r}")
        form = self.__dict__[name] = OpOverload(self, name)
        return form

    def overloads(self) -> list[str]:
        """Return the names of the forms that were asked for, and "default"."""
        return ["default", *(n for n, v in vars(self).items() if isinstance(v, OpOverload))]

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class _Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self.name, self.__name__ = name, f"torch.ops.{name}"

    def __getattr__(self, name: str) -> Any:
        found = registered.get(f"{self.name}::{name}")
        if found is None and self.name in ("aten", "prim", "prims"):
            found = _ours(name)
        if found is None or name.startswith("__"):
            raise AttributeError(
                f"'_OpNamespace' '{self.name}' object has no attribute '{name}': no such operator "
                "is here; torch.library.custom_op defines operators"
            )
        packet = self.__dict__[name] = OpOverloadPacket(self.name, name, found)
        return packet


def _ours(name: str) -> Any:
    for home in _HOMES:
        place: Any = pt
        for part in home.split(".") if home else ():
            place = getattr(place, part, None)
        found = getattr(place, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    return None


class Operators:
    """What `torch.ops` is: a namespace for each attribute."""

    loaded_libraries: set[str]

    def __init__(self) -> None:
        self.loaded_libraries = set()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"torch.ops has no attribute {name!r}")
        space = self.__dict__[name] = _Namespace(name)
        return space

    def load_library(self, path: Any) -> None:
        """Raise: libraries compiled for PyTorch's C++ need PyTorch.

        Raises
        ------
        OSError
            Always, so that programs go on without the library.
        """
        raise OSError(
            f"torch.ops.load_library: {path} needs PyTorch's C++ libraries, which are not here; "
            "torch.library.custom_op makes an operator of a Python function"
        )

    def import_module(self, module: str) -> None:
        """Import a Python module that defines operators."""
        importlib.import_module(module)


ops = Operators()
