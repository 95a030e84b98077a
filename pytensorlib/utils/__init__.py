"""Utilities for training programs."""

import importlib
import weakref
from typing import Any

from . import data, deterministic, dlpack, hooks

# Loaded when first used.
_LATER = {
    "_python_dispatch",
    "_pytree",
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "flop_counter",
    "mkldnn",
    "mobile_optimizer",
    "model_zoo",
    "module_tracker",
    "tensorboard",
}

__all__ = ["data", "deterministic", "dlpack", "hooks", "set_module", "swap_tensors"]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def set_module(obj: Any, mod: str) -> None:
    """Let a function or class say that it is of a module.

    Parameters
    ----------
    obj : object
        Its ``__module__`` is set.
    mod : str
        The name of the module.

    Raises
    ------
    TypeError
        `mod` is no string.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> def f(): ...
    >>> torch.utils.set_module(f, "mine")
    >>> f.__module__
    'mine'
    """
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange two tensors: memory, place in the graph, attributes and class.

    Parameters
    ----------
    t1, t2 : Tensor
        Of slots that fit; no weak references to them.

    Raises
    ------
    RuntimeError
        One of them is held by a weak reference or a hook.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> a, b = torch.zeros(1), torch.ones(2)
    >>> torch.utils.swap_tensors(a, b)
    >>> a, b
    (tensor([1., 1.]), tensor([0.]))
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    if type(t1) is not type(t2):
        t1.__class__, t2.__class__ = type(t2), type(t1)
    first, second = dict(t1.__dict__), dict(t2.__dict__)
    for tensor, attributes in ((t1, second), (t2, first)):
        tensor.__dict__.clear()
        tensor.__dict__.update(attributes)
    t1._exchange(t2)
