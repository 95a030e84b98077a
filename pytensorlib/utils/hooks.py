"""Handles of registered hooks, and hooks that cannot be pickled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from .. import _alias
from ..nn._hooks import BackwardHook, RemovableHandle

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

_alias.adopt(globals(), ["BackwardHook", "RemovableHandle"])

F = TypeVar("F", bound=Callable[..., Any])


def unserializable_hook(f: F) -> F:
    """Mark a hook of a tensor as one that may be left out of a pickle without a warning.

    Parameters
    ----------
    f : callable
        The hook.

    Returns
    -------
    callable
        The same one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> hook = torch.utils.hooks.unserializable_hook(lambda grad: None)
    """
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn that the hooks of a tensor are not pickled with it.

    Parameters
    ----------
    tensor : Tensor
        Any.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.utils.hooks.warn_if_has_hooks(torch.ones(1))
    """
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to "
                "suppress this warning",
                stacklevel=2,
            )
