"""Names of PyTorch's compiler that tell whether it is there."""

from __future__ import annotations

from typing import Any

from .. import nn
from .._graph import Recorded

__all__ = ["OptimizedModule", "is_dynamo_supported", "is_inductor_supported"]


class OptimizedModule(nn.Module):
    """What `torch.compile` makes of a module: its calls are recorded and run again.

    Parameters
    ----------
    mod : Module
        The module, which is ``_orig_mod`` here. Attributes that this one lacks are its own.
    fullgraph : bool, default False
        Raise where a call cannot be run again.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.compile(torch.nn.Linear(2, 1))
    >>> type(net).__name__, list(net.state_dict())
    ('OptimizedModule', ['_orig_mod.weight', '_orig_mod.bias'])
    >>> net.in_features
    2
    """

    def __init__(self, mod: Any, fullgraph: bool = False) -> None:
        super().__init__()
        self._orig_mod = mod
        self.training = mod.training
        self.__dict__["_recorded"] = Recorded(mod, "torch.compile", fullgraph)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module, or run what it was recorded to do."""
        return self._recorded(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod":
                raise
            return getattr(self._orig_mod, name)

    def __reduce__(self) -> Any:
        return OptimizedModule, (self._orig_mod, self._recorded._full)


def is_dynamo_supported() -> bool:
    """Return False: calls are recorded, and PyTorch's compiler is not here."""
    return False


def is_inductor_supported() -> bool:
    """Return False: calls are recorded, and PyTorch's compiler is not here."""
    return False
