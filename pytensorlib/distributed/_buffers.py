"""Memory that MPI reads and writes: a tensor's own where it is plain, a copy elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pytensorlib as pt

__all__ = [
    "Room",
    "check_count",
    "check_own",
    "checked",
    "checked_list",
    "counted",
    "joined",
    "numbers",
    "same_types",
    "sent",
    "settle_all",
    "shown",
    "size_of",
    "sizes_of",
    "split",
    "write",
]

BYTE = np.uint8


def checked(call: str, name: str, value: Any) -> Any:
    """Return a tensor whose elements have memory of their own kind.

    Raises
    ------
    TypeError
        It is no tensor.
    RuntimeError
        It is sparse, or has no data.
    """
    if not isinstance(value, pt.Tensor):
        raise TypeError(
            f"{call}: Invalid function argument. Expected parameter `{name}` of type torch.Tensor "
            f"but got {type(value)} instead."
        )
    if value.layout != pt.strided or value.device.type == "meta":
        raise RuntimeError(
            f"{call}: `{name}` must be a dense tensor with data, got layout {value.layout} on "
            f"{value.device}; send its indices and values instead"
        )
    return value


def checked_list(call: str, name: str, values: Any) -> list[Any]:
    """Return a list of such tensors of one type."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, pt.Tensor) for v in values):
        kinds = [type(v) for v in values] if isinstance(values, (list, tuple)) else type(values)
        raise TypeError(
            f"{call}: Invalid function argument. Expected parameter `{name}` of type "
            f"List[torch.Tensor] but got {kinds} instead."
        )
    tensors = [checked(call, name, v) for v in values]
    same_types(call, tensors)
    return tensors


def same_types(call: str, tensors: Sequence[Any]) -> None:
    """Raise where tensors differ in type."""
    found = list(dict.fromkeys(t.dtype for t in tensors))
    if len(found) > 1:
        raise ValueError(
            f"{call}: Invalid usage of tensors with different dtypes: found "
            + " and ".join(map(str, found))
        )


def check_count(call: str, name: str, tensors: Sequence[Any], size: int) -> None:
    """Raise where there is not one tensor for each process."""
    if len(tensors) != size:
        raise RuntimeError(
            f"{call}: invalid {name}: expected length {size}, one tensor for each process, "
            f"got {len(tensors)}"
        )


def check_own(call: str, name: str, tensors: Sequence[Any], tensor: Any, place: int) -> None:
    """Raise where the place of this process does not fit its tensor."""
    same_types(call, [*tensors, tensor])
    if tensors[place].numel() != tensor.numel():
        raise RuntimeError(
            f"{call}: invalid tensor size at index {place} of {name} (expected "
            f"{tuple(tensor.shape)}, got {tuple(tensors[place].shape)})"
        )


def shown(x: Any) -> str:
    """Return a tensor's type and shape, for messages."""
    return f"{str(x.dtype).rpartition('.')[2]} {list(x.shape)}"


def counted(x: Any) -> str:
    """Return what two processes' tensors must share for a call to be right: type and size."""
    return f"{x.dtype} {x.numel()}"


def is_plain(x: Any) -> bool:
    """Return whether MPI may use a tensor's own memory."""
    return x.device.type == "cpu" and x.is_contiguous()


def memory(x: Any) -> np.ndarray:
    """Return the bytes of a contiguous tensor on the CPU."""
    return x.detach().reshape(-1).view(pt.uint8).numpy()


def numbers(x: Any) -> np.ndarray:
    """Return the elements of a contiguous tensor on the CPU."""
    return x.detach().reshape(-1).numpy()


def sent(x: Any) -> np.ndarray:
    """Return the bytes of a tensor's elements in order."""
    return memory(x.detach().cpu().contiguous())


def write(x: Any, value: Any) -> None:
    """Write values to a tensor, also to one that requires grad."""
    with pt.no_grad():
        x.detach().copy_(value)


class Room:
    """Where the elements of one tensor arrive.

    Parameters
    ----------
    x : Tensor
        Written to: at once where its memory can be used, by `settle` elsewhere.
    """

    def __init__(self, x: Any) -> None:
        self.x = x
        self._own = is_plain(x)
        self._at = x.detach() if self._own else pt.empty(x.shape, dtype=x.dtype)
        self.bytes = memory(self._at)

    def load(self) -> None:
        """Bring what the tensor holds to where MPI reads it."""
        if not self._own:
            write(self._at, self.x)

    def settle(self) -> None:
        """Let the tensor have what arrived."""
        if self._own:
            pt.autograd.graph.increment_version(self.x)
        else:
            write(self.x, self._at)

    def settle_columns(self, n: int, part: tuple[int, int]) -> None:
        """Let the tensor have the columns from ``part[0]`` to ``part[1]`` of its rows of `n`."""
        if self._own or not self.x.is_contiguous():
            if part[1] == n:
                self.settle()
            return
        columns = slice(*part)
        write(self.x.detach().view(-1, n)[:, columns], self._at.view(-1, n)[:, columns])


def split(flat: np.ndarray, tensors: Sequence[Any]) -> None:
    """Write consecutive bytes to tensors."""
    start = 0
    for x in tensors:
        size = x.numel() * x.element_size()
        part = pt.from_numpy(flat[start : start + size]).view(x.dtype).reshape(x.shape)
        write(x, part)
        start += size


def size_of(x: Any) -> int:
    """Return how many bytes a tensor's elements take."""
    return x.numel() * x.element_size()


def sizes_of(tensors: Sequence[Any]) -> list[int]:
    """Return how many bytes each tensor's elements take."""
    return [size_of(x) for x in tensors]


def joined(tensors: Sequence[Any]) -> np.ndarray:
    """Return the bytes of several tensors, one after the other."""
    return np.concatenate([sent(x) for x in tensors]) if tensors else np.empty(0, BYTE)


def settle_all(rooms: Sequence[Room]) -> Callable[[Any], None]:
    """Return what settles several rooms."""

    def finish(_: Any) -> None:
        for room in rooms:
            room.settle()

    return finish
