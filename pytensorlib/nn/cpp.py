"""Modules that another language keeps, seen as modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .module import Module

__all__ = ["ModuleWrapper", "OrderedDictWrapper"]


class OrderedDictWrapper:
    """A dictionary that is an attribute of an object, as it is at the moment.

    Parameters
    ----------
    cpp_module : object
        What has it.
    attr : str
        The attribute.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from pytensorlib.nn.cpp import OrderedDictWrapper
    >>> owner = SimpleNamespace(items={"a": 1})
    >>> seen = OrderedDictWrapper(owner, "items")
    >>> owner.items = {"b": 2}
    >>> list(seen), seen["b"]
    (['b'], 2)
    """

    def __init__(self, cpp_module: Any, attr: str) -> None:
        self.cpp_module, self.attr = cpp_module, attr

    @property
    def cpp_dict(self) -> Any:
        """The dictionary."""
        return getattr(self.cpp_module, self.attr)

    def items(self) -> Any:
        """Return its pairs."""
        return self.cpp_dict.items()

    def keys(self) -> Any:
        """Return its keys."""
        return self.cpp_dict.keys()

    def values(self) -> Any:
        """Return its values."""
        return self.cpp_dict.values()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.cpp_dict)

    def __len__(self) -> int:
        return len(self.cpp_dict)

    def __contains__(self, key: Any) -> bool:
        return key in self.cpp_dict

    def __getitem__(self, key: Any) -> Any:
        return self.cpp_dict[key]


class ModuleWrapper(Module):
    """A module whose parameters, buffers and children are those of another object.

    Parameters
    ----------
    cpp_module : object
        Has ``_parameters``, ``_buffers``, ``_modules``, ``training``, ``train`` and what it calls
        its own, all of which are the module's too.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.cpp import ModuleWrapper
    >>> net = ModuleWrapper(torch.nn.Linear(2, 1))
    >>> sum(p.numel() for p in net.parameters())
    3
    """

    def __init__(self, cpp_module: Any) -> None:
        object.__setattr__(self, "cpp_module", cpp_module)
        super().__init__()
        for name in ("_parameters", "_buffers", "_modules"):
            self.__dict__[name] = OrderedDictWrapper(cpp_module, name)
        for name in dir(cpp_module):
            if not name.startswith("_") and name != "training":
                self.__dict__[name] = getattr(cpp_module, name)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> ModuleWrapper:
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.data = fn(tensor.data)
            if tensor.grad is not None:
                tensor.grad.data = fn(tensor.grad.data)
        return self

    @property
    def training(self) -> bool:
        """Whether it is in training mode."""
        return self.cpp_module.training

    @training.setter
    def training(self, mode: bool) -> None:
        self.cpp_module.train(mode)

    def __repr__(self) -> str:
        return repr(self.cpp_module)
