"""Dual numbers: tensors that carry a tangent through what is computed of them.

A tangent is computed where it is asked for, by `unpack_dual`, from the recorded graph: the product
with the transposed Jacobian is linear in its vector, so two backwards give the product with the
Jacobian itself. Inside of a level duals therefore require grad, and everything is recorded, under
``no_grad`` too.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from .. import _C
from ._levels import Level, Linear, Watch

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent.

    Parameters
    ----------
    primal : Tensor
        The tensor.
    tangent : Tensor or None
        Of the same shape; None where the tensor depends on no dual.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     forward_ad.unpack_dual(torch.ones(2)).tangent is None
    True
    """

    primal: Any
    tangent: Any


class _Duals:
    """The level that is open: its duals and their tangents."""

    def __init__(self) -> None:
        self.level, self.tangents = Level(), list[Any]()
        self.watch, self.mode = Watch(forward=True), _C._Mode(True)
        self.watch.__enter__()
        self.mode.__enter__()

    def close(self) -> None:
        self.level.open = False
        self.mode.__exit__()
        self.watch.__exit__()


_open: list[_Duals] = []


def enter_dual_level() -> int:
    """Open a level, in which duals are made; `dual_level` closes it by itself.

    Returns
    -------
    int
        Its number.

    Raises
    ------
    RuntimeError
        One is open.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd import forward_ad
    >>> forward_ad.enter_dual_level()
    0
    >>> forward_ad.exit_dual_level()
    """
    if _open:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment: a dual level is open. "
            "torch.func.jvp nests."
        )
    _open.append(_Duals())
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level: its duals are no duals any more.

    Parameters
    ----------
    level : int, optional
        Its number; the open one by default.

    Raises
    ------
    RuntimeError
        None is open, or it has another number.

    Examples
    --------
    >>> from pytensorlib.autograd import forward_ad
    >>> number = forward_ad.enter_dual_level()
    >>> forward_ad.exit_dual_level(level=number)
    """
    if not _open or level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created."
        )
    _open.pop().close()


class dual_level(contextlib.ContextDecorator):
    """A ``with`` block in which duals are made and unpacked.

    Raises
    ------
    RuntimeError
        A level is open.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(torch.tensor([2.0, 3.0]), torch.tensor([1.0, 0.0]))
    ...     y = forward_ad.unpack_dual(x.square())
    >>> y.primal, y.tangent
    (tensor([4., 9.]), tensor([4., 0.]))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: Any) -> None:
        exit_dual_level()


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return a tensor like `tensor` that carries a tangent.

    Parameters
    ----------
    tensor : Tensor
        Of floating point or complex numbers.
    tangent : Tensor
        Of its shape and dtype.
    level : int, optional
        The number of the level; there is one at most.

    Returns
    -------
    Tensor
        It shares the memory of `tensor`, and requires grad.

    Raises
    ------
    RuntimeError
        No level is open, or the shapes or dtypes differ.
    ValueError
        Its numbers have no derivative.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     print(forward_ad.unpack_dual(x**2).tangent)
    tensor(6.)
    """
    if not _open or level not in (None, 0):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.dtype.is_floating_point or t.dtype.is_complex):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    if tensor.shape != tangent.shape or tensor.dtype != tangent.dtype:
        raise RuntimeError(
            "make_dual: Expected the tangent to have the shape and dtype of the primal: got a "
            f"primal of shape {tuple(tensor.shape)} and dtype {tensor.dtype}, and a tangent of "
            f"shape {tuple(tangent.shape)} and dtype {tangent.dtype}"
        )
    (duals,) = _open
    duals.tangents.append(tangent)
    with _C._Mode(True):
        return duals.level.enter(tensor)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor without its tangent, and the tangent.

    Parameters
    ----------
    tensor : Tensor
        Computed of duals, or not.
    level : int, optional
        The number of the level; there is one at most.

    Returns
    -------
    UnpackedDualTensor
        A pair with names ``primal`` and ``tangent``; the tangent is None where the tensor depends
        on no dual, or no level is open.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(torch.tensor([1.0, 2.0]), torch.ones(2))
    ...     print(forward_ad.unpack_dual(x.prod()).tangent)
    tensor(3.)
    """
    if not _open or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    (duals,) = _open
    at = duals.level
    create = at.recording and (
        at.reaches_out([tensor]) or any(t.requires_grad for t in duals.tangents)
    )
    (tangent,) = Linear(at, [tensor])(duals.tangents, create)
    (primal, *rest) = at.leave([tensor] if tangent is None else [tensor, tangent])
    return UnpackedDualTensor(primal, rest[0] if rest else None)
