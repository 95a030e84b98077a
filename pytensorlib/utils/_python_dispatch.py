"""Classes of tensors that wrap other tensors, as compilers take them apart."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

__all__ = ["is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type"]


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Return whether `t` is a tensor of a class that says how it is taken apart.

    Parameters
    ----------
    t : object
        Anything.

    Returns
    -------
    bool
        True for tensors of subclasses with ``__tensor_flatten__`` and ``__tensor_unflatten__``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils._python_dispatch import is_traceable_wrapper_subclass
    >>> is_traceable_wrapper_subclass(torch.ones(1))
    False
    """
    return isinstance(t, pt.Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Return whether a class of tensors says how it is taken apart.

    Parameters
    ----------
    t : type
        Any class.

    Returns
    -------
    bool
        True for subclasses with ``__tensor_flatten__`` and ``__tensor_unflatten__``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils._python_dispatch import is_traceable_wrapper_subclass_type
    >>> is_traceable_wrapper_subclass_type(torch.Tensor)
    False
    """
    return (
        issubclass(t, pt.Tensor)
        and t is not pt.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )
