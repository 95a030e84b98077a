"""Layers, losses and the containers to build models from."""

from typing import Any

from . import functional, grad, init, modules, utils
from .module import Module
from .modules import *  # noqa: F403
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "Module",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "factory_kwargs",
    "functional",
    "init",
    "modules",
    "utils",
]
__all__ += modules.__all__


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return what of a layer's arguments is for functions that make tensors.

    Parameters
    ----------
    kwargs : dict
        ``device``, ``dtype``, ``memory_format``, or these in a dict under ``factory_kwargs``.

    Returns
    -------
    dict
        To be passed to `torch.empty` and the like.

    Raises
    ------
    TypeError
        There is something else, or one is there twice.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": int}})
    {'dtype': <class 'int'>, 'device': 'cpu'}
    """
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    if unknown := set(kwargs) - known - {"factory_kwargs"}:
        raise TypeError(f"factory_kwargs: unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    if unknown := set(found) - known:
        raise TypeError(f"factory_kwargs: unexpected kwargs {unknown}")
    for name in sorted(known & set(kwargs)):
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found


# Loaded when first used.
_LATER = {
    "DataParallel": "parallel",
    "LinearCrossEntropyOptions": "modules.linear_cross_entropy_options",
    "attention": "",
    "cpp": "",
    "parallel": "",
    "parameter": "",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_LATER[name] or name}")
    return getattr(home, name) if _LATER[name] else home
