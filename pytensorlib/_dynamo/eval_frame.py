"""Names of PyTorch's compiler that tell whether it is there."""

from __future__ import annotations

from typing import Any

from .. import nn
from .._compile.matched import Compiled

__all__ = ["OptimizedModule", "is_dynamo_supported", "is_inductor_supported"]


class OptimizedModule(nn.Module):
    """What `torch.compile` makes of a module: its calls are matched with those before.

    Attributes are the module's own, whether they are read, set or deleted, but for hooks that are
    registered here.

    Parameters
    ----------
    mod : Module
        The module, which is ``_orig_mod`` here.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.compile(torch.nn.Linear(2, 1))
    >>> type(net).__name__, list(net.state_dict())
    ('OptimizedModule', ['_orig_mod.weight', '_orig_mod.bias'])
    >>> net.note = "kept"
    >>> net.in_features, net._orig_mod.note
    (2, 'kept')
    """

    def __init__(self, mod: Any) -> None:
        super().__init__()
        super().__setattr__("_orig_mod", mod)
        super().__delattr__("training")
        self.__dict__["_compiled"] = Compiled(mod)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # What is set while the module itself is made is its own.
        if "_compiled" in self.__dict__ and name not in self.__dict__ and name != "_orig_mod":
            setattr(self._orig_mod, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __iter__(self) -> Any:
        return iter(self._orig_mod)

    def __getitem__(self, index: Any) -> Any:
        return self._orig_mod[index]

    def __bool__(self) -> bool:
        return True

    def __reduce__(self) -> Any:
        return OptimizedModule, (self._orig_mod,)


def is_dynamo_supported() -> bool:
    """Return False: calls are matched, and PyTorch's compiler is not here."""
    return False


def is_inductor_supported() -> bool:
    """Return False: calls are matched, and PyTorch's compiler is not here."""
    return False
