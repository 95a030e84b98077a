"""Modes that see every operator below gradients, and classes of tensors that wrap others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytensorlib as pt

from .. import _C

__all__ = [
    "TorchDispatchMode",
    "any_torch_dispatch_mode_on_stack",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """Within a ``with`` block, answers for every operator below gradients, on this thread.

    A subclass defines ``__torch_dispatch__(self, func, types, args=(), kwargs=None)``. `func` is an
    operator such as ``torch.ops.aten.add.Tensor``; what the method returns is the result, and
    ``func(*args, **kwargs)`` computes it. While it works the mode is out of force. Gradients are
    attached above: what backward computes is seen as well, in the block.

    Notes
    -----
    Operators are named as PyTorch's dispatcher names them. Where one kernel here does what several
    do there, there is one call (``aten.cross_entropy_loss.default``); where a kernel takes
    parameters that the program did not give, `args` are its tensors and `func` keeps the rest: it
    equals the operator of its name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils._python_dispatch import TorchDispatchMode
    >>> class Log(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> with Log():
    ...     _ = (torch.ones(2) * 3).sum()
    aten.ones.default
    aten.mul.Tensor
    aten.sum.default
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError("TorchDispatchMode: there are no dispatch keys here")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __torch_dispatch__")

    def __enter__(self) -> Any:
        self.__dict__.setdefault("_in_force", []).append(_C._push_dispatch_mode(self))
        return self

    def __exit__(self, *error: Any) -> None:
        _C._pop_dispatch_mode(self.__dict__["_in_force"].pop())

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Return whether a compiler's own operators are left out; there are none here."""
        return False


def _get_current_dispatch_mode() -> Any:
    """Return the mode that is asked first, or None."""
    modes = _C._dispatch_modes()
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """Return the modes in force, the one that is asked first at the end."""
    return _C._dispatch_modes()


def _len_torch_dispatch_stack() -> int:
    """Return the number of modes in force."""
    return len(_C._dispatch_modes())


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Return whether a mode is in force on this thread.

    Parameters
    ----------
    include_infra_modes : bool
        Whether modes of a compiler count; there are none.

    Returns
    -------
    bool
        Whether there is one.

    Examples
    --------
    >>> from pytensorlib.utils._python_dispatch import is_in_torch_dispatch_mode
    >>> is_in_torch_dispatch_mode()
    False
    """
    return bool(_C._dispatch_modes())


def any_torch_dispatch_mode_on_stack(*, include_infra_modes: bool = True) -> bool:
    """Return whether a mode is in force on this thread.

    Parameters
    ----------
    include_infra_modes : bool
        Whether modes of a compiler count; there are none.

    Returns
    -------
    bool
        Whether there is one.

    Examples
    --------
    >>> from pytensorlib.utils._python_dispatch import any_torch_dispatch_mode_on_stack
    >>> any_torch_dispatch_mode_on_stack()
    False
    """
    return bool(_C._dispatch_modes())


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """Take all modes of this thread out of force for a block."""
    modes = _C._dispatch_modes()
    before = _C._leave_dispatch_modes()
    try:
        yield modes
    finally:
        _C._restore_dispatch_modes(before)


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """Take the mode that is asked first out of force for a block."""
    mode = _get_current_dispatch_mode()
    if mode is None:
        raise RuntimeError("_pop_mode_temporarily: there is no mode in force")
    entered = mode.__dict__["_in_force"]
    _C._pop_dispatch_mode(entered.pop())
    try:
        yield mode
    finally:
        entered.append(_C._push_dispatch_mode(mode))


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return what an operator of wrapping tensors is to return.

    Parameters
    ----------
    func : OpOverload
        The operator.
    args, kwargs : tuple, dict
        What it was called with.
    out : Tensor or tuple
        The results that were made for it.

    Returns
    -------
    Tensor or tuple
        The argument that the operator writes to, where it writes to one; else `out`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils._python_dispatch import return_and_correct_aliasing
    >>> x = torch.ones(1)
    >>> return_and_correct_aliasing(torch.ops.aten.add_.Tensor, (x, 1), {}, torch.ones(1)) is x
    True
    """
    if not func._schema.is_mutable:
        return out
    return (kwargs or {}).get("out", args[0])


def transform_subclass(
    t: Any,
    callback: Callable[[str, Any], Any],
    outer_size: Any = None,
    outer_stride: Any = None,
) -> Any:
    """Return a wrapping tensor made of what a function makes of the tensors inside another.

    Parameters
    ----------
    t : Tensor
        Of a class with ``__tensor_flatten__`` and ``__tensor_unflatten__``.
    callback : callable
        Gets the name and the value of each attribute that is a tensor.
    outer_size, outer_stride : tuple of int, optional
        Of the result; as `t` has them when left out.

    Returns
    -------
    Tensor
        Of the same class.

    Raises
    ------
    RuntimeError
        The result has another size or other strides.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils._python_dispatch import transform_subclass
    >>> class Boxed(torch.Tensor):
    ...     def __new__(cls, x):
    ...         return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def __tensor_flatten__(self):
    ...         return ["x"], None
    ...     @staticmethod
    ...     def __tensor_unflatten__(inner, context, size, stride):
    ...         return Boxed(inner["x"])
    ...     @classmethod
    ...     def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
    ...         return func(*(a.x if isinstance(a, Boxed) else a for a in args))
    >>> transform_subclass(Boxed(torch.ones(2)), lambda name, x: x * 3).x
    tensor([3., 3.])
    """
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    if tuple(made.shape) != tuple(outer_size) or tuple(made.stride()) != tuple(outer_stride):
        raise RuntimeError(
            f"transform_subclass: expected a {type(t).__name__} of size {tuple(outer_size)} and "
            f"strides {tuple(outer_stride)}, got {tuple(made.shape)} and {tuple(made.stride())}"
        )
    return made


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
