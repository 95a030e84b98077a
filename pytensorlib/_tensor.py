"""What `Tensor` does in Python: printing, copying, pickling and the entry to autograd.

The functions here become methods of `_C.Tensor` when the package is imported, by `attach`.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from . import _C
from ._tensor_str import _str

__all__ = ["attach"]


class _Methods:
    """The methods; `self` is a tensor in all of them."""

    # NumPy's own operators must leave `array + tensor` to the tensor.
    __array_priority__ = 1000

    def __repr__(self: Any, *, tensor_contents: str | None = None) -> str:
        return _str(self, tensor_contents=tensor_contents)

    def __format__(self: Any, spec: str) -> str:
        # A subclass still shows its name where no number format is asked for.
        if self.dim() == 0 and (spec or type(self).__name__ == "Tensor"):
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __iter__(self: Any) -> Iterator[Any]:
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self: Any) -> Any:
        return self if self.dim() == 0 else self.flip(0)

    def __contains__(self: Any, item: Any) -> bool:
        if isinstance(item, (_C.Tensor, int, float, complex, bool)):
            return bool((item == self).any().item())
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(item)}."
        )

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None:
            array = array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def __array_wrap__(self: Any, array: Any, context: Any = None, scalar: bool = False) -> Any:
        if array.dtype == bool:
            # NumPy's comparisons give arrays that are not writable when 0-d.
            array = np.array(array)
        return _C.from_numpy(np.asarray(array))

    def __copy__(self: Any) -> Any:
        # A shallow copy is another handle on the same data.
        return _rebuilt(type(self), self.detach(), self.requires_grad, self.__dict__)

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the "
                "deepcopy protocol at the moment. Call .detach() first to copy the values."
            )
        if id(self) in memo:
            return memo[id(self)]
        # Tensors that share memory go on sharing it in the copy.
        storage = deepcopy(self.untyped_storage(), memo)
        data = _C.empty((0,), dtype=self.dtype, device=self.device)
        data.set_(storage, self.storage_offset(), tuple(self.shape), self.stride())
        copied = _rebuilt(type(self), data, self.requires_grad, {})
        memo[id(self)] = copied
        if self.grad is not None:
            copied.grad = deepcopy(self.grad, memo)
        copied.__dict__.update(deepcopy(self.__dict__, memo))
        return copied

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        # A tensor on another device comes back on the CPU of whoever reads it.
        values = self.detach().cpu().contiguous()
        raw = values.reshape(-1).view(_C.uint8).numpy().tobytes() if values.numel() else b""
        state = (type(self), raw, str(self.dtype), tuple(self.shape), self.requires_grad)
        return _unpickled, (*state, dict(self.__dict__))

    def backward(
        self: Any,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradients of this tensor to the ``.grad`` of the leaves it came from.

        Parameters
        ----------
        gradient : Tensor, optional
            What enters here; 1 if not given, for a tensor of one element.
        retain_graph, create_graph, inputs
            As in `autograd.backward`.
        """
        from . import autograd

        autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def _rebuilt(cls: type, data: Any, requires_grad: bool, attributes: dict[str, Any]) -> Any:
    """Return `data` as a tensor of class `cls` with the attributes of the one it replaces."""
    if cls is not _C.Tensor:
        data = data.as_subclass(cls)
    data.requires_grad_(requires_grad)
    data.__dict__.update(attributes)
    return data


def _unpickled(
    cls: type,
    raw: bytes,
    dtype: str,
    shape: tuple[int, ...],
    requires_grad: bool,
    attributes: dict[str, Any],
) -> Any:
    """Make the tensor that `__reduce_ex__` took apart."""
    wanted = getattr(_C, dtype.rpartition(".")[2])
    if raw:
        data = _C.from_numpy(np.frombuffer(bytearray(raw), dtype=np.uint8)).view(wanted)
        data = data.reshape(shape)
    else:
        data = _C.empty(shape, dtype=wanted)
    return _rebuilt(cls, data, requires_grad, attributes)


def attach(tensor_class: Any) -> None:
    """Give the methods above to `tensor_class`."""
    for name, value in vars(_Methods).items():
        if callable(value) or name == "__array_priority__":
            setattr(tensor_class, name, value)
