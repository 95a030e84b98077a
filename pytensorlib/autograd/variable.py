"""`Variable`: the old name of a tensor that records."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import _callbacks

__all__ = ["Variable"]


class _Engine:
    """The executor of backward passes, as far as programs ask it themselves."""

    def is_checkpoint_valid(self) -> bool:
        """Return True: parts of a graph may be computed again."""
        return True

    def queue_callback(self, callback: Any) -> None:
        """Let a function run at the end of the backward pass of this moment."""
        _callbacks.queue(callback)


class VariableMeta(type):
    """Makes every tensor a `Variable`."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, _C.Tensor)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, _C.Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(t)` is the tensor's data as a new leaf; every tensor is an instance.

    Parameters
    ----------
    data : Tensor
        Values, shared with the result.
    requires_grad : bool, default False
        Whether operations on the result are recorded.
    volatile : bool, default False
        Accepted from old scripts, without effect.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.zeros(1)
    >>> torch.autograd.Variable(x, requires_grad=True), isinstance(x, torch.autograd.Variable)
    (tensor([0.], requires_grad=True), True)
    """

    _execution_engine = _Engine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        if data is None:
            data = _C.empty((0,))
        return data.detach().requires_grad_(requires_grad)
